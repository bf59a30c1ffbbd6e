public import BLECore

/// The revolutions of the wheel, the cranks, or both. Two measurements give speed and cadence:
///
/// ```swift
/// if let crank = later.crank, let before = earlier.crank, let cadence = crank.cadence(since: before) {
///     print("\(cadence) turns a minute")
/// }
/// ```
///
///     flags 1 | bit 0: wheel 6 | bit 1: cranks 4
///
/// Spec: CSC Measurement (0x2A5B), Cycling Speed and Cadence Service 1.0, 3.1.
public struct CSCMeasurement: GATTReadable, Hashable, Sendable {
    /// The wheel revolutions, for ``WheelRevolutions/speed(since:circumference:)``.
    public let wheel: WheelRevolutions?
    /// The crank revolutions, for ``CrankRevolutions/cadence(since:)``.
    public let crank: CrankRevolutions?
    /// The specification's name.
    public static var formatName: String { "CSC Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 2, reading: &reader)
        wheel = flags[0] ? try WheelRevolutions(ticksPerSecond: 1024, reading: &reader) : nil
        crank = try reader.read(if: flags[1])
        reader.skipReserved(flags)
    }
}

extension CSCMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add(wheel)
        list.add(crank)
        return list.fields
    }
}

extension CharacteristicKey where Value == CSCMeasurement {
    /// CSC Measurement, 0x2A5B: notified about once a second.
    public static var cscMeasurement: Self { Self(0x2A5B) }
}
