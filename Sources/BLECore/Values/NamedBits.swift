/// A set of named bits, such as the features of a sensor or its warnings.
///
/// A bit without a name is preserved in the raw value and omitted from the names.
package protocol NamedBits: OptionSet, DescribedValue where RawValue: FixedWidthInteger {
    /// The names from bit 0, in lowercase; empty for bits that are reserved or part of a number.
    static var names: [String] { get }
}

extension NamedBits {
    /// The names of the set bits, lowest bit first.
    package var words: [String] {
        var words: [String] = []
        for (bit, name) in Self.names.enumerated() where !name.isEmpty {
            if rawValue >> RawValue(truncatingIfNeeded: bit) & 1 == 1 { words.append(name) }
        }
        return words
    }

    /// The names as field content.
    package var content: ValueField.Content {
        var items: [ValueField.Content] = []
        for word in words { items.append(.text(word)) }
        return .list(items)
    }

    package var fields: [ValueField] { [ValueField("", content)] }
}

/// A named code. Codes without a name are valid values too.
package protocol NamedCode: RawRepresentable, DescribedValue where RawValue == UInt8 {
    /// The names from 0, in lowercase; empty for reserved values.
    static var names: [String] { get }
}

extension NamedCode {
    /// The name, or `nil` if the value is not assigned.
    package var assignedName: String? {
        let index = Int(rawValue)
        let names = Self.names
        guard index < names.count, !names[index].isEmpty else { return nil }
        return names[index]
    }

    /// The raw value and its name as field content; programs see a number in either case.
    package var content: ValueField.Content {
        .named(Int64(rawValue), assignedName ?? "code \(rawValue)")
    }

    package var fields: [ValueField] { [ValueField("", content)] }
}

extension GATTReadable where Self: RawRepresentable, RawValue: GATTReadable {
    /// Reads the raw value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early or the raw value is invalid for the type.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        guard let value = Self(rawValue: try reader.read(RawValue.self)) else { throw reader.invalid(Self.formatName) }
        self = value
    }
}

extension GATTWritable where Self: RawRepresentable, RawValue: GATTWritable {
    /// Appends the raw value.
    public func write(to writer: inout ByteWriter) {
        rawValue.write(to: &writer)
    }
}
