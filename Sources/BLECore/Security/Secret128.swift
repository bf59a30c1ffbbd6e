/// A value of 128 bits that is not to be seen: a key, or a value for out-of-band pairing.
///
/// Its description does not show it. It is stored in place, so that no array holds its bytes longer than needed.
///
/// The first byte is the least significant one, as on the air and in the kernel's structures.
package struct Secret128: Hashable, Sendable {
    private let low: UInt64
    private let high: UInt64

    /// The length in bytes.
    package static let length = 16

    /// All bits are zero, as in the place of a value that was not given.
    package static let zero = Secret128(low: 0, high: 0)

    private init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Returns `nil` unless there are 16 bytes.
    package init?(_ bytes: Span<UInt8>) {
        var reader = ByteReader(bytes)
        guard let value = reader.secret(), reader.remaining == 0 else { return nil }
        self = value
    }

    /// Calls `body` with the bytes, least significant first.
    package func withBytes<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        let bytes: InlineArray<16, UInt8> = InlineArray { index in
            UInt8(truncatingIfNeeded: (index < 8 ? low : high) >> UInt64(8 * (index & 7)))
        }
        return body(bytes.span)
    }

    /// Returns a Boolean value that indicates whether all bits above the first `size` bytes are zero, as in a key that
    /// was shortened to this size.
    package func fits(_ size: Int) -> Bool {
        withBytes { bytes in
            for index in 0..<Self.length where index >= size && bytes[index] != 0 { return false }
            return true
        }
    }

    fileprivate static func read(_ reader: inout ByteReader) -> Secret128? {
        guard reader.remaining >= length, let low = reader.u64(), let high = reader.u64() else { return nil }
        return Secret128(low: low, high: high)
    }

    fileprivate func write(_ writer: inout ByteWriter) {
        writer.u64(low)
        writer.u64(high)
    }
}

extension Secret128: CustomStringConvertible {
    package var description: String { "(128 bits)" }
}

extension ByteReader {
    /// Reads a secret of 16 bytes.
    @_lifetime(self: copy self)
    package mutating func secret() -> Secret128? { Secret128.read(&self) }
}

extension ByteWriter {
    package mutating func secret(_ value: Secret128) { value.write(&self) }
}
