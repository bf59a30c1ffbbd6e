// Numbers as vendors send them.

extension ByteReader {
    /// A number with sign, least significant byte first.
    @_lifetime(self: copy self)
    mutating func i16() -> Int16? {
        guard let number = u16() else { return nil }
        return Int16(bitPattern: number)
    }

    /// A number, most significant byte first.
    @_lifetime(self: copy self)
    mutating func bigEndian16() -> UInt16? {
        guard let number = u16() else { return nil }
        return number.byteSwapped
    }

    /// A number of three bytes, most significant byte first.
    @_lifetime(self: copy self)
    mutating func bigEndian24() -> UInt32? {
        guard let number = u24() else { return nil }
        return number.byteSwapped >> 8
    }
}
