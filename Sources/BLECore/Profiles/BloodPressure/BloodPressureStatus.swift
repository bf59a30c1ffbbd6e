/// What was not right with a measurement of blood pressure.
///
/// Spec: Measurement Status, Blood Pressure Service 1.1, 3.1.1.6.
public struct BloodPressureStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// What the specification calls the field.
    public static var formatName: String { "Blood Pressure Measurement Status" }

    /// The status in these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The body moved.
    public static let bodyMovement = Self(rawValue: 1 << 0)
    /// The cuff was too loose.
    public static let cuffTooLoose = Self(rawValue: 1 << 1)
    /// The pulse was irregular.
    public static let irregularPulse = Self(rawValue: 1 << 2)
    /// The pulse was faster than the device can measure.
    public static let pulseAboveRange = Self(rawValue: 1 << 3)
    /// The pulse was slower than the device can measure.
    public static let pulseBelowRange = Self(rawValue: 1 << 4)
    /// The arm was in the wrong place.
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
