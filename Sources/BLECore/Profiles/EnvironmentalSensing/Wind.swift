// Wind: seen from the ground (true) or from what moves (apparent).
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// Counts a speed of the wind.
public enum WindSpeedQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Wind Speed" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -2, unit: "m/s") }
}

/// A speed of the wind.
public typealias WindSpeed = ScaledValue<WindSpeedQuantity>

extension CharacteristicKey where Value == WindSpeed {
    /// True Wind Speed, 0x2A70.
    public static var trueWindSpeed: Self { Self(0x2A70) }
    /// Apparent Wind Speed, 0x2A72.
    public static var apparentWindSpeed: Self { Self(0x2A72) }
}

/// Counts an angle, clockwise.
public enum CompassAngleQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Angle" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -2, unit: "°") }
}

/// An angle, clockwise.
public typealias CompassAngle = ScaledValue<CompassAngleQuantity>

extension CharacteristicKey where Value == CompassAngle {
    /// True Wind Direction, 0x2A71.
    public static var trueWindDirection: Self { Self(0x2A71) }
    /// Apparent Wind Direction, 0x2A73.
    public static var apparentWindDirection: Self { Self(0x2A73) }
    /// Magnetic Declination, 0x2A2C.
    public static var magneticDeclination: Self { Self(0x2A2C) }
}

/// Counts how much stronger gusts are than the wind.
public enum GustFactorQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Gust Factor" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 1, exponent: -1, unit: "") }
}

/// How much stronger gusts are than the wind.
public typealias GustFactor = ScaledValue<GustFactorQuantity>

extension CharacteristicKey where Value == GustFactor {
    /// Gust Factor, 0x2A74.
    public static var gustFactor: Self { Self(0x2A74) }
}
