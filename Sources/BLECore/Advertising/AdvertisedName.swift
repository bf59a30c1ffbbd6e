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

    /// The name for display and logs: truncated at the first NUL, with control, formatting, private and unassigned
    /// characters escaped as `\u{…}`.
    public var printable: String {
        Self.escaped(text.unicodeScalars.prefix { $0.value != 0 })
    }

    /// Text from any source with what could control a terminal, or has no shape there, escaped as `\u{…}`.
    package static func escaped(_ text: some Sequence<Unicode.Scalar>) -> String {
        var result = ""
        for scalar in text {
            if isUnprintable(scalar) {
                result += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns whether a character could control a terminal, or has no shape there: the one rule for all text of
    /// devices.
    ///
    /// By categories and not by a list, which misses what Unicode adds: soft hyphens, tags and marks of direction are
    /// formatting characters (Cf).
    package static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        // Nearly all text is plain.
        if (0x20..<0x7F).contains(scalar.value) { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
        default: false
        }
    }
}
