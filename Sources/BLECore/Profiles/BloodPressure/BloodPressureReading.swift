/// A value with the fields that all values about blood pressure have.
public protocol BloodPressureReading: GATTReadable {
    /// The unit and the fields behind the pressures.
    var details: BloodPressureDetails { get }
}

extension BloodPressureReading {
    /// The unit of the pressures.
    public var unit: BloodPressureDetails.Unit { details.unit }
    /// When it was measured, by the device's clock.
    public var timestamp: GATTDateTime? { details.timestamp }
    /// Beats per minute.
    public var pulseRate: MedicalFloat16? { details.pulseRate }
    /// Which of the device's users it was; `nil` too when the device does not know.
    public var userID: UInt8? { details.userID }
    /// What was not right with the measurement; empty when all was.
    public var status: BloodPressureStatus? { details.status }
}
