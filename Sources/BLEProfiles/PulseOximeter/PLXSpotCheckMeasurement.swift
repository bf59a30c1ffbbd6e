public import BLECore

/// A spot-check measurement of a pulse oximeter.
///
///     flags 1 | saturation and pulse 4 | bit 0: time 7 | bits 1 to 3: see ``PLXQuality``      bit 4: clock not set
///
/// Spec: PLX Spot-Check Measurement (0x2A5E), Pulse Oximeter Service 1.0.1, 3.2.
public struct PLXSpotCheckMeasurement: GATTReadable, Hashable, Sendable {
    /// The saturation and the pulse rate.
    public let value: OxygenSaturation
    /// The time of the measurement, by the device's clock.
    public let timestamp: GATTDateTime?
    /// The status fields and the pulse amplitude.
    public let quality: PLXQuality
    /// A Boolean value that indicates whether the device's clock has never been set.
    public let isClockNotSet: Bool
    /// The specification's name.
    public static var formatName: String { "PLX Spot-Check Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 5, reading: &reader)
        value = try reader.read()
        timestamp = try reader.read(if: flags[0])
        quality = try PLXQuality(flags, from: 1, reading: &reader)
        isClockNotSet = flags[4]
    }
}

extension PLXSpotCheckMeasurement: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        value.add("", to: &list)
        quality.add(to: &list)
        list.add("at", timestamp)
        if isClockNotSet { list.add("clock not set", flag: true) }
        return list.fields
    }
}

extension CharacteristicKey where Value == PLXSpotCheckMeasurement {
    /// PLX Spot-Check Measurement, 0x2A5E: indicated when a measurement is complete.
    public static var plxSpotCheckMeasurement: Self { Self(0x2A5E) }
}
