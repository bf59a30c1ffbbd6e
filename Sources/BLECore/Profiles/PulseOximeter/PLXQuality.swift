/// What both kinds of measurement say about themselves.
///
///     measurement status 2 | device and sensor status 3 | pulse amplitude index 2, as far as flagged
public struct PLXQuality: Hashable, Sendable {
    /// How far the measurement can be trusted.
    public let measurementStatus: PLXMeasurementStatus?
    /// What device and sensor suffer from.
    public let deviceStatus: PLXDeviceStatus?
    /// How strong the pulse is in the signal, in percent.
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
