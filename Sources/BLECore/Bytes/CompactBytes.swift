/// Bytes that a value owns: up to 31 are stored in place, as the payload of every legacy advertisement is, and more in
/// an array.
///
/// Reading a legacy advertisement takes less time than the memory management of one array.
package struct CompactBytes: Sendable {
    /// The bytes in place, in memory order; the last of the 32 is their number. Zero if `long` is in use.
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    /// The bytes if there are more than `capacity`.
    private var long: [UInt8]?

    /// The maximum number of bytes in place.
    package static let capacity = 31

    package init() {}

    package init(_ bytes: [UInt8]) {
        if bytes.count > Self.capacity {
            long = bytes
        } else {
            store(ByteReader(bytes.span))
        }
    }

    @inline(__always)
    package init(copying bytes: Span<UInt8>) {
        var reader = ByteReader(bytes)
        if bytes.count > Self.capacity {
            long = reader.rest()
        } else {
            store(reader)
        }
    }

    @inline(__always)
    private mutating func store(_ reader: borrowing ByteReader) {
        let count = reader.remaining
        unsafe withUnsafeMutableBytes(of: &words) { unsafe reader.copy(to: $0) }
        words.3 = UInt64(littleEndian: words.3) | UInt64(truncatingIfNeeded: count) << 56
        words.3 = words.3.littleEndian
    }

    /// The number of bytes.
    package var count: Int { long?.count ?? Int(truncatingIfNeeded: UInt64(littleEndian: words.3) >> 56) }

    package var isEmpty: Bool { count == 0 }

    /// Calls `body` with the bytes, without copying them.
    @inline(__always)
    package func withSpan<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        if let long { return body(long.span) }
        let count = Int(truncatingIfNeeded: UInt64(littleEndian: words.3) >> 56)
        return unsafe withUnsafeBytes(of: words) { bytes in
            let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
            return body(span.extracting(first: count))
        }
    }

    /// The bytes as an array.
    package var array: [UInt8] {
        if let long { return long }
        return withSpan { span in
            var reader = ByteReader(span)
            return reader.rest()
        }
    }

    /// The bytes as UTF-8. Each invalid sequence becomes U+FFFD.
    package var text: String { withSpan { ByteReader($0).text } }
}

extension CompactBytes: Hashable {
    package static func == (left: CompactBytes, right: CompactBytes) -> Bool {
        left.words == right.words && left.long == right.long
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
        hasher.combine(long)
    }
}
