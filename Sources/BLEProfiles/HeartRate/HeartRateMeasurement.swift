public import BLECore

/// A heart rate measurement, with optional energy and RR intervals.
///
///     flags 1 | rate 1 or 2 | energy 2, if flagged | RR intervals of 2 each, if flagged
///
/// Spec: Heart Rate Measurement (0x2A37), Heart Rate Service 1.0, 3.1.
public struct HeartRateMeasurement: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The heart rate in beats per minute.
    public let beatsPerMinute: UInt16
    /// A Boolean value that indicates whether the sensor has skin contact, or `nil` if it cannot detect it.
    public let hasSkinContact: Bool?
    /// The energy expended since the last reset, in kilojoules, if present; 65,535 means that or more.
    public let energyExpended: UInt16?
    /// The intervals between beats, oldest first, in units of 1/1024 s.
    public let rrIntervals1024: [UInt16]
    /// The specification's name.
    public static var formatName: String { "Heart Rate Measurement" }

    /// Creates a measurement, as a sensor sends it.
    ///
    /// - Parameters:
    ///   - beatsPerMinute: The heart rate.
    ///   - hasSkinContact: Whether the sensor has skin contact; `nil` if it cannot detect it.
    ///   - energyExpended: The energy expended since the last reset, in kilojoules; `nil` to leave it out.
    ///   - rrIntervals1024: The intervals between beats, oldest first, in units of 1/1024 s. A value of the smallest
    ///     MTU has room for 9 beside the rate alone.
    public init(
        beatsPerMinute: UInt16, hasSkinContact: Bool? = nil, energyExpended: UInt16? = nil,
        rrIntervals1024: [UInt16] = []
    ) {
        self.beatsPerMinute = beatsPerMinute
        self.hasSkinContact = hasSkinContact
        self.energyExpended = energyExpended
        self.rrIntervals1024 = rrIntervals1024
    }

    /// Reads one measurement. The RR intervals extend to the end of the value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 5, reading: &reader)
        beatsPerMinute = flags[0] ? try reader.read(UInt16.self) : UInt16(try reader.read(UInt8.self))
        hasSkinContact = flags[2] ? flags[1] : nil
        energyExpended = try reader.read(if: flags[3])
        rrIntervals1024 = flags[4] ? try reader.readToEnd() : []
        reader.skipReserved(flags)
    }

    /// Appends the fields that are present. A rate over 255 has two bytes.
    public func write(to writer: inout ByteWriter) {
        let isWide = beatsPerMinute > 255
        var flags: UInt8 = isWide ? 0x01 : 0
        if hasSkinContact != nil { flags |= 0x04 }
        if hasSkinContact == true { flags |= 0x02 }
        if energyExpended != nil { flags |= 0x08 }
        if !rrIntervals1024.isEmpty { flags |= 0x10 }
        writer.u8(flags)
        if isWide { writer.u16(beatsPerMinute) } else { writer.u8(UInt8(truncatingIfNeeded: beatsPerMinute)) }
        writer.write(ifPresent: energyExpended)
        for interval in rrIntervals1024 { writer.u16(interval) }
    }

    /// The intervals between beats, oldest first.
    public var rrIntervals: [Duration] {
        var durations: [Duration] = []
        for interval in rrIntervals1024 { durations.append(.nanoseconds(Int64(interval) * 1_000_000_000 / 1024)) }
        return durations
    }
}

extension HeartRateMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var fields: [ValueField] = [.number("heart rate", beatsPerMinute, "bpm")]
        if let hasSkinContact { fields.append(ValueField("skin contact", .flag(hasSkinContact))) }
        if let energyExpended { fields.append(.number("energy", energyExpended, "kJ")) }
        var intervals: [ValueField.Content] = []
        for interval in rrIntervals1024 {
            intervals.append(.decimal(DecimalNumber((Int(interval) * 1000 + 512) / 1024, exponent: -3)))
        }
        if !intervals.isEmpty { fields.append(ValueField("RR", .list(intervals), unit: "s")) }
        return fields
    }
}

extension CharacteristicKey where Value == HeartRateMeasurement {
    /// Heart Rate Measurement, 0x2A37: notified about once a second.
    public static var heartRateMeasurement: Self { Self(0x2A37) }
}
