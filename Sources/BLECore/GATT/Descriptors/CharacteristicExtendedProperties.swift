/// What can be done with a characteristic beyond its eight properties; the descriptor 0x2900.
///
///     bits 2
///
/// Spec: Characteristic Extended Properties, Core Vol 3 Part G, 3.3.3.1.
public struct CharacteristicExtendedProperties: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Characteristic Extended Properties" }

    /// The properties with these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The value may take part in a reliable write.
    public static let reliableWrite = Self(rawValue: 0x0001)
    /// The user description (0x2901) can be written.
    public static let writableAuxiliaries = Self(rawValue: 0x0002)
}

extension CharacteristicExtendedProperties: DescribedValue {
    package var fields: [ValueField] {
        [
            ValueField("reliable write", .flag(contains(.reliableWrite))),
            ValueField("writable description", .flag(contains(.writableAuxiliaries))),
        ]
    }
}
