public import BLECore

/// The data of an indoor bike or a bicycle trainer.
///
///     flags 2 | bit 0 not set: speed 2 | bit 1: average speed 2 | bit 2: cadence 2 | bit 3: average cadence 2
///     | bit 4: distance 3 | bit 5: resistance 2 or 1 | bit 6: power 2 | bit 7: average power 2
///     | bits 8 to 12: ``TrainingTotals``
///
/// Spec: Indoor Bike Data (0x2AD2), Fitness Machine Service 1.0, 4.9; GATT Specification Supplement.
public struct IndoorBikeData: FitnessMachineData, Hashable, Sendable {
    /// A Boolean value that indicates whether another notification continues this one.
    public let isMoreDataFollowing: Bool
    /// The instantaneous speed in km/h, with a resolution of 0.01.
    public let speed: Double?
    /// The average speed in km/h, with a resolution of 0.01.
    public let averageSpeed: Double?
    /// The cadence in revolutions per minute, with a resolution of 0.5.
    public let cadence: Double?
    /// The average cadence in revolutions per minute, with a resolution of 0.5.
    public let averageCadence: Double?
    /// The total distance in metres.
    public let totalDistance: UInt32?
    /// The resistance level.
    public let resistanceLevel: Double?
    /// The instantaneous power in watts.
    public let power: Int16?
    /// The average power in watts.
    public let averagePower: Int16?
    /// The energy, heart rate and time fields.
    public let totals: TrainingTotals
    /// The specification's name.
    public static var formatName: String { "Indoor Bike Data" }

    /// Reads one value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt16.self, known: 13, reading: &reader)
        let shortest = flags.length([2, 2, 2, 2, 3, 1, 2, 2, 5, 1, 1, 2, 2], invertingFirst: true)
        let isLaterVersion = reader.remaining == shortest
        isMoreDataFollowing = flags[0]
        speed = try reader.read(UInt16.self, per: 100, if: !flags[0])
        averageSpeed = try reader.read(UInt16.self, per: 100, if: flags[1])
        cadence = try reader.read(UInt16.self, per: 2, if: flags[2])
        averageCadence = try reader.read(UInt16.self, per: 2, if: flags[3])
        totalDistance = try reader.readUInt24(if: flags[4])
        resistanceLevel = try reader.readResistance(isLaterVersion: isLaterVersion, per: 1, if: flags[5])
        power = try reader.read(if: flags[6])
        averagePower = try reader.read(if: flags[7])
        totals = try TrainingTotals(flags, from: 8, reading: &reader)
        reader.skipReserved(flags)
    }
}

extension IndoorBikeData: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("speed", speed, places: 2, "km/h")
        list.add("average speed", averageSpeed, places: 2, "km/h")
        list.add("cadence", cadence, places: 1, "/min")
        list.add("average cadence", averageCadence, places: 1, "/min")
        list.add("distance", totalDistance, "m")
        list.add("resistance", resistanceLevel, places: 0)
        list.add("power", power, "W")
        list.add("average power", averagePower, "W")
        return finished(list)
    }
}

extension CharacteristicKey where Value == IndoorBikeData {
    /// Indoor Bike Data, 0x2AD2: notified about once a second.
    public static var indoorBikeData: Self { Self(0x2AD2) }
}
