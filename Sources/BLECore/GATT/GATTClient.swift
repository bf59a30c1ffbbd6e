// Everything above one ATT link that is not I/O: the operations of users, and the queue of requests below them.
//
// Duties
// - An operation is one call of a user: a read, a discovery, a long write. It follows a procedure that asks one request
//   after the other; `ATTQueue` keeps one request outstanding on the link and orders those of several operations.
// - Every operation ends exactly once, with an outcome or a failure: by the peer's answers, by its own deadline, by
//   `cancel`, or by the end of the link.
// - The peer has one queue for prepared writes, so one operation that uses it runs at a time; the others wait their turn.
//   When such an operation is given up before its last answer, the peer's queue is emptied (Execute Write, cancel)
//   before the next one starts.
// - Values that the peer sends are handed on in wire order.
//
// Invariants
// - An operation has at most one request in the queue; `RunningOperation.request` names it until it has ended.
// - `prepared` is `.idle` exactly when no operation holds the peer's prepared queue and none waits for it.
// - Nothing is sent after `close` or `linkLost`.
//
// It never reads a clock and never waits: `now` comes in, bytes and results go out as actions, and `nextDeadline` says
// when to call `timePassed`.

/// The operations of one link, without a socket and without a clock.
package struct GATTClient: ~Copyable {
    /// What the owner must do, in this order.
    package enum Action: Hashable, Sendable {
        /// Resume the caller of this operation; exactly once for each.
        case finish(OperationID, Result<GATTOutcome, OperationFailure>)
        /// Hand a value to whoever listens to the handle.
        case deliver(AttributeHandle, [UInt8], ATTValueKind)
        /// Write this PDU, then call `sent`, `blocked` or `refused`.
        case send([UInt8])
        /// Close the link: it cannot be used any more.
        case close(ATTQueue.CloseReason)
    }

    enum Prepared {
        case idle
        case held(by: OperationID, waiting: [OperationID])
        case clearing(RequestID, waiting: [OperationID])
    }

    var queue: ATTQueue
    var running = OperationTable()
    var prepared = Prepared.idle
    private var lastOperation: UInt64 = 0
    var lastRequest: UInt64 = 0

    package init(limits: ATTQueue.Limits = ATTQueue.Limits()) {
        queue = ATTQueue(limits: limits)
    }

    init(queue: consuming ATTQueue) {
        self.queue = queue
    }

    /// The largest packet that may be sent now.
    package var mtu: UInt16 { queue.mtu }
    /// The numbers that bound it.
    package var limits: ATTQueue.Limits { queue.limits }
    /// The largest packet that this side takes, which is what the peer is offered.
    package var largestMTU: UInt16 { queue.limits.mtu }
    /// What happened on the link so far.
    package var statistics: ATTStatistics { queue.statistics }
    /// How many operations are unfinished.
    package var operationCount: Int { running.count }

    /// The operation whose packet the owner has in its hands, to be written.
    package var operationInHand: OperationID? {
        queue.operationInHand.flatMap { running.waiting(for: $0)?.id }
    }

    /// A number for the next operation.
    package mutating func nextID() -> OperationID {
        lastOperation &+= 1
        return OperationID(lastOperation)
    }

    // MARK: From the user

    /// Starts an operation; its end comes as `.finish`, at the latest by the deadline or the end of the link.
    package mutating func start<Procedure: GATTProcedure>(
        _ procedure: Procedure, id: OperationID, deadline: BootInstant?, at now: BootInstant,
        outcome: @escaping (Procedure.Output) -> GATTOutcome
    ) -> [Action] {
        start(RunningProcedure(procedure, deadline: deadline, outcome: outcome), id: id, at: now)
    }

    /// Starts to read a value to its end.
    package mutating func startRead(
        _ handle: AttributeHandle, id: OperationID, deadline: BootInstant?, at now: BootInstant
    ) -> [Action] {
        start(RunningRead(ReadLong(handle: handle, mtu: mtu), deadline: deadline), id: id, at: now)
    }

    private mutating func start(_ operation: RunningOperation, id: OperationID, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        guard admit(id, &actions) else { return actions }
        running.append(operation, id: id)
        if operation.usesPreparedQueue, !takePreparedQueue(id) { return actions }
        advance(id, operation.begin(), &actions, at: now)
        return actions
    }

    /// Sends a command, behind everything that was started before; it is over when the socket has taken it.
    package mutating func startCommand(
        _ pdu: [UInt8], id: OperationID, deadline: BootInstant?, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard admit(id, &actions) else { return actions }
        running.append(RunningOperation(deadline: deadline), id: id)
        advance(id, .send(pdu), &actions, at: now)
        return actions
    }

    /// Gives an operation up. Its caller is released at once; an answer that comes later is discarded.
    package mutating func cancel(_ id: OperationID, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        giveUp(id, .cancelled, &actions, at: now)
        return actions
    }

    /// Gives up the writes that go in several pieces, and of the others those to `handles` that were not sent: the peer's
    /// services have changed, and with them what handles mean.
    package mutating func servicesChanged(
        in handles: ClosedRange<AttributeHandle>, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        // The last one first, and long writes behind them: whatever goes may let a command go out that stands behind it.
        for request in queue.unsentWrites(to: handles).reversed() {
            guard let (id, _) = running.waiting(for: request) else { continue }
            giveUp(id, .servicesChanged, &actions, at: now)
        }
        for id in running.ids.reversed() where running[id]?.usesPreparedQueue == true {
            giveUp(id, .servicesChanged, &actions, at: now)
        }
        return actions
    }

    // MARK: From the link

    /// Takes one packet from the peer, as it was read.
    package mutating func received(_ pdu: [UInt8], at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.received(pdu, at: now), &actions, at: now)
        return actions
    }

    /// Tells that the last `.send` was written.
    package mutating func sent(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.sent(at: now), &actions, at: now)
        return actions
    }

    /// Tells that the last `.send` could not be written now; it comes again after `writable`.
    package mutating func blocked() {
        queue.blocked()
    }

    /// Takes back the operation that was to be sent, and keeps all of them until `release`; confirmations go out meanwhile.
    package mutating func hold() {
        queue.hold()
    }

    /// Offers operations again after `hold`.
    package mutating func release(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.release(at: now), &actions, at: now)
        return actions
    }

    /// Tells that the last `.send` can never be written; `code` is the owner's number for why.
    package mutating func refused(_ code: Int32, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.refused(code, at: now), &actions, at: now)
        return actions
    }

    /// Tells that the socket takes packets again.
    package mutating func writable(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.writable(at: now), &actions, at: now)
        return actions
    }

    /// Tells that the link went away; everything unfinished fails once.
    package mutating func linkLost(_ code: Int32, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.linkLost(code), &actions, at: now)
        failEverything(&actions)
        return actions
    }

    // MARK: From the clock

    /// When `timePassed` must be called next; `nil` while nothing waits for the time.
    package var nextDeadline: BootInstant? {
        guard let ours = running.nextDeadline else { return queue.nextDeadline }
        return queue.nextDeadline.map { min($0, ours) } ?? ours
    }

    /// Ends what has waited long enough.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        var actions: [Action] = []
        // The last one first: what goes may let a command go out that was made behind it.
        for id in running.late(at: now).reversed() { giveUp(id, .timedOut, &actions, at: now) }
        absorb(queue.timePassed(now), &actions, at: now)
        return actions
    }
}
