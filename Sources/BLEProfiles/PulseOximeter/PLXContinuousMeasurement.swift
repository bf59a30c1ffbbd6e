public import BLECore

/// A continuous measurement of a pulse oximeter.
///
///     flags 1 | normal 4 | bit 0: fast 4 | bit 1: slow 4 | bits 2 to 4: see ``PLXQuality``
///
/// Spec: PLX Continuous Measurement (0x2A5F), Pulse Oximeter Service 1.0.1, 3.3.
public struct PLXContinuousMeasurement: GATTReadable, Hashable, Sendable {
    /// The saturation and the pulse rate, with normal averaging.
    public let normal: OxygenSaturation
    /// The same, averaged over a shorter time.
    public let fast: OxygenSaturation?
    /// The same, averaged over a longer time.
    public let slow: OxygenSaturation?
    /// The status fields and the pulse amplitude.
    public let quality: PLXQuality
    /// The specification's name.
    public static var formatName: String { "PLX Continuous Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 5, reading: &reader)
        normal = try reader.read()
        fast = try reader.read(if: flags[0])
        slow = try reader.read(if: flags[1])
        quality = try PLXQuality(flags, from: 2, reading: &reader)
    }
}

extension PLXContinuousMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        normal.add("", to: &list)
        fast?.add("fast ", to: &list)
        slow?.add("slow ", to: &list)
        quality.add(to: &list)
        return list.fields
    }
}

extension CharacteristicKey where Value == PLXContinuousMeasurement {
    /// PLX Continuous Measurement, 0x2A5F: notified about once a second.
    public static var plxContinuousMeasurement: Self { Self(0x2A5F) }
}
