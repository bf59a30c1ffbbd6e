/// What the air pressure did in the last three hours.
///
///     code 1
///
/// Spec: Barometric Pressure Trend (0x2AA3), Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.
public struct PressureTrend: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number as it is sent.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Barometric Pressure Trend" }

    /// The trend with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The device does not know.
    public static let unknown = Self(rawValue: 0)
    /// The pressure fell all the time.
    public static let falling = Self(rawValue: 1)
    /// The pressure rose all the time.
    public static let rising = Self(rawValue: 2)
    /// The pressure fell, then stayed.
    public static let fallingThenSteady = Self(rawValue: 3)
    /// The pressure rose, then stayed.
    public static let risingThenSteady = Self(rawValue: 4)
    /// The pressure fell, then rose, and is lower than before.
    public static let fallingThenRisingLess = Self(rawValue: 5)
    /// The pressure fell, then rose, and is higher than before.
    public static let fallingThenRisingMore = Self(rawValue: 6)
    /// The pressure rose, then fell, and is lower than before.
    public static let risingThenFallingMore = Self(rawValue: 7)
    /// The pressure rose, then fell, and is higher than before.
    public static let risingThenFallingLess = Self(rawValue: 8)
    /// The pressure stayed.
    public static let steady = Self(rawValue: 9)

    /// The trend in words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }
}

extension PressureTrend: NamedCode {
    package static var names: [String] {
        [
            "unknown", "falling", "rising", "falling, then steady", "rising, then steady", "falling, then rising less",
            "falling, then rising more", "rising, then falling more", "rising, then falling less", "steady",
        ]
    }
}

extension CharacteristicKey where Value == PressureTrend {
    /// Barometric Pressure Trend, 0x2AA3.
    public static var pressureTrend: Self { Self(0x2AA3) }
}
