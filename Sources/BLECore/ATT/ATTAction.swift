/// Names one operation of one link, so that its caller can be found again. The caller chooses it; it may use
/// a number again once it is finished.
package struct RequestID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// Why an operation ended without the answer it asked for.
package enum ATTFailure: Error, Hashable, Sendable {
    /// The peer answered with an Error Response. The link goes on.
    case refused(ATTErrorResponse)
    /// The peer's answer is not what its opcode promises. The link goes on.
    case malformed(MalformedPacket)
    /// The caller's own deadline passed. The link goes on; the peer may still act on the request.
    case timedOut
    /// The caller gave up. The link goes on; the peer may still act on the request.
    case cancelled
    /// Too many operations wait already; this one was not taken.
    case queueFull
    /// The packet is longer than the MTU, which is the number here; it was not sent.
    case tooLong(mtu: UInt16)
    /// The system refused the packet for good; the number is the owner's own, such as an errno. The link goes on.
    case unsendable(Int32)
    /// The link ended before the answer came.
    case closed(ATTQueue.CloseReason)
}

extension ATTQueue {
    /// Why a link can no longer be used.
    package enum CloseReason: Hashable, Sendable {
        /// The peer left a request unanswered for 30 s.
        case responseTimeout
        /// The peer sent answers that nobody asked for.
        case unexplainedResponses
        /// The peer sent an answer longer than both sides agreed to.
        case oversizedResponse
        /// The peer sent too many notifications or indications without a handle.
        case shortValues
        /// The peer sent indications without waiting for their confirmation.
        case overlappingIndications
        /// The peer sent requests without waiting for their answer.
        case overlappingRequests
        /// The link went away by itself; the number is the driver's own, such as an errno.
        case linkLost(Int32)

        /// A plain sentence for people.
        package var sentence: String {
            switch self {
            case .responseTimeout: "The device did not answer a request in time."
            case .unexplainedResponses: "The device sent answers that nobody asked for."
            case .oversizedResponse: "The device sent an answer longer than agreed."
            case .shortValues: "The device sent too many notifications that are too short to be any."
            case .overlappingIndications: "The device sent indications without waiting for their confirmation."
            case .overlappingRequests: "The device sent requests without waiting for their answer."
            case .linkLost: "The connection was lost."
            }
        }
    }
}

/// How a value came that nobody asked for.
package enum ATTValueKind: Hashable, Sendable {
    /// By a Handle Value Notification, alone or together with others.
    case notification
    /// By a Handle Value Indication, which the queue confirms.
    case indication
}

/// What the owner of the link has to do, in this order.
package enum ATTAction: Hashable, Sendable {
    /// Resumes the caller, exactly once for each id. The bytes are the whole response PDU, empty for a command.
    case finish(RequestID, Result<[UInt8], ATTFailure>)
    /// Hands a value to whoever listens to the handle.
    case deliver(AttributeHandle, [UInt8], ATTValueKind)
    /// Writes one PDU, then calls `sent`, `blocked` or `refused`. Always the last action.
    case send([UInt8])
    /// Closes the link; everything waiting has been finished. Always the last action.
    case close(ATTQueue.CloseReason)
}

/// A few actions. Two fit without an allocation, which is all that an answer takes: its caller and the next request.
package struct ATTActions: Sequence, IteratorProtocol, Hashable, Sendable {
    private var first: ATTAction?
    private var second: ATTAction?
    private var others: [ATTAction] = []

    package init() {}

    package var isEmpty: Bool { first == nil }

    package mutating func append(_ action: ATTAction) {
        if first == nil {
            first = action
        } else if second == nil {
            second = action
        } else {
            others.append(action)
        }
    }

    /// Takes the first one out.
    package mutating func next() -> ATTAction? {
        guard let action = first.take() else { return nil }
        first = second.take()
        if !others.isEmpty { second = others.removeFirst() }
        return action
    }
}
