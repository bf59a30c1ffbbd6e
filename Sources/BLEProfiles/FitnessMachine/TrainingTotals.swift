internal import BLECore

/// Energy, heart rate and time: the fields that end the data of every fitness machine.
///
///     energy 2, per hour 2, per minute 1 | heart rate 1 | metabolic equivalent 1 | elapsed 2
///     | remaining 2, as far as flagged
///
/// Spec: Fitness Machine Service 1.0, 4.4 to 4.9.
public struct TrainingTotals: Hashable, Sendable {
    /// The total energy in kilocalories; also `nil` if the machine reports it as not available.
    public let energy: UInt16?
    /// The energy per hour in kilocalories; also `nil` if the machine reports it as not available.
    public let energyPerHour: UInt16?
    /// The energy per minute in kilocalories; also `nil` if the machine reports it as not available.
    public let energyPerMinute: UInt8?
    /// The pulse rate in beats per minute.
    public let heartRate: UInt8?
    /// The metabolic equivalent, with a resolution of 0.1.
    public let metabolicEquivalent: Double?
    /// The elapsed time of the workout.
    public let elapsedTime: Duration?
    /// The remaining time of the workout.
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
