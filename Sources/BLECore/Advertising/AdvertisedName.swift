/// A name from an advertisement: the bytes, and text that is safe to show.
///
/// Devices pad names with NULs and truncate them inside a character; hostile devices insert control characters.
public struct AdvertisedName: Hashable, Sendable {
    private let value: CompactBytes

    /// The value as received. Each access makes a copy.
    public var bytes: [UInt8] { value.array }

    /// Creates a name from the value of a name structure.
    public init(bytes: [UInt8]) {
        value = CompactBytes(bytes)
    }

    init(copying bytes: Span<UInt8>) {
        value = CompactBytes(copying: bytes)
    }

    /// All bytes as UTF-8. Each invalid sequence becomes U+FFFD; nothing else changes.
    public var text: String {
        value.text
    }

    /// The name for display and logs: truncated at the first NUL, with control and bidirectional formatting characters
    /// escaped as `\u{…}`.
    public var printable: String {
        Self.escaped(text.unicodeScalars.prefix { $0.value != 0 })
    }

    /// Text of anybody's with what could control a terminal escaped as `\u{…}`: control characters, and those that
    /// change the direction or have no shape.
    package static func escaped(_ text: some Sequence<Unicode.Scalar>) -> String {
        var result = ""
        for scalar in text {
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF:
                result += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
