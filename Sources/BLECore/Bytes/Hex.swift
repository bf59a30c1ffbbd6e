/// Conversion between bytes and hexadecimal text, two lowercase digits per byte.
public enum Hex {
    /// An error in hexadecimal text.
    public enum ParsingError: Error, Hashable, Sendable {
        /// A character that is neither a hexadecimal digit nor a separator, with its UTF-8 offset in the text.
        case invalidCharacter(offset: Int)
        /// The last byte has only one digit.
        case oddNumberOfDigits
    }

    /// Returns lowercase digits without separators.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0x0F))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// An overload for arrays, the most common case: generic code is not specialized across modules.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count &* 2)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0x0F))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes that `text` encodes. Case is ignored; spaces, tabs, colons, dashes and a leading `0x` are
    /// skipped.
    ///
    /// - Throws: `ParsingError` for any other character and for an odd number of digits.
    public static func decode(_ text: some StringProtocol) throws(ParsingError) -> [UInt8] {
        try decode(String(text))
    }

    /// An overload for strings, the most common case.
    package static func decode(_ text: String) throws(ParsingError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        var offset = 0
        var previous: UInt8 = 0
        for character in text.utf8 {
            defer {
                offset += 1
                previous = character
            }
            switch character {
            case 0x20, 0x09, 0x3A, 0x2D:
                continue
            case 0x78 where previous == 0x30 && bytes.isEmpty && high == 0:
                high = nil
                continue
            default:
                break
            }
            guard let value = value(character) else { throw .invalidCharacter(offset: offset) }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        if high != nil { throw .oddNumberOfDigits }
        return bytes
    }

    static func digit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 &+ nibble : 0x57 &+ nibble
    }

    static func upperDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 &+ nibble : 0x37 &+ nibble
    }

    static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character &- 0x30
        case 0x41...0x46: character &- 0x37
        case 0x61...0x66: character &- 0x57
        default: nil
        }
    }
}
