// PDUs of the protocol itself: errors and the MTU exchange.

/// Rejects a request.
///
///     0x01 | request opcode 1 | handle 2 | error 1        response to any request
///
/// The handle is that of the attribute that caused the error, or 0. Peers often send another one.
///
/// Spec: ATT_ERROR_RSP, Core Vol 3 Part F, 3.4.1.1.
package struct ATTErrorResponse: ATTPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.errorResponse
    /// The opcode of the rejected request.
    package var requestOpcode: ATTOpcode
    /// The handle of the attribute that caused the error, or 0.
    package var handle: AttributeHandle
    /// The error code.
    package var code: ATTErrorCode

    /// Creates an error response.
    package init(requestOpcode: ATTOpcode, handle: AttributeHandle, code: ATTErrorCode) {
        self.requestOpcode = requestOpcode
        self.handle = handle
        self.code = code
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let opcode = reader.u8(), let handle = reader.u16(), let code = reader.u8() else {
            throw Self.tooShort(reader)
        }
        try Self.finish(reader)
        self.init(
            requestOpcode: ATTOpcode(rawValue: opcode), handle: handle, code: ATTErrorCode(rawValue: code))
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 4)
        writer.u8(requestOpcode.rawValue)
        writer.u16(handle)
        writer.u8(code.rawValue)
        return writer.bytes
    }
}

/// Sends the client's receive MTU and requests the server's.
///
///     0x02 | client MTU 2                      reply: ATTExchangeMTUResponse
///
/// Spec: ATT_EXCHANGE_MTU_REQ, Core Vol 3 Part F, 3.4.2.1.
package struct ATTExchangeMTURequest: ATTRequest, ATTExchangeMTUPDU {
    /// The response on success.
    package typealias Response = ATTExchangeMTUResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.exchangeMTURequest
    /// The maximum PDU size that the sender can receive, in bytes.
    package var mtu: UInt16

    /// Creates a request.
    package init(mtu: UInt16) {
        self.mtu = mtu
    }
}

/// The response to `ATTExchangeMTURequest`. The smaller of both values, but at least 23, becomes the MTU of the link.
///
///     0x03 | server MTU 2
///
/// Spec: ATT_EXCHANGE_MTU_RSP, Core Vol 3 Part F, 3.4.2.2.
package struct ATTExchangeMTUResponse: ATTExchangeMTUPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.exchangeMTUResponse
    /// The maximum PDU size that the sender can receive, in bytes.
    package var mtu: UInt16

    /// Creates a response.
    package init(mtu: UInt16) {
        self.mtu = mtu
    }
}
