/// The byte order of a number. Bluetooth is little-endian throughout; the values of some vendors are not.
public enum ByteOrder: Hashable, Sendable {
    /// Least significant byte first.
    case littleEndian
    /// Most significant byte first.
    case bigEndian
}

extension ByteReader {
    /// Reads a value of this type.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early or do not fit the type.
    @_lifetime(self: copy self)
    public mutating func read<Value: GATTReadable>(_ type: Value.Type = Value.self) throws(MalformedPacket) -> Value {
        try Value(reading: &self)
    }

    /// Reads a value of this type if `isPresent`, otherwise returns `nil` and reads nothing.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early or do not fit the type.
    @_lifetime(self: copy self)
    public mutating func read<Value: GATTReadable>(
        _ type: Value.Type = Value.self, if isPresent: Bool
    ) throws(MalformedPacket) -> Value? {
        guard isPresent else { return nil }
        return try Value(reading: &self)
    }

    /// Reads a number in the given byte order.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    @_lifetime(self: copy self)
    public mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type = Number.self, order: ByteOrder
    ) throws(MalformedPacket) -> Number {
        let number = try Number(reading: &self)
        return order == .bigEndian ? number.byteSwapped : number
    }

    /// Reads values of this type until no bytes are left.
    ///
    /// - Throws: `MalformedPacket` if the last value is incomplete, or if a value is empty.
    @_lifetime(self: copy self)
    public mutating func readToEnd<Value: GATTReadable>(
        _ type: Value.Type = Value.self
    ) throws(MalformedPacket) -> [Value] {
        var values: [Value] = []
        while !isAtEnd {
            let start = offset
            values.append(try Value(reading: &self))
            if offset == start { throw invalid("an element without bytes") }
        }
        return values
    }

    /// Reads `count` bytes.
    ///
    /// - Throws: `MalformedPacket` if there are fewer.
    @_lifetime(self: copy self)
    public mutating func readBytes(_ count: Int) throws(MalformedPacket) -> [UInt8] {
        guard let bytes = array(count) else { throw tooShort }
        return bytes
    }

    /// Returns the error for a field with an invalid value that ends at the current offset, to be thrown by a codec.
    public func invalid(_ field: String) -> MalformedPacket {
        MalformedPacket(format: "the value", offset: offset, reason: .invalidField(field))
    }

    /// The error for bytes that end too early.
    package var tooShort: MalformedPacket {
        MalformedPacket(format: "the value", offset: offset, reason: .tooShort)
    }
}
