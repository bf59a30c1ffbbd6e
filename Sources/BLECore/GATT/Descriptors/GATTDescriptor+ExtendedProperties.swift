extension GATTDescriptor {
    /// The operations that a characteristic supports beyond its eight properties (descriptor 0x2900).
    ///
    ///     bits 2
    ///
    /// Spec: Characteristic Extended Properties, Core Vol 3 Part G, 3.3.3.1.
    public struct ExtendedProperties: OptionSet, GATTReadable, Hashable, Sendable {
        /// The raw bits.
        public let rawValue: UInt16
        /// The specification's name.
        public static var formatName: String { "Characteristic Extended Properties" }

        /// Creates properties from raw bits.
        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The value may take part in a reliable write.
        public static let reliableWrite = Self(rawValue: 0x0001)
        /// The user description (0x2901) can be written.
        public static let writableAuxiliaries = Self(rawValue: 0x0002)
    }
}

/// The former name of `GATTDescriptor.ExtendedProperties`.
@available(*, deprecated, renamed: "GATTDescriptor.ExtendedProperties")
public typealias CharacteristicExtendedProperties = GATTDescriptor.ExtendedProperties

extension GATTDescriptor.ExtendedProperties: DescribedValue {
    package var fields: [ValueField] {
        [
            ValueField("reliable write", .flag(contains(.reliableWrite))),
            ValueField("writable description", .flag(contains(.writableAuxiliaries))),
        ]
    }
}
