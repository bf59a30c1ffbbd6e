public import BLECore

/// The problems detected during a blood pressure measurement.
///
/// Spec: Measurement Status, Blood Pressure Service 1.1, 3.1.1.6.
public struct BloodPressureStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name for the field.
    public static var formatName: String { "Blood Pressure Measurement Status" }

    /// Creates a status from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The body moved during the measurement.
    public static let bodyMovement = Self(rawValue: 1 << 0)
    /// The cuff was too loose.
    public static let cuffTooLoose = Self(rawValue: 1 << 1)
    /// The pulse was irregular.
    public static let irregularPulse = Self(rawValue: 1 << 2)
    /// The pulse rate was above the measurable range.
    public static let pulseAboveRange = Self(rawValue: 1 << 3)
    /// The pulse rate was below the measurable range.
    public static let pulseBelowRange = Self(rawValue: 1 << 4)
    /// The measurement position was improper.
    public static let improperPosition = Self(rawValue: 1 << 5)
}

extension BloodPressureStatus: NamedBits {
    package static var names: [String] {
        [
            "body movement", "cuff too loose", "irregular pulse", "pulse above range", "pulse below range",
            "improper position",
        ]
    }
}
