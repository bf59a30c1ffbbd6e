// PDUs that write values.

/// Writes an attribute's value and requests a response.
///
///     0x12 | handle 2 | value 0...             reply: ATTWriteResponse
///
/// Spec: ATT_WRITE_REQ, Core Vol 3 Part F, 3.4.5.1.
package struct ATTWriteRequest: ATTRequest, ATTHandleValuePDU {
    /// The response on success.
    package typealias Response = ATTWriteResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.writeRequest
    /// The handle of the attribute to write.
    package var handle: AttributeHandle
    /// The new value.
    package var value: [UInt8]

    /// Creates a write of `value` to `handle`.
    package init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// The response to `ATTWriteRequest`: the value was written.
///
///     0x13
///
/// Spec: ATT_WRITE_RSP, Core Vol 3 Part F, 3.4.5.2.
package struct ATTWriteResponse: ATTEmptyPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.writeResponse

    /// Creates a response.
    package init() {}
}

/// Writes an attribute's value without a response; errors are not reported.
///
///     0x52 | handle 2 | value 0...
///
/// Spec: ATT_WRITE_CMD, Core Vol 3 Part F, 3.4.5.3.
package struct ATTWriteCommand: ATTHandleValuePDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.writeCommand
    /// The handle of the attribute to write.
    package var handle: AttributeHandle
    /// The new value.
    package var value: [UInt8]

    /// Creates a write of `value` to `handle`.
    package init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }
}

/// Writes an attribute's value on an unencrypted link, authenticated by a signature. There is no response.
///
///     0xD2 | handle 2 | value 0... | counter 4 | code 8
///
/// Spec: ATT_SIGNED_WRITE_CMD, Core Vol 3 Part F, 3.4.5.4; the signature: Core Vol 3 Part H, 2.4.5.
package struct ATTSignedWriteCommand: ATTPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.signedWriteCommand
    /// The length of a signature in bytes.
    package static let signatureLength = 12

    /// The handle of the attribute to write.
    package var handle: AttributeHandle
    /// The new value.
    package var value: [UInt8]
    /// The sign counter and the message authentication code, 12 bytes.
    package var signature: [UInt8]

    /// Creates a signed write.
    package init(handle: AttributeHandle, value: [UInt8], signature: [UInt8]) {
        self.handle = handle
        self.value = value
        self.signature = signature
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16(), let value = reader.array(reader.remaining - Self.signatureLength) else {
            throw Self.tooShort(reader)
        }
        self.init(handle: handle, value: value, signature: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: value.count + signature.count + 2)
        writer.u16(handle)
        writer.array(value)
        writer.array(signature)
        return writer.bytes
    }
}

/// Queues one part of a long value on the server; nothing is written yet.
///
///     0x16 | handle 2 | offset 2 | part 0...   reply: ATTPrepareWriteResponse
///
/// Spec: ATT_PREPARE_WRITE_REQ, Core Vol 3 Part F, 3.4.6.1.
package struct ATTPrepareWriteRequest: ATTRequest, ATTPreparedPartPDU {
    /// The response on success.
    package typealias Response = ATTPrepareWriteResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.prepareWriteRequest
    /// The handle of the attribute to write.
    package var handle: AttributeHandle
    /// The offset of the part in the value, in bytes.
    package var offset: UInt16
    /// The part of the value.
    package var part: [UInt8]

    /// Creates a request to queue `part` for `handle` at `offset`.
    package init(handle: AttributeHandle, offset: UInt16, part: [UInt8]) {
        self.handle = handle
        self.offset = offset
        self.part = part
    }
}

/// The response to `ATTPrepareWriteRequest`: the part as received, for verification by the client.
///
///     0x17 | handle 2 | offset 2 | part 0...
///
/// Spec: ATT_PREPARE_WRITE_RSP, Core Vol 3 Part F, 3.4.6.2.
package struct ATTPrepareWriteResponse: ATTPreparedPartPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.prepareWriteResponse
    /// The handle of the attribute to write.
    package var handle: AttributeHandle
    /// The offset of the part in the value, in bytes.
    package var offset: UInt16
    /// The part of the value.
    package var part: [UInt8]

    /// Creates a response that echoes `part` for `handle` at `offset`.
    package init(handle: AttributeHandle, offset: UInt16, part: [UInt8]) {
        self.handle = handle
        self.offset = offset
        self.part = part
    }
}

/// Writes the server's queue at once, or discards it.
///
///     0x18 | flags 1                           reply: ATTExecuteWriteResponse
///
/// Spec: ATT_EXECUTE_WRITE_REQ, Core Vol 3 Part F, 3.4.6.3.
package struct ATTExecuteWriteRequest: ATTRequest {
    /// The response on success.
    package typealias Response = ATTExecuteWriteResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.executeWriteRequest

    /// The action to take on the queue.
    package enum Action: UInt8, Hashable, Sendable {
        /// Discards all prepared writes.
        case cancel = 0
        /// Writes all prepared values.
        case write = 1
    }

    /// The action to take on the queue.
    package var action: Action

    /// Creates a request for `action`.
    package init(_ action: Action) {
        self.action = action
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let flags = reader.u8() else { throw Self.tooShort(reader) }
        guard let action = Action(rawValue: flags) else { throw Self.malformed(at: 1, .invalidField("flags")) }
        try Self.finish(reader)
        self.init(action)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] { [action.rawValue] }
}

/// The response to `ATTExecuteWriteRequest`: the action was taken.
///
///     0x19
///
/// Spec: ATT_EXECUTE_WRITE_RSP, Core Vol 3 Part F, 3.4.6.4.
package struct ATTExecuteWriteResponse: ATTEmptyPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.executeWriteResponse

    /// Creates a response.
    package init() {}
}
