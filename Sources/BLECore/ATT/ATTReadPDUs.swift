// The packets that read values by handle.

/// Asks the peer for one attribute's value.
///
///     0x0A | handle 2                          reply: ATTReadResponse
///
/// Spec: ATT_READ_REQ, Core Vol 3 Part F, 3.4.4.3.
public struct ATTReadRequest: ATTRequest {
    /// The answer of a peer that agrees.
    public typealias Response = ATTReadResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readRequest
    /// The attribute to read.
    public var handle: AttributeHandle

    /// Asks for the value at `handle`.
    public init(handle: AttributeHandle) {
        self.handle = handle
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(handle: handle)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2)
        writer.u16(handle)
        return writer.bytes
    }
}

/// The answer to `ATTReadRequest`: the value, cut at MTU - 1 bytes.
///
///     0x0B | value 0...
///
/// Spec: ATT_READ_RSP, Core Vol 3 Part F, 3.4.4.4.
public struct ATTReadResponse: ATTPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readResponse
    /// The value or its beginning.
    public var value: [UInt8]

    /// Answers with `value`.
    public init(value: [UInt8]) {
        self.value = value
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        self.init(value: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] { value }
}

/// Asks the peer for the rest of one attribute's value.
///
///     0x0C | handle 2 | offset 2               reply: ATTReadBlobResponse
///
/// Spec: ATT_READ_BLOB_REQ, Core Vol 3 Part F, 3.4.4.5.
public struct ATTReadBlobRequest: ATTRequest {
    /// The answer of a peer that agrees.
    public typealias Response = ATTReadBlobResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readBlobRequest
    /// The attribute to read.
    public var handle: AttributeHandle
    /// How many bytes to leave out.
    public var offset: UInt16

    /// Asks for the value at `handle`, from `offset` on.
    public init(handle: AttributeHandle, offset: UInt16) {
        self.handle = handle
        self.offset = offset
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16(), let offset = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(handle: handle, offset: offset)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 4)
        writer.u16(handle)
        writer.u16(offset)
        return writer.bytes
    }
}

/// The answer to `ATTReadBlobRequest`: the value from the offset on, cut at MTU - 1 bytes.
///
///     0x0D | part 0...
///
/// Spec: ATT_READ_BLOB_RSP, Core Vol 3 Part F, 3.4.4.6.
public struct ATTReadBlobResponse: ATTPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readBlobResponse
    /// The part of the value.
    public var part: [UInt8]

    /// Answers with `part`.
    public init(part: [UInt8]) {
        self.part = part
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        self.init(part: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] { part }
}

/// Asks for several values of known length at once.
///
///     0x0E | handle 2 | handle 2 ...           reply: ATTReadMultipleResponse
///
/// Spec: ATT_READ_MULTIPLE_REQ, Core Vol 3 Part F, 3.4.4.7.
public struct ATTReadMultipleRequest: ATTRequest, ATTHandleListPDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTReadMultipleResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readMultipleRequest
    /// The attributes to read, in this order; two or more.
    public var handles: [AttributeHandle]

    /// Asks for the values at `handles`.
    public init(handles: [AttributeHandle]) {
        self.handles = handles
    }
}

/// The answer to `ATTReadMultipleRequest`: the values without anything between them, cut at MTU - 1 bytes.
///
///     0x0F | values 0...
///
/// Spec: ATT_READ_MULTIPLE_RSP, Core Vol 3 Part F, 3.4.4.8.
public struct ATTReadMultipleResponse: ATTPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readMultipleResponse
    /// The values one behind the other; only the reader knows where each begins.
    public var values: [UInt8]

    /// Answers with `values`.
    public init(values: [UInt8]) {
        self.values = values
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        self.init(values: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] { values }
}

/// Asks for several values of any length at once.
///
///     0x20 | handle 2 | handle 2 ...           reply: ATTReadMultipleVariableResponse
///
/// Spec: ATT_READ_MULTIPLE_VARIABLE_REQ, Core Vol 3 Part F, 3.4.4.11.
public struct ATTReadMultipleVariableRequest: ATTRequest, ATTHandleListPDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTReadMultipleVariableResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readMultipleVariableRequest
    /// The attributes to read, in this order; two or more.
    public var handles: [AttributeHandle]

    /// Asks for the values at `handles`.
    public init(handles: [AttributeHandle]) {
        self.handles = handles
    }
}

/// The answer to `ATTReadMultipleVariableRequest`: the values, each behind its length.
///
///     0x21 | (length 2 | value length) ...
///
/// A peer cuts the list where the packet ends, so the last value can be shorter than its length says. Decoding with
/// `init(_:mtu:)` accepts that in a full packet; anywhere else it is an error.
///
/// Spec: ATT_READ_MULTIPLE_VARIABLE_RSP, Core Vol 3 Part F, 3.4.4.12.
public struct ATTReadMultipleVariableResponse: ATTPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readMultipleVariableResponse
    /// The values in the order of the request; fewer than asked for when the packet had no room.
    public var values: [[UInt8]]
    /// How many bytes of the last value did not fit into the packet.
    public var missing: UInt16

    /// Answers with `values`; the last of them lacks `missing` bytes.
    public init(values: [[UInt8]], missing: UInt16 = 0) {
        self.values = values
        self.missing = missing
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        try self.init(parameters: parameters, canBeCut: false)
    }

    /// Decodes a whole packet that came over a link with this MTU.
    ///
    /// - Throws: `MalformedPacket`, also for a cut value in a packet shorter than `mtu`.
    public init(_ pdu: [UInt8], mtu: UInt16) throws(MalformedPacket) {
        guard let first = pdu.first else { throw Self.malformed(at: 0, .tooShort) }
        guard first == Self.opcode.rawValue else { throw Self.malformed(at: 0, .wrongOpcode(first)) }
        try self.init(parameters: pdu.span.extracting(droppingFirst: 1), canBeCut: pdu.count >= Int(mtu))
    }

    private init(parameters: Span<UInt8>, canBeCut: Bool) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var values: [[UInt8]] = []
        var missing = 0
        repeat {
            guard let length = reader.u16() else {
                // One byte of a length that did not fit says nothing.
                guard canBeCut, !values.isEmpty, reader.skip(1) else { throw Self.tooShort(reader) }
                break
            }
            if let value = reader.array(Int(length)) {
                values.append(value)
            } else {
                guard canBeCut else { throw Self.tooShort(reader) }
                missing = Int(length) - reader.remaining
                values.append(reader.rest())
            }
        } while !reader.isAtEnd
        self.init(values: values, missing: UInt16(truncatingIfNeeded: missing))
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        for (index, value) in values.enumerated() {
            let lost = index == values.count - 1 ? missing : 0
            writer.u16(UInt16(truncatingIfNeeded: value.count) &+ lost)
            writer.array(value)
        }
        return writer.bytes
    }
}
