/// What went wrong when glucose was measured.
///
/// Spec: Sensor Status Annunciation, Glucose Service 1.0, 3.1.1.7.
public struct GlucoseSensorStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// What the specification calls the field.
    public static var formatName: String { "Sensor Status Annunciation" }

    /// The status in these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The battery was low.
    public static let batteryLow = Self(rawValue: 1 << 0)
    /// The sensor failed.
    public static let sensorMalfunction = Self(rawValue: 1 << 1)
    /// There was too little blood.
    public static let sampleTooSmall = Self(rawValue: 1 << 2)
    /// The strip was not put in well.
    public static let stripInsertionError = Self(rawValue: 1 << 3)
    /// The strip is not for this meter.
    public static let stripTypeError = Self(rawValue: 1 << 4)
    /// More than the meter can measure.
    public static let resultTooHigh = Self(rawValue: 1 << 5)
    /// Less than the meter can measure.
    public static let resultTooLow = Self(rawValue: 1 << 6)
    /// The sensor was too warm.
    public static let temperatureTooHigh = Self(rawValue: 1 << 7)
    /// The sensor was too cold.
    public static let temperatureTooLow = Self(rawValue: 1 << 8)
    /// The strip was pulled out too early.
    public static let readInterrupted = Self(rawValue: 1 << 9)
    /// The device has some other fault.
    public static let generalDeviceFault = Self(rawValue: 1 << 10)
    /// The time may be wrong.
    public static let timeFault = Self(rawValue: 1 << 11)
}

extension GlucoseSensorStatus: NamedBits {
    package static var names: [String] {
        [
            "battery low", "sensor malfunction", "sample too small", "strip insertion error", "strip type error",
            "result too high", "result too low", "temperature too high", "temperature too low", "read interrupted",
            "general device fault", "time fault",
        ]
    }
}
