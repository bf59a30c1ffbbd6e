/// The physical layer that a packet was sent on.
///
/// Spec: Primary_PHY and Secondary_PHY, Core Vol 4 Part E, 7.7.65.13.
public struct PHY: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number that HCI uses.
    public let rawValue: UInt8

    /// The layer with this HCI number; unknown numbers are kept.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// 1 million symbols a second, which every device has.
    public static let le1M = PHY(rawValue: 1)
    /// 2 million symbols a second.
    public static let le2M = PHY(rawValue: 2)
    /// Coded for range; where the controller tells codings apart, eight symbols a bit.
    public static let leCoded = PHY(rawValue: 3)
    /// Coded with two symbols a bit, where the controller tells codings apart.
    public static let leCodedS2 = PHY(rawValue: 4)

    /// `1M`, `2M`, `Coded`, `Coded S2`, or the number.
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
