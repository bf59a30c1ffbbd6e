internal import BLECore

/// A target of a fitness machine, in requests and in status notifications.
///
/// Values out of range are clamped to the nearest encodable value.
///
/// Spec: Fitness Machine Service 1.0, 4.16.2 and 4.17.
public enum FitnessMachineTarget: Hashable, Sendable {
    /// A speed in km/h, with a resolution of 0.01.
    case speed(Double)
    /// An inclination in percent, with a resolution of 0.1.
    case inclination(Double)
    /// A resistance level, with a resolution of 0.1 and a maximum of 25.5.
    case resistanceLevel(Double)
    /// A power in watts.
    case power(Int16)
    /// A heart rate in beats per minute.
    case heartRate(UInt8)
    /// An energy in kilocalories.
    case energy(UInt16)
    /// A number of steps.
    case steps(UInt16)
    /// A number of strides.
    case strides(UInt16)
    /// A distance in metres, at most 16,777,215.
    case distance(UInt32)
    /// A training time.
    case trainingTime(Duration)
    /// Times in two heart rate zones: fat burn, fitness.
    case timesInTwoZones(Duration, Duration)
    /// Times in three heart rate zones: light, moderate, hard.
    case timesInThreeZones(Duration, Duration, Duration)
    /// Times in five heart rate zones: very light, light, moderate, hard, maximum.
    case timesInFiveZones(Duration, Duration, Duration, Duration, Duration)
    /// Simulated wind, slope and friction.
    case simulation(IndoorBikeSimulation)
    /// A wheel circumference in millimetres, with a resolution of 0.1.
    case wheelCircumference(Double)
    /// A cadence in revolutions per minute, with a resolution of 0.5.
    case cadence(Double)

    /// The target's index in both opcode tables, which list the same targets in the same order.
    enum Kind: UInt8 {
        case speed, inclination, resistanceLevel, power, heartRate
        case energy, steps, strides, distance, trainingTime, twoZones, threeZones, fiveZones
        case simulation, wheelCircumference, cadence
    }

    var kind: Kind {
        switch self {
        case .speed: .speed
        case .inclination: .inclination
        case .resistanceLevel: .resistanceLevel
        case .power: .power
        case .heartRate: .heartRate
        case .energy: .energy
        case .steps: .steps
        case .strides: .strides
        case .distance: .distance
        case .trainingTime: .trainingTime
        case .timesInTwoZones: .twoZones
        case .timesInThreeZones: .threeZones
        case .timesInFiveZones: .fiveZones
        case .simulation: .simulation
        case .wheelCircumference: .wheelCircumference
        case .cadence: .cadence
        }
    }

    init(_ kind: Kind, reading reader: inout ByteReader) throws(MalformedPacket) {
        switch kind {
        case .speed: self = .speed(try reader.read(UInt16.self, per: 100))
        case .inclination: self = .inclination(try reader.read(Int16.self, per: 10))
        case .resistanceLevel: self = .resistanceLevel(try Self.resistanceLevel(&reader))
        case .power: self = .power(try reader.read())
        case .heartRate: self = .heartRate(try reader.read())
        case .energy: self = .energy(try reader.read())
        case .steps: self = .steps(try reader.read())
        case .strides: self = .strides(try reader.read())
        case .distance: self = .distance(try reader.read(UInt24.self).value)
        case .trainingTime: self = .trainingTime(try Self.time(&reader))
        case .twoZones: self = .timesInTwoZones(try Self.time(&reader), try Self.time(&reader))
        case .threeZones:
            self = .timesInThreeZones(try Self.time(&reader), try Self.time(&reader), try Self.time(&reader))
        case .fiveZones:
            self = .timesInFiveZones(
                try Self.time(&reader), try Self.time(&reader), try Self.time(&reader), try Self.time(&reader),
                try Self.time(&reader))
        case .simulation: self = .simulation(try reader.read())
        case .wheelCircumference: self = .wheelCircumference(try reader.read(UInt16.self, per: 10))
        case .cadence: self = .cadence(try reader.read(UInt16.self, per: 2))
        }
    }

    func write(to writer: inout ByteWriter) {
        switch self {
        case .speed(let speed): writer.u16(UInt16(counting: speed, per: 100))
        case .inclination(let slope): writer.write(Int16(counting: slope, per: 10))
        case .resistanceLevel(let level): writer.u8(UInt8(counting: level, per: 10))
        case .power(let power): writer.write(power)
        case .heartRate(let rate): writer.u8(rate)
        case .energy(let count), .steps(let count), .strides(let count): writer.u16(count)
        case .distance(let metres): writer.write(UInt24(clamping: metres))
        case .trainingTime, .timesInTwoZones, .timesInThreeZones, .timesInFiveZones:
            for time in times { writer.u16(UInt16(clamping: time.components.seconds)) }
        case .simulation(let simulation): writer.write(simulation)
        case .wheelCircumference(let circumference): writer.u16(UInt16(counting: circumference, per: 10))
        case .cadence(let cadence): writer.u16(UInt16(counting: cadence, per: 2))
        }
    }

    /// One byte, or two from a machine that encodes the level as in its data.
    private static func resistanceLevel(_ reader: inout ByteReader) throws(MalformedPacket) -> Double {
        if reader.remaining == 2 { return try reader.read(Int16.self, per: 10) }
        return try reader.read(UInt8.self, per: 10)
    }

    private static func time(_ reader: inout ByteReader) throws(MalformedPacket) -> Duration {
        .seconds(try reader.read(UInt16.self))
    }

    /// The target's times, in transmission order.
    private var times: [Duration] {
        switch self {
        case .trainingTime(let time): [time]
        case .timesInTwoZones(let first, let second): [first, second]
        case .timesInThreeZones(let first, let second, let third): [first, second, third]
        case .timesInFiveZones(let first, let second, let third, let fourth, let fifth):
            [first, second, third, fourth, fifth]
        case .speed, .inclination, .resistanceLevel, .power, .heartRate, .energy, .steps, .strides, .distance,
            .simulation, .wheelCircumference, .cadence:
            []
        }
    }
}

extension FitnessMachineTarget {
    func add(to list: inout FieldList) {
        switch self {
        case .speed(let speed): list.add("target speed", speed, places: 2, "km/h")
        case .inclination(let slope): list.add("target inclination", slope, places: 1, "%")
        case .resistanceLevel(let level): list.add("target resistance", level, places: 1)
        case .power(let power): list.add("target power", power, "W")
        case .heartRate(let rate): list.add("target heart rate", rate, "bpm")
        case .energy(let energy): list.add("target energy", energy, "kcal")
        case .steps(let steps): list.add("target steps", steps)
        case .strides(let strides): list.add("target strides", strides)
        case .distance(let metres): list.add("target distance", metres, "m")
        case .trainingTime(let time): list.add("target time", time)
        case .timesInTwoZones, .timesInThreeZones, .timesInFiveZones:
            list.add("target times in zones", times.map { .integer($0.components.seconds) }, "s")
        case .simulation(let simulation): simulation.add(to: &list)
        case .wheelCircumference(let circumference):
            list.add("wheel circumference", circumference, places: 1, "mm")
        case .cadence(let cadence): list.add("target cadence", cadence, places: 1, "/min")
        }
    }
}
