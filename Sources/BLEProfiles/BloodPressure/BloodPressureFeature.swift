public import BLECore

/// The features of a blood pressure monitor.
///
///     features 2
///
/// Spec: Blood Pressure Feature (0x2A49), Blood Pressure Service 1.1, 3.3.
public struct BloodPressureFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Blood Pressure Feature" }

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Detects body movement.
    public static let bodyMovementDetection = Self(rawValue: 1 << 0)
    /// Detects a cuff that is too loose.
    public static let cuffFitDetection = Self(rawValue: 1 << 1)
    /// Detects an irregular pulse.
    public static let irregularPulseDetection = Self(rawValue: 1 << 2)
    /// Detects a pulse rate outside the measurable range.
    public static let pulseRateRangeDetection = Self(rawValue: 1 << 3)
    /// Detects an improper measurement position.
    public static let measurementPositionDetection = Self(rawValue: 1 << 4)
    /// Supports multiple bonds.
    public static let multipleBonds = Self(rawValue: 1 << 5)
    /// Supports end-to-end CRCs; since version 1.1.
    public static let endToEndChecksum = Self(rawValue: 1 << 6)
    /// Supports the User Data Service; since version 1.1.
    public static let userDataService = Self(rawValue: 1 << 7)
    /// Supports user-facing time; since version 1.1.
    public static let userFacingTime = Self(rawValue: 1 << 8)
}

extension BloodPressureFeature: NamedBits {
    package static var names: [String] {
        [
            "body movement detection", "cuff fit detection", "irregular pulse detection", "pulse rate range detection",
            "measurement position detection", "multiple bonds", "end-to-end checksum", "user data service",
            "user facing time",
        ]
    }
}

extension CharacteristicKey where Value == BloodPressureFeature {
    /// Blood Pressure Feature, 0x2A49.
    public static var bloodPressureFeature: Self { Self(0x2A49) }
}
