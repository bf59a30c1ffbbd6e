internal import BLECore

/// The bytes of a capture that have arrived and are not read yet.
///
/// Memory is bounded by the largest record plus one chunk, regardless of the file's length.
struct CaptureBuffer: Sendable {
    private var bytes: [UInt8] = []
    private var start = 0

    /// The number of unread bytes.
    var count: Int { bytes.count &- start }

    mutating func append(_ chunk: [UInt8]) {
        if start == bytes.count {
            bytes = chunk
        } else {
            bytes.removeFirst(start)
            bytes.append(contentsOf: chunk)
        }
        start = 0
    }

    /// A reader at the first unread byte.
    var reader: ByteReader {
        @_lifetime(borrow self)
        borrowing get { ByteReader(bytes.span.extracting(droppingFirst: start)) }
    }

    /// Removes the next `count` bytes.
    mutating func drop(_ count: Int) {
        start = min(bytes.count, start &+ max(0, count))
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    mutating func u16BigEndian() -> UInt16? { u16()?.byteSwapped }

    @_lifetime(self: copy self)
    mutating func u32BigEndian() -> UInt32? { u32()?.byteSwapped }

    @_lifetime(self: copy self)
    mutating func u64BigEndian() -> UInt64? { u64()?.byteSwapped }
}
