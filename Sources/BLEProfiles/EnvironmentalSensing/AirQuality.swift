public import BLECore

// Gas concentrations in air.
// Spec: Environmental Sensing Service 1.0, 3.1; GATT Specification Supplement.

/// The quantity of ``CarbonDioxideConcentration``.
public enum CarbonDioxideConcentrationQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "CO2 Concentration" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, unit: "ppm", unknown: 0xFFFF) }
}

/// A carbon dioxide concentration in ppm; 65,534 means that or more.
public typealias CarbonDioxideConcentration = ScaledValue<CarbonDioxideConcentrationQuantity>

extension CharacteristicKey where Value == CarbonDioxideConcentration {
    /// CO2 Concentration, 0x2B8C.
    public static var carbonDioxideConcentration: Self { Self(0x2B8C) }
}

/// The quantity of ``VolatileOrganicCompounds``.
public enum VolatileOrganicCompoundsQuantity: ScaledQuantity {
    /// The specification's name.
    public static var formatName: String { "VOC Concentration" }
    /// The encoding of the value.
    public static var scale: ValueScale { ValueScale(byteCount: 2, unit: "ppb", unknown: 0xFFFF) }
}

/// A concentration of volatile organic compounds in ppb; 65,534 means that or more.
public typealias VolatileOrganicCompounds = ScaledValue<VolatileOrganicCompoundsQuantity>

extension CharacteristicKey where Value == VolatileOrganicCompounds {
    /// VOC Concentration, 0x2BE7.
    public static var volatileOrganicCompounds: Self { Self(0x2BE7) }
}

extension CharacteristicKey where Value == MedicalFloat16 {
    /// Carbon Monoxide Concentration, 0x2BD0, in kilograms per cubic metre.
    public static var carbonMonoxideConcentration: Self { Self(0x2BD0) }
    /// Methane Concentration, 0x2BD1, in parts per billion.
    public static var methaneConcentration: Self { Self(0x2BD1) }
    /// Nitrogen Dioxide Concentration, 0x2BD2, in kilograms per cubic metre.
    public static var nitrogenDioxideConcentration: Self { Self(0x2BD2) }
    /// Ozone Concentration, 0x2BD4, in kilograms per cubic metre.
    public static var ozoneConcentration: Self { Self(0x2BD4) }
    /// Particulate Matter - PM1 Concentration, 0x2BD5, in kilograms per cubic metre.
    public static var particulateMatter1: Self { Self(0x2BD5) }
    /// Particulate Matter - PM2.5 Concentration, 0x2BD6, in kilograms per cubic metre.
    public static var particulateMatter25: Self { Self(0x2BD6) }
    /// Particulate Matter - PM10 Concentration, 0x2BD7, in kilograms per cubic metre.
    public static var particulateMatter10: Self { Self(0x2BD7) }
}
