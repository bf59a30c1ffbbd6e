public import BLECore

/// The battery's charge level, in percent.
///
///     percentage 1
///
/// Spec: Battery Level (0x2A19), Battery Service 1.1, 3.1.
public struct BatteryLevel: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The charge level, 0 to 100. Values above 100 are invalid but preserved.
    public let percentage: UInt8
    /// The specification's name.
    public static var formatName: String { "Battery Level" }

    /// Creates a battery level.
    public init(percentage: UInt8) {
        self.percentage = percentage
    }

    /// Reads 1 byte.
    ///
    /// - Throws: `MalformedPacket` if there is none.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        percentage = try reader.read()
    }

    /// Appends 1 byte.
    public func write(to writer: inout ByteWriter) {
        writer.u8(percentage)
    }
}

extension BatteryLevel: DescribedValue {
    package var fields: [ValueField] { [.number("", percentage, "%")] }
}

extension CharacteristicKey where Value == BatteryLevel {
    /// Battery Level, 0x2A19.
    public static var batteryLevel: Self { Self(0x2A19) }
}
