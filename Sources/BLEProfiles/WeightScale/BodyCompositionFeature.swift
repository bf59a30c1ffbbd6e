public import BLECore

/// The features of a body composition scale.
///
///     features 4: bits 11 to 14 are the mass resolution, bits 15 to 17 the height resolution
///
/// Spec: Body Composition Feature (0x2A9B), Body Composition Service 1.0, 3.1.
public struct BodyCompositionFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt32
    /// The specification's name.
    public static var formatName: String { "Body Composition Feature" }

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Measurements carry the time.
    public static let timestamp = Self(rawValue: 1 << 0)
    /// Supports multiple users.
    public static let multipleUsers = Self(rawValue: 1 << 1)
    /// Basal metabolism.
    public static let basalMetabolism = Self(rawValue: 1 << 2)
    /// Muscle percentage.
    public static let musclePercentage = Self(rawValue: 1 << 3)
    /// Muscle mass.
    public static let muscleMass = Self(rawValue: 1 << 4)
    /// Fat-free mass.
    public static let fatFreeMass = Self(rawValue: 1 << 5)
    /// Soft lean mass: without fat and bones.
    public static let softLeanMass = Self(rawValue: 1 << 6)
    /// Body water mass.
    public static let bodyWaterMass = Self(rawValue: 1 << 7)
    /// Body impedance.
    public static let impedance = Self(rawValue: 1 << 8)
    /// Weight.
    public static let weight = Self(rawValue: 1 << 9)
    /// Height.
    public static let height = Self(rawValue: 1 << 10)

    /// The mass resolution in kilograms and in pounds, or `nil` if not specified.
    public var massResolution: (kilograms: Double, pounds: Double)? {
        ScaleResolution.mass(rawValue >> 11)
    }

    /// The height resolution in metres and in inches, or `nil` if not specified.
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
