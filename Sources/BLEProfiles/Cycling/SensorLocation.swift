public import BLECore

/// The location of a sensor on the bicycle or on the runner.
///
///     location 1
///
/// Spec: Sensor Location (0x2A5D), GATT Specification Supplement.
public struct SensorLocation: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Sensor Location" }

    /// Creates a location from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }

    /// Another location.
    public static let other = Self(rawValue: 0)
    /// Top of the shoe.
    public static let topOfShoe = Self(rawValue: 1)
    /// In the shoe.
    public static let inShoe = Self(rawValue: 2)
    /// Hip.
    public static let hip = Self(rawValue: 3)
    /// Front wheel.
    public static let frontWheel = Self(rawValue: 4)
    /// Left crank.
    public static let leftCrank = Self(rawValue: 5)
    /// Right crank.
    public static let rightCrank = Self(rawValue: 6)
    /// Left pedal.
    public static let leftPedal = Self(rawValue: 7)
    /// Right pedal.
    public static let rightPedal = Self(rawValue: 8)
    /// Front hub.
    public static let frontHub = Self(rawValue: 9)
    /// Rear dropout.
    public static let rearDropout = Self(rawValue: 10)
    /// Chainstay.
    public static let chainstay = Self(rawValue: 11)
    /// Rear wheel.
    public static let rearWheel = Self(rawValue: 12)
    /// Rear hub.
    public static let rearHub = Self(rawValue: 13)
    /// Chest.
    public static let chest = Self(rawValue: 14)
    /// Spider, between crank and chainrings.
    public static let spider = Self(rawValue: 15)
    /// Chainring.
    public static let chainRing = Self(rawValue: 16)
}

extension SensorLocation: NamedCode {
    package static var names: [String] {
        [
            "other", "top of shoe", "in shoe", "hip", "front wheel", "left crank", "right crank", "left pedal",
            "right pedal", "front hub", "rear dropout", "chainstay", "rear wheel", "rear hub", "chest", "spider",
            "chain ring",
        ]
    }
}

extension CharacteristicKey where Value == SensorLocation {
    /// Sensor Location, 0x2A5D.
    public static var sensorLocation: Self { Self(0x2A5D) }
}
