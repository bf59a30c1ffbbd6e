internal import BLECore

// Integer encodings used by vendor formats.

extension ByteReader {
    /// Reads a signed 16-bit integer, little-endian.
    @_lifetime(self: copy self)
    mutating func i16() -> Int16? {
        guard let number = u16() else { return nil }
        return Int16(bitPattern: number)
    }

    /// Reads an unsigned 16-bit integer, big-endian.
    @_lifetime(self: copy self)
    mutating func bigEndian16() -> UInt16? {
        guard let number = u16() else { return nil }
        return number.byteSwapped
    }

    /// Reads an unsigned 24-bit integer, big-endian.
    @_lifetime(self: copy self)
    mutating func bigEndian24() -> UInt32? {
        guard let number = u24() else { return nil }
        return number.byteSwapped >> 8
    }
}
