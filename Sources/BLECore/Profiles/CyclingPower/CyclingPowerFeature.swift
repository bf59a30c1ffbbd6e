/// What a power meter can do.
///
///     features 4
///
/// Spec: Cycling Power Feature (0x2A65), Cycling Power Service 1.1, 3.1.
public struct CyclingPowerFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt32
    /// The specification's name.
    public static var formatName: String { "Cycling Power Feature" }

    /// The features in these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// One pedal's share of the power.
    public static let pedalPowerBalance = Self(rawValue: 1 << 0)
    /// The torque of all turns.
    public static let accumulatedTorque = Self(rawValue: 1 << 1)
    /// The turns of the wheel.
    public static let wheelRevolutions = Self(rawValue: 1 << 2)
    /// The turns of the cranks.
    public static let crankRevolutions = Self(rawValue: 1 << 3)
    /// The extreme forces or torques of a turn.
    public static let extremeMagnitudes = Self(rawValue: 1 << 4)
    /// The angles of the extremes.
    public static let extremeAngles = Self(rawValue: 1 << 5)
    /// The angles of the dead spots.
    public static let deadSpotAngles = Self(rawValue: 1 << 6)
    /// The energy.
    public static let accumulatedEnergy = Self(rawValue: 1 << 7)
    /// Measurements say when an offset compensation is due.
    public static let offsetCompensationIndicator = Self(rawValue: 1 << 8)
    /// The offset compensation can be started.
    public static let offsetCompensation = Self(rawValue: 1 << 9)
    /// The content of measurements can be masked.
    public static let contentMasking = Self(rawValue: 1 << 10)
    /// The sensor can be told where it sits.
    public static let multipleSensorLocations = Self(rawValue: 1 << 11)
    /// The length of the crank can be set.
    public static let crankLengthAdjustment = Self(rawValue: 1 << 12)
    /// The length of the chain can be set.
    public static let chainLengthAdjustment = Self(rawValue: 1 << 13)
    /// The weight of the chain can be set.
    public static let chainWeightAdjustment = Self(rawValue: 1 << 14)
    /// The length of the span can be set.
    public static let spanLengthAdjustment = Self(rawValue: 1 << 15)
    /// Torques are measured, else forces.
    public static let torqueBased = Self(rawValue: 1 << 16)
    /// Vectors say the direction of the force.
    public static let measurementDirection = Self(rawValue: 1 << 17)
    /// The date of the calibration can be asked for.
    public static let factoryCalibrationDate = Self(rawValue: 1 << 18)
    /// The enhanced offset compensation can be started.
    public static let enhancedOffsetCompensation = Self(rawValue: 1 << 19)
    /// One of several meters alone; without this bit and the next, the meter does not say.
    public static let notForDistributedSystem = Self(rawValue: 1 << 20)
    /// Works together with another meter, one for each pedal.
    public static let forDistributedSystem = Self(rawValue: 1 << 21)
}

extension CyclingPowerFeature: NamedBits {
    package static var names: [String] {
        [
            "pedal power balance", "accumulated torque", "wheel revolutions", "crank revolutions",
            "extreme magnitudes", "extreme angles", "dead spot angles", "accumulated energy",
            "offset compensation indicator", "offset compensation", "content masking", "multiple sensor locations",
            "crank length adjustment", "chain length adjustment", "chain weight adjustment", "span length adjustment",
            "torque based", "measurement direction", "factory calibration date", "enhanced offset compensation",
            "not for distributed system", "for distributed system",
        ]
    }
}

extension CharacteristicKey where Value == CyclingPowerFeature {
    /// Cycling Power Feature, 0x2A65.
    public static var cyclingPowerFeature: Self { Self(0x2A65) }
}
