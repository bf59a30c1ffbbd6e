extension GATTDescriptor {
    /// The configuration of broadcasts of a value in advertisements (descriptor 0x2903). All clients of a peer share
    /// it.
    ///
    ///     bits 2
    ///
    /// Spec: Server Characteristic Configuration, Core Vol 3 Part G, 3.3.3.4.
    public struct ServerConfiguration: OptionSet, GATTReadable, GATTWritable, Hashable, Sendable {
        /// The raw bits.
        public let rawValue: UInt16
        /// The specification's name.
        public static var formatName: String { "Server Characteristic Configuration" }

        /// Creates a configuration from raw bits.
        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The peer broadcasts the value in its advertisements.
        public static let broadcasts = Self(rawValue: 0x0001)
    }
}

/// The former name of `GATTDescriptor.ServerConfiguration`.
@available(*, deprecated, renamed: "GATTDescriptor.ServerConfiguration")
public typealias ServerCharacteristicConfiguration = GATTDescriptor.ServerConfiguration

extension GATTDescriptor.ServerConfiguration: DescribedValue {
    package var fields: [ValueField] {
        [ValueField(.named(Int64(rawValue), contains(.broadcasts) ? "broadcasts on" : "off"))]
    }
}
