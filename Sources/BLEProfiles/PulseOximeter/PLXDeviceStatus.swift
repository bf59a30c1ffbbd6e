public import BLECore

/// The problems of a pulse oximeter and its sensor.
///
/// Spec: Device and Sensor Status, Pulse Oximeter Service 1.0.1, 3.2.1.6.
public struct PLXDeviceStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw 24 bits.
    public let rawValue: UInt32
    /// The specification's name for the field.
    public static var formatName: String { "PLX Device and Sensor Status" }

    /// Creates a status from raw bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Reads 3 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        rawValue = try reader.read(UInt24.self).value
    }

    /// The display is updated more slowly than usual.
    public static let extendedDisplayUpdate = Self(rawValue: 1 << 0)
    /// The device malfunctions.
    public static let equipmentMalfunction = Self(rawValue: 1 << 1)
    /// Signal processing was irregular.
    public static let signalProcessingIrregularity = Self(rawValue: 1 << 2)
    /// The signal is inadequate.
    public static let inadequateSignal = Self(rawValue: 1 << 3)
    /// The signal is poor.
    public static let poorSignal = Self(rawValue: 1 << 4)
    /// Perfusion is low.
    public static let lowPerfusion = Self(rawValue: 1 << 5)
    /// The signal is erratic.
    public static let erraticSignal = Self(rawValue: 1 << 6)
    /// The signal is not pulsatile.
    public static let nonpulsatileSignal = Self(rawValue: 1 << 7)
    /// The pulse is questionable.
    public static let questionablePulse = Self(rawValue: 1 << 8)
    /// The signal is being analysed.
    public static let analysingSignal = Self(rawValue: 1 << 9)
    /// The sensor is subject to interference.
    public static let sensorInterference = Self(rawValue: 1 << 10)
    /// The sensor is not attached to the user.
    public static let sensorUnconnectedToUser = Self(rawValue: 1 << 11)
    /// The sensor is unknown to the device.
    public static let unknownSensor = Self(rawValue: 1 << 12)
    /// The sensor is displaced.
    public static let sensorDisplaced = Self(rawValue: 1 << 13)
    /// The sensor malfunctions.
    public static let sensorMalfunction = Self(rawValue: 1 << 14)
    /// The sensor is disconnected from the device.
    public static let sensorDisconnected = Self(rawValue: 1 << 15)
}

extension PLXDeviceStatus: NamedBits {
    package static var names: [String] {
        [
            "extended display update", "equipment malfunction", "signal processing irregularity", "inadequate signal",
            "poor signal", "low perfusion", "erratic signal", "nonpulsatile signal", "questionable pulse",
            "analysing signal", "sensor interference", "sensor unconnected to user", "unknown sensor",
            "sensor displaced", "sensor malfunction", "sensor disconnected",
        ]
    }
}
