public import BLECore

/// The problems detected during a glucose measurement.
///
/// Spec: Sensor Status Annunciation, Glucose Service 1.0, 3.1.1.7.
public struct GlucoseSensorStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name for the field.
    public static var formatName: String { "Sensor Status Annunciation" }

    /// Creates a status from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The battery was low.
    public static let batteryLow = Self(rawValue: 1 << 0)
    /// The sensor failed.
    public static let sensorMalfunction = Self(rawValue: 1 << 1)
    /// The sample was insufficient.
    public static let sampleTooSmall = Self(rawValue: 1 << 2)
    /// The strip was inserted incorrectly.
    public static let stripInsertionError = Self(rawValue: 1 << 3)
    /// The strip was of the wrong type.
    public static let stripTypeError = Self(rawValue: 1 << 4)
    /// The result was above the measurable range.
    public static let resultTooHigh = Self(rawValue: 1 << 5)
    /// The result was below the measurable range.
    public static let resultTooLow = Self(rawValue: 1 << 6)
    /// The sensor was too warm.
    public static let temperatureTooHigh = Self(rawValue: 1 << 7)
    /// The sensor was too cold.
    public static let temperatureTooLow = Self(rawValue: 1 << 8)
    /// The strip was removed too early.
    public static let readInterrupted = Self(rawValue: 1 << 9)
    /// Another fault occurred.
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
