public import BLECore

/// The location of a temperature measurement on the body.
///
///     code 1
///
/// Spec: Temperature Type (0x2A1D), Health Thermometer Service 1.0, 3.2.
public struct TemperatureType: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Temperature Type" }

    /// Creates a location from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The armpit.
    public static let armpit = Self(rawValue: 1)
    /// The body in general.
    public static let body = Self(rawValue: 2)
    /// The ear, usually the lobe.
    public static let ear = Self(rawValue: 3)
    /// A finger.
    public static let finger = Self(rawValue: 4)
    /// The gastrointestinal tract.
    public static let gastrointestinalTract = Self(rawValue: 5)
    /// The mouth.
    public static let mouth = Self(rawValue: 6)
    /// The rectum.
    public static let rectum = Self(rawValue: 7)
    /// A toe.
    public static let toe = Self(rawValue: 8)
    /// The ear drum.
    public static let tympanum = Self(rawValue: 9)

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }
}

extension TemperatureType: NamedCode {
    package static var names: [String] {
        ["", "armpit", "body", "ear", "finger", "gastrointestinal tract", "mouth", "rectum", "toe", "ear drum"]
    }
}

extension CharacteristicKey where Value == TemperatureType {
    /// Temperature Type, 0x2A1D: for thermometers that always measure at the same location.
    public static var temperatureType: Self { Self(0x2A1D) }
}
