public import BLECore

/// A cycling power measurement: the rider's power, and related values.
///
///     flags 2 | power 2 | bit 0: balance 1 | bit 2: accumulated torque 2 | bit 4: wheel 6 | bit 5: cranks 4
///     | bit 6: forces 4 | bit 7: torques 4 | bit 8: angles 3 | bit 9: top dead spot 2 | bit 10: bottom dead spot 2
///     | bit 11: accumulated energy 2
///     bit 1: the balance refers to the left pedal   bit 3: crank torque, not wheel   bit 12: offset compensation
///
/// Spec: Cycling Power Measurement (0x2A63), Cycling Power Service 1.1, 3.2.
public struct CyclingPowerMeasurement: GATTReadable, Hashable, Sendable {
    /// The part at which the torque is measured.
    public enum TorqueSource: Hashable, Sendable {
        /// The wheel.
        case wheel
        /// The cranks.
        case crank
    }

    /// The instantaneous power in watts; negative when the rider brakes with the pedals.
    public let power: Int16
    /// The pedal power balance in percent, with a resolution of 0.5.
    public let pedalPowerBalance: Double?
    /// A Boolean value that indicates whether the balance refers to the left pedal; otherwise the pedal is unknown.
    public let isLeftPedalBalance: Bool
    /// The accumulated torque in newton metres, with a resolution of 1/32; wraps to 0 after 2047.97.
    public let accumulatedTorque: Double?
    /// The source of the accumulated torque.
    public let torqueSource: TorqueSource
    /// The wheel revolutions, at 2048 ticks per second.
    public let wheel: WheelRevolutions?
    /// The crank revolutions.
    public let crank: CrankRevolutions?
    /// The extreme forces of the last revolution, in newtons.
    public let extremeForces: Extremes<Int16>?
    /// The extreme torques of the last revolution in newton metres, with a resolution of 1/32.
    public let extremeTorques: Extremes<Double>?
    /// The angles of the extremes, in degrees from the top.
    public let extremeAngles: Extremes<UInt16>?
    /// The angle near the top at which the power becomes positive, in degrees.
    public let topDeadSpotAngle: UInt16?
    /// The angle near the bottom at which the power becomes negative, in degrees.
    public let bottomDeadSpotAngle: UInt16?
    /// The accumulated energy in kilojoules; wraps to 0.
    public let accumulatedEnergy: UInt16?
    /// A Boolean value that indicates whether an offset compensation is due or in progress.
    public let hasOffsetCompensationIndicator: Bool
    /// The specification's name.
    public static var formatName: String { "Cycling Power Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt16.self, known: 13, reading: &reader)
        power = try reader.read()
        pedalPowerBalance = try reader.read(UInt8.self, per: 2, if: flags[0])
        isLeftPedalBalance = flags[1]
        accumulatedTorque = try reader.read(UInt16.self, per: 32, if: flags[2])
        torqueSource = flags[3] ? .crank : .wheel
        wheel = flags[4] ? try WheelRevolutions(ticksPerSecond: 2048, reading: &reader) : nil
        crank = try reader.read(if: flags[5])
        extremeForces = try Self.forces(&reader, if: flags[6])
        extremeTorques = try Self.torques(&reader, if: flags[7])
        // Two 12-bit angles share three bytes, the maximum in the lower bits.
        extremeAngles = try reader.readUInt24(if: flags[8]).map { angles in
            Extremes(
                maximum: UInt16(truncatingIfNeeded: angles & 0xFFF), minimum: UInt16(truncatingIfNeeded: angles >> 12))
        }
        topDeadSpotAngle = try reader.read(if: flags[9])
        bottomDeadSpotAngle = try reader.read(if: flags[10])
        accumulatedEnergy = try reader.read(if: flags[11])
        hasOffsetCompensationIndicator = flags[12]
        reader.skipReserved(flags)
    }

    private static func forces(
        _ reader: inout ByteReader, if isPresent: Bool
    ) throws(MalformedPacket) -> Extremes<Int16>? {
        guard isPresent else { return nil }
        let maximum = try reader.read(Int16.self)
        return Extremes(maximum: maximum, minimum: try reader.read())
    }

    private static func torques(
        _ reader: inout ByteReader, if isPresent: Bool
    ) throws(MalformedPacket) -> Extremes<Double>? {
        guard let raw = try forces(&reader, if: isPresent) else { return nil }
        return Extremes(maximum: Double(raw.maximum) / 32, minimum: Double(raw.minimum) / 32)
    }
}

extension CyclingPowerMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("power", power, "W")
        list.add(isLeftPedalBalance ? "left pedal" : "pedal balance", pedalPowerBalance, places: 1, "%")
        list.add(torqueSource == .crank ? "crank torque" : "wheel torque", accumulatedTorque, places: 5, "Nm")
        list.add(wheel)
        list.add(crank)
        list.add("maximum force", extremeForces?.maximum, "N")
        list.add("minimum force", extremeForces?.minimum, "N")
        list.add("maximum torque", extremeTorques?.maximum, places: 5, "Nm")
        list.add("minimum torque", extremeTorques?.minimum, places: 5, "Nm")
        list.add("maximum angle", extremeAngles?.maximum, "°")
        list.add("minimum angle", extremeAngles?.minimum, "°")
        list.add("top dead spot", topDeadSpotAngle, "°")
        list.add("bottom dead spot", bottomDeadSpotAngle, "°")
        list.add("energy", accumulatedEnergy, "kJ")
        if hasOffsetCompensationIndicator { list.add("offset compensation", flag: true) }
        return list.fields
    }
}

extension CharacteristicKey where Value == CyclingPowerMeasurement {
    /// Cycling Power Measurement, 0x2A63: notified about once a second.
    public static var cyclingPowerMeasurement: Self { Self(0x2A63) }
}
