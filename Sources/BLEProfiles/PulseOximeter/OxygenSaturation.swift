public import BLECore

/// An SpO2 reading with its pulse rate.
///
///     saturation 2 | pulse 2
///
/// Spec: SpO2PR, Pulse Oximeter Service 1.0.1, 3.2.1.2.
public struct OxygenSaturation: GATTReadable, Hashable, Sendable {
    /// The oxygen saturation (SpO2) in percent.
    public let saturation: MedicalFloat16
    /// The pulse rate in beats per minute.
    public let pulseRate: MedicalFloat16
    /// The specification's name for the pair.
    public static var formatName: String { "SpO2PR" }

    /// Reads 4 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        saturation = try reader.read()
        pulseRate = try reader.read()
    }

    func add(_ prefix: String, to list: inout FieldList) {
        list.add(prefix + "SpO2", saturation, "%")
        list.add(prefix + "pulse", pulseRate, "bpm")
    }
}
