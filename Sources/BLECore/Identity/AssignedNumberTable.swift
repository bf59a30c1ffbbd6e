/// A table of numbers and names without any cost until the first lookup.
///
/// The table is one string literal with a line for each number, in ascending order. A line begins with the number in a
/// fixed count of hexadecimal digits; the name may be followed by a tilde and the SIG's identifier. A lookup is a
/// binary search over the literal's bytes; nothing is built at startup.
struct AssignedNumberTable: Sendable {
    private let keyDigits: Int
    private let text: String

    init(keyDigits: Int, _ text: String) {
        self.keyDigits = keyDigits
        self.text = text
    }

    /// Returns the name of a number of up to 32 bits.
    func name(of number: UInt32) -> String? {
        name(high: 0, low: UInt64(number))
    }

    /// Returns the name of a 128-bit number.
    func name(high: UInt64, low: UInt64) -> String? {
        let bytes = text.utf8Span.span
        var first = 0
        var end = bytes.count
        while first < end {
            let line = Line(around: first + (end - first) / 2, in: bytes, keyDigits)
            if line.high == high && line.low == low { return line.name(in: bytes) }
            if (line.high, line.low) < (high, low) {
                first = line.end + 1
            } else {
                end = line.start
            }
        }
        return nil
    }

    /// Returns the number whose name or identifier is `wanted`, ignoring case and everything but letters and digits.
    func number(named wanted: String) -> (high: UInt64, low: UInt64)? {
        let bytes = text.utf8Span.span
        let wanted = wanted.utf8Span.span
        var start = 0
        while start < bytes.count {
            let line = Line(around: start, in: bytes, keyDigits)
            if Self.matches(bytes.extracting(line.nameStart..<line.nameEnd), wanted)
                || line.nameEnd < line.end
                    && Self.matches(bytes.extracting((line.nameEnd + 1)..<line.end), wanted)
            {
                return (line.high, line.low)
            }
            start = line.end + 1
        }
        return nil
    }

    /// Visits every number with its name, in ascending order.
    func forEach(_ visit: (_ high: UInt64, _ low: UInt64, _ name: String) -> Void) {
        let bytes = text.utf8Span.span
        var start = 0
        while start < bytes.count {
            let line = Line(around: start, in: bytes, keyDigits)
            visit(line.high, line.low, line.name(in: bytes))
            start = line.end + 1
        }
    }

    private static func matches(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        var rest = ByteReader(right)
        var found = false
        var reader = ByteReader(left)
        while let letter = nextLetter(&reader) {
            guard nextLetter(&rest) == letter else { return false }
            found = true
        }
        return found && nextLetter(&rest) == nil
    }

    /// Returns the next letter in lowercase, digit, or byte of a non-ASCII character.
    private static func nextLetter(_ reader: inout ByteReader) -> UInt8? {
        while let byte = reader.u8() {
            switch byte {
            case 0x30...0x39, 0x61...0x7A, 0x80...0xFF: return byte
            case 0x41...0x5A: return byte | 0x20
            default: continue
            }
        }
        return nil
    }

    /// The bounds of one line of the table, and its number.
    private struct Line {
        let start: Int
        let end: Int
        let nameStart: Int
        let nameEnd: Int
        let high: UInt64
        let low: UInt64

        init(around place: Int, in bytes: Span<UInt8>, _ keyDigits: Int) {
            var start = place
            while start > 0 && bytes[start - 1] != 0x0A { start -= 1 }
            var end = place
            while end < bytes.count && bytes[end] != 0x0A { end += 1 }
            var high: UInt64 = 0
            var low: UInt64 = 0
            for digit in start..<(start + keyDigits) {
                high = high << 4 | low >> 60
                low = low << 4 | UInt64(Hex.value(bytes[digit]) ?? 0)
            }
            var nameEnd = start + keyDigits
            while nameEnd < end && bytes[nameEnd] != 0x7E { nameEnd += 1 }
            self.start = start
            self.end = end
            self.nameStart = start + keyDigits
            self.nameEnd = nameEnd
            self.high = high
            self.low = low
        }

        func name(in bytes: Span<UInt8>) -> String {
            var reader = ByteReader(bytes.extracting(nameStart..<nameEnd))
            return String(decoding: reader.rest(), as: UTF8.self)
        }
    }
}
