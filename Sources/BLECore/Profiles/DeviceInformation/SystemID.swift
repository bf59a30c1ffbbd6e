/// A number of 64 bits that no other device should have (EUI-64): an organization's, then its own for the device.
///
///     identifier 5 | organization 3        least significant byte first, as one number of 8 bytes
///
/// A device that has a Bluetooth address of its organization often puts it here with 0xFFFE in the middle.
///
/// Spec: System ID (0x2A23), Device Information Service 1.2, 3.7; GATT Specification Supplement.
public struct SystemID: GATTReadable, GATTWritable, Hashable, Sendable {
    /// All 64 bits.
    public let rawValue: UInt64
    /// The specification's name.
    public static var formatName: String { "System ID" }

    /// The identifier with these bits.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The organization's number, 24 bits, given by the IEEE.
    public var organization: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 40) }
    /// The device's number, 40 bits, given by the organization.
    public var identifier: UInt64 { rawValue & 0xFF_FFFF_FFFF }

    /// Reads 8 bytes.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
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
