public import BLECore

/// The unit, and the optional fields after the pressures, which both blood pressure formats share.
///
///     bit 1: time 7 | bit 2: pulse 2 | bit 3: user 1 | bit 4: status 2      bit 0 of the flags: kPa, not mmHg
public struct BloodPressureDetails: Hashable, Sendable {
    /// The unit of a pressure.
    public enum Unit: Hashable, Sendable {
        /// Millimetres of mercury.
        case millimetresOfMercury
        /// Kilopascals.
        case kilopascals
    }

    /// The unit of the pressures.
    public let unit: Unit
    /// The time of the measurement, by the device's clock.
    public let timestamp: GATTDateTime?
    /// The pulse rate in beats per minute.
    public let pulseRate: MedicalFloat16?
    /// The index of the user; also `nil` if the device does not know it.
    public let userID: UInt8?
    /// The problems detected during the measurement; empty if there were none.
    public let status: BloodPressureStatus?

    init(_ flags: FieldFlags, reading reader: inout ByteReader) throws(MalformedPacket) {
        unit = flags[0] ? .kilopascals : .millimetresOfMercury
        timestamp = try reader.read(if: flags[1])
        pulseRate = try reader.read(if: flags[2])
        userID = try reader.read(UInt8.self, if: flags[3], unless: .max)
        status = try reader.read(if: flags[4])
        reader.skipReserved(flags)
    }

    var unitName: String { unit == .kilopascals ? "kPa" : "mmHg" }

    func add(to list: inout FieldList) {
        list.add("pulse", pulseRate, "bpm")
        list.add("user", userID)
        list.add("status", status)
        list.add("at", timestamp)
    }
}
