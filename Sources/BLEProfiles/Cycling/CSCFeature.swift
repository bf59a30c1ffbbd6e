public import BLECore

/// The features of a cycling speed and cadence sensor.
///
///     features 2
///
/// Spec: CSC Feature (0x2A5C), Cycling Speed and Cadence Service 1.0, 3.2.
public struct CSCFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "CSC Feature" }

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Measurements carry wheel revolutions.
    public static let wheelRevolutions = Self(rawValue: 1 << 0)
    /// Measurements carry crank revolutions.
    public static let crankRevolutions = Self(rawValue: 1 << 1)
    /// The sensor location can be set.
    public static let multipleSensorLocations = Self(rawValue: 1 << 2)
}

extension CSCFeature: NamedBits {
    package static var names: [String] { ["wheel revolutions", "crank revolutions", "multiple sensor locations"] }
}

extension CharacteristicKey where Value == CSCFeature {
    /// CSC Feature, 0x2A5C.
    public static var cscFeature: Self { Self(0x2A5C) }
}
