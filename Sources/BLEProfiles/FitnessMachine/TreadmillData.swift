public import BLECore

/// The data of a treadmill.
///
///     flags 2 | bit 0 not set: speed 2 | bit 1: average speed 2 | bit 2: distance 3 | bit 3: slope 2, ramp 2
///     | bit 4: ascent 2, descent 2 | bit 5: pace 1 or 2 | bit 6: average pace 1 or 2
///     | bits 7 to 11: ``TrainingTotals`` | bit 12: force 2, power 2
///
/// Spec: Treadmill Data (0x2ACD), Fitness Machine Service 1.0, 4.4; GATT Specification Supplement.
public struct TreadmillData: FitnessMachineData, Hashable, Sendable {
    /// A running pace.
    public enum Pace: Hashable, Sendable {
        /// Kilometres per minute with a resolution of 0.1, as in version 1.0 of the service.
        case kilometresPerMinute(Double)
        /// The time per 500 m, as in later versions.
        case timePer500Metres(Duration)
    }

    /// A Boolean value that indicates whether another notification continues this one.
    public let isMoreDataFollowing: Bool
    /// The speed of the belt in km/h, with a resolution of 0.01.
    public let speed: Double?
    /// The average speed in km/h, with a resolution of 0.01.
    public let averageSpeed: Double?
    /// The total distance in metres.
    public let totalDistance: UInt32?
    /// The inclination of the belt in percent, with a resolution of 0.1; also `nil` if the machine reports it as not
    /// available.
    public let inclination: Double?
    /// The ramp angle setting in degrees, with a resolution of 0.1; also `nil` if the machine reports it as not
    /// available.
    public let rampAngle: Double?
    /// The positive elevation gain in metres, with a resolution of 0.1.
    public let positiveElevationGain: Double?
    /// The negative elevation gain in metres, with a resolution of 0.1.
    public let negativeElevationGain: Double?
    /// The current pace.
    public let pace: Pace?
    /// The average pace.
    public let averagePace: Pace?
    /// The energy, heart rate and time fields.
    public let totals: TrainingTotals
    /// The force on the belt in newtons; also `nil` if the machine reports it as not available.
    public let forceOnBelt: Int16?
    /// The power in watts; also `nil` if the machine reports it as not available.
    public let power: Int16?
    /// The specification's name.
    public static var formatName: String { "Treadmill Data" }

    /// Reads one value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt16.self, known: 13, reading: &reader)
        let shortest = flags.length([2, 2, 3, 4, 4, 1, 1, 5, 1, 1, 2, 2, 4], invertingFirst: true)
        let isLaterVersion = reader.remaining == shortest + (flags[5] ? 1 : 0) + (flags[6] ? 1 : 0)
        isMoreDataFollowing = flags[0]
        speed = try reader.read(UInt16.self, per: 100, if: !flags[0])
        averageSpeed = try reader.read(UInt16.self, per: 100, if: flags[1])
        totalDistance = try reader.readUInt24(if: flags[2])
        inclination = try reader.readSlope(if: flags[3])
        rampAngle = try reader.readSlope(if: flags[3])
        positiveElevationGain = try reader.read(UInt16.self, per: 10, if: flags[4])
        negativeElevationGain = try reader.read(UInt16.self, per: 10, if: flags[4])
        pace = try Self.pace(&reader, isLaterVersion: isLaterVersion, if: flags[5])
        averagePace = try Self.pace(&reader, isLaterVersion: isLaterVersion, if: flags[6])
        totals = try TrainingTotals(flags, from: 7, reading: &reader)
        forceOnBelt = try reader.read(Int16.self, if: flags[12], unless: .max)
        power = try reader.read(Int16.self, if: flags[12], unless: .max)
        reader.skipReserved(flags)
    }

    private static func pace(
        _ reader: inout ByteReader, isLaterVersion: Bool, if isPresent: Bool
    ) throws(MalformedPacket) -> Pace? {
        guard isPresent else { return nil }
        if isLaterVersion { return .timePer500Metres(.seconds(try reader.read(UInt16.self))) }
        return .kilometresPerMinute(try reader.read(UInt8.self, per: 10))
    }
}

extension TreadmillData: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("speed", speed, places: 2, "km/h")
        list.add("average speed", averageSpeed, places: 2, "km/h")
        list.add("distance", totalDistance, "m")
        list.add("inclination", inclination, places: 1, "%")
        list.add("ramp", rampAngle, places: 1, "°")
        list.add("ascent", positiveElevationGain, places: 1, "m")
        list.add("descent", negativeElevationGain, places: 1, "m")
        pace?.add("pace", to: &list)
        averagePace?.add("average pace", to: &list)
        list.add("force", forceOnBelt, "N")
        list.add("power", power, "W")
        return finished(list)
    }
}

extension TreadmillData.Pace {
    func add(_ name: String, to list: inout FieldList) {
        switch self {
        case .kilometresPerMinute(let pace): list.add(name, pace, places: 1, "km/min")
        case .timePer500Metres(let time): list.add(name, time)
        }
    }
}

extension CharacteristicKey where Value == TreadmillData {
    /// Treadmill Data, 0x2ACD: notified about once a second.
    public static var treadmillData: Self { Self(0x2ACD) }
}
