public import BLECore

/// A blood pressure measurement.
///
///     flags 1 | systolic 2 | diastolic 2 | mean 2 | the rest: see ``BloodPressureDetails``
///
/// Spec: Blood Pressure Measurement (0x2A35), Blood Pressure Service 1.1, 3.1.
public struct BloodPressureMeasurement: BloodPressureReading, Hashable, Sendable {
    /// The systolic pressure.
    public let systolic: MedicalFloat16
    /// The diastolic pressure.
    public let diastolic: MedicalFloat16
    /// The mean arterial pressure.
    public let meanArterialPressure: MedicalFloat16
    /// The unit and the optional fields after the pressures.
    public let details: BloodPressureDetails
    /// The specification's name.
    public static var formatName: String { "Blood Pressure Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 5, reading: &reader)
        systolic = try reader.read()
        diastolic = try reader.read()
        meanArterialPressure = try reader.read()
        details = try BloodPressureDetails(flags, reading: &reader)
    }
}

extension BloodPressureMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("systolic", systolic, details.unitName)
        list.add("diastolic", diastolic, details.unitName)
        list.add("mean", meanArterialPressure, details.unitName)
        details.add(to: &list)
        return list.fields
    }
}

extension CharacteristicKey where Value == BloodPressureMeasurement {
    /// Blood Pressure Measurement, 0x2A35: indicated when a measurement is complete.
    public static var bloodPressureMeasurement: Self { Self(0x2A35) }
}
