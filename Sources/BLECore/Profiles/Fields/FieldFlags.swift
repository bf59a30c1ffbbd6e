/// The flags at the head of a measurement: a set bit says that a field follows, or how to read one.
///
/// Specifications grow by giving a reserved bit a meaning and putting its field behind the others. So where a reserved bit
/// is set, what stands behind the known fields is skipped; without one, leftovers stay an error, because then the value
/// is not what it claims to be. This holds for every measurement that begins with flags.
struct FieldFlags {
    private let bits: UInt32
    private let known: Int

    /// Whether the bit is set.
    subscript(bit: Int) -> Bool { bits >> UInt32(truncatingIfNeeded: bit) & 1 == 1 }

    /// Whether a bit is set whose meaning belongs to a later version.
    var hasReserved: Bool { bits >> UInt32(truncatingIfNeeded: known) != 0 }

    /// Reads flags as wide as `Bits`, of which the lowest `known` have a meaning.
    init<Bits: FixedWidthInteger & GATTReadable>(
        _ width: Bits.Type, known: Int, reading reader: inout ByteReader
    ) throws(MalformedPacket) {
        bits = UInt32(truncatingIfNeeded: try reader.read(Bits.self))
        self.known = known
    }

    /// Reads flags of three bytes, of which the lowest `known` have a meaning.
    init(_ width: UInt24.Type, known: Int, reading reader: inout ByteReader) throws(MalformedPacket) {
        bits = try reader.read(UInt24.self).value
        self.known = known
    }

    /// How many bytes the fields of the set bits take, where `sizes` has the size of each bit's fields from bit 0 on.
    ///
    /// The first bit of a fitness machine's data is the other way round: its fields are there when it is not set.
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

    /// The next number, which counts `divisor` to the unit.
    @_lifetime(self: copy self)
    mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type, per divisor: Double
    ) throws(MalformedPacket) -> Double {
        Double(try read(Number.self)) / divisor
    }

    /// The next number, which counts `divisor` to the unit, if it is there; `nil` also for the number that stands for
    /// "not available".
    @_lifetime(self: copy self)
    mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type, per divisor: Double, if isPresent: Bool, unless missing: Number? = nil
    ) throws(MalformedPacket) -> Double? {
        guard let number = try read(Number.self, if: isPresent, unless: missing) else { return nil }
        return Double(number) / divisor
    }

    /// The next number if it is there; `nil` also for the number that stands for "not available".
    @_lifetime(self: copy self)
    mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type, if isPresent: Bool, unless missing: Number?
    ) throws(MalformedPacket) -> Number? {
        guard let number = try read(Number.self, if: isPresent), number != missing else { return nil }
        return number
    }

    /// The next number of three bytes if it is there.
    @_lifetime(self: copy self)
    mutating func readUInt24(if isPresent: Bool) throws(MalformedPacket) -> UInt32? {
        guard isPresent else { return nil }
        return try read(UInt24.self).value
    }

    /// The next number as a time in seconds if it is there.
    @_lifetime(self: copy self)
    mutating func readSeconds(if isPresent: Bool) throws(MalformedPacket) -> Duration? {
        guard isPresent else { return nil }
        return .seconds(try read(UInt16.self))
    }
}
