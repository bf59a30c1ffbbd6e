public import BLECore

// Wind relative to the ground (true) or to a moving observer (apparent).
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// The quantity of ``WindSpeed``.
public enum WindSpeedQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Wind Speed" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -2, unit: "m/s") }
}

/// A wind speed in m/s, with a resolution of 0.01.
public typealias WindSpeed = ScaledValue<WindSpeedQuantity>

extension CharacteristicKey where Value == WindSpeed {
    /// True Wind Speed, 0x2A70.
    public static var trueWindSpeed: Self { Self(0x2A70) }
    /// Apparent Wind Speed, 0x2A72.
    public static var apparentWindSpeed: Self { Self(0x2A72) }
}

/// The quantity of ``CompassAngle``.
public enum CompassAngleQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Angle" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -2, unit: "°") }
}

/// A clockwise angle in degrees, with a resolution of 0.01.
public typealias CompassAngle = ScaledValue<CompassAngleQuantity>

extension CharacteristicKey where Value == CompassAngle {
    /// True Wind Direction, 0x2A71.
    public static var trueWindDirection: Self { Self(0x2A71) }
    /// Apparent Wind Direction, 0x2A73.
    public static var apparentWindDirection: Self { Self(0x2A73) }
    /// Magnetic Declination, 0x2A2C.
    public static var magneticDeclination: Self { Self(0x2A2C) }
}

/// The quantity of ``GustFactor``.
public enum GustFactorQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Gust Factor" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 1, exponent: -1, unit: "") }
}

/// The ratio of gust speed to wind speed, with a resolution of 0.1.
public typealias GustFactor = ScaledValue<GustFactorQuantity>

extension CharacteristicKey where Value == GustFactor {
    /// Gust Factor, 0x2A74.
    public static var gustFactor: Self { Self(0x2A74) }
}
