/// What a pulse oximeter and its sensor suffer from.
///
/// Spec: Device and Sensor Status, Pulse Oximeter Service 1.0.1, 3.2.1.6.
public struct PLXDeviceStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The 24 bits as they are sent.
    public let rawValue: UInt32
    /// What the specification calls the field.
    public static var formatName: String { "PLX Device and Sensor Status" }

    /// The status in these bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Reads 3 bytes.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        rawValue = try reader.read(UInt24.self).value
    }

    /// The display changes more slowly than usual.
    public static let extendedDisplayUpdate = Self(rawValue: 1 << 0)
    /// The device is broken.
    public static let equipmentMalfunction = Self(rawValue: 1 << 1)
    /// The signal could not be worked on as usual.
    public static let signalProcessingIrregularity = Self(rawValue: 1 << 2)
    /// The signal is not good enough.
    public static let inadequateSignal = Self(rawValue: 1 << 3)
    /// The signal is poor.
    public static let poorSignal = Self(rawValue: 1 << 4)
    /// Little blood flows.
    public static let lowPerfusion = Self(rawValue: 1 << 5)
    /// The signal is unsteady.
    public static let erraticSignal = Self(rawValue: 1 << 6)
    /// There is no pulse in the signal.
    public static let nonpulsatileSignal = Self(rawValue: 1 << 7)
    /// The device doubts the pulse.
    public static let questionablePulse = Self(rawValue: 1 << 8)
    /// The signal is being analysed.
    public static let analysingSignal = Self(rawValue: 1 << 9)
    /// Something disturbs the sensor.
    public static let sensorInterference = Self(rawValue: 1 << 10)
    /// The sensor is not on anybody.
    public static let sensorUnconnectedToUser = Self(rawValue: 1 << 11)
    /// The device does not know this sensor.
    public static let unknownSensor = Self(rawValue: 1 << 12)
    /// The sensor has slipped.
    public static let sensorDisplaced = Self(rawValue: 1 << 13)
    /// The sensor is broken.
    public static let sensorMalfunction = Self(rawValue: 1 << 14)
    /// There is no sensor at the device.
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
