/// What a body composition scale can measure.
///
///     features 4: bits 11 to 14 are the resolution of masses, bits 15 to 17 that of the height
///
/// Spec: Body Composition Feature (0x2A9B), Body Composition Service 1.0, 3.1.
public struct BodyCompositionFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt32
    /// The specification's name.
    public static var formatName: String { "Body Composition Feature" }

    /// The features in these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Measurements carry the time.
    public static let timestamp = Self(rawValue: 1 << 0)
    /// The scale knows several users.
    public static let multipleUsers = Self(rawValue: 1 << 1)
    /// The energy that the body needs at rest.
    public static let basalMetabolism = Self(rawValue: 1 << 2)
    /// The share of muscles.
    public static let musclePercentage = Self(rawValue: 1 << 3)
    /// The mass of the muscles.
    public static let muscleMass = Self(rawValue: 1 << 4)
    /// The mass without fat.
    public static let fatFreeMass = Self(rawValue: 1 << 5)
    /// The mass without fat and bones.
    public static let softLeanMass = Self(rawValue: 1 << 6)
    /// The mass of the water.
    public static let bodyWaterMass = Self(rawValue: 1 << 7)
    /// The resistance of the body.
    public static let impedance = Self(rawValue: 1 << 8)
    /// The weight.
    public static let weight = Self(rawValue: 1 << 9)
    /// The height.
    public static let height = Self(rawValue: 1 << 10)

    /// How finely the scale measures masses: kilograms and pounds; `nil` when it does not say.
    public var massResolution: (kilograms: Double, pounds: Double)? {
        ScaleResolution.mass(rawValue >> 11)
    }

    /// How finely the scale measures heights: metres and inches; `nil` when it does not say.
    public var heightResolution: (metres: Double, inches: Double)? {
        ScaleResolution.height(rawValue >> 15)
    }
}

extension BodyCompositionFeature: NamedBits {
    package static var names: [String] {
        [
            "timestamp", "multiple users", "basal metabolism", "muscle percentage", "muscle mass", "fat-free mass",
            "soft lean mass", "body water mass", "impedance", "weight", "height",
        ]
    }

    package var fields: [ValueField] {
        ScaleResolution.fields(content, mass: massResolution, height: heightResolution)
    }
}

extension CharacteristicKey where Value == BodyCompositionFeature {
    /// Body Composition Feature, 0x2A9B.
    public static var bodyCompositionFeature: Self { Self(0x2A9B) }
}
