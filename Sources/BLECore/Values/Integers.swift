extension FixedWidthInteger where Self: GATTReadable & GATTWritable {
    /// The name in the Characteristic Presentation Format: `uint16`, `sint8`.
    public static var formatName: String { (isSigned ? "sint" : "uint") + String(bitWidth) }

    /// Reads as many bytes as the type is wide, little-endian; for types of up to 64 bits.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        guard let number = reader.unsigned(Self.bitWidth / 8) else { throw reader.tooShort }
        self.init(truncatingIfNeeded: number)
    }

    /// Appends as many bytes as the type is wide, little-endian; for types of up to 64 bits.
    public func write(to writer: inout ByteWriter) {
        writer.littleEndian(UInt64(truncatingIfNeeded: self), Self.bitWidth / 8)
    }
}

extension UInt8: GATTReadable, GATTWritable {}
extension UInt16: GATTReadable, GATTWritable {}
extension UInt32: GATTReadable, GATTWritable {}
extension UInt64: GATTReadable, GATTWritable {}
extension Int8: GATTReadable, GATTWritable {}
extension Int16: GATTReadable, GATTWritable {}
extension Int32: GATTReadable, GATTWritable {}
extension Int64: GATTReadable, GATTWritable {}

/// An unsigned 24-bit integer.
public struct UInt24: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number, 0 to 16,777,215.
    public let value: UInt32
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "uint24" }

    /// Creates a number from `value`, clamped to the range of the type.
    public init(clamping value: some BinaryInteger) {
        self.value = min(UInt32(clamping: value), 0xFF_FFFF)
    }

    /// Reads 3 bytes, little-endian.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        guard let number = reader.u24() else { throw reader.tooShort }
        value = number
    }

    /// Appends 3 bytes, little-endian.
    public func write(to writer: inout ByteWriter) {
        writer.u24(value)
    }
}

/// A signed 24-bit integer in two's complement.
public struct Int24: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number, -8,388,608 to 8,388,607.
    public let value: Int32
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "sint24" }

    /// Creates a number from `value`, clamped to the range of the type.
    public init(clamping value: some BinaryInteger) {
        self.value = max(-0x80_0000, min(Int32(clamping: value), 0x7F_FFFF))
    }

    /// Reads 3 bytes, little-endian.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        guard let number = reader.u24() else { throw reader.tooShort }
        value = Int32(bitPattern: number << 8) >> 8
    }

    /// Appends 3 bytes, little-endian.
    public func write(to writer: inout ByteWriter) {
        writer.u24(UInt32(bitPattern: value))
    }
}

/// An unsigned 48-bit integer.
public struct UInt48: GATTReadable, GATTWritable, Hashable, Sendable {
    /// The number, 0 to 281,474,976,710,655.
    public let value: UInt64
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "uint48" }

    /// Creates a number from `value`, clamped to the range of the type.
    public init(clamping value: some BinaryInteger) {
        self.value = min(UInt64(clamping: value), 0xFFFF_FFFF_FFFF)
    }

    /// Reads 6 bytes, little-endian.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        guard let number = reader.u48() else { throw reader.tooShort }
        value = number
    }

    /// Appends 6 bytes, little-endian.
    public func write(to writer: inout ByteWriter) {
        writer.u48(value)
    }
}
