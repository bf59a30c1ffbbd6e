internal import BLECore

/// The fields of a power measurement that can be omitted.
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5, Mask Cycling Power Measurement
/// Characteristic Content.
public struct CyclingPowerMeasurementContent: OptionSet, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16

    /// Creates a set of fields from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The pedal power balance.
    public static let pedalPowerBalance = Self(rawValue: 1 << 0)
    /// The accumulated torque.
    public static let accumulatedTorque = Self(rawValue: 1 << 1)
    /// The wheel revolutions.
    public static let wheelRevolutions = Self(rawValue: 1 << 2)
    /// The crank revolutions.
    public static let crankRevolutions = Self(rawValue: 1 << 3)
    /// The extreme forces or torques.
    public static let extremeMagnitudes = Self(rawValue: 1 << 4)
    /// The angles of the extremes.
    public static let extremeAngles = Self(rawValue: 1 << 5)
    /// The angle of the top dead spot.
    public static let topDeadSpotAngle = Self(rawValue: 1 << 6)
    /// The angle of the bottom dead spot.
    public static let bottomDeadSpotAngle = Self(rawValue: 1 << 7)
    /// The accumulated energy.
    public static let accumulatedEnergy = Self(rawValue: 1 << 8)
}
