public import BLECore

/// The data that a fitness machine reports during a workout.
///
/// A machine whose data exceeds one notification sends several, all but the last with the More Data flag. Unlike every
/// other flag, the first field is present when it is **clear**. The first field therefore occurs once per round, and
/// ``isMoreDataFollowing`` is `false` in the value that carries it.
///
/// The size of some fields has changed since version 1.0, and machines of both kinds exist: a treadmill's paces (1
/// byte, then 2) and the resistance level (2 bytes, then 1). The length of the value decides which encoding it uses.
public protocol FitnessMachineData: GATTReadable {
    /// A Boolean value that indicates whether another notification continues this one.
    var isMoreDataFollowing: Bool { get }
    /// The energy, heart rate and time fields.
    var totals: TrainingTotals { get }
}

extension FitnessMachineData {
    /// The total energy in kilocalories; also `nil` if the machine reports it as not available.
    public var energy: UInt16? { totals.energy }
    /// The energy per hour in kilocalories; also `nil` if the machine reports it as not available.
    public var energyPerHour: UInt16? { totals.energyPerHour }
    /// The energy per minute in kilocalories; also `nil` if the machine reports it as not available.
    public var energyPerMinute: UInt8? { totals.energyPerMinute }
    /// The pulse rate in beats per minute.
    public var heartRate: UInt8? { totals.heartRate }
    /// The metabolic equivalent, with a resolution of 0.1.
    public var metabolicEquivalent: Double? { totals.metabolicEquivalent }
    /// The elapsed time of the workout.
    public var elapsedTime: Duration? { totals.elapsedTime }
    /// The remaining time of the workout.
    public var remainingTime: Duration? { totals.remainingTime }

    /// The time fields, which end every machine's list.
    package func finished(_ list: FieldList) -> [ValueField] {
        var list = list
        totals.add(to: &list)
        if isMoreDataFollowing { list.add("more data", flag: true) }
        return list.fields
    }
}

extension ByteReader {
    /// Reads the resistance level, if present: 2 bytes in units of 1/`divisor` in version 1.0 of the service, 1 byte in
    /// units of ten levels later.
    @_lifetime(self: copy self)
    mutating func readResistance(
        isLaterVersion: Bool, per divisor: Double, if isPresent: Bool
    ) throws(MalformedPacket) -> Double? {
        if isLaterVersion { return try read(UInt8.self, if: isPresent).map { Double($0) * 10 } }
        return try read(Int16.self, per: divisor, if: isPresent)
    }

    /// Reads the inclination in percent, or `nil` if the machine reports it as not available.
    @_lifetime(self: copy self)
    mutating func readSlope(if isPresent: Bool) throws(MalformedPacket) -> Double? {
        try read(Int16.self, per: 10, if: isPresent, unless: .max)
    }
}
