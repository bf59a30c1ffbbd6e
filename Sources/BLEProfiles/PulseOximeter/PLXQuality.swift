public import BLECore

/// The status fields that both kinds of measurement share.
///
///     measurement status 2 | device and sensor status 3 | pulse amplitude index 2, each if flagged
public struct PLXQuality: Hashable, Sendable {
    /// The status and reliability of the measurement.
    public let measurementStatus: PLXMeasurementStatus?
    /// The problems of the device and the sensor.
    public let deviceStatus: PLXDeviceStatus?
    /// The pulse amplitude index, in percent.
    public let pulseAmplitudeIndex: MedicalFloat16?

    init(_ flags: FieldFlags, from bit: Int, reading reader: inout ByteReader) throws(MalformedPacket) {
        measurementStatus = try reader.read(if: flags[bit])
        deviceStatus = try reader.read(if: flags[bit + 1])
        pulseAmplitudeIndex = try reader.read(if: flags[bit + 2])
        reader.skipReserved(flags)
    }

    func add(to list: inout FieldList) {
        list.add("pulse amplitude", pulseAmplitudeIndex, "%")
        list.add("measurement status", measurementStatus)
        list.add("device status", deviceStatus)
    }
}
