/// A bounds-checked cursor over borrowed bytes, little-endian.
///
/// A read returns `nil` instead of trapping if too few bytes are left, and leaves the offset unchanged. A parser checks
/// once, at the end of its packet, and throws one `MalformedPacket` there. This is the only file that subscripts bytes
/// from outside.
///
/// Custom codecs (``GATTReadable``) use the throwing reads in `ByteReader+Values.swift`.
public struct ByteReader: ~Escapable {
    @usableFromInline let bytes: Span<UInt8>

    /// The number of bytes read so far.
    public private(set) var offset = 0

    /// Creates a reader at the first of these bytes.
    @_lifetime(copy bytes)
    public init(_ bytes: Span<UInt8>) {
        self.bytes = bytes
    }

    /// The number of bytes left.
    public var remaining: Int { bytes.count &- offset }

    /// A Boolean value that indicates whether all bytes have been read.
    public var isAtEnd: Bool { offset >= bytes.count }

    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func u8() -> UInt8? {
        guard remaining >= 1 else { return nil }
        defer { offset &+= 1 }
        return bytes[offset]
    }

    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func i8() -> Int8? {
        guard let byte = u8() else { return nil }
        return Int8(bitPattern: byte)
    }

    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func u16() -> UInt16? {
        guard remaining >= 2 else { return nil }
        defer { offset &+= 2 }
        return UInt16(bytes[offset]) | UInt16(bytes[offset &+ 1]) << 8
    }

    @_lifetime(self: copy self)
    package mutating func u24() -> UInt32? {
        guard remaining >= 3 else { return nil }
        defer { offset &+= 3 }
        return UInt32(bytes[offset]) | UInt32(bytes[offset &+ 1]) << 8 | UInt32(bytes[offset &+ 2]) << 16
    }

    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func u32() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { offset &+= 4 }
        return UInt32(bytes[offset]) | UInt32(bytes[offset &+ 1]) << 8 | UInt32(bytes[offset &+ 2]) << 16
            | UInt32(bytes[offset &+ 3]) << 24
    }

    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func u48() -> UInt64? {
        guard remaining >= 6, let low = u32(), let high = u16() else { return nil }
        return UInt64(low) | UInt64(high) << 32
    }

    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func u64() -> UInt64? {
        guard remaining >= 8, let low = u32(), let high = u32() else { return nil }
        return UInt64(low) | UInt64(high) << 32
    }

    /// Reads an unsigned integer of `count` bytes, 1 to 8.
    @_lifetime(self: copy self)
    package mutating func unsigned(_ count: Int) -> UInt64? {
        guard count >= 1, count <= 8, remaining >= count else { return nil }
        var number: UInt64 = 0
        for index in 0..<count { number |= UInt64(bytes[offset &+ index]) << UInt64(8 * index) }
        offset &+= count
        return number
    }

    /// Reads `count` bytes as an array.
    @_lifetime(self: copy self)
    package mutating func array(_ count: Int) -> [UInt8]? {
        guard count >= 0, remaining >= count else { return nil }
        defer { offset &+= count }
        return copy(from: offset, count)
    }

    /// Reads all remaining bytes as an array.
    @_lifetime(self: copy self)
    public mutating func rest() -> [UInt8] {
        defer { offset = bytes.count }
        return copy(from: offset, remaining)
    }

    /// Returns a reader limited to the next `count` bytes, and advances past them.
    @_lifetime(copy self)
    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func take(_ count: Int) -> ByteReader? {
        guard count >= 0, remaining >= count else { return nil }
        let part = ByteReader(bytes.extracting(offset..<(offset &+ count)))
        offset &+= count
        return part
    }

    /// The remaining bytes, without reading them.
    package var unread: Span<UInt8> {
        @_lifetime(copy self)
        get { bytes.extracting(offset..<bytes.count) }
    }

    /// Skips `count` bytes. Returns `false` if there are fewer.
    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func skip(_ count: Int) -> Bool {
        guard count >= 0, remaining >= count else { return false }
        offset &+= count
        return true
    }

    /// Ends a strict parser: trailing bytes are an error.
    package func finish(_ format: StaticString) throws(MalformedPacket) {
        if remaining > 0 { throw MalformedPacket(format, at: offset, .trailingBytes(remaining)) }
    }

    /// The remaining bytes as UTF-8, without reading them. Each invalid sequence becomes U+FFFD.
    package var text: String {
        unsafe unread.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }

    /// Copies the remaining bytes, as many as fit, without reading them.
    @inline(__always)
    package func copy(to target: UnsafeMutableRawBufferPointer) {
        let count = min(remaining, target.count)
        // In bounds on both sides, because `count` is at most either size.
        unsafe unread.withUnsafeBytes { source in
            unsafe target.copyMemory(from: .init(start: source.baseAddress, count: count))
        }
    }

    private func copy(from start: Int, _ count: Int) -> [UInt8] {
        // Every caller has compared `count` with `remaining`, so the range is in bounds.
        // The safe ways to build an array byte by byte look up its type at run time, which costs twice as much as the
        // copy.
        unsafe bytes.extracting(start..<(start &+ count)).withUnsafeBufferPointer { unsafe [UInt8]($0) }
    }
}
