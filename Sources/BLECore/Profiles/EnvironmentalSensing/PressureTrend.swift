/// What the air pressure did in the last three hours.
///
///     code 1
///
/// Spec: Barometric Pressure Trend (0x2AA3), Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.
public struct PressureTrend: AssignedCode {
    /// The number as it is sent.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Barometric Pressure Trend" }

    /// The trend with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The trend in words; `nil` for a number that is not assigned.
    public var name: String? {
        switch rawValue {
        case 0: "unknown"
        case 1: "falling"
        case 2: "rising"
        case 3: "falling, then steady"
        case 4: "rising, then steady"
        case 5: "falling, then rising less"
        case 6: "falling, then rising more"
        case 7: "rising, then falling more"
        case 8: "rising, then falling less"
        case 9: "steady"
        default: nil
        }
    }
}

extension PressureTrend: DescribedValue {}

extension CharacteristicKey where Value == PressureTrend {
    /// Barometric Pressure Trend, 0x2AA3.
    public static var pressureTrend: Self { Self(0x2AA3) }
}
