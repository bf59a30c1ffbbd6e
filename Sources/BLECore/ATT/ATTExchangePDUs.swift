// The packets about the protocol itself: refusals, and the size of packets.

/// Refuses a request.
///
///     0x01 | request opcode 1 | handle 2 | error 1        answers any request
///
/// The handle is the one that caused the error; 0 when there is none. Peers often name another one.
///
/// Spec: ATT_ERROR_RSP, Core Vol 3 Part F, 3.4.1.1.
public struct ATTErrorResponse: ATTPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.errorResponse
    /// The request that is refused.
    public var requestOpcode: ATTOpcode
    /// The attribute that caused the error, or 0.
    public var handle: AttributeHandle
    /// Why.
    public var code: ATTErrorCode

    /// Refuses `requestOpcode`.
    public init(requestOpcode: ATTOpcode, handle: AttributeHandle, code: ATTErrorCode) {
        self.requestOpcode = requestOpcode
        self.handle = handle
        self.code = code
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let opcode = reader.u8(), let handle = reader.u16(), let code = reader.u8() else {
            throw Self.tooShort(reader)
        }
        try Self.finish(reader)
        self.init(
            requestOpcode: ATTOpcode(rawValue: opcode), handle: handle, code: ATTErrorCode(rawValue: code))
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 4)
        writer.u8(requestOpcode.rawValue)
        writer.u16(handle)
        writer.u8(code.rawValue)
        return writer.bytes
    }
}

/// Tells the peer the largest packet that the client can receive, and asks for the peer's.
///
///     0x02 | client MTU 2                      reply: ATTExchangeMTUResponse
///
/// Spec: ATT_EXCHANGE_MTU_REQ, Core Vol 3 Part F, 3.4.2.1.
public struct ATTExchangeMTURequest: ATTRequest, ATTExchangeMTUPDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTExchangeMTUResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.exchangeMTURequest
    /// The largest packet that the sender can receive, in bytes.
    public var mtu: UInt16

    /// Offers `mtu`.
    public init(mtu: UInt16) {
        self.mtu = mtu
    }
}

/// The answer to `ATTExchangeMTURequest`: the smaller of both numbers holds from now on, never less than 23.
///
///     0x03 | server MTU 2
///
/// Spec: ATT_EXCHANGE_MTU_RSP, Core Vol 3 Part F, 3.4.2.2.
public struct ATTExchangeMTUResponse: ATTExchangeMTUPDU {
    /// The packet's first byte.
    public static let opcode = ATTOpcode.exchangeMTUResponse
    /// The largest packet that the sender can receive, in bytes.
    public var mtu: UInt16

    /// Answers with `mtu`.
    public init(mtu: UInt16) {
        self.mtu = mtu
    }
}
