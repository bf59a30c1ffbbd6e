/// The type of an attribute or service: 128 bits, most often written in a short form of 16 or 32.
///
/// Short forms stand for `xxxxxxxx-0000-1000-8000-00805f9b34fb`, so equality and hashing do not depend on the form that
/// a peer used. On the wire the least significant byte comes first.
///
/// Spec: Core Vol 3 Part B, 2.5.1.
public struct BluetoothUUID: Hashable, Sendable, CustomStringConvertible {
    /// Bits 127 to 64.
    public let high: UInt64
    /// Bits 63 to 0.
    public let low: UInt64

    private static let baseHigh: UInt64 = 0x0000_0000_0000_1000
    private static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB

    /// The UUID with these 128 bits.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The UUID that the 16-bit form `value` stands for.
    public init(_ value: UInt16) {
        self.init(UInt32(value))
    }

    /// The UUID that the 32-bit form `value` stands for.
    public init(_ value: UInt32) {
        self.init(high: UInt64(value) << 32 | Self.baseHigh, low: Self.baseLow)
    }

    /// Reads 4 or 8 hexadecimal digits, or the dashed form of 32, in either case; `nil` for anything else.
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

    /// Reads the wire form: 2, 4 or 16 bytes, least significant first; `nil` for any other count.
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

    /// The 16-bit form, if there is one.
    public var short: UInt16? {
        guard let value = medium, value <= 0xFFFF else { return nil }
        return UInt16(truncatingIfNeeded: value)
    }

    /// The 32-bit form, if there is one; a 16-bit form counts.
    public var medium: UInt32? {
        guard low == Self.baseLow, high & 0xFFFF_FFFF == Self.baseHigh else { return nil }
        return UInt32(truncatingIfNeeded: high >> 32)
    }

    /// The form that ATT uses: 2 bytes where there is a 16-bit form, else 16, least significant first.
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

    /// Four lowercase digits where there is a 16-bit form, else the dashed form.
    public var description: String {
        if let short { return Hex.encode([UInt8(truncatingIfNeeded: short >> 8), UInt8(truncatingIfNeeded: short)]) }
        return dashed
    }

    /// The dashed form of 32 lowercase digits.
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
    /// The UUID that a 16- or 32-bit literal stands for.
    public init(integerLiteral value: UInt32) {
        self.init(value)
    }
}

extension BluetoothUUID: ExpressibleByStringLiteral {
    /// The UUID that a literal spells: 4 or 8 hexadecimal digits, or the dashed form of 32.
    ///
    /// For what stands in the source code: a literal that is no UUID stops the program. Text that comes from elsewhere
    /// goes to the initializer that answers `nil`.
    public init(stringLiteral text: StaticString) {
        // A `StaticString` is written in the source code, so what a peer or a user says never comes here.
        guard let uuid = Self(text.description) else { preconditionFailure("a literal is not a UUID") }
        self = uuid
    }
}

extension ByteReader {
    /// An UUID of `count` bytes (2, 4 or 16), least significant first.
    @_lifetime(self: copy self)
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

    /// A device address, least significant byte first.
    @_lifetime(self: copy self)
    package mutating func address() -> BluetoothAddress? {
        guard let value = u48() else { return nil }
        return BluetoothAddress(rawValue: value)
    }
}
