/// Energy, heart rate and times: the fields that the data of every fitness machine ends with.
///
///     energy 2, per hour 2, per minute 1 | heart rate 1 | metabolic equivalent 1 | elapsed 2 | remaining 2, as far as flagged
///
/// Spec: Fitness Machine Service 1.0, 4.4 to 4.9.
public struct TrainingTotals: Hashable, Sendable {
    /// The energy since the training began in kilocalories; `nil` too when the machine does not know.
    public let energy: UInt16?
    /// The energy in an hour in kilocalories; `nil` too when the machine does not know.
    public let energyPerHour: UInt16?
    /// The energy in a minute in kilocalories; `nil` too when the machine does not know.
    public let energyPerMinute: UInt8?
    /// Beats per minute.
    public let heartRate: UInt8?
    /// How many times the energy at rest, to 0.1.
    public let metabolicEquivalent: Double?
    /// The time since the training began.
    public let elapsedTime: Duration?
    /// The time until the training ends.
    public let remainingTime: Duration?

    init(_ flags: FieldFlags, from bit: Int, reading reader: inout ByteReader) throws(MalformedPacket) {
        energy = try reader.read(UInt16.self, if: flags[bit], unless: .max)
        energyPerHour = try reader.read(UInt16.self, if: flags[bit], unless: .max)
        energyPerMinute = try reader.read(UInt8.self, if: flags[bit], unless: .max)
        heartRate = try reader.read(if: flags[bit + 1])
        metabolicEquivalent = try reader.read(UInt8.self, per: 10, if: flags[bit + 2])
        elapsedTime = try reader.readSeconds(if: flags[bit + 3])
        remainingTime = try reader.readSeconds(if: flags[bit + 4])
    }

    func add(to list: inout FieldList) {
        list.add("energy", energy, "kcal")
        list.add("energy per hour", energyPerHour, "kcal")
        list.add("energy per minute", energyPerMinute, "kcal")
        list.add("heart rate", heartRate, "bpm")
        list.add("metabolic equivalent", metabolicEquivalent, places: 1)
        list.add("elapsed", elapsedTime)
        list.add("remaining", remainingTime)
    }
}
