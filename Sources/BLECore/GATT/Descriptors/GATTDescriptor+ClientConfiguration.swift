extension GATTDescriptor {
    /// The notifications or indications that a client has enabled (descriptor 0x2902). A peer keeps one for each
    /// client.
    ///
    ///     bits 2
    ///
    /// Spec: Client Characteristic Configuration, Core Vol 3 Part G, 3.3.3.3.
    public struct ClientConfiguration: OptionSet, GATTReadable, GATTWritable, Hashable, Sendable {
        /// The raw bits.
        public let rawValue: UInt16
        /// The specification's name.
        public static var formatName: String { "Client Characteristic Configuration" }

        /// Creates a configuration from raw bits.
        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The peer sends values in notifications, which are not confirmed.
        public static let notifications = Self(rawValue: 0x0001)
        /// The peer sends values in indications, which are confirmed.
        public static let indications = Self(rawValue: 0x0002)
    }
}

/// The former name of `GATTDescriptor.ClientConfiguration`.
@available(*, deprecated, renamed: "GATTDescriptor.ClientConfiguration")
public typealias ClientCharacteristicConfiguration = GATTDescriptor.ClientConfiguration

extension GATTDescriptor.ClientConfiguration: DescribedValue {
    package var fields: [ValueField] {
        let text =
            switch (contains(.notifications), contains(.indications)) {
            case (false, false): "off"
            case (true, false): "notifications on"
            case (false, true): "indications on"
            case (true, true): "both on"
            }
        return [ValueField(.named(Int64(rawValue), text))]
    }
}
