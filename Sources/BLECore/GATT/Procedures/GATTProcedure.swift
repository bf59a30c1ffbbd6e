/// The peer's reply to one request.
package enum ATTReply: Hashable, Sendable {
    /// The response that belongs to the request, opcode first.
    case response([UInt8])
    /// The peer refused.
    case error(ATTErrorResponse)
}

/// The next step of a procedure.
package enum GATTStep<Output: Sendable>: Sendable {
    /// Send this request and pass back its reply.
    case send([UInt8])
    /// The procedure is over.
    case finished(Output)
    /// The procedure is over, without a result. The link is still usable.
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
/// A procedure is a value. It sends one request at a time and receives the reply to exactly that one; it knows nothing
/// of the link, the time and other procedures. After `finished` or `failed` it must not be used again.
package protocol GATTProcedure: Sendable {
    associatedtype Output: Sendable

    /// Returns the first step. Called once.
    mutating func begin() -> GATTStep<Output>

    /// Called before `received` with the smallest MTU that the link has had since the request was created: a response
    /// of that size may be truncated.
    mutating func willReceive(mtu: UInt16)

    /// Called before `received` with the number of contradictions of the peer on this link: it has sent two different
    /// responses to one request, so that one of them may have been attributed to the wrong request.
    mutating func willReceive(contradictions: Int)

    /// Returns the step after the reply to the request that was sent last.
    mutating func received(_ reply: ATTReply) -> GATTStep<Output>

    /// Called instead of `received` when the caller cancels; returns a request that the peer should still receive.
    mutating func abandoned() -> [UInt8]?

    /// A Boolean value that indicates whether it uses the peer's only queue of prepared writes, so that no other such
    /// procedure may run meanwhile.
    var usesPreparedQueue: Bool { get }

    /// A Boolean value that indicates whether the last request has the peer write what it has queued. Once that was
    /// sent, only the reply to it shows whether anything was written.
    var executesPreparedQueue: Bool { get }
}

extension GATTProcedure {
    package mutating func willReceive(mtu: UInt16) {}

    package mutating func willReceive(contradictions: Int) {}

    package mutating func abandoned() -> [UInt8]? { nil }

    package var usesPreparedQueue: Bool { false }

    package var executesPreparedQueue: Bool { false }

    /// Returns the response in `reply`.
    ///
    /// - Throws: `.att` for a refusal and `.malformed` for bytes that are not a `Request.Response`.
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
    /// Returns the step of `body`; an error that it throws is the failure.
    static func attempt(_ body: () throws(GATTFailure) -> GATTStep) -> GATTStep {
        do {
            return try body()
        } catch {
            return .failed(error)
        }
    }
}
