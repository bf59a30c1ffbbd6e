/// Reads one value to its end, however long; or only the part from an offset on.
///
/// The first request is a plain read, or a part if an offset is given; only a value that fills its packet is followed
/// by requests for further parts. The value ends with a part that does not fill its packet, or with one of the two
/// errors that peers use for it: Invalid Offset, and Attribute Not Long for a value of exactly one packet. An endless
/// value is cut off at 512 bytes.
///
/// Where the beginning came in the response of another request, which has less room, Attribute Not Long does not mean
/// that nothing is left: such a peer refuses Read Blob Requests for a value that fits a Read Response. It is then read
/// as a whole.
///
/// A Read Blob Response does not contain its offset, so a duplicate of one is taken for the next part. If a whole part
/// equals the one before, it is requested once more at the end: a peer that is one response behind sends another one
/// by then. If the peer contradicts itself meanwhile, or that part differs, the value is read once more from the
/// beginning, by a Read Request, for whose response no part can be taken. It fails if that happens again.
///
/// Invariants
/// - `value` has no gaps: each part is requested at the end of the parts so far.
/// - It ends for every peer: a value has 512 bytes at most, every part that is requested fills its packet or is the
///   last one, and the value is requested from its beginning twice at most.
/// - One whole part at most is requested once more before the value is returned, or requested again from its
///   beginning.
///
/// Spec: Read Characteristic Value and Read Long Characteristic Values, Core Vol 3 Part G, 4.8.1 and 4.8.3.
package struct ReadLong: GATTProcedure {
    private let handle: AttributeHandle
    private let offset: UInt16
    private var mtu: UInt16
    private var value: [UInt8] = []
    private var isFirst = true
    /// Whether all that is known came in the response of another request.
    private var isContinuing = false
    private var isSecondAttempt = false
    /// The last part that came in a Read Blob Response.
    private var lastPart: [UInt8] = []
    /// A whole part that equals the one before.
    private var copy: (offset: UInt16, part: [UInt8])?
    private var isChecking = false
    private var contradictions = 0
    /// The number of contradictions when the first part came.
    private var firstContradictions: Int?

    package init(handle: AttributeHandle, from offset: UInt16 = 0, mtu: UInt16) {
        self.handle = handle
        self.offset = offset
        self.mtu = max(mtu, MTUExchange.minimum)
    }

    /// Continues a value whose beginning is known, and ends with all of it.
    package init(handle: AttributeHandle, continuing known: [UInt8], mtu: UInt16) {
        self.init(handle: handle, mtu: mtu)
        value = known
        isFirst = false
        isContinuing = true
    }

    package mutating func begin() -> GATTStep<[UInt8]> {
        .send(isFirst && offset == 0 ? ATTReadRequest(handle: handle).bytes : nextPiece.bytes)
    }

    package mutating func willReceive(mtu: UInt16) {
        self.mtu = max(mtu, MTUExchange.minimum)
    }

    package mutating func willReceive(contradictions: Int) {
        self.contradictions = contradictions
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[UInt8]> {
        .attempt { () throws(GATTFailure) in
            if isChecking { return try checked(reply) }
            if firstContradictions == nil { firstContradictions = contradictions }
            let part: [UInt8]
            if isFirst, offset == 0 {
                part = try Self.response(to: ATTReadRequest.self, in: reply).value
            } else {
                if case .error(let error) = reply, !isFirst, Self.isEnd(error.code) {
                    guard isContinuing, error.code == .attributeNotLong else { return try ended() }
                    self = ReadLong(handle: handle, mtu: mtu)
                    return begin()
                }
                part = try Self.response(to: ATTReadBlobRequest.self, in: reply).part
                isContinuing = false
                if part.count >= Int(mtu) - 1 {
                    if part == lastPart { copy = (nextOffset, part) }
                    lastPart = part
                }
            }
            isFirst = false
            if value.isEmpty { value = part } else { value += part }
            let limit = max(0, ATTLimits.valueLength - Int(offset))
            if value.count > limit { throw .valueTooLong(partial: Array(value.prefix(limit))) }
            if part.count < Int(mtu) - 1 { return try ended() }
            return .send(nextPiece.bytes)
        }
    }

    /// Called when the last part has come.
    private mutating func ended() throws(GATTFailure) -> GATTStep<[UInt8]> {
        if contradictions != firstContradictions { return try again() }
        guard let copy else { return .finished(value) }
        isChecking = true
        return .send(ATTReadBlobRequest(handle: handle, offset: copy.offset).bytes)
    }

    private mutating func checked(_ reply: ATTReply) throws(GATTFailure) -> GATTStep<[UInt8]> {
        if case .error = reply { return try again() }
        let part = try Self.response(to: ATTReadBlobRequest.self, in: reply).part
        return part == copy?.part ? .finished(value) : try again()
    }

    private mutating func again() throws(GATTFailure) -> GATTStep<[UInt8]> {
        // A read that begins with a part would accept a late one.
        guard !isSecondAttempt, offset == 0 else { throw .surplusResponse(handle) }
        self = ReadLong(handle: handle, mtu: mtu)
        isSecondAttempt = true
        return begin()
    }

    private var nextPiece: ATTReadBlobRequest {
        ATTReadBlobRequest(handle: handle, offset: nextOffset)
    }

    private var nextOffset: UInt16 { UInt16(truncatingIfNeeded: Int(offset) + value.count) }

    private static func isEnd(_ code: ATTErrorCode) -> Bool {
        code == .invalidOffset || code == .attributeNotLong
    }
}
