public import BLECore

/// A blood pressure value with the fields that all of them share.
public protocol BloodPressureReading: GATTReadable {
    /// The unit and the optional fields after the pressures.
    var details: BloodPressureDetails { get }
}

extension BloodPressureReading {
    /// The unit of the pressures.
    public var unit: BloodPressureDetails.Unit { details.unit }
    /// The time of the measurement, by the device's clock.
    public var timestamp: GATTDateTime? { details.timestamp }
    /// The pulse rate in beats per minute.
    public var pulseRate: MedicalFloat16? { details.pulseRate }
    /// The index of the user; also `nil` if the device does not know it.
    public var userID: UInt8? { details.userID }
    /// The problems detected during the measurement; empty if there were none.
    public var status: BloodPressureStatus? { details.status }
}
