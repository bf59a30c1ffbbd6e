/// Whether a peer puts a value into its advertisements; the descriptor 0x2903. All clients of a peer share it.
///
///     bits 2
///
/// Spec: Server Characteristic Configuration, Core Vol 3 Part G, 3.3.3.4.
public struct ServerCharacteristicConfiguration: OptionSet, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Server Characteristic Configuration" }

    /// The configuration with these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The value is advertised.
    public static let broadcasts = Self(rawValue: 0x0001)
}

extension ServerCharacteristicConfiguration: DescribedValue {
    package var fields: [ValueField] {
        [ValueField(.named(Int64(rawValue), contains(.broadcasts) ? "broadcasts on" : "off"))]
    }
}
