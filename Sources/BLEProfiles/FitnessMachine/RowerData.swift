public import BLECore

/// The data of a rower.
///
///     flags 2 | bit 0 not set: stroke rate 1, strokes 2 | bit 1: average stroke rate 1 | bit 2: distance 3
///     | bit 3: pace 2 | bit 4: average pace 2 | bit 5: power 2 | bit 6: average power 2 | bit 7: resistance 2 or 1
///     | bits 8 to 12: ``TrainingTotals``
///
/// Spec: Rower Data (0x2AD1), Fitness Machine Service 1.0, 4.8; GATT Specification Supplement.
public struct RowerData: FitnessMachineData, Hashable, Sendable {
    /// A Boolean value that indicates whether another notification continues this one.
    public let isMoreDataFollowing: Bool
    /// The stroke rate in strokes per minute, with a resolution of 0.5.
    public let strokeRate: Double?
    /// The number of strokes since the workout began.
    public let strokeCount: UInt16?
    /// The average stroke rate in strokes per minute, with a resolution of 0.5.
    public let averageStrokeRate: Double?
    /// The total distance in metres.
    public let totalDistance: UInt32?
    /// The time per 500 m at the current pace.
    public let pace: Duration?
    /// The time per 500 m at the average pace.
    public let averagePace: Duration?
    /// The instantaneous power in watts.
    public let power: Int16?
    /// The average power in watts.
    public let averagePower: Int16?
    /// The resistance level.
    public let resistanceLevel: Double?
    /// The energy, heart rate and time fields.
    public let totals: TrainingTotals
    /// The specification's name.
    public static var formatName: String { "Rower Data" }

    /// Reads one value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt16.self, known: 13, reading: &reader)
        let shortest = flags.length([3, 1, 3, 2, 2, 2, 2, 1, 5, 1, 1, 2, 2], invertingFirst: true)
        let isLaterVersion = reader.remaining == shortest
        isMoreDataFollowing = flags[0]
        strokeRate = try reader.read(UInt8.self, per: 2, if: !flags[0])
        strokeCount = try reader.read(if: !flags[0])
        averageStrokeRate = try reader.read(UInt8.self, per: 2, if: flags[1])
        totalDistance = try reader.readUInt24(if: flags[2])
        pace = try reader.readSeconds(if: flags[3])
        averagePace = try reader.readSeconds(if: flags[4])
        power = try reader.read(if: flags[5])
        averagePower = try reader.read(if: flags[6])
        resistanceLevel = try reader.readResistance(isLaterVersion: isLaterVersion, per: 1, if: flags[7])
        totals = try TrainingTotals(flags, from: 8, reading: &reader)
        reader.skipReserved(flags)
    }
}

extension RowerData: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("stroke rate", strokeRate, places: 1, "/min")
        list.add("strokes", strokeCount)
        list.add("average stroke rate", averageStrokeRate, places: 1, "/min")
        list.add("distance", totalDistance, "m")
        list.add("pace", pace)
        list.add("average pace", averagePace)
        list.add("power", power, "W")
        list.add("average power", averagePower, "W")
        list.add("resistance", resistanceLevel, places: 0)
        return finished(list)
    }
}

extension CharacteristicKey where Value == RowerData {
    /// Rower Data, 0x2AD1: notified about once a second.
    public static var rowerData: Self { Self(0x2AD1) }
}
