internal import BLECore

/// The flags at the start of a measurement: each bit announces a field, or selects a field's encoding.
///
/// Specifications grow by assigning a reserved bit and appending its field. If a reserved bit is set, bytes after the
/// known fields are therefore skipped; otherwise they are an error, because then the value is not what it claims to be.
/// This applies to every measurement that begins with flags.
struct FieldFlags {
    private let bits: UInt32
    private let known: Int

    /// Returns true if the bit is set.
    subscript(bit: Int) -> Bool { bits >> UInt32(truncatingIfNeeded: bit) & 1 == 1 }

    /// A Boolean value that indicates whether a bit is set that is not assigned yet.
    var hasReserved: Bool { bits >> UInt32(truncatingIfNeeded: known) != 0 }

    /// Reads flags as wide as `Bits`, of which the lowest `known` are assigned.
    init<Bits: FixedWidthInteger & GATTReadable>(
        _ width: Bits.Type, known: Int, reading reader: inout ByteReader
    ) throws(MalformedPacket) {
        bits = UInt32(truncatingIfNeeded: try reader.read(Bits.self))
        self.known = known
    }

    /// Reads three bytes of flags, of which the lowest `known` are assigned.
    init(_ width: UInt24.Type, known: Int, reading reader: inout ByteReader) throws(MalformedPacket) {
        bits = try reader.read(UInt24.self).value
        self.known = known
    }

    /// Returns the total size of the fields that are announced; `sizes` has the size of each bit's fields, from bit 0.
    ///
    /// In fitness machine data, the first bit is inverted: its fields are present when it is clear.
    func length(_ sizes: [Int], invertingFirst: Bool) -> Int {
        var length = 0
        for (bit, size) in sizes.enumerated() where self[bit] != (invertingFirst && bit == 0) { length += size }
        return length
    }
}

extension ByteReader {
    /// Skips the fields of a later version, if the flags announce any.
    @_lifetime(self: copy self)
    mutating func skipReserved(_ flags: FieldFlags) {
        if flags.hasReserved { _ = rest() }
    }

    /// Reads a number in units of 1/`divisor`.
    @_lifetime(self: copy self)
    mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type, per divisor: Double
    ) throws(MalformedPacket) -> Double {
        Double(try read(Number.self)) / divisor
    }

    /// Reads a number in units of 1/`divisor`, if present. Also returns `nil` for the value that means "not available".
    @_lifetime(self: copy self)
    mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type, per divisor: Double, if isPresent: Bool, unless missing: Number? = nil
    ) throws(MalformedPacket) -> Double? {
        guard let number = try read(Number.self, if: isPresent, unless: missing) else { return nil }
        return Double(number) / divisor
    }

    /// Reads a number, if present. Also returns `nil` for the value that means "not available".
    @_lifetime(self: copy self)
    mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type, if isPresent: Bool, unless missing: Number?
    ) throws(MalformedPacket) -> Number? {
        guard let number = try read(Number.self, if: isPresent), number != missing else { return nil }
        return number
    }

    /// Reads a three-byte number, if present.
    @_lifetime(self: copy self)
    mutating func readUInt24(if isPresent: Bool) throws(MalformedPacket) -> UInt32? {
        guard isPresent else { return nil }
        return try read(UInt24.self).value
    }

    /// Reads a time in seconds, if present.
    @_lifetime(self: copy self)
    mutating func readSeconds(if isPresent: Bool) throws(MalformedPacket) -> Duration? {
        guard isPresent else { return nil }
        return .seconds(try read(UInt16.self))
    }
}
