/// The number that names one attribute of a peer; 0x0001 to 0xFFFF, 0 names none.
///
/// Spec: Core Vol 3 Part F, 3.2.2.
public typealias AttributeHandle = UInt16

/// One packet of the Attribute Protocol, decoded.
///
/// Bytes become a value as a whole or not at all: a list with one bad entry throws. Offsets in `MalformedPacket` count
/// from the opcode, which is byte 0.
public protocol ATTPDU: Hashable, Sendable {
    /// The packet's first byte.
    static var opcode: ATTOpcode { get }

    /// Decodes what follows the opcode.
    ///
    /// - Throws: `MalformedPacket` when the bytes are not exactly this packet's parameters.
    init(parameters: Span<UInt8>) throws(MalformedPacket)

    /// What follows the opcode on the wire.
    var parameters: [UInt8] { get }
}

/// A packet that the receiver must answer, with `Response` or an `ATTErrorResponse`.
public protocol ATTRequest: ATTPDU {
    /// The answer of a receiver that agrees.
    associatedtype Response: ATTPDU
}

extension ATTPDU {
    /// The whole packet: the opcode and the parameters.
    public var bytes: [UInt8] {
        let parameters = parameters
        var packet: [UInt8] = []
        packet.reserveCapacity(parameters.count + 1)
        packet.append(Self.opcode.rawValue)
        packet += parameters
        return packet
    }

    /// Decodes a whole packet.
    ///
    /// - Throws: `MalformedPacket` for another opcode, for missing bytes and for leftovers.
    public init(_ pdu: [UInt8]) throws(MalformedPacket) {
        guard let first = pdu.first else { throw Self.malformed(at: 0, .tooShort) }
        guard first == Self.opcode.rawValue else { throw Self.malformed(at: 0, .wrongOpcode(first)) }
        try self.init(parameters: pdu.span.extracting(droppingFirst: 1))
    }

    static func malformed(at offset: Int, _ reason: MalformedPacket.Reason) -> MalformedPacket {
        MalformedPacket(format: opcode.description, offset: offset, reason: reason)
    }

    static func tooShort(_ reader: borrowing ByteReader) -> MalformedPacket {
        malformed(at: reader.offset + 1, .tooShort)
    }

    static func invalid(_ field: String, _ reader: borrowing ByteReader) -> MalformedPacket {
        malformed(at: reader.offset + 1, .invalidField(field))
    }

    /// The last step of every decoder: leftovers are an error.
    static func finish(_ reader: borrowing ByteReader) throws(MalformedPacket) {
        if reader.remaining > 0 { throw malformed(at: reader.offset + 1, .trailingBytes(reader.remaining)) }
    }
}

extension ByteReader {
    /// All that is left, when it is an attribute type: 2 or 16 bytes. ATT has no form of 4.
    @_lifetime(self: copy self)
    mutating func attributeType() -> BluetoothUUID? {
        remaining == 4 ? nil : uuid(remaining)
    }
}

extension ByteWriter {
    mutating func attributeType(_ type: BluetoothUUID, long: Bool = false) {
        guard long else { return array(type.attBytes) }
        u64(type.low)
        u64(type.high)
    }
}
