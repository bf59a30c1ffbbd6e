public import BLECore

/// The location of a sensor on the body.
///
///     code 1
///
/// Spec: Body Sensor Location (0x2A38), Heart Rate Service 1.0, 3.2.
public struct BodySensorLocation: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Body Sensor Location" }

    /// Creates a location from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Another location.
    public static let other = Self(rawValue: 0)
    /// The chest.
    public static let chest = Self(rawValue: 1)
    /// A wrist.
    public static let wrist = Self(rawValue: 2)
    /// A finger.
    public static let finger = Self(rawValue: 3)
    /// A hand.
    public static let hand = Self(rawValue: 4)
    /// An ear lobe.
    public static let earLobe = Self(rawValue: 5)
    /// A foot.
    public static let foot = Self(rawValue: 6)

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }
}

extension BodySensorLocation: NamedCode {
    package static var names: [String] {
        ["other", "chest", "wrist", "finger", "hand", "ear lobe", "foot"]
    }
}

extension CharacteristicKey where Value == BodySensorLocation {
    /// Body Sensor Location, 0x2A38.
    public static var bodySensorLocation: Self { Self(0x2A38) }
}
