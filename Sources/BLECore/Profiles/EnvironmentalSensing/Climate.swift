// What a weather station measures in the air, the ground and the sky.
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// Counts a temperature.
public enum TemperatureQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Temperature" }
    /// How its numbers are sent.
    public static var scale: ValueScale {
        ValueScale(byteCount: 2, isSigned: true, exponent: -2, unit: "°C", unknown: -0x8000)
    }
}

/// A temperature.
public typealias Temperature = ScaledValue<TemperatureQuantity>

extension CharacteristicKey where Value == Temperature {
    /// Temperature, 0x2A6E.
    public static var temperature: Self { Self(0x2A6E) }
}

/// Counts a temperature in whole degrees.
public enum WholeTemperatureQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Temperature in whole degrees" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 1, isSigned: true, unit: "°C") }
}

/// A temperature in whole degrees.
public typealias WholeTemperature = ScaledValue<WholeTemperatureQuantity>

extension CharacteristicKey where Value == WholeTemperature {
    /// Dew Point, 0x2A7B.
    public static var dewPoint: Self { Self(0x2A7B) }
    /// Heat Index, 0x2A7A.
    public static var heatIndex: Self { Self(0x2A7A) }
    /// Wind Chill, 0x2A79.
    public static var windChill: Self { Self(0x2A79) }
}

/// Counts a relative humidity.
public enum HumidityQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Humidity" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -2, unit: "%", unknown: 0xFFFF) }
}

/// A relative humidity.
public typealias Humidity = ScaledValue<HumidityQuantity>

extension CharacteristicKey where Value == Humidity {
    /// Humidity, 0x2A6F.
    public static var humidity: Self { Self(0x2A6F) }
}

/// Counts an air pressure.
public enum PressureQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Pressure" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 4, exponent: -1, unit: "Pa") }
}

/// An air pressure.
public typealias Pressure = ScaledValue<PressureQuantity>

extension CharacteristicKey where Value == Pressure {
    /// Pressure, 0x2A6D.
    public static var pressure: Self { Self(0x2A6D) }
}

/// Counts a height above the sea.
public enum ElevationQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Elevation" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 3, isSigned: true, exponent: -2, unit: "m") }
}

/// A height above the sea.
public typealias Elevation = ScaledValue<ElevationQuantity>

extension CharacteristicKey where Value == Elevation {
    /// Elevation, 0x2A6C.
    public static var elevation: Self { Self(0x2A6C) }
}

/// Counts an amount of rain.
public enum RainfallQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Rainfall" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -3, unit: "m") }
}

/// An amount of rain.
public typealias Rainfall = ScaledValue<RainfallQuantity>

extension CharacteristicKey where Value == Rainfall {
    /// Rainfall, 0x2A78.
    public static var rainfall: Self { Self(0x2A78) }
}

/// Counts how much pollen is in the air.
public enum PollenConcentrationQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Pollen Concentration" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 3, unit: "/m³") }
}

/// How much pollen is in the air.
public typealias PollenConcentration = ScaledValue<PollenConcentrationQuantity>

extension CharacteristicKey where Value == PollenConcentration {
    /// Pollen Concentration, 0x2A75.
    public static var pollenConcentration: Self { Self(0x2A75) }
}
