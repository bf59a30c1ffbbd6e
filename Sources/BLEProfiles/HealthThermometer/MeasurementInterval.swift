public import BLECore

/// The interval of a thermometer's periodic measurements.
///
///     seconds 2
///
/// Spec: Measurement Interval (0x2A21), Health Thermometer Service 1.0, 3.4.
public struct MeasurementInterval: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The interval in seconds; 0 means no periodic measurements.
    public let seconds: UInt16
    /// The specification's name.
    public static var formatName: String { "Measurement Interval" }

    /// Creates an interval.
    public init(seconds: UInt16) {
        self.seconds = seconds
    }

    /// Reads 2 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        seconds = try reader.read()
    }

    /// Appends 2 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u16(seconds)
    }
}

extension MeasurementInterval: DescribedValue {
    package var fields: [ValueField] { [.number("", seconds, "s")] }
}

extension CharacteristicKey where Value == MeasurementInterval {
    /// Measurement Interval, 0x2A21.
    public static var measurementInterval: Self { Self(0x2A21) }
}
