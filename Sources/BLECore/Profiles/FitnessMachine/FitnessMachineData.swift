/// What a fitness machine measures while somebody trains.
///
/// A machine with more to say than fits one notification sends several. All but the last have the flag More Data; it is
/// the other way round than every other flag: where it is **not** set, the first field is there. So the first field comes
/// once in every round, and ``isMoreDataFollowing`` is `false` in the value that has it.
///
/// Some fields have grown or shrunk since the service's first version, and machines of both kinds are about: a treadmill's
/// paces (1 byte, then 2) and the level of resistance (2 bytes, then 1). Which kind it is follows from the length.
public protocol FitnessMachineData: GATTReadable {
    /// Whether another notification continues this one.
    var isMoreDataFollowing: Bool { get }
    /// Energy, heart rate and times.
    var totals: TrainingTotals { get }
}

extension FitnessMachineData {
    /// The energy since the training began in kilocalories; `nil` too when the machine does not know.
    public var energy: UInt16? { totals.energy }
    /// The energy in an hour in kilocalories; `nil` too when the machine does not know.
    public var energyPerHour: UInt16? { totals.energyPerHour }
    /// The energy in a minute in kilocalories; `nil` too when the machine does not know.
    public var energyPerMinute: UInt8? { totals.energyPerMinute }
    /// Beats per minute.
    public var heartRate: UInt8? { totals.heartRate }
    /// How many times the energy at rest, to 0.1.
    public var metabolicEquivalent: Double? { totals.metabolicEquivalent }
    /// The time since the training began.
    public var elapsedTime: Duration? { totals.elapsedTime }
    /// The time until the training ends.
    public var remainingTime: Duration? { totals.remainingTime }

    /// The words that end the list of every machine's fields.
    package func finished(_ list: FieldList) -> [ValueField] {
        var list = list
        totals.add(to: &list)
        if isMoreDataFollowing { list.add("more data", flag: true) }
        return list.fields
    }
}

extension ByteReader {
    /// The level of resistance if it is there: 2 bytes that count `divisor` to the level in the service's first version,
    /// 1 byte that counts tens of levels in the later one.
    @_lifetime(self: copy self)
    mutating func readResistance(
        isLaterVersion: Bool, per divisor: Double, if isPresent: Bool
    ) throws(MalformedPacket) -> Double? {
        if isLaterVersion { return try read(UInt8.self, if: isPresent).map { Double($0) * 10 } }
        return try read(Int16.self, per: divisor, if: isPresent)
    }

    /// The slope in percent, unless the machine does not know it.
    @_lifetime(self: copy self)
    mutating func readSlope(if isPresent: Bool) throws(MalformedPacket) -> Double? {
        try read(Int16.self, per: 10, if: isPresent, unless: .max)
    }
}
