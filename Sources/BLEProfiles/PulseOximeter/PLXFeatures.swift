public import BLECore

/// The features of a pulse oximeter.
///
///     features 2 | bit 0: measurement status 2 | bit 1: device and sensor status 3
///
/// Spec: PLX Features (0x2A60), Pulse Oximeter Service 1.0.1, 3.4.
public struct PLXFeatures: GATTReadable, Hashable, Sendable {
    /// The supported features.
    public struct Supported: OptionSet, Hashable, Sendable {
        /// The raw bits.
        public let rawValue: UInt16

        /// Creates a set of features from raw bits.
        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The names of the set bits, lowest bit first.
        public var names: [String] { words }

        /// Measurements carry a measurement status.
        public static let measurementStatus = Self(rawValue: 1 << 0)
        /// Measurements carry a device and sensor status.
        public static let deviceStatus = Self(rawValue: 1 << 1)
        /// The device stores spot-check measurements.
        public static let storage = Self(rawValue: 1 << 2)
        /// Spot-check measurements carry the time.
        public static let timestamp = Self(rawValue: 1 << 3)
        /// Continuous measurements carry the fast average.
        public static let fast = Self(rawValue: 1 << 4)
        /// Continuous measurements carry the slow average.
        public static let slow = Self(rawValue: 1 << 5)
        /// Measurements carry the pulse amplitude index.
        public static let pulseAmplitudeIndex = Self(rawValue: 1 << 6)
        /// Supports multiple bonds.
        public static let multipleBonds = Self(rawValue: 1 << 7)
    }

    /// The supported features.
    public let supported: Supported
    /// The measurement status bits that the device supports.
    public let measurementStatus: PLXMeasurementStatus?
    /// The device and sensor status bits that the device supports.
    public let deviceStatus: PLXDeviceStatus?
    /// The specification's name.
    public static var formatName: String { "PLX Features" }

    /// Reads the features.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        supported = Supported(rawValue: try reader.read())
        measurementStatus = try reader.read(if: supported.contains(.measurementStatus))
        deviceStatus = try reader.read(if: supported.contains(.deviceStatus))
        if supported.rawValue > 0xFF { _ = reader.rest() }
    }
}

extension PLXFeatures.Supported: NamedBits {
    package static var names: [String] {
        [
            "measurement status", "device status", "storage", "timestamp", "fast average", "slow average",
            "pulse amplitude index", "multiple bonds",
        ]
    }
}

extension PLXFeatures: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("features", supported)
        list.add("measurement status", measurementStatus)
        list.add("device status", deviceStatus)
        return list.fields
    }
}

extension CharacteristicKey where Value == PLXFeatures {
    /// PLX Features, 0x2A60.
    public static var plxFeatures: Self { Self(0x2A60) }
}
