/// The parts of a power meter's measurements that can be left out.
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5, Mask Cycling Power Measurement
/// Characteristic Content.
public struct CyclingPowerMeasurementContent: OptionSet, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16

    /// The parts in these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// One pedal's share of the power.
    public static let pedalPowerBalance = Self(rawValue: 1 << 0)
    /// The torque of all turns.
    public static let accumulatedTorque = Self(rawValue: 1 << 1)
    /// The turns of the wheel.
    public static let wheelRevolutions = Self(rawValue: 1 << 2)
    /// The turns of the cranks.
    public static let crankRevolutions = Self(rawValue: 1 << 3)
    /// The extreme forces or torques.
    public static let extremeMagnitudes = Self(rawValue: 1 << 4)
    /// The angles of the extremes.
    public static let extremeAngles = Self(rawValue: 1 << 5)
    /// The angle of the top dead spot.
    public static let topDeadSpotAngle = Self(rawValue: 1 << 6)
    /// The angle of the bottom dead spot.
    public static let bottomDeadSpotAngle = Self(rawValue: 1 << 7)
    /// The energy.
    public static let accumulatedEnergy = Self(rawValue: 1 << 8)
}
