/// What a blood pressure monitor can do.
///
///     features 2
///
/// Spec: Blood Pressure Feature (0x2A49), Blood Pressure Service 1.1, 3.3.
public struct BloodPressureFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Blood Pressure Feature" }

    /// The features in these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Notices that the body moves.
    public static let bodyMovementDetection = Self(rawValue: 1 << 0)
    /// Notices that the cuff is too loose.
    public static let cuffFitDetection = Self(rawValue: 1 << 1)
    /// Notices an irregular pulse.
    public static let irregularPulseDetection = Self(rawValue: 1 << 2)
    /// Notices a pulse that it cannot measure.
    public static let pulseRateRangeDetection = Self(rawValue: 1 << 3)
    /// Notices that the arm is in the wrong place.
    public static let measurementPositionDetection = Self(rawValue: 1 << 4)
    /// Can be bonded with several devices.
    public static let multipleBonds = Self(rawValue: 1 << 5)
    /// Can protect its values by a checksum; since version 1.1.
    public static let endToEndChecksum = Self(rawValue: 1 << 6)
    /// Has the User Data Service; since version 1.1.
    public static let userDataService = Self(rawValue: 1 << 7)
    /// Keeps the time that its users see; since version 1.1.
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
