/// The peer's answer to one request.
package enum ATTReply: Hashable, Sendable {
    /// The response that belongs to the request, opcode first.
    case response([UInt8])
    /// The peer refused.
    case error(ATTErrorResponse)
}

/// What comes next in a procedure.
package enum GATTStep<Output: Sendable>: Sendable {
    /// Send this request and hand back its reply.
    case send([UInt8])
    /// The procedure is over.
    case finished(Output)
    /// The procedure is over, without a result. The link is as good as before.
    case failed(GATTFailure)

    func map<Other>(_ transform: (Output) -> Other) -> GATTStep<Other> {
        switch self {
        case .send(let request): .send(request)
        case .finished(let output): .finished(transform(output))
        case .failed(let failure): .failed(failure)
        }
    }
}

extension GATTStep: Equatable where Output: Equatable {}

/// An operation of several requests, each of which depends on the reply to the one before.
///
/// A procedure is a value. It asks for one request at a time and is handed the reply to exactly that one; what it does
/// not know is the link, the time and other procedures. After `finished` or `failed` it is used up.
package protocol GATTProcedure: Sendable {
    associatedtype Output: Sendable

    /// The first step. Called once.
    mutating func begin() -> GATTStep<Output>

    /// Called in front of `received` with the smallest MTU that the link had since the request was given out: an answer of
    /// that size may have been cut.
    mutating func willReceive(mtu: UInt16)

    /// Called in front of `received` with the number of times that the peer has contradicted itself on this link: it has sent two
    /// different responses to one request, so that one of them may have been taken for what it was not.
    mutating func willReceive(contradictions: Int)

    /// The step behind the reply to the request that was sent last.
    mutating func received(_ reply: ATTReply) -> GATTStep<Output>

    /// Called instead of `received` when the caller gives up; answers a request that the peer should still get.
    mutating func abandoned() -> [UInt8]?

    /// Whether it fills the peer's only queue of prepared writes, so that no other such procedure may run meanwhile.
    var usesPreparedQueue: Bool { get }
}

extension GATTProcedure {
    package mutating func willReceive(mtu: UInt16) {}

    package mutating func willReceive(contradictions: Int) {}

    package mutating func abandoned() -> [UInt8]? { nil }

    package var usesPreparedQueue: Bool { false }

    /// The response in `reply`.
    ///
    /// - Throws: `.att` for a refusal and `.malformed` for bytes that are no `Request.Response`.
    static func response<Request: ATTRequest>(
        to request: Request.Type, in reply: ATTReply
    ) throws(GATTFailure) -> Request.Response {
        switch reply {
        case .error(let error): throw GATTFailure(error)
        case .response(let pdu):
            do {
                return try Request.Response(pdu)
            } catch {
                throw .malformed(error)
            }
        }
    }
}

extension GATTStep {
    /// The step that `body` leads to; what it throws is the failure.
    static func attempt(_ body: () throws(GATTFailure) -> GATTStep) -> GATTStep {
        do {
            return try body()
        } catch {
            return .failed(error)
        }
    }
}
