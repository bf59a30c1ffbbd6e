/// A 128-bit UUID of an attribute or service, usually written in a short form of 16 or 32 bits.
///
/// Short forms stand for `xxxxxxxx-0000-1000-8000-00805f9b34fb`, so equality and hashing are independent of the form
/// that a peer uses. The encoding on air is little-endian.
///
/// Spec: Core Vol 3 Part B, 2.5.1.
public struct BluetoothUUID: Hashable, Sendable, CustomStringConvertible {
    /// Bits 127 to 64.
    public let high: UInt64
    /// Bits 63 to 0.
    public let low: UInt64

    private static let baseHigh: UInt64 = 0x0000_0000_0000_1000
    private static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB

    /// Creates a UUID from its 128 bits.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates a UUID from its 16-bit form.
    public init(_ value: UInt16) {
        self.init(UInt32(value))
    }

    /// Creates a UUID from its 32-bit form.
    public init(_ value: UInt32) {
        self.init(high: UInt64(value) << 32 | Self.baseHigh, low: Self.baseLow)
    }

    /// Parses 4 or 8 hexadecimal digits, or the dashed form of 32, in either case. Returns `nil` for anything else.
    public init?(_ text: some StringProtocol) {
        let utf8 = text.utf8
        guard utf8.count == 4 || utf8.count == 8 || utf8.count == 36 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (index, character) in utf8.enumerated() {
            if utf8.count == 36, index == 8 || index == 13 || index == 18 || index == 23 {
                guard character == 0x2D else { return nil }
                continue
            }
            guard let digit = Hex.value(character) else { return nil }
            high = high << 4 | low >> 60
            low = low << 4 | UInt64(digit)
        }
        if utf8.count == 36 {
            self.init(high: high, low: low)
        } else {
            self.init(UInt32(truncatingIfNeeded: low))
        }
    }

    /// Decodes 2, 4 or 16 bytes, least significant first. Returns `nil` for any other count.
    public init?(littleEndian bytes: Span<UInt8>) {
        var reader = ByteReader(bytes)
        switch bytes.count {
        case 2: self.init(reader.u16() ?? 0)
        case 4: self.init(reader.u32() ?? 0)
        case 16:
            let low = reader.u64() ?? 0
            self.init(high: reader.u64() ?? 0, low: low)
        default: return nil
        }
    }

    /// The 16-bit form, if the UUID has one.
    public var short: UInt16? {
        guard let value = medium, value <= 0xFFFF else { return nil }
        return UInt16(truncatingIfNeeded: value)
    }

    /// The 32-bit form, if the UUID has one; includes UUIDs with a 16-bit form.
    public var medium: UInt32? {
        guard low == Self.baseLow, high & 0xFFFF_FFFF == Self.baseHigh else { return nil }
        return UInt32(truncatingIfNeeded: high >> 32)
    }

    /// The encoding in ATT: 2 bytes if there is a 16-bit form, otherwise 16; least significant first.
    public var attBytes: [UInt8] {
        var writer = ByteWriter(reserving: 16)
        if let short {
            writer.u16(short)
        } else {
            writer.u64(low)
            writer.u64(high)
        }
        return writer.bytes
    }

    /// Four lowercase digits if there is a 16-bit form, otherwise the dashed form.
    public var description: String {
        if let short { return Hex.encode([UInt8(truncatingIfNeeded: short >> 8), UInt8(truncatingIfNeeded: short)]) }
        return dashed
    }

    /// The dashed form with 32 lowercase digits.
    public var dashed: String {
        var text = ""
        for index in 0..<16 {
            let word = index < 8 ? high : low
            if index == 4 || index == 6 || index == 8 || index == 10 { text += "-" }
            text += Hex.encode([UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * (index % 8)))])
        }
        return text
    }
}

extension BluetoothUUID: ExpressibleByIntegerLiteral {
    /// Creates a UUID from a 16- or 32-bit literal.
    public init(integerLiteral value: UInt32) {
        self.init(value)
    }
}

extension BluetoothUUID: ExpressibleByStringLiteral {
    /// Creates a UUID from a literal: 4 or 8 hexadecimal digits, or the dashed form of 32.
    ///
    /// For literals in source code: an invalid one stops the program. For other text, use the failable initializer.
    public init(stringLiteral text: StaticString) {
        // A `StaticString` is a source literal; input from peers or users never gets here.
        guard let uuid = Self(text.description) else { preconditionFailure("a literal is not a UUID") }
        self = uuid
    }
}

extension ByteReader {
    /// Reads a UUID of `count` bytes (2, 4 or 16), least significant first.
    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func uuid(_ count: Int) -> BluetoothUUID? {
        switch count {
        case 2:
            return u16().map { BluetoothUUID($0) }
        case 4:
            return u32().map { BluetoothUUID($0) }
        case 16:
            guard let low = u64(), let high = u64() else { return nil }
            return BluetoothUUID(high: high, low: low)
        default:
            return nil
        }
    }

    /// Reads a device address, least significant byte first.
    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func address() -> BluetoothAddress? {
        guard let value = u48() else { return nil }
        return BluetoothAddress(rawValue: value)
    }
}
