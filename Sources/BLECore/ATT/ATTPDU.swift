/// The handle of an attribute in a peer's database, 0x0001 to 0xFFFF; 0 is invalid.
///
/// Spec: Core Vol 3 Part F, 3.2.2.
public typealias AttributeHandle = UInt16

/// The specification's limits of an attribute.
package enum ATTLimits {
    /// The maximum length of a value, in bytes.
    ///
    /// Spec: Core Vol 3 Part F, 3.2.9.
    package static let valueLength = 512
}

/// A decoded Attribute Protocol PDU.
///
/// Decoding succeeds as a whole or not at all: one invalid entry in a list throws. Offsets in `MalformedPacket` count
/// from the opcode, which is byte 0.
package protocol ATTPDU: Hashable, Sendable {
    /// The opcode of this PDU.
    static var opcode: ATTOpcode { get }

    /// Decodes the parameters: the bytes after the opcode.
    ///
    /// - Throws: `MalformedPacket` if the bytes are not exactly this PDU's parameters.
    init(parameters: Span<UInt8>) throws(MalformedPacket)

    /// The encoded parameters: the bytes after the opcode.
    var parameters: [UInt8] { get }
}

/// A PDU that the receiver must respond to, with `Response` or an `ATTErrorResponse`.
package protocol ATTRequest: ATTPDU {
    /// The response on success.
    associatedtype Response: ATTPDU
}

extension ATTPDU {
    /// The encoded PDU: the opcode and the parameters.
    package var bytes: [UInt8] {
        let parameters = parameters
        var packet: [UInt8] = []
        packet.reserveCapacity(parameters.count + 1)
        packet.append(Self.opcode.rawValue)
        packet += parameters
        return packet
    }

    /// Decodes a PDU.
    ///
    /// - Throws: `MalformedPacket` for another opcode, for missing bytes and for trailing bytes.
    package init(_ pdu: [UInt8]) throws(MalformedPacket) {
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

    /// Ends every decoder: trailing bytes are an error.
    static func finish(_ reader: borrowing ByteReader) throws(MalformedPacket) {
        if reader.remaining > 0 { throw malformed(at: reader.offset + 1, .trailingBytes(reader.remaining)) }
    }
}

extension ByteReader {
    /// Reads the rest as an attribute type of 2 or 16 bytes. ATT has no 4-byte form.
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
