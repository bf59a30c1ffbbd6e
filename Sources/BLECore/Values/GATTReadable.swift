/// A type whose values can be read from the bytes of a characteristic or descriptor.
///
/// A type of one's own reads its fields in their order and lets the reader throw:
///
/// ```swift
/// struct TankLevel: GATTReadable {
///     let litres: UInt16
///     let alarm: Bool
///
///     init(reading reader: inout ByteReader) throws(MalformedPacket) {
///         litres = try reader.read()
///         alarm = try reader.read()
///     }
/// }
/// ```
public protocol GATTReadable: SendableMetatype {
    /// What an error calls the format, such as "Heart Rate Measurement".
    static var formatName: String { get }

    /// Reads one value and leaves the reader behind it.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early or say what the format does not allow.
    init(reading reader: inout ByteReader) throws(MalformedPacket)
}

extension GATTReadable {
    /// "the value", for a type that does not name its format.
    public static var formatName: String { "the value" }

    /// Reads a whole value; bytes that are left over are an error.
    ///
    /// - Throws: `MalformedPacket`, with ``formatName`` as its format.
    public init(value: [UInt8]) throws(MalformedPacket) {
        var reader = ByteReader(value.span)
        do {
            self = try Self(reading: &reader)
        } catch {
            throw MalformedPacket(format: Self.formatName, offset: error.offset, reason: error.reason)
        }
        if !reader.isAtEnd {
            let reason = MalformedPacket.Reason.trailingBytes(reader.remaining)
            throw MalformedPacket(format: Self.formatName, offset: reader.offset, reason: reason)
        }
    }
}

/// A type whose values can be written to a characteristic or descriptor.
public protocol GATTWritable: SendableMetatype {
    /// Appends the bytes of this value.
    func write(to writer: inout ByteWriter)
}

extension GATTWritable {
    /// The bytes of this value alone.
    public var valueBytes: [UInt8] {
        var writer = ByteWriter()
        write(to: &writer)
        return writer.bytes
    }
}
