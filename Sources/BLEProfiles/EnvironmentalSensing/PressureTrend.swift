public import BLECore

/// The trend of the air pressure over the last three hours.
///
///     code 1
///
/// Spec: Barometric Pressure Trend (0x2AA3), Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.
public struct PressureTrend: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Barometric Pressure Trend" }

    /// Creates a trend from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Unknown.
    public static let unknown = Self(rawValue: 0)
    /// Continuously falling.
    public static let falling = Self(rawValue: 1)
    /// Continuously rising.
    public static let rising = Self(rawValue: 2)
    /// Falling, then steady.
    public static let fallingThenSteady = Self(rawValue: 3)
    /// Rising, then steady.
    public static let risingThenSteady = Self(rawValue: 4)
    /// Falling before a lesser rise: lower than before.
    public static let fallingThenRisingLess = Self(rawValue: 5)
    /// Falling before a greater rise: higher than before.
    public static let fallingThenRisingMore = Self(rawValue: 6)
    /// Rising before a greater fall: lower than before.
    public static let risingThenFallingMore = Self(rawValue: 7)
    /// Rising before a lesser fall: higher than before.
    public static let risingThenFallingLess = Self(rawValue: 8)
    /// Steady.
    public static let steady = Self(rawValue: 9)

    /// The name, or `nil` if the value is not assigned.
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
