/// A set of bits that have names, such as the features of a sensor or its warnings.
///
/// A bit without a name is kept in the raw value and left out of the words.
package protocol NamedBits: OptionSet, DescribedValue where RawValue: FixedWidthInteger {
    /// The names from bit 0 on, in lowercase words; empty for a bit that is reserved or part of a number.
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

    /// The names as one field's content.
    package var content: ValueField.Content {
        var items: [ValueField.Content] = []
        for word in words { items.append(.text(word)) }
        return .list(items)
    }

    package var fields: [ValueField] { [ValueField("", content)] }
}

/// A number that stands for a word; a number without one is a value too.
package protocol NamedCode: RawRepresentable, DescribedValue where RawValue == UInt8 {
    /// The words from 0 on, in lowercase; empty for a reserved number.
    static var names: [String] { get }
}

extension NamedCode {
    /// The word; `nil` for a number that is not assigned.
    package var assignedName: String? {
        let index = Int(rawValue)
        let names = Self.names
        guard index < names.count, !names[index].isEmpty else { return nil }
        return names[index]
    }

    /// The number and its word as one field's content: for programs it is a number, whether it is assigned or not.
    package var content: ValueField.Content {
        .named(Int64(rawValue), assignedName ?? "code \(rawValue)")
    }

    package var fields: [ValueField] { [ValueField("", content)] }
}

extension GATTReadable where Self: RawRepresentable, RawValue: GATTReadable {
    /// Reads the raw value.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early, or when no value of the type has this raw value.
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
