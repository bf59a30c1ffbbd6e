/// The physical layer on which a packet was sent.
///
/// Spec: Primary_PHY and Secondary_PHY, Core Vol 4 Part E, 7.7.65.13.
public struct PHY: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The HCI encoding.
    public let rawValue: UInt8

    /// Creates a PHY from its HCI encoding. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// LE 1M: 1 Msym/s, supported by every device.
    public static let le1M = PHY(rawValue: 1)
    /// LE 2M: 2 Msym/s.
    public static let le2M = PHY(rawValue: 2)
    /// LE Coded; S=8 where the controller distinguishes codings.
    public static let leCoded = PHY(rawValue: 3)
    /// LE Coded with S=2, where the controller distinguishes codings.
    public static let leCodedS2 = PHY(rawValue: 4)

    /// `1M`, `2M`, `Coded`, `Coded S2`, or the raw value.
    public var description: String {
        switch self {
        case .le1M: "1M"
        case .le2M: "2M"
        case .leCoded: "Coded"
        case .leCodedS2: "Coded S2"
        default: "\(rawValue)"
        }
    }
}
