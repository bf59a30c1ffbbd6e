public import BLECore

/// The cuff pressure during a measurement.
///
///     flags 1 | pressure 2 | unused 4 | the rest: see ``BloodPressureDetails``
///
/// Spec: Intermediate Cuff Pressure (0x2A36), Blood Pressure Service 1.1, 3.2.
public struct IntermediateCuffPressure: BloodPressureReading, Hashable, Sendable {
    /// The current cuff pressure.
    public let pressure: MedicalFloat16
    /// The unit and the optional fields after the pressure.
    public let details: BloodPressureDetails
    /// The specification's name.
    public static var formatName: String { "Intermediate Cuff Pressure" }

    /// Reads one value. The bytes in place of a measurement's other two pressures are skipped.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let measurement = try BloodPressureMeasurement(reading: &reader)
        pressure = measurement.systolic
        details = measurement.details
    }
}

extension IntermediateCuffPressure: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("cuff pressure", pressure, details.unitName)
        details.add(to: &list)
        return list.fields
    }
}

extension CharacteristicKey where Value == IntermediateCuffPressure {
    /// Intermediate Cuff Pressure, 0x2A36: notified while the cuff deflates.
    public static var intermediateCuffPressure: Self { Self(0x2A36) }
}
