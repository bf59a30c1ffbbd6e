// A client that another one takes over from: its operations fail, its link goes on.

extension GATTClient {
    /// What the next owner of the link must know.
    package struct Remains: Hashable, Sendable {
        package var queue = ATTQueue.Remains()
        /// The largest packet that the peer was told that it may send.
        package var largestMTU = ATTQueue.largestMTU
        /// Whether pieces of an unfinished write may lie in the peer's queue, which whoever writes next would execute.
        package var mayHoldPreparedWrites = false

        package init() {}
    }

    /// To be asked right before the operations are failed: the procedures are told that they are given up.
    package func remains() -> Remains {
        var remains = Remains()
        remains.queue = queue.remains
        remains.largestMTU = queue.limits.mtu
        switch prepared {
        case .idle: break
        case .held(let owner, _): remains.mayHoldPreparedWrites = running[owner]?.abandoned() != nil
        case .clearing: remains.mayHoldPreparedWrites = true
        }
        return remains
    }

    /// Goes on with a link that another client has left; `resume` begins it.
    package init(limits: ATTQueue.Limits, remains: Remains, at now: BootInstant) {
        self.init(queue: ATTQueue(limits: limits, remains: remains.queue, at: now))
        // The request is given out by `resume`; until then the queue counts as being cleared, so that nobody uses it.
        if remains.mayHoldPreparedWrites { prepared = .clearing(nextRequest(), waiting: []) }
    }

    /// Sends what the peer is owed, and empties its queue of prepared writes where the last owner left something in it.
    package mutating func resume(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.resume(at: now), &actions, at: now)
        if case .clearing(let request, _) = prepared {
            let pdu = ATTExecuteWriteRequest(.cancel).bytes
            absorb(queue.enqueue(pdu, id: request, isExempt: true, at: now), &actions, at: now)
        }
        return actions
    }
}
