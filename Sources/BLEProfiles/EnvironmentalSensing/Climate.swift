public import BLECore

// Quantities measured by weather stations.
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// The quantity of ``Temperature``.
public enum TemperatureQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Temperature" }
    /// The encoding of the value.
    public static var scale: ValueScale {
        ValueScale(byteCount: 2, isSigned: true, exponent: -2, unit: "°C", unknown: -0x8000)
    }
}

/// A temperature in degrees Celsius, with a resolution of 0.01.
public typealias Temperature = ScaledValue<TemperatureQuantity>

extension CharacteristicKey where Value == Temperature {
    /// Temperature, 0x2A6E.
    public static var temperature: Self { Self(0x2A6E) }
}

/// The quantity of ``WholeTemperature``.
public enum WholeTemperatureQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Temperature in whole degrees" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 1, isSigned: true, unit: "°C") }
}

/// A temperature in whole degrees Celsius.
public typealias WholeTemperature = ScaledValue<WholeTemperatureQuantity>

extension CharacteristicKey where Value == WholeTemperature {
    /// Dew Point, 0x2A7B.
    public static var dewPoint: Self { Self(0x2A7B) }
    /// Heat Index, 0x2A7A.
    public static var heatIndex: Self { Self(0x2A7A) }
    /// Wind Chill, 0x2A79.
    public static var windChill: Self { Self(0x2A79) }
}

/// The quantity of ``Humidity``.
public enum HumidityQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Humidity" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -2, unit: "%", unknown: 0xFFFF) }
}

/// A relative humidity in percent, with a resolution of 0.01.
public typealias Humidity = ScaledValue<HumidityQuantity>

extension CharacteristicKey where Value == Humidity {
    /// Humidity, 0x2A6F.
    public static var humidity: Self { Self(0x2A6F) }
}

/// The quantity of ``Pressure``.
public enum PressureQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Pressure" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 4, exponent: -1, unit: "Pa") }
}

/// An air pressure in pascals, with a resolution of 0.1.
public typealias Pressure = ScaledValue<PressureQuantity>

extension CharacteristicKey where Value == Pressure {
    /// Pressure, 0x2A6D.
    public static var pressure: Self { Self(0x2A6D) }
}

/// The quantity of ``Elevation``.
public enum ElevationQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Elevation" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 3, isSigned: true, exponent: -2, unit: "m") }
}

/// An elevation above sea level in metres, with a resolution of 0.01.
public typealias Elevation = ScaledValue<ElevationQuantity>

extension CharacteristicKey where Value == Elevation {
    /// Elevation, 0x2A6C.
    public static var elevation: Self { Self(0x2A6C) }
}

/// The quantity of ``Rainfall``.
public enum RainfallQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Rainfall" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -3, unit: "m") }
}

/// An amount of rain in metres, with a resolution of 0.001.
public typealias Rainfall = ScaledValue<RainfallQuantity>

extension CharacteristicKey where Value == Rainfall {
    /// Rainfall, 0x2A78.
    public static var rainfall: Self { Self(0x2A78) }
}

/// The quantity of ``PollenConcentration``.
public enum PollenConcentrationQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Pollen Concentration" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 3, unit: "/m³") }
}

/// A pollen concentration, in grains per cubic metre.
public typealias PollenConcentration = ScaledValue<PollenConcentrationQuantity>

extension CharacteristicKey where Value == PollenConcentration {
    /// Pollen Concentration, 0x2A75.
    public static var pollenConcentration: Self { Self(0x2A75) }
}
