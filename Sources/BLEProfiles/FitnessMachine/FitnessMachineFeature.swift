public import BLECore

/// The measurements and the settable targets of a fitness machine.
///
///     machine features 4 | target setting features 4
///
/// Spec: Fitness Machine Feature (0x2ACC), Fitness Machine Service 1.0, 4.3.
public struct FitnessMachineFeature: GATTReadable, Hashable, Sendable {
    /// The supported measurements.
    public let machine: FitnessMachineMeasures
    /// The targets that can be set with the control point.
    public let targets: FitnessMachineTargets
    /// The specification's name.
    public static var formatName: String { "Fitness Machine Feature" }

    /// Reads 8 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        machine = FitnessMachineMeasures(rawValue: try reader.read())
        targets = FitnessMachineTargets(rawValue: try reader.read())
    }
}

extension FitnessMachineFeature: DescribedValue {
    package var fields: [ValueField] {
        [ValueField("measures", machine.content), ValueField("targets", targets.content)]
    }
}

extension CharacteristicKey where Value == FitnessMachineFeature {
    /// Fitness Machine Feature, 0x2ACC.
    public static var fitnessMachineFeature: Self { Self(0x2ACC) }
}

/// The measurements that a fitness machine supports.
///
/// Spec: Fitness Machine Features, Fitness Machine Service 1.0, 4.3.1.1.
public struct FitnessMachineMeasures: OptionSet, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt32

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Average speed.
    public static let averageSpeed = Self(rawValue: 1 << 0)
    /// Cadence.
    public static let cadence = Self(rawValue: 1 << 1)
    /// Total distance.
    public static let totalDistance = Self(rawValue: 1 << 2)
    /// Inclination.
    public static let inclination = Self(rawValue: 1 << 3)
    /// Elevation gain.
    public static let elevationGain = Self(rawValue: 1 << 4)
    /// Pace.
    public static let pace = Self(rawValue: 1 << 5)
    /// Step count.
    public static let stepCount = Self(rawValue: 1 << 6)
    /// Resistance level.
    public static let resistanceLevel = Self(rawValue: 1 << 7)
    /// Stride count.
    public static let strideCount = Self(rawValue: 1 << 8)
    /// Expended energy.
    public static let expendedEnergy = Self(rawValue: 1 << 9)
    /// Heart rate.
    public static let heartRate = Self(rawValue: 1 << 10)
    /// Metabolic equivalent.
    public static let metabolicEquivalent = Self(rawValue: 1 << 11)
    /// Elapsed time.
    public static let elapsedTime = Self(rawValue: 1 << 12)
    /// Remaining time.
    public static let remainingTime = Self(rawValue: 1 << 13)
    /// Power.
    public static let power = Self(rawValue: 1 << 14)
    /// Force on the belt, and power.
    public static let forceOnBelt = Self(rawValue: 1 << 15)
    /// User data retention.
    public static let userDataRetention = Self(rawValue: 1 << 16)
}

extension FitnessMachineMeasures: NamedBits {
    package static var names: [String] {
        [
            "average speed", "cadence", "total distance", "inclination", "elevation gain", "pace", "step count",
            "resistance level", "stride count", "expended energy", "heart rate", "metabolic equivalent",
            "elapsed time", "remaining time", "power", "force on belt", "user data retention",
        ]
    }
}

/// The targets that a fitness machine supports.
///
/// Spec: Target Setting Features, Fitness Machine Service 1.0, 4.3.1.2.
public struct FitnessMachineTargets: OptionSet, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt32

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Speed.
    public static let speed = Self(rawValue: 1 << 0)
    /// Inclination.
    public static let inclination = Self(rawValue: 1 << 1)
    /// Resistance level.
    public static let resistance = Self(rawValue: 1 << 2)
    /// Power.
    public static let power = Self(rawValue: 1 << 3)
    /// Heart rate.
    public static let heartRate = Self(rawValue: 1 << 4)
    /// Expended energy.
    public static let expendedEnergy = Self(rawValue: 1 << 5)
    /// Number of steps.
    public static let stepNumber = Self(rawValue: 1 << 6)
    /// Number of strides.
    public static let strideNumber = Self(rawValue: 1 << 7)
    /// Distance.
    public static let distance = Self(rawValue: 1 << 8)
    /// Training time.
    public static let trainingTime = Self(rawValue: 1 << 9)
    /// Time in each of two heart rate zones.
    public static let timeInTwoHeartRateZones = Self(rawValue: 1 << 10)
    /// Time in each of three heart rate zones.
    public static let timeInThreeHeartRateZones = Self(rawValue: 1 << 11)
    /// Time in each of five heart rate zones.
    public static let timeInFiveHeartRateZones = Self(rawValue: 1 << 12)
    /// Simulation of wind, slope and friction.
    public static let indoorBikeSimulation = Self(rawValue: 1 << 13)
    /// Wheel circumference.
    public static let wheelCircumference = Self(rawValue: 1 << 14)
    /// Spin-down calibration.
    public static let spinDownControl = Self(rawValue: 1 << 15)
    /// Cadence.
    public static let cadence = Self(rawValue: 1 << 16)
}

extension FitnessMachineTargets: NamedBits {
    package static var names: [String] {
        [
            "speed", "inclination", "resistance", "power", "heart rate", "expended energy", "step number",
            "stride number", "distance", "training time", "time in two heart rate zones",
            "time in three heart rate zones", "time in five heart rate zones", "indoor bike simulation",
            "wheel circumference", "spin down control", "cadence",
        ]
    }
}
