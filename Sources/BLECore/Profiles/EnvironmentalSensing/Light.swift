// Light, from the sun and from lamps.
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// Counts how strongly the sun burns.
public enum UVIndexQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "UV Index" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 1, unit: "") }
}

/// How strongly the sun burns.
public typealias UVIndex = ScaledValue<UVIndexQuantity>

extension CharacteristicKey where Value == UVIndex {
    /// UV Index, 0x2A76.
    public static var uvIndex: Self { Self(0x2A76) }
}

/// Counts the power of light on an area.
public enum IrradianceQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Irradiance" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -1, unit: "W/m²") }
}

/// The power of light on an area.
public typealias Irradiance = ScaledValue<IrradianceQuantity>

extension CharacteristicKey where Value == Irradiance {
    /// Irradiance, 0x2A77.
    public static var irradiance: Self { Self(0x2A77) }
}

/// Counts how bright an area is lit.
public enum IlluminanceQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Illuminance" }
    /// How its numbers are sent.
    public static var scale: ValueScale { ValueScale(byteCount: 3, exponent: -2, unit: "lx", unknown: 0xFF_FFFF) }
}

/// How bright an area is lit.
public typealias Illuminance = ScaledValue<IlluminanceQuantity>

extension CharacteristicKey where Value == Illuminance {
    /// Illuminance, 0x2AFB.
    public static var illuminance: Self { Self(0x2AFB) }
}
