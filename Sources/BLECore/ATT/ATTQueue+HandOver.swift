// What a queue leaves to the one that takes its link over: the link goes on, and with it the request that the peer thinks about,
// what the peer is owed, and the size of packets. The callers do not: their requests fail before.

extension ATTQueue {
    /// The state of a link between two owners.
    package struct Remains: Hashable, Sendable {
        /// A request that was sent and not answered.
        package struct Unanswered: Hashable, Sendable {
            package var opcode: ATTOpcode
            package var handle: AttributeHandle?
            package var offeredMTU: UInt16?
            /// When the peer's time is over.
            package var end: BootInstant

            package init(
                opcode: ATTOpcode, handle: AttributeHandle?, offeredMTU: UInt16?, end: BootInstant
            ) {
                self.opcode = opcode
                self.handle = handle
                self.offeredMTU = offeredMTU
                self.end = end
            }
        }

        package var mtu = ATTQueue.defaultMTU
        package var receiveLimit = ATTQueue.defaultMTU
        package var exchangedMTU: UInt16?
        package var peerMTU: UInt16?
        package var unanswered: Unanswered?
        package var confirmationsDue: UInt8 = 0
        /// The answer to the peer's own request that could not be written yet.
        package var answer: [UInt8]?

        package init() {}
    }

    /// How long the answer that arrived between two owners may take to be read.
    private static let readingTime: Duration = .seconds(1)

    /// What the next owner of the link must know.
    package var remains: Remains {
        var remains = Remains()
        remains.mtu = mtu
        remains.receiveLimit = receiveLimit
        remains.exchangedMTU = exchangedMTU
        remains.peerMTU = peerMTU
        if case .taken(let request) = slot {
            remains.unanswered = Remains.Unanswered(
                opcode: request.opcode, handle: request.handle, offeredMTU: request.offeredMTU, end: request.end)
        }
        remains.confirmationsDue = UInt8(clamping: confirmationsDue)
        remains.answer = answer
        return remains
    }

    /// Goes on with a link that another queue has left.
    ///
    /// The slot of an unanswered request stays taken until the late answer came, which is dropped. The peer has what was left of
    /// its time, but at least a second: the answer may have been waiting to be read for long.
    package init(limits: Limits, remains: Remains, at now: BootInstant) {
        self.init(limits: limits, mtu: remains.mtu)
        receiveLimit = Self.clamped(max(remains.receiveLimit, remains.mtu))
        exchangedMTU = remains.exchangedMTU
        peerMTU = remains.peerMTU
        confirmationsDue = min(Int(remains.confirmationsDue), Self.mostConfirmationsDue)
        answer = remains.answer
        guard let request = remains.unanswered else { return }
        let end = max(min(request.end, now + limits.responseTime), now + Self.readingTime)
        slot = .taken(
            Outstanding(
                id: nil, opcode: request.opcode, handle: request.handle, offeredMTU: request.offeredMTU, deadline: nil,
                end: end))
    }

    /// Sends what the peer was owed already; the first thing to be called behind that initializer.
    package mutating func resume(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        offerNext(&actions, at: now)
        return actions
    }
}
