public import BLECore

/// A globally unique 64-bit identifier (EUI-64): the organization's identifier and its number for the device.
///
///     identifier 5 | organization 3        least significant byte first, as one 8-byte number
///
/// Devices with a public Bluetooth address often use it here, with 0xFFFE inserted in the middle.
///
/// Spec: System ID (0x2A23), Device Information Service 1.2, 3.7; GATT Specification Supplement.
public struct SystemID: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The raw 64 bits.
    public let rawValue: UInt64
    /// The specification's name.
    public static var formatName: String { "System ID" }

    /// Creates an identifier from raw bits.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The organizationally unique identifier, 24 bits, assigned by the IEEE.
    public var organization: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 40) }
    /// The device's number, 40 bits, assigned by the organization.
    public var identifier: UInt64 { rawValue & 0xFF_FFFF_FFFF }

    /// Reads 8 bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        rawValue = try reader.read()
    }

    /// Appends 8 bytes.
    public func write(to writer: inout ByteWriter) {
        writer.u64(rawValue)
    }
}

extension SystemID: DescribedValue {
    package var fields: [ValueField] {
        var digits = ""
        for byte in valueBytes.reversed() { digits += (digits.isEmpty ? "" : ":") + Hex.encode([byte]) }
        return [ValueField(.text(digits))]
    }
}

extension CharacteristicKey where Value == SystemID {
    /// System ID, 0x2A23.
    public static var systemID: Self { Self(0x2A23) }
}
