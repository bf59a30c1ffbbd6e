/// Which byte of a number comes first. Bluetooth itself is little-endian throughout; some vendors' values are not.
public enum ByteOrder: Hashable, Sendable {
    /// The least significant byte comes first.
    case littleEndian
    /// The most significant byte comes first.
    case bigEndian
}

extension ByteReader {
    /// The next value of this type.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early or do not fit the type.
    @_lifetime(self: copy self)
    public mutating func read<Value: GATTReadable>(_ type: Value.Type = Value.self) throws(MalformedPacket) -> Value {
        try Value(reading: &self)
    }

    /// The next value of this type if a flag says that it is there, else `nil` without reading anything.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early or do not fit the type.
    @_lifetime(self: copy self)
    public mutating func read<Value: GATTReadable>(
        _ type: Value.Type = Value.self, if isPresent: Bool
    ) throws(MalformedPacket) -> Value? {
        guard isPresent else { return nil }
        return try Value(reading: &self)
    }

    /// The next number, in the order that a vendor chose.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early.
    @_lifetime(self: copy self)
    public mutating func read<Number: FixedWidthInteger & GATTReadable>(
        _ type: Number.Type = Number.self, order: ByteOrder
    ) throws(MalformedPacket) -> Number {
        let number = try Number(reading: &self)
        return order == .bigEndian ? number.byteSwapped : number
    }

    /// Values of this type until nothing is left.
    ///
    /// - Throws: `MalformedPacket` when the last one is incomplete, or when a value takes no bytes at all.
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

    /// The next `count` bytes.
    ///
    /// - Throws: `MalformedPacket` when there are fewer.
    @_lifetime(self: copy self)
    public mutating func readBytes(_ count: Int) throws(MalformedPacket) -> [UInt8] {
        guard let bytes = array(count) else { throw tooShort }
        return bytes
    }

    /// The error that says that a field, which ends here, has a value that is not allowed. A codec throws it.
    public func invalid(_ field: String) -> MalformedPacket {
        MalformedPacket(format: "the value", offset: offset, reason: .invalidField(field))
    }

    /// The error that says that the bytes ended too early.
    package var tooShort: MalformedPacket {
        MalformedPacket(format: "the value", offset: offset, reason: .tooShort)
    }
}
