/// How far a pulse oximeter's measurement can be trusted.
///
/// Spec: Measurement Status, Pulse Oximeter Service 1.0.1, 3.2.1.5.
public struct PLXMeasurementStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The bits as they are sent.
    public let rawValue: UInt16
    /// What the specification calls the field.
    public static var formatName: String { "PLX Measurement Status" }

    /// The status in these bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The measurement goes on.
    public static let ongoing = Self(rawValue: 1 << 5)
    /// An early estimate.
    public static let earlyEstimate = Self(rawValue: 1 << 6)
    /// The device has validated it.
    public static let validated = Self(rawValue: 1 << 7)
    /// As good as the device can do.
    public static let fullyQualified = Self(rawValue: 1 << 8)
    /// From the device's memory.
    public static let fromStorage = Self(rawValue: 1 << 9)
    /// Made up for a demonstration.
    public static let demonstration = Self(rawValue: 1 << 10)
    /// Made up for a test.
    public static let testing = Self(rawValue: 1 << 11)
    /// The device calibrates itself.
    public static let calibrating = Self(rawValue: 1 << 12)
    /// There is no measurement.
    public static let unavailable = Self(rawValue: 1 << 13)
    /// The device doubts it.
    public static let questionable = Self(rawValue: 1 << 14)
    /// The device takes it for wrong.
    public static let invalid = Self(rawValue: 1 << 15)
}

extension PLXMeasurementStatus: NamedBits {
    package static var names: [String] {
        [
            "", "", "", "", "", "ongoing", "early estimate", "validated", "fully qualified", "from storage",
            "demonstration", "testing", "calibrating", "unavailable", "questionable", "invalid",
        ]
    }
}
