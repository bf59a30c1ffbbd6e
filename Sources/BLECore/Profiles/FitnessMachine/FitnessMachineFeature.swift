/// What a fitness machine measures, and what it can be told.
///
///     machine features 4 | target setting features 4
///
/// Spec: Fitness Machine Feature (0x2ACC), Fitness Machine Service 1.0, 4.3.
public struct FitnessMachineFeature: GATTReadable, Hashable, Sendable {
    /// What the machine measures.
    public let machine: FitnessMachineMeasures
    /// What the machine can be told through its control point.
    public let targets: FitnessMachineTargets
    /// The specification's name.
    public static var formatName: String { "Fitness Machine Feature" }

    /// Reads 8 bytes.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
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

/// What a fitness machine measures.
///
/// Spec: Fitness Machine Features, Fitness Machine Service 1.0, 4.3.1.1.
public struct FitnessMachineMeasures: OptionSet, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt32

    /// The features in these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The average speed.
    public static let averageSpeed = Self(rawValue: 1 << 0)
    /// The cadence.
    public static let cadence = Self(rawValue: 1 << 1)
    /// The distance.
    public static let totalDistance = Self(rawValue: 1 << 2)
    /// The slope.
    public static let inclination = Self(rawValue: 1 << 3)
    /// The height gained and lost.
    public static let elevationGain = Self(rawValue: 1 << 4)
    /// The pace.
    public static let pace = Self(rawValue: 1 << 5)
    /// Steps.
    public static let stepCount = Self(rawValue: 1 << 6)
    /// The level of resistance.
    public static let resistanceLevel = Self(rawValue: 1 << 7)
    /// Strides.
    public static let strideCount = Self(rawValue: 1 << 8)
    /// The energy.
    public static let expendedEnergy = Self(rawValue: 1 << 9)
    /// The heart rate.
    public static let heartRate = Self(rawValue: 1 << 10)
    /// How many times the energy at rest.
    public static let metabolicEquivalent = Self(rawValue: 1 << 11)
    /// The time since the training began.
    public static let elapsedTime = Self(rawValue: 1 << 12)
    /// The time until it ends.
    public static let remainingTime = Self(rawValue: 1 << 13)
    /// The power.
    public static let power = Self(rawValue: 1 << 14)
    /// The force on the belt, and the power.
    public static let forceOnBelt = Self(rawValue: 1 << 15)
    /// The machine keeps data about its users.
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

/// What a fitness machine can be told.
///
/// Spec: Target Setting Features, Fitness Machine Service 1.0, 4.3.1.2.
public struct FitnessMachineTargets: OptionSet, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt32

    /// The features in these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The speed.
    public static let speed = Self(rawValue: 1 << 0)
    /// The slope.
    public static let inclination = Self(rawValue: 1 << 1)
    /// The level of resistance.
    public static let resistance = Self(rawValue: 1 << 2)
    /// The power.
    public static let power = Self(rawValue: 1 << 3)
    /// The heart rate.
    public static let heartRate = Self(rawValue: 1 << 4)
    /// The energy.
    public static let expendedEnergy = Self(rawValue: 1 << 5)
    /// Steps.
    public static let stepNumber = Self(rawValue: 1 << 6)
    /// Strides.
    public static let strideNumber = Self(rawValue: 1 << 7)
    /// The distance.
    public static let distance = Self(rawValue: 1 << 8)
    /// The time.
    public static let trainingTime = Self(rawValue: 1 << 9)
    /// The time in each of two zones of the heart rate.
    public static let timeInTwoHeartRateZones = Self(rawValue: 1 << 10)
    /// The time in each of three zones of the heart rate.
    public static let timeInThreeHeartRateZones = Self(rawValue: 1 << 11)
    /// The time in each of five zones of the heart rate.
    public static let timeInFiveHeartRateZones = Self(rawValue: 1 << 12)
    /// Wind, slope and friction that the machine makes felt.
    public static let indoorBikeSimulation = Self(rawValue: 1 << 13)
    /// The circumference of the wheel.
    public static let wheelCircumference = Self(rawValue: 1 << 14)
    /// The calibration by letting the wheel run out.
    public static let spinDownControl = Self(rawValue: 1 << 15)
    /// The cadence.
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
