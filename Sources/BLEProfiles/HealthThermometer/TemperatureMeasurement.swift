public import BLECore

/// A body temperature measurement.
///
///     flags 1 | temperature 4 (FLOAT) | time 7, if flagged | type 1, if flagged
///
/// Spec: Temperature Measurement (0x2A1C) and Intermediate Temperature (0x2A1E), Health Thermometer Service 1.0, 3.1
/// and 3.3.
public struct TemperatureMeasurement: GATTReadable, Hashable, Sendable {
    /// The temperature, in degrees Celsius or Fahrenheit depending on `isFahrenheit`.
    public let temperature: MedicalFloat32
    /// A Boolean value that indicates whether the unit is degrees Fahrenheit; otherwise it is degrees Celsius.
    public let isFahrenheit: Bool
    /// The time of the measurement, by the device's clock, if present.
    public let time: GATTDateTime?
    /// The location of the measurement on the body, if present.
    public let type: TemperatureType?
    /// The specification's name.
    public static var formatName: String { "Temperature Measurement" }

    /// Reads one measurement.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 3, reading: &reader)
        isFahrenheit = flags[0]
        temperature = try reader.read()
        time = try reader.read(if: flags[1])
        type = try reader.read(if: flags[2])
        reader.skipReserved(flags)
    }

    /// The temperature in degrees Celsius, regardless of the unit; NaN if the device has no valid result.
    public var celsius: Double {
        isFahrenheit ? (temperature.doubleValue - 32) * 5 / 9 : temperature.doubleValue
    }
}

extension TemperatureMeasurement: DescribedValue {
    package var fields: [ValueField] {
        let unit = isFahrenheit ? "°F" : "°C"
        var fields = [ValueField("temperature", temperature.number.content, unit: unit)]
        if let type { fields.append(ValueField("type", type.content)) }
        if let time { fields.append(ValueField("time", .text(time.description))) }
        return fields
    }
}

extension CharacteristicKey where Value == TemperatureMeasurement {
    /// Temperature Measurement, 0x2A1C: indicated when a measurement is complete.
    public static var temperatureMeasurement: Self { Self(0x2A1C) }
    /// Intermediate Temperature, 0x2A1E: notified during a measurement.
    public static var intermediateTemperature: Self { Self(0x2A1E) }
}
