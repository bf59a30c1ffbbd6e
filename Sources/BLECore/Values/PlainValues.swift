extension Bool: GATTReadable, GATTWritable {
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "boolean" }

    /// Reads one byte: 0 is false, 1 is true.
    ///
    /// - Throws: `MalformedPacket` for any other byte, and if there is none.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        switch reader.u8() {
        case 0: self = false
        case 1: self = true
        case nil: throw reader.tooShort
        default: throw reader.invalid("boolean")
        }
    }

    /// Appends one byte, 0 or 1.
    public func write(to writer: inout ByteWriter) {
        writer.u8(self ? 1 : 0)
    }
}

extension Array: GATTReadable where Element == UInt8 {
    /// "bytes".
    public static var formatName: String { "bytes" }

    /// Reads all remaining bytes.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        self = reader.rest()
    }
}

extension Array: GATTWritable where Element == UInt8 {
    /// Appends the bytes.
    public func write(to writer: inout ByteWriter) {
        writer.array(self)
    }
}

extension String: GATTReadable, GATTWritable {
    /// The name in the Characteristic Presentation Format.
    public static var formatName: String { "utf8s" }

    /// Reads all remaining bytes as UTF-8. Trailing zero bytes are dropped: many devices send a buffer of fixed size,
    /// or a C string's terminator.
    ///
    /// - Throws: `MalformedPacket` if the bytes are not valid UTF-8.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let start = reader.offset
        var bytes = reader.rest()
        while bytes.last == 0 { bytes.removeLast() }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw MalformedPacket(format: Self.formatName, offset: start, reason: .invalidField("UTF-8 text"))
        }
        self = text
    }

    /// Appends the text as UTF-8, without a terminator.
    public func write(to writer: inout ByteWriter) {
        writer.array(Array(utf8))
    }
}

extension String: DescribedValue {
    package var fields: [ValueField] { [ValueField(.quoted(self))] }
}
