public import BLECore

/// The features of a weight scale.
///
///     features 4: bits 3 to 6 are the weight resolution, bits 7 to 9 the height resolution
///
/// Spec: Weight Scale Feature (0x2A9E), Weight Scale Service 1.0, 3.1.
public struct WeightScaleFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt32
    /// The specification's name.
    public static var formatName: String { "Weight Scale Feature" }

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
    /// Measurements carry the body mass index.
    public static let bodyMassIndex = Self(rawValue: 1 << 2)

    /// The weight resolution in kilograms and in pounds, or `nil` if not specified.
    public var massResolution: (kilograms: Double, pounds: Double)? {
        ScaleResolution.mass(rawValue >> 3)
    }

    /// The height resolution in metres and in inches, or `nil` if not specified.
    public var heightResolution: (metres: Double, inches: Double)? {
        ScaleResolution.height(rawValue >> 7)
    }
}

extension WeightScaleFeature: NamedBits {
    package static var names: [String] { ["timestamp", "multiple users", "body mass index"] }

    package var fields: [ValueField] {
        ScaleResolution.fields(content, mass: massResolution, height: heightResolution)
    }
}

extension CharacteristicKey where Value == WeightScaleFeature {
    /// Weight Scale Feature, 0x2A9E.
    public static var weightScaleFeature: Self { Self(0x2A9E) }
}
