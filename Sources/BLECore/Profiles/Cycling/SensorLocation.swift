/// Where on the bicycle, or on the runner, a sensor sits.
///
///     location 1
///
/// Spec: Sensor Location (0x2A5D), GATT Specification Supplement.
public struct SensorLocation: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number that is sent.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Sensor Location" }

    /// The place with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The meaning in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }

    /// Some other place.
    public static let other = Self(rawValue: 0)
    /// On top of a shoe.
    public static let topOfShoe = Self(rawValue: 1)
    /// Inside a shoe.
    public static let inShoe = Self(rawValue: 2)
    /// At the hip.
    public static let hip = Self(rawValue: 3)
    /// At the front wheel.
    public static let frontWheel = Self(rawValue: 4)
    /// On the left crank.
    public static let leftCrank = Self(rawValue: 5)
    /// On the right crank.
    public static let rightCrank = Self(rawValue: 6)
    /// On the left pedal.
    public static let leftPedal = Self(rawValue: 7)
    /// On the right pedal.
    public static let rightPedal = Self(rawValue: 8)
    /// At the front hub.
    public static let frontHub = Self(rawValue: 9)
    /// At the rear dropout.
    public static let rearDropout = Self(rawValue: 10)
    /// On the chainstay.
    public static let chainstay = Self(rawValue: 11)
    /// At the rear wheel.
    public static let rearWheel = Self(rawValue: 12)
    /// At the rear hub.
    public static let rearHub = Self(rawValue: 13)
    /// On the chest.
    public static let chest = Self(rawValue: 14)
    /// In the spider between crank and chainrings.
    public static let spider = Self(rawValue: 15)
    /// In the chainring.
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
