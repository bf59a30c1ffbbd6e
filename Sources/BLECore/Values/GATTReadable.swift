/// A type that can be decoded from the value of a characteristic or descriptor.
///
/// A custom type reads its fields in order and lets the reader throw:
///
/// ```swift
/// struct TankLevel: GATTReadable {
///     let litres: UInt16
///     let alarm: Bool
///
///     init(reading reader: inout ByteReader) throws(MalformedPacket) {
///         litres = try reader.read()
///         alarm = try reader.read()
///     }
/// }
/// ```
public protocol GATTReadable: SendableMetatype {
    /// The format's name in errors, such as "Heart Rate Measurement".
    static var formatName: String { get }

    /// Reads one value and advances the reader past it.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early or violate the format.
    init(reading reader: inout ByteReader) throws(MalformedPacket)
}

extension GATTReadable {
    /// "the value", for types that do not name their format.
    public static var formatName: String { "the value" }

    /// Decodes a complete value; trailing bytes are an error.
    ///
    /// - Throws: `MalformedPacket`, with ``formatName`` as its format.
    public init(value: [UInt8]) throws(MalformedPacket) {
        var reader = ByteReader(value.span)
        do {
            self = try Self(reading: &reader)
        } catch {
            throw MalformedPacket(format: Self.formatName, offset: error.offset, reason: error.reason)
        }
        if !reader.isAtEnd {
            let reason = MalformedPacket.Reason.trailingBytes(reader.remaining)
            throw MalformedPacket(format: Self.formatName, offset: reader.offset, reason: reason)
        }
    }
}

/// A type that can be encoded as the value of a characteristic or descriptor.
public protocol GATTWritable: SendableMetatype {
    /// Appends the bytes of this value.
    func write(to writer: inout ByteWriter)
}

extension GATTWritable {
    /// The encoded value.
    public var valueBytes: [UInt8] {
        var writer = ByteWriter()
        write(to: &writer)
        return writer.bytes
    }
}
