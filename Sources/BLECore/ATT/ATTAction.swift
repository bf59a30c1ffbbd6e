/// Identifies one operation of one link for its caller. The caller chooses the number; it may reuse one once it is
/// finished.
package struct RequestID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// The reason that an operation ended without a response.
package enum ATTFailure: Error, Hashable, Sendable {
    /// The peer sent an Error Response. The link is still usable.
    case refused(ATTErrorResponse)
    /// The peer's response violates its format. The link is still usable.
    case malformed(MalformedPacket)
    /// The caller's own deadline passed. The link is still usable; the peer may still execute the request.
    case timedOut
    /// The caller cancelled. The link is still usable; the peer may still execute the request.
    case cancelled
    /// The limit of waiting operations was reached; this one was not accepted.
    case queueFull
    /// The packet is longer than the MTU, which is the number here; it was not sent.
    case tooLong(mtu: UInt16)
    /// The system refused the packet permanently; the number is the owner's own, such as an errno. The link is still
    /// usable.
    case unsendable(Int32)
    /// The link ended before the response came.
    case closed(ATTQueue.CloseReason)
}

extension ATTQueue {
    /// The reason that a link can no longer be used.
    package enum CloseReason: Hashable, Sendable {
        /// The peer did not respond to a request for 30 s.
        case responseTimeout
        /// The peer sent unexplained responses.
        case unexplainedResponses
        /// The peer sent a response longer than the MTU.
        case oversizedResponse
        /// The peer sent too many notifications or indications without a handle.
        case truncatedValues
        /// The peer sent indications without waiting for their confirmation.
        case overlappingIndications
        /// The peer sent requests without waiting for the responses.
        case overlappingRequests
        /// The link was lost; the number is the driver's own, such as an errno.
        case linkLost(Int32)

        /// A sentence for users.
        package var sentence: String {
            switch self {
            case .responseTimeout: "The device did not respond to a request in time."
            case .unexplainedResponses: "The device sent responses without a request."
            case .oversizedResponse: "The device sent a response longer than the MTU."
            case .truncatedValues: "The device sent too many notifications that are too short."
            case .overlappingIndications: "The device sent indications without waiting for their confirmation."
            case .overlappingRequests: "The device sent requests without waiting for the responses."
            case .linkLost: "The connection was lost."
            }
        }
    }
}

/// The kind of PDU in which a value came.
package enum ATTValueKind: Hashable, Sendable {
    /// A Handle Value Notification, with one value or several.
    case notification
    /// A Handle Value Indication, which the queue confirms.
    case indication
}

/// An action for the owner of a link, in this order.
///
/// `ATTQueue` finishes requests, `GATTClient` the operations that are made of them; all else is the same for both.
package enum LinkAction<Caller, Value, Failure>: Hashable, Sendable
where Caller: Hashable & Sendable, Value: Hashable & Sendable, Failure: Error & Hashable {
    /// Resumes the caller, exactly once for each.
    case finish(Caller, Result<Value, Failure>)
    /// Delivers a value to the subscribers of the handle.
    case deliver(AttributeHandle, [UInt8], ATTValueKind)
    /// Writes one PDU, then calls `sent`, `blocked` or `refused`. Always the last action.
    case send([UInt8])
    /// Closes the link; every waiting operation has been finished. Always the last action.
    case close(ATTQueue.CloseReason)
}

/// An action of `ATTQueue`. The bytes of a finished request are the whole response PDU, empty for a command.
package typealias ATTAction = LinkAction<RequestID, [UInt8], ATTFailure>

/// A few actions. Two fit without an allocation, which is all that a response takes: its caller and the next request.
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

    /// Removes and returns the first one.
    package mutating func next() -> ATTAction? {
        guard let action = first.take() else { return nil }
        first = second.take()
        if !others.isEmpty { second = others.removeFirst() }
        return action
    }
}
