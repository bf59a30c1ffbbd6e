public import BLECore

/// The features of a cycling power meter.
///
///     features 4
///
/// Spec: Cycling Power Feature (0x2A65), Cycling Power Service 1.1, 3.1.
public struct CyclingPowerFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt32
    /// The specification's name.
    public static var formatName: String { "Cycling Power Feature" }

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The pedal power balance.
    public static let pedalPowerBalance = Self(rawValue: 1 << 0)
    /// The accumulated torque.
    public static let accumulatedTorque = Self(rawValue: 1 << 1)
    /// The wheel revolutions.
    public static let wheelRevolutions = Self(rawValue: 1 << 2)
    /// The crank revolutions.
    public static let crankRevolutions = Self(rawValue: 1 << 3)
    /// The extreme forces or torques of a revolution.
    public static let extremeMagnitudes = Self(rawValue: 1 << 4)
    /// The angles of the extremes.
    public static let extremeAngles = Self(rawValue: 1 << 5)
    /// The angles of the dead spots.
    public static let deadSpotAngles = Self(rawValue: 1 << 6)
    /// The accumulated energy.
    public static let accumulatedEnergy = Self(rawValue: 1 << 7)
    /// Measurements indicate that an offset compensation is due.
    public static let offsetCompensationIndicator = Self(rawValue: 1 << 8)
    /// Supports offset compensation.
    public static let offsetCompensation = Self(rawValue: 1 << 9)
    /// The content of measurements can be masked.
    public static let contentMasking = Self(rawValue: 1 << 10)
    /// The sensor location can be set.
    public static let multipleSensorLocations = Self(rawValue: 1 << 11)
    /// The crank length can be set.
    public static let crankLengthAdjustment = Self(rawValue: 1 << 12)
    /// The chain length can be set.
    public static let chainLengthAdjustment = Self(rawValue: 1 << 13)
    /// The chain weight can be set.
    public static let chainWeightAdjustment = Self(rawValue: 1 << 14)
    /// The span length can be set.
    public static let spanLengthAdjustment = Self(rawValue: 1 << 15)
    /// The meter measures torque; otherwise force.
    public static let torqueBased = Self(rawValue: 1 << 16)
    /// Vectors carry the direction of the force.
    public static let measurementDirection = Self(rawValue: 1 << 17)
    /// The factory calibration date can be requested.
    public static let factoryCalibrationDate = Self(rawValue: 1 << 18)
    /// Supports enhanced offset compensation.
    public static let enhancedOffsetCompensation = Self(rawValue: 1 << 19)
    /// Not part of a distributed system. Without this bit and the next, the meter does not specify it.
    public static let notForDistributedSystem = Self(rawValue: 1 << 20)
    /// Part of a distributed system, with one meter for each pedal.
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
