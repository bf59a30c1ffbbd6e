/// What a client can tell a heart-rate sensor to do.
///
///     code 1
///
/// A sensor that does not know the code answers with the ATT error 0x80.
///
/// Spec: Heart Rate Control Point (0x2A39), Heart Rate Service 1.0, 3.3.
public struct HeartRateControlPoint: RawRepresentable, GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number as it is sent.
    public let rawValue: UInt8
    /// The specification's name.
    public static var formatName: String { "Heart Rate Control Point" }

    /// The command with this number.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Counts the energy from 0 again.
    public static let resetEnergyExpended = Self(rawValue: 1)

    /// The command in lowercase words; `nil` for a number that is not assigned.
    public var name: String? { assignedName }
}

extension HeartRateControlPoint: NamedCode {
    package static var names: [String] {
        ["", "reset energy expended"]
    }
}

extension CharacteristicKey where Value == HeartRateControlPoint {
    /// Heart Rate Control Point, 0x2A39: can only be written.
    public static var heartRateControlPoint: Self { Self(0x2A39) }
}
