public import BLECore

/// The status and reliability of a pulse oximeter's measurement.
///
/// Spec: Measurement Status, Pulse Oximeter Service 1.0.1, 3.2.1.5.
public struct PLXMeasurementStatus: OptionSet, GATTReadable, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16
    /// The specification's name for the field.
    public static var formatName: String { "PLX Measurement Status" }

    /// Creates a status from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The names of the set bits, lowest bit first.
    public var names: [String] { words }

    /// The measurement is in progress.
    public static let ongoing = Self(rawValue: 1 << 5)
    /// An early estimate.
    public static let earlyEstimate = Self(rawValue: 1 << 6)
    /// Validated by the device.
    public static let validated = Self(rawValue: 1 << 7)
    /// Fully qualified.
    public static let fullyQualified = Self(rawValue: 1 << 8)
    /// From the device's storage.
    public static let fromStorage = Self(rawValue: 1 << 9)
    /// Demonstration data.
    public static let demonstration = Self(rawValue: 1 << 10)
    /// Test data.
    public static let testing = Self(rawValue: 1 << 11)
    /// The device is calibrating.
    public static let calibrating = Self(rawValue: 1 << 12)
    /// The measurement is unavailable.
    public static let unavailable = Self(rawValue: 1 << 13)
    /// The measurement is questionable.
    public static let questionable = Self(rawValue: 1 << 14)
    /// The measurement is invalid.
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
