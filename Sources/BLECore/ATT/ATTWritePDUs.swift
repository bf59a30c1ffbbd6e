// The packets that write values.

/// Writes an attribute's value, and asks for a word about it.
///
///     0x12 | handle 2 | value 0...             reply: ATTWriteResponse
///
/// Spec: ATT_WRITE_REQ, Core Vol 3 Part F, 3.4.5.1.
public struct ATTWriteRequest: ATTRequest, ATTHandleValuePDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTWriteResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.writeRequest
    /// The attribute to write.
    public var handle: AttributeHandle
    /// The new value.
    public var value: [UInt8]

    /// Writes `value` to `handle`.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// The answer to `ATTWriteRequest`: done.
///
///     0x13
///
/// Spec: ATT_WRITE_RSP, Core Vol 3 Part F, 3.4.5.2.
public struct ATTWriteResponse: ATTEmptyPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.writeResponse

    /// Answers that the value was written.
    public init() {}
}

/// Writes an attribute's value; nobody answers, also not with an error.
///
///     0x52 | handle 2 | value 0...
///
/// Spec: ATT_WRITE_CMD, Core Vol 3 Part F, 3.4.5.3.
public struct ATTWriteCommand: ATTHandleValuePDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.writeCommand
    /// The attribute to write.
    public var handle: AttributeHandle
    /// The new value.
    public var value: [UInt8]

    /// Writes `value` to `handle`.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// Writes an attribute's value over a link without encryption; the signature proves who did it. Nobody answers.
///
///     0xD2 | handle 2 | value 0... | counter 4 | code 8
///
/// Spec: ATT_SIGNED_WRITE_CMD, Core Vol 3 Part F, 3.4.5.4; the signature: Core Vol 3 Part H, 2.4.5.
public struct ATTSignedWriteCommand: ATTPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.signedWriteCommand
    /// How many bytes a signature has.
    public static let signatureLength = 12

    /// The attribute to write.
    public var handle: AttributeHandle
    /// The new value.
    public var value: [UInt8]
    /// The sign counter and the authentication code, 12 bytes.
    public var signature: [UInt8]

    /// Writes `value` to `handle`, signed.
    public init(handle: AttributeHandle, value: [UInt8], signature: [UInt8]) {
        self.handle = handle
        self.value = value
        self.signature = signature
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16(), let value = reader.array(reader.remaining - Self.signatureLength) else {
            throw Self.tooShort(reader)
        }
        self.init(handle: handle, value: value, signature: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: value.count + signature.count + 2)
        writer.u16(handle)
        writer.array(value)
        writer.array(signature)
        return writer.bytes
    }
}

/// Puts one piece of a long value into the peer's queue; nothing is written yet.
///
///     0x16 | handle 2 | offset 2 | part 0...   reply: ATTPrepareWriteResponse
///
/// Spec: ATT_PREPARE_WRITE_REQ, Core Vol 3 Part F, 3.4.6.1.
public struct ATTPrepareWriteRequest: ATTRequest, ATTPreparedPartPDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTPrepareWriteResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.prepareWriteRequest
    /// The attribute to write.
    public var handle: AttributeHandle
    /// Where the piece begins in the value.
    public var offset: UInt16
    /// The piece.
    public var part: [UInt8]

    /// Queues `part` for `handle` at `offset`.
    public init(handle: AttributeHandle, offset: UInt16, part: [UInt8]) {
        self.handle = handle
        self.offset = offset
        self.part = part
    }
}

/// The answer to `ATTPrepareWriteRequest`: the piece as it was understood, for the client to compare.
///
///     0x17 | handle 2 | offset 2 | part 0...
///
/// Spec: ATT_PREPARE_WRITE_RSP, Core Vol 3 Part F, 3.4.6.2.
public struct ATTPrepareWriteResponse: ATTPreparedPartPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.prepareWriteResponse
    /// The attribute to write.
    public var handle: AttributeHandle
    /// Where the piece begins in the value.
    public var offset: UInt16
    /// The piece.
    public var part: [UInt8]

    /// Repeats `part` for `handle` at `offset`.
    public init(handle: AttributeHandle, offset: UInt16, part: [UInt8]) {
        self.handle = handle
        self.offset = offset
        self.part = part
    }
}

/// Writes everything in the peer's queue at once, or throws it away.
///
///     0x18 | flags 1                           reply: ATTExecuteWriteResponse
///
/// Spec: ATT_EXECUTE_WRITE_REQ, Core Vol 3 Part F, 3.4.6.3.
public struct ATTExecuteWriteRequest: ATTRequest {
    /// The answer of a peer that agrees.
    public typealias Response = ATTExecuteWriteResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.executeWriteRequest

    /// What becomes of the queue.
    public enum Action: UInt8, Hashable, Sendable {
        /// All pieces are thrown away.
        case cancel = 0
        /// All pieces are written.
        case write = 1
    }

    /// What becomes of the queue.
    public var action: Action

    /// Asks for `action`.
    public init(_ action: Action) {
        self.action = action
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let flags = reader.u8() else { throw Self.tooShort(reader) }
        guard let action = Action(rawValue: flags) else { throw Self.malformed(at: 1, .invalidField("flags")) }
        try Self.finish(reader)
        self.init(action)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] { [action.rawValue] }
}

/// The answer to `ATTExecuteWriteRequest`: done.
///
///     0x19
///
/// Spec: ATT_EXECUTE_WRITE_RSP, Core Vol 3 Part F, 3.4.6.4.
public struct ATTExecuteWriteResponse: ATTEmptyPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.executeWriteResponse

    /// Answers that it was done.
    public init() {}
}
