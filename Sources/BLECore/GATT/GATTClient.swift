// Everything above one ATT link that is not I/O: the operations of users, and the queue of requests below them.
//
// Duties
// - An operation is one call of a user: a read, a discovery, a long write. It follows a procedure that makes one request
//   after the other; `ATTQueue` keeps one request outstanding on the link and orders those of several operations.
// - Every operation ends exactly once, with an outcome or a failure: by the peer's responses, by its own deadline, by
//   `cancel`, or by the end of the link.
// - The peer has one queue for prepared writes, so one operation that uses it runs at a time; the others wait their turn.
//   When such an operation is given up before its last response, the peer's queue is emptied (Execute Write, cancel)
//   before the next one starts.
// - Values that the peer sends are handed on in wire order.
//
// Invariants
// - An operation has at most one request in the queue; `RunningOperation.request` names it until it has ended.
// - An operation that uses the peer's prepared queue is in `prepared` from its start to its end: it holds the queue, or waits for it.
// - Nothing is sent after `close` or `linkLost`.
//
// It never reads a clock and never waits: `now` comes in, bytes and results go out as actions, and `nextDeadline` says
// when to call `timePassed`.

/// The operations of one link, without a socket and without a clock.
package struct GATTClient: ~Copyable {
    /// What the owner must do, in this order.
    package typealias Action = LinkAction<OperationID, GATTOutcome, OperationFailure>

    private var queue: ATTQueue
    private var running = OperationTable()
    private var prepared = PreparedQueue()
    private var lastOperation: UInt64 = 0
    private var lastRequest: UInt64 = 0

    package init(limits: ATTQueue.Limits = ATTQueue.Limits()) {
        queue = ATTQueue(limits: limits)
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
        if operation.usesPreparedQueue, !prepared.take(id) { return actions }
        advance(id, operation.begin(), &actions, at: now)
        return actions
    }

    /// Sends a command, after everything that was started before; it is over when the socket has taken it.
    package mutating func startCommand(
        _ pdu: [UInt8], id: OperationID, deadline: BootInstant?, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard admit(id, &actions) else { return actions }
        running.append(RunningOperation(deadline: deadline), id: id)
        advance(id, .send(pdu), &actions, at: now)
        return actions
    }

    /// Gives an operation up. Its caller is released at once; a response that comes later is discarded.
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
        // The last one first, and long writes after them: whatever goes may let a command go out that waits after it.
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

    /// Reports that the last `.send` was written.
    package mutating func sent(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.sent(at: now), &actions, at: now)
        return actions
    }

    /// Reports that the last `.send` could not be written now; it comes again after `writable`.
    package mutating func blocked() {
        queue.blocked()
    }

    /// Withdraws the operation that was to be sent, and keeps all of them until `release`; confirmations go out meanwhile.
    package mutating func hold() {
        queue.hold()
    }

    /// Offers operations again after `hold`.
    package mutating func release(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.release(at: now), &actions, at: now)
        return actions
    }

    /// Reports that the last `.send` can never be written; `code` is the owner's number for why.
    package mutating func refused(_ code: Int32, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.refused(code, at: now), &actions, at: now)
        return actions
    }

    /// Reports that the socket takes packets again.
    package mutating func writable(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.writable(at: now), &actions, at: now)
        return actions
    }

    /// Reports that the link went away; everything unfinished fails once.
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
        // The last one first: what goes may let a command go out that was made after it.
        for id in running.late(at: now).reversed() { giveUp(id, .timedOut, &actions, at: now) }
        absorb(queue.timePassed(now), &actions, at: now)
        return actions
    }
}

// MARK: - The life of one operation: admitted, step by step through its requests, ended once

extension GATTClient {
    /// Returns whether there is room for another operation; one that finds none ends at once.
    private mutating func admit(_ id: OperationID, _ actions: inout [Action]) -> Bool {
        if queue.isClosed {
            actions.append(.finish(id, .failure(.linkLost)))
            return false
        }
        guard running.count < queue.limits.operations else {
            queue.countRefused()
            actions.append(.finish(id, .failure(.queueFull(limit: queue.limits.operations))))
            return false
        }
        return true
    }

    private mutating func advance(
        _ id: OperationID, _ step: GATTStep<GATTOutcome>, _ actions: inout [Action], at now: BootInstant
    ) {
        switch step {
        case .send(let pdu):
            let request = nextRequest()
            if let operation = running[id] { (operation.request, operation.requestMTU) = (request, mtu) }
            absorb(queue.enqueue(pdu, id: request, at: now), &actions, at: now)
        case .finished(let outcome):
            finish(id, .success(outcome), &actions, at: now)
        case .failed(let failure):
            finish(id, .failure(.gatt(failure)), &actions, at: now)
        }
    }

    private mutating func nextRequest() -> RequestID {
        lastRequest &+= 1
        return RequestID(lastRequest)
    }

    private mutating func absorb(_ queued: consuming ATTActions, _ actions: inout [Action], at now: BootInstant) {
        while let action = queued.next() {
            switch action {
            case .finish(let request, let result): requestEnded(request, result, &actions, at: now)
            case .deliver(let handle, let value, let kind): actions.append(.deliver(handle, value, kind))
            case .send(let pdu): actions.append(.send(pdu))
            case .close(let reason):
                failEverything(&actions)
                actions.append(.close(reason))
            }
        }
    }

    private mutating func requestEnded(
        _ request: RequestID, _ result: Result<[UInt8], ATTFailure>, _ actions: inout [Action], at now: BootInstant
    ) {
        if prepared.isBeingCleared(by: request) { return beginNext(prepared.cleared(), &actions, at: now) }
        guard let (id, operation) = running.waiting(for: request) else { return }
        operation.request = nil
        operation.contradictions = queue.contradictions
        switch result {
        case .success(let pdu):
            advance(id, operation.received(.response(pdu), mtu: mtu), &actions, at: now)
        case .failure(.refused(let error)):
            advance(id, operation.received(.error(error), mtu: mtu), &actions, at: now)
        case .failure(.malformed(let packet)):
            giveUp(id, .gatt(.malformed(packet)), &actions, at: now)
        case .failure(.tooLong):
            giveUp(id, .gatt(.valueTooLong(partial: [])), &actions, at: now)
        case .failure(.queueFull):
            giveUp(id, .queueFull(limit: queue.limits.operations), &actions, at: now)
        case .failure(.timedOut):
            giveUp(id, .timedOut, &actions, at: now)
        case .failure(.cancelled):
            giveUp(id, .cancelled, &actions, at: now)
        case .failure(.unsendable(let code)):
            giveUp(id, .unsendable(code), &actions, at: now)
        case .failure(.closed):
            finish(id, .failure(.linkLost), &actions, at: now)
        }
    }

    private mutating func finish(
        _ id: OperationID, _ result: Result<GATTOutcome, OperationFailure>, _ actions: inout [Action],
        at now: BootInstant
    ) {
        guard running.remove(id) != nil else { return }
        actions.append(.finish(id, result))
        beginNext(prepared.leave(id), &actions, at: now)
    }

    /// Begins the operation that has got the peer's prepared queue.
    private mutating func beginNext(_ id: OperationID?, _ actions: inout [Action], at now: BootInstant) {
        guard let id, let operation = running[id] else { return }
        advance(id, operation.begin(), &actions, at: now)
    }

    /// Ends an operation before its procedure does, and clears up after it.
    private mutating func giveUp(
        _ id: OperationID, _ failure: OperationFailure, _ actions: inout [Action], at now: BootInstant
    ) {
        guard let operation = running.remove(id) else { return }
        actions.append(.finish(id, .failure(failure)))
        let clearing = prepared.isHeld(by: id) ? operation.abandoned() : nil
        let isLate = failure == .timedOut
        if let request = operation.request {
            absorb(queue.cancel(request, isLate: isLate, at: now), &actions, at: now)
        } else if prepared.isAwaited(by: id) {
            queue.countGivenUp(isLate: isLate)
        }
        // What the queue ended meanwhile may have closed the link.
        if let clearing, prepared.isHeld(by: id) {
            let request = nextRequest()
            prepared.clear(with: request)
            absorb(queue.enqueue(clearing, id: request, isExempt: true, at: now), &actions, at: now)
        } else {
            beginNext(prepared.leave(id), &actions, at: now)
        }
    }

    /// The link is gone, or must go: nothing goes on.
    private mutating func failEverything(_ actions: inout [Action]) {
        prepared = PreparedQueue()
        let unfinished = running.ids
        running.removeAll()
        for id in unfinished { actions.append(.finish(id, .failure(.linkLost))) }
    }
}

// MARK: - Taking over: operations fail, the link goes on

extension GATTClient {
    /// What the next owner of the link must know.
    package struct Remains: Hashable, Sendable {
        package var queue = ATTQueue.Remains()
        /// The largest packet that the peer was told that it may send.
        package var largestMTU = ATTQueue.largestMTU
        /// Whether pieces of an unfinished write may lie in the peer's queue, which the next one to write would execute.
        package var mayHoldPreparedWrites = false

        package init() {}
    }

    /// To be called right before the operations are failed: it gives up the procedures.
    package func remains() -> Remains {
        var remains = Remains()
        remains.queue = queue.remains
        remains.largestMTU = queue.limits.mtu
        remains.mayHoldPreparedWrites =
            if let owner = prepared.owner { running[owner]?.abandoned() != nil } else { prepared.isBeingCleared }
        return remains
    }

    /// Goes on with a link that another client has left; `resume` begins it.
    package init(limits: ATTQueue.Limits, remains: Remains, at now: BootInstant) {
        queue = ATTQueue(limits: limits, remains: remains.queue, at: now)
        // The request is given out by `resume`; until then the queue counts as being cleared, so that nobody uses it.
        if remains.mayHoldPreparedWrites { prepared.clear(with: nextRequest()) }
    }

    /// Sends what the peer is owed, and empties its queue of prepared writes where the last owner left something in it.
    package mutating func resume(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.resume(at: now), &actions, at: now)
        if let request = prepared.clearingRequest {
            let pdu = ATTExecuteWriteRequest(.cancel).bytes
            absorb(queue.enqueue(pdu, id: request, isExempt: true, at: now), &actions, at: now)
        }
        return actions
    }
}

// MARK: - The peer's prepared queue

extension GATTClient {
    /// The peer has one queue for prepared writes, and what is left in it would be written by the next one that executes it. So the
    /// operations that fill it take turns.
    private struct PreparedQueue {
        private enum State {
            case idle
            case held(by: OperationID, waiting: [OperationID])
            case clearing(RequestID, waiting: [OperationID])
        }

        private var state = State.idle

        /// The operation whose turn it is.
        var owner: OperationID? {
            if case .held(let owner, _) = state { owner } else { nil }
        }

        /// The request that empties the queue.
        var clearingRequest: RequestID? {
            if case .clearing(let request, _) = state { request } else { nil }
        }

        var isBeingCleared: Bool { clearingRequest != nil }

        func isBeingCleared(by request: RequestID) -> Bool { clearingRequest == request }

        func isHeld(by id: OperationID) -> Bool { owner == id }

        func isAwaited(by id: OperationID) -> Bool {
            switch state {
            case .idle: false
            case .held(_, let waiting), .clearing(_, let waiting): waiting.contains(id)
            }
        }

        /// Takes the queue for `id`, or makes it wait; returns whether it may begin.
        mutating func take(_ id: OperationID) -> Bool {
            switch state {
            case .idle:
                state = .held(by: id, waiting: [])
                return true
            case .held(let owner, let waiting):
                state = .held(by: owner, waiting: waiting + [id])
                return false
            case .clearing(let request, let waiting):
                state = .clearing(request, waiting: waiting + [id])
                return false
            }
        }

        /// Ends the turn of `id`, or its wait; returns the operation whose turn has come by that.
        mutating func leave(_ id: OperationID) -> OperationID? {
            switch state {
            case .idle:
                return nil
            case .held(id, let waiting):
                return pass(to: waiting)
            case .held(let owner, let waiting):
                state = .held(by: owner, waiting: waiting.filter { $0 != id })
            case .clearing(let request, let waiting):
                state = .clearing(request, waiting: waiting.filter { $0 != id })
            }
            return nil
        }

        /// Ends the turn, and keeps the others waiting until `cleared` is called.
        mutating func clear(with request: RequestID) {
            switch state {
            case .idle: state = .clearing(request, waiting: [])
            case .held(_, let waiting), .clearing(_, let waiting): state = .clearing(request, waiting: waiting)
            }
        }

        /// Goes on after the request that has emptied the queue; returns the operation whose turn it is.
        mutating func cleared() -> OperationID? {
            guard case .clearing(_, let waiting) = state else { return nil }
            return pass(to: waiting)
        }

        private mutating func pass(to waiting: [OperationID]) -> OperationID? {
            guard let next = waiting.first else {
                state = .idle
                return nil
            }
            state = .held(by: next, waiting: Array(waiting.dropFirst()))
            return next
        }
    }
}
