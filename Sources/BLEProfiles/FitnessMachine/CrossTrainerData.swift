public import BLECore

/// The data of a cross trainer.
///
///     flags 3 | bit 0 not set: speed 2 | bit 1: average speed 2 | bit 2: distance 3 | bit 3: steps 2, average steps 2
///     | bit 4: strides 2 | bit 5: ascent 2, descent 2 | bit 6: slope 2, ramp 2 | bit 7: resistance 2 or 1
///     | bit 8: power 2 | bit 9: average power 2 | bits 10 to 14: ``TrainingTotals``      bit 15: backwards
///
/// Spec: Cross Trainer Data (0x2ACE), Fitness Machine Service 1.0, 4.5; GATT Specification Supplement.
public struct CrossTrainerData: FitnessMachineData, Hashable, Sendable {
    /// A Boolean value that indicates whether another notification continues this one.
    public let isMoreDataFollowing: Bool
    /// The instantaneous speed in km/h, with a resolution of 0.01.
    public let speed: Double?
    /// The average speed in km/h, with a resolution of 0.01.
    public let averageSpeed: Double?
    /// The total distance in metres.
    public let totalDistance: UInt32?
    /// The step rate in steps per minute.
    public let stepsPerMinute: UInt16?
    /// The average step rate in steps per minute.
    public let averageStepRate: UInt16?
    /// The strides, with a resolution of 0.1; a stride is two steps.
    public let strideCount: Double?
    /// The positive elevation gain in metres.
    public let positiveElevationGain: UInt16?
    /// The negative elevation gain in metres.
    public let negativeElevationGain: UInt16?
    /// The inclination in percent, with a resolution of 0.1; also `nil` if the machine reports it as not available.
    public let inclination: Double?
    /// The ramp angle setting in degrees, with a resolution of 0.1; also `nil` if the machine reports it as not
    /// available.
    public let rampAngle: Double?
    /// The resistance level.
    public let resistanceLevel: Double?
    /// The instantaneous power in watts.
    public let power: Int16?
    /// The average power in watts.
    public let averagePower: Int16?
    /// The energy, heart rate and time fields.
    public let totals: TrainingTotals
    /// A Boolean value that indicates whether the user moves backwards.
    public let isMovingBackward: Bool
    /// The specification's name.
    public static var formatName: String { "Cross Trainer Data" }

    /// Reads one value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt24.self, known: 16, reading: &reader)
        let shortest = flags.length([2, 2, 3, 4, 2, 4, 4, 1, 2, 2, 5, 1, 1, 2, 2], invertingFirst: true)
        let isLaterVersion = reader.remaining == shortest
        isMoreDataFollowing = flags[0]
        speed = try reader.read(UInt16.self, per: 100, if: !flags[0])
        averageSpeed = try reader.read(UInt16.self, per: 100, if: flags[1])
        totalDistance = try reader.readUInt24(if: flags[2])
        stepsPerMinute = try reader.read(if: flags[3])
        averageStepRate = try reader.read(if: flags[3])
        strideCount = try reader.read(UInt16.self, per: 10, if: flags[4])
        positiveElevationGain = try reader.read(if: flags[5])
        negativeElevationGain = try reader.read(if: flags[5])
        inclination = try reader.readSlope(if: flags[6])
        rampAngle = try reader.readSlope(if: flags[6])
        resistanceLevel = try reader.readResistance(isLaterVersion: isLaterVersion, per: 10, if: flags[7])
        power = try reader.read(if: flags[8])
        averagePower = try reader.read(if: flags[9])
        totals = try TrainingTotals(flags, from: 10, reading: &reader)
        isMovingBackward = flags[15]
        reader.skipReserved(flags)
    }
}

extension CrossTrainerData: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("speed", speed, places: 2, "km/h")
        list.add("average speed", averageSpeed, places: 2, "km/h")
        list.add("distance", totalDistance, "m")
        list.add("steps", stepsPerMinute, "/min")
        list.add("average steps", averageStepRate, "/min")
        list.add("strides", strideCount, places: 1)
        list.add("ascent", positiveElevationGain, "m")
        list.add("descent", negativeElevationGain, "m")
        list.add("inclination", inclination, places: 1, "%")
        list.add("ramp", rampAngle, places: 1, "°")
        list.add("resistance", resistanceLevel, places: 1)
        list.add("power", power, "W")
        list.add("average power", averagePower, "W")
        list.add("direction", text: isMovingBackward ? "backward" : "forward")
        return finished(list)
    }
}

extension CharacteristicKey where Value == CrossTrainerData {
    /// Cross Trainer Data, 0x2ACE: notified about once a second.
    public static var crossTrainerData: Self { Self(0x2ACE) }
}
