/// What a glucose meter can notice.
///
///     features 2
///
/// Spec: Glucose Feature (0x2A51), Glucose Service 1.0, 3.3.
public struct GlucoseFeature: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// The specification's name.
    public static var formatName: String { "Glucose Feature" }

    /// The features in these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// Notices a low battery.
    public static let lowBatteryDetection = Self(rawValue: 1 << 0)
    /// Notices a broken sensor.
    public static let sensorMalfunctionDetection = Self(rawValue: 1 << 1)
    /// Notices too little blood.
    public static let sampleSizeDetection = Self(rawValue: 1 << 2)
    /// Notices a strip that is not put in well.
    public static let stripInsertionErrorDetection = Self(rawValue: 1 << 3)
    /// Notices a strip for another meter.
    public static let stripTypeErrorDetection = Self(rawValue: 1 << 4)
    /// Notices results that it cannot measure.
    public static let resultRangeDetection = Self(rawValue: 1 << 5)
    /// Notices that the sensor is too warm or too cold.
    public static let temperatureRangeDetection = Self(rawValue: 1 << 6)
    /// Notices a strip that is pulled out too early.
    public static let readInterruptDetection = Self(rawValue: 1 << 7)
    /// Notices other faults.
    public static let generalDeviceFault = Self(rawValue: 1 << 8)
    /// Notices that its time may be wrong.
    public static let timeFault = Self(rawValue: 1 << 9)
    /// Can be bonded with several devices.
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
