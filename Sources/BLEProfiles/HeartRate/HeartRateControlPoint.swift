public import BLECore

/// A command to a heart rate sensor.
///
///     code 1
///
/// A sensor that does not support the command responds with the ATT error 0x80.
///
/// Spec: Heart Rate Control Point (0x2A39), Heart Rate Service 1.0, 3.3.
public struct HeartRateControlPoint: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw value.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Heart Rate Control Point" }

    /// Creates a command from its raw value. Unknown values are preserved.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Resets the expended energy to 0.
    public static let resetEnergyExpended = Self(rawValue: 1)

    /// The name in lowercase, or `nil` if the value is not assigned.
    public var name: String? { assignedName }
}

extension HeartRateControlPoint: NamedCode {
    package static var names: [String] {
        ["", "reset energy expended"]
    }
}

extension CharacteristicKey where Value == HeartRateControlPoint {
    /// Heart Rate Control Point, 0x2A39; write only.
    public static var heartRateControlPoint: Self { Self(0x2A39) }
}
