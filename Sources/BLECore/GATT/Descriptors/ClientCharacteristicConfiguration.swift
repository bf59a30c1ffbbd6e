/// What a client asked a peer to send unasked; the descriptor 0x2902. Every client of a peer has its own.
///
///     bits 2
///
/// Spec: Client Characteristic Configuration, Core Vol 3 Part G, 3.3.3.3.
public struct ClientCharacteristicConfiguration: OptionSet, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Client Characteristic Configuration" }

    /// The configuration with these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// Values are sent without confirmation.
    public static let notifications = Self(rawValue: 0x0001)
    /// Values are sent and confirmed.
    public static let indications = Self(rawValue: 0x0002)
}

extension ClientCharacteristicConfiguration: DescribedValue {
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
