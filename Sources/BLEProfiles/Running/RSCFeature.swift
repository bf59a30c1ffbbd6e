public import BLECore

/// The features of a running speed and cadence sensor.
///
///     features 2
///
/// Spec: RSC Feature (0x2A54), Running Speed and Cadence Service 1.0, 3.2.
public struct RSCFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "RSC Feature" }

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Measurements carry the stride length.
    public static let strideLength = Self(rawValue: 1 << 0)
    /// Measurements carry the total distance.
    public static let totalDistance = Self(rawValue: 1 << 1)
    /// Measurements distinguish running from walking.
    public static let walkingOrRunning = Self(rawValue: 1 << 2)
    /// The sensor can be calibrated.
    public static let calibration = Self(rawValue: 1 << 3)
    /// The sensor location can be set.
    public static let multipleSensorLocations = Self(rawValue: 1 << 4)
}

extension RSCFeature: NamedBits {
    package static var names: [String] {
        ["stride length", "total distance", "walking or running", "calibration", "multiple sensor locations"]
    }
}

extension CharacteristicKey where Value == RSCFeature {
    /// RSC Feature, 0x2A54.
    public static var rscFeature: Self { Self(0x2A54) }
}
