/// Reads one value to its end, however long; or only what is behind an offset.
///
/// The first request is a plain read, or a piece where an offset is given; only a value that fills its packet is asked
/// for further pieces. The end shows as a piece that does not fill its packet, or as one of the two errors by which
/// peers say that nothing is left: Invalid Offset, and Attribute Not Long for a value of exactly one packet. A peer
/// that goes on for ever is left at 512 bytes.
///
/// Spec: Read Characteristic Value and Read Long Characteristic Values, Core Vol 3 Part G, 4.8.1 and 4.8.3.
package struct ReadLong: GATTProcedure {
    private let handle: AttributeHandle
    private let offset: UInt16
    private var mtu: UInt16
    private var value: [UInt8] = []
    private var isFirst = true

    package init(handle: AttributeHandle, from offset: UInt16 = 0, mtu: UInt16) {
        self.handle = handle
        self.offset = offset
        self.mtu = max(mtu, MTUExchange.minimum)
    }

    /// Goes on with a value of which the beginning is known, and ends with all of it.
    package init(handle: AttributeHandle, continuing known: [UInt8], mtu: UInt16) {
        self.init(handle: handle, mtu: mtu)
        value = known
        isFirst = false
    }

    package mutating func begin() -> GATTStep<[UInt8]> {
        .send(isFirst && offset == 0 ? ATTReadRequest(handle: handle).bytes : nextPiece.bytes)
    }

    package mutating func willReceive(mtu: UInt16) {
        self.mtu = max(mtu, MTUExchange.minimum)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[UInt8]> {
        .attempt { () throws(GATTFailure) in
            let part: [UInt8]
            if isFirst, offset == 0 {
                part = try Self.response(to: ATTReadRequest.self, in: reply).value
            } else {
                if case .error(let error) = reply, !isFirst, Self.isEnd(error.code) { return .finished(value) }
                part = try Self.response(to: ATTReadBlobRequest.self, in: reply).part
            }
            isFirst = false
            if value.isEmpty { value = part } else { value += part }
            let limit = max(0, GATTLimits.value - Int(offset))
            if value.count > limit { throw .valueTooLong(partial: Array(value.prefix(limit))) }
            if part.count < Int(mtu) - 1 { return .finished(value) }
            return .send(nextPiece.bytes)
        }
    }

    private var nextPiece: ATTReadBlobRequest {
        ATTReadBlobRequest(handle: handle, offset: UInt16(truncatingIfNeeded: Int(offset) + value.count))
    }

    private static func isEnd(_ code: ATTErrorCode) -> Bool {
        code == .invalidOffset || code == .attributeNotLong
    }
}

/// What the specification allows an attribute to be.
package enum GATTLimits {
    /// The largest value in bytes. Spec: Core Vol 3 Part F, 3.2.9.
    package static let value = 512
}
