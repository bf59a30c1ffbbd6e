/// A number of one byte that stands for something, from a list that the specification may extend: an unknown number is
/// kept, not refused.
public protocol AssignedCode: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable where RawValue == UInt8 {
    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    var name: String? { get }

    /// The code with this number.
    init(rawValue: UInt8)
}

extension AssignedCode {
    /// Reads 1 byte.
    ///
    /// - Throws: `MalformedPacket` when there is none.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        self.init(rawValue: try reader.read(UInt8.self))
    }

    /// Appends 1 byte.
    public func write(to writer: inout ByteWriter) {
        writer.u8(rawValue)
    }

    /// The name for people and programs, or the number where there is none.
    package var content: ValueField.Content {
        if let name { .text(name) } else { .integer(Int64(rawValue)) }
    }
}

extension DescribedValue where Self: AssignedCode {
    package var fields: [ValueField] { [ValueField(content)] }
}

extension OptionSet where Self: GATTReadable, RawValue: FixedWidthInteger & GATTReadable {
    /// Reads as many bytes as the bits take; bits without a meaning are kept.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        self.init(rawValue: try reader.read())
    }
}

extension OptionSet where Self: GATTWritable, RawValue: FixedWidthInteger & GATTWritable {
    /// Appends as many bytes as the bits take.
    public func write(to writer: inout ByteWriter) {
        writer.write(rawValue)
    }
}
