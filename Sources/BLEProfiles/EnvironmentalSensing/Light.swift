public import BLECore

// Sunlight and ambient light.
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// The quantity of ``UVIndex``.
public enum UVIndexQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "UV Index" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 1, unit: "") }
}

/// A UV index, without a unit.
public typealias UVIndex = ScaledValue<UVIndexQuantity>

extension CharacteristicKey where Value == UVIndex {
    /// UV Index, 0x2A76.
    public static var uvIndex: Self { Self(0x2A76) }
}

/// The quantity of ``Irradiance``.
public enum IrradianceQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Irradiance" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, exponent: -1, unit: "W/m²") }
}

/// An irradiance in W/m², with a resolution of 0.1.
public typealias Irradiance = ScaledValue<IrradianceQuantity>

extension CharacteristicKey where Value == Irradiance {
    /// Irradiance, 0x2A77.
    public static var irradiance: Self { Self(0x2A77) }
}

/// The quantity of ``Illuminance``.
public enum IlluminanceQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "Illuminance" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 3, exponent: -2, unit: "lx", unknown: 0xFF_FFFF) }
}

/// An illuminance in lux, with a resolution of 0.01.
public typealias Illuminance = ScaledValue<IlluminanceQuantity>

extension CharacteristicKey where Value == Illuminance {
    /// Illuminance, 0x2AFB.
    public static var illuminance: Self { Self(0x2AFB) }
}
