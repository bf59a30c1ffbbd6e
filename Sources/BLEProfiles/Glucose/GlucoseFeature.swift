public import BLECore

/// The features of a glucose meter.
///
///     features 2
///
/// Spec: Glucose Feature (0x2A51), Glucose Service 1.0, 3.3.
public struct GlucoseFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Glucose Feature" }

    /// Creates a set of features from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Detects a low battery.
    public static let lowBatteryDetection = Self(rawValue: 1 << 0)
    /// Detects a sensor malfunction.
    public static let sensorMalfunctionDetection = Self(rawValue: 1 << 1)
    /// Detects an insufficient sample.
    public static let sampleSizeDetection = Self(rawValue: 1 << 2)
    /// Detects an incorrectly inserted strip.
    public static let stripInsertionErrorDetection = Self(rawValue: 1 << 3)
    /// Detects a strip of the wrong type.
    public static let stripTypeErrorDetection = Self(rawValue: 1 << 4)
    /// Detects results outside the measurable range.
    public static let resultRangeDetection = Self(rawValue: 1 << 5)
    /// Detects that the sensor is too warm or too cold.
    public static let temperatureRangeDetection = Self(rawValue: 1 << 6)
    /// Detects a strip that is removed too early.
    public static let readInterruptDetection = Self(rawValue: 1 << 7)
    /// Detects other faults.
    public static let generalDeviceFault = Self(rawValue: 1 << 8)
    /// Detects that its time may be wrong.
    public static let timeFault = Self(rawValue: 1 << 9)
    /// Supports multiple bonds.
    public static let multipleBonds = Self(rawValue: 1 << 10)
}

extension GlucoseFeature: NamedBits {
    package static var names: [String] {
        [
            "low battery detection", "sensor malfunction detection", "sample size detection",
            "strip insertion error detection", "strip type error detection", "result range detection",
            "temperature range detection", "read interrupt detection", "general device fault", "time fault",
            "multiple bonds",
        ]
    }
}

extension CharacteristicKey where Value == GlucoseFeature {
    /// Glucose Feature, 0x2A51.
    public static var glucoseFeature: Self { Self(0x2A51) }
}
