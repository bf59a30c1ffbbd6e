// The operations of users on one ATT link, and the queue of requests below them, without I/O.
//
// Duties
// - An operation is one call of a user: a read, a discovery, a long write. It follows a procedure that makes one
//   request after the other. `ATTQueue` keeps one request outstanding on the link and orders those of several
//   operations.
// - Every operation ends exactly once, with an outcome or a failure: by the peer's responses, by its own deadline, by
//   `cancel`, or by the end of the link.
// - The peer has one queue for prepared writes, so one operation that uses it runs at a time; the others wait their
//   turn. If such an operation is cancelled before its last response, the peer's queue is emptied (Execute Write,
//   cancel) before the next one starts.
// - Values that the peer sends are passed on in wire order.
// - A change of the peer's services ends the writes that may reach other attributes and can still be withdrawn: those
//   in the queue, and those that have a number and start later, because other jobs of the owner run between the two. A
//   write whose last request was sent ends by the peer's response: only the peer knows whether it was made.
//
// Invariants
// - An operation has at most one request in the queue; `RunningOperation.request` identifies it until it has ended.
// - An operation that uses the peer's prepared queue is in `prepared` from its start to its end: it holds the queue, or
//   waits for it.
// - The number of a write is given when its handle is looked up, and not before: only later changes concern it.
// - Nothing is sent after `close` or `linkLost`.
//
// It never reads a clock and never waits: `now` is passed in, bytes and results are returned as actions, and
// `nextDeadline` is the time of the next call of `timePassed`.

/// The operations of one link, without a socket and without a clock.
package struct GATTClient: ~Copyable {
    /// An action for the owner, in order.
    package typealias Action = LinkAction<OperationID, GATTOutcome, OperationFailure>

    private var queue: ATTQueue
    private var running = OperationTable()
    private var prepared = PreparedQueue()
    private var changes = ServiceChanges()
    private var lastOperation: UInt64 = 0
    private var lastRequest: UInt64 = 0

    package init(limits: ATTQueue.Limits = ATTQueue.Limits()) {
        queue = ATTQueue(limits: limits)
    }

    /// The largest packet that may be sent now.
    package var mtu: UInt16 { queue.mtu }
    /// The limits of the queue.
    package var limits: ATTQueue.Limits { queue.limits }
    /// The largest packet that this side accepts, which is the MTU offered to the peer.
    package var largestMTU: UInt16 { queue.limits.mtu }
    /// The statistics of the link.
    package var statistics: ATTStatistics { queue.statistics }
    /// The number of unfinished operations.
    package var operationCount: Int { running.count }

    /// The operation whose packet the owner is to write.
    package var operationInHand: OperationID? {
        queue.operationInHand.flatMap { running.waiting(for: $0)?.id }
    }

    /// Returns a number for the next operation. If that writes, the owner has just looked its handle up: a change of
    /// the services from now on concerns it.
    package mutating func nextID() -> OperationID {
        lastOperation &+= 1
        return OperationID(lastOperation)
    }

    // MARK: From the user

    /// Starts an operation; `.finish` reports its end, at the latest at its deadline or the end of the link.
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

    /// Sends a command, after everything that was started before; it ends when the socket has accepted it.
    package mutating func startCommand(
        _ pdu: [UInt8], id: OperationID, deadline: BootInstant?, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        guard admit(id, &actions) else { return actions }
        running.append(RunningOperation(deadline: deadline), id: id)
        advance(id, .send(pdu), &actions, at: now)
        return actions
    }

    /// Cancels an operation. Its caller is released at once; a later response is discarded.
    package mutating func cancel(_ id: OperationID, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        giveUp(id, .cancelled, &actions, at: now)
        return actions
    }

    /// Cancels the writes that take several requests and are not being executed, and those of the others to `handles`
    /// that were not sent: the peer's services have changed, and with them the meaning of handles. Those that have only
    /// a number yet end when they start.
    ///
    /// Writes that take several requests are cancelled whatever their handles: the peer may have lost what it had
    /// queued with its old services, and would confirm the execution of the rest.
    package mutating func servicesChanged(
        in handles: ClosedRange<AttributeHandle>, at now: BootInstant
    ) -> [Action] {
        var actions: [Action] = []
        queue.changeIsKnown()
        changes.add(handles, after: lastOperation)
        // The last one first, and long writes after them: a cancelled write may let a command be sent that waits after
        // it.
        for request in queue.unsentWrites(to: handles).reversed() {
            guard let (id, _) = running.waiting(for: request) else { continue }
            giveUp(id, .servicesChanged, &actions, at: now)
        }
        for id in running.ids.reversed() {
            guard let operation = running[id], operation.usesPreparedQueue, !isExecuting(operation) else { continue }
            giveUp(id, .servicesChanged, &actions, at: now)
        }
        return actions
    }

    /// Whether the peer may already have written what an operation has queued: the request for it was sent. One that
    /// waits for its turn can be withdrawn.
    private func isExecuting(_ operation: RunningOperation) -> Bool {
        guard operation.executesPreparedQueue, let request = operation.request else { return false }
        return queue.isOutstanding(request)
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

    /// Withdraws the operation that was to be sent, and keeps all of them until `release`; confirmations are sent
    /// meanwhile.
    package mutating func hold() {
        queue.hold()
    }

    /// Offers operations again after `hold`.
    package mutating func release(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.release(at: now), &actions, at: now)
        return actions
    }

    /// Reports that the last `.send` can never be written; `code` is the owner's number of the cause.
    package mutating func refused(_ code: Int32, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.refused(code, at: now), &actions, at: now)
        return actions
    }

    /// Reports that the socket accepts packets again.
    package mutating func writable(at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.writable(at: now), &actions, at: now)
        return actions
    }

    /// A Boolean value that indicates whether this side has requested an exchange of the MTU that is not over.
    package var isExchangingMTU: Bool { queue.isExchangingMTU }

    /// Takes over the MTU that the peer has requested from the server side of the link.
    package mutating func peerExchanged(_ mtu: UInt16) {
        queue.peerExchanged(mtu)
    }

    /// Reports that the link was lost; everything unfinished fails once.
    package mutating func linkLost(_ code: Int32, at now: BootInstant) -> [Action] {
        var actions: [Action] = []
        absorb(queue.linkLost(code), &actions, at: now)
        failEverything(&actions)
        return actions
    }

    // MARK: From the clock

    /// The time of the next required call of `timePassed`; `nil` if there is no deadline.
    package var nextDeadline: BootInstant? {
        guard let ours = running.nextDeadline else { return queue.nextDeadline }
        return queue.nextDeadline.map { min($0, ours) } ?? ours
    }

    /// Ends the operations whose deadlines have passed.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        var actions: [Action] = []
        // The last one first: a cancelled operation may let a command be sent that was made after it.
        for id in running.late(at: now).reversed() { giveUp(id, .timedOut, &actions, at: now) }
        absorb(queue.timePassed(now), &actions, at: now)
        return actions
    }
}

// MARK: - The life of one operation: admitted, step by step through its requests, ended once

extension GATTClient {
    /// Returns whether the limit permits another operation; one beyond it ends at once.
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
            if changes.concern(id, pdu) {
                queue.countGivenUp(isLate: false)
                return finish(id, .failure(.servicesChanged), &actions, at: now)
            }
            let request = nextRequest()
            running[id]?.queued(request, mtu: mtu)
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
        operation.requestEnded(contradictions: queue.contradictions)
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

    /// Begins the operation whose turn at the peer's prepared queue has come.
    private mutating func beginNext(_ id: OperationID?, _ actions: inout [Action], at now: BootInstant) {
        guard let id, let operation = running[id] else { return }
        advance(id, operation.begin(), &actions, at: now)
    }

    /// Ends an operation before its procedure does, and cleans up after it.
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
        // An operation that the queue ended meanwhile may have closed the link.
        if let clearing, prepared.isHeld(by: id) {
            let request = nextRequest()
            prepared.clear(with: request)
            absorb(queue.enqueue(clearing, id: request, isExempt: true, at: now), &actions, at: now)
        } else {
            beginNext(prepared.leave(id), &actions, at: now)
        }
    }

    /// Fails all operations: the link is gone, or must end.
    private mutating func failEverything(_ actions: inout [Action]) {
        prepared = PreparedQueue()
        let unfinished = running.ids
        running.removeAll()
        for id in unfinished { actions.append(.finish(id, .failure(.linkLost))) }
    }
}

// MARK: - Handing over: operations fail, the link continues

extension GATTClient {
    /// The state that the link's next owner needs.
    package struct Remains: Hashable, Sendable {
        package var queue = ATTQueue.Remains()
        /// The MTU that was offered to the peer.
        package var largestMTU = ATTQueue.largestMTU
        /// A Boolean value that indicates whether the peer's queue may hold parts of an unfinished write, which the
        /// next long write would execute.
        package var mayHoldPreparedWrites = false

        package init() {}
    }

    /// Returns the state of the link. Call it right before the operations are failed: it abandons the procedure that
    /// uses the peer's prepared queue.
    package func remains() -> Remains {
        var remains = Remains()
        remains.queue = queue.remains
        remains.largestMTU = queue.limits.mtu
        remains.mayHoldPreparedWrites =
            if let owner = prepared.owner { running[owner]?.abandoned() != nil } else { prepared.isBeingCleared }
        return remains
    }

    /// Resumes a link that another client has left; `resume` begins it.
    package init(limits: ATTQueue.Limits, remains: Remains, at now: BootInstant) {
        queue = ATTQueue(limits: limits, remains: remains.queue, at: now)
        // `resume` sends the request; until then the queue counts as being cleared, so that no operation uses it.
        if remains.mayHoldPreparedWrites { prepared.clear(with: nextRequest()) }
    }

    /// Sends what is due to the peer, and empties its queue of prepared writes if the last owner left something in it.
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

// MARK: - The unfinished operations

extension GATTClient {
    /// The unfinished operations of one link, in the order in which they were started.
    ///
    /// There are usually one or two of them and at most 64, so a linear search costs less than hashing.
    private struct OperationTable: ~Copyable {
        private var entries: [(id: OperationID, operation: RunningOperation)] = []

        var count: Int { entries.count }
        var ids: [OperationID] { entries.map { $0.id } }

        subscript(_ id: OperationID) -> RunningOperation? {
            entries.first { $0.id == id }?.operation
        }

        /// Returns the operation that waits for the end of `request`.
        func waiting(for request: RequestID) -> (id: OperationID, operation: RunningOperation)? {
            entries.first { $0.operation.request == request }
        }

        mutating func append(_ operation: RunningOperation, id: OperationID) {
            entries.append((id, operation))
        }

        mutating func remove(_ id: OperationID) -> RunningOperation? {
            guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
            return entries.remove(at: index).operation
        }

        mutating func removeAll() {
            entries.removeAll()
        }

        /// Returns the operations whose deadline has passed.
        func late(at now: BootInstant) -> [OperationID] {
            entries.compactMap { entry in
                guard let deadline = entry.operation.deadline, deadline <= now else { return nil }
                return entry.id
            }
        }

        /// The earliest deadline.
        var nextDeadline: BootInstant? {
            var next: BootInstant?
            for entry in entries {
                guard let deadline = entry.operation.deadline else { continue }
                next = next.map { min($0, deadline) } ?? deadline
            }
            return next
        }
    }
}

// MARK: - Changes of the peer's services

extension GATTClient {
    /// The changes of the peer's services, for the writes to which a number was given before and which start later.
    private struct ServiceChanges {
        /// Beyond it, the changes so far count as one of all handles between theirs.
        private static let limit = 16

        /// The changed handles, and the last number that was given before; the newest change last.
        private var changes: [(handles: ClosedRange<AttributeHandle>, last: UInt64)] = []

        mutating func add(_ handles: ClosedRange<AttributeHandle>, after last: UInt64) {
            var range = handles
            if changes.count >= Self.limit {
                for change in changes {
                    let lower = min(range.lowerBound, change.handles.lowerBound)
                    range = lower...max(range.upperBound, change.handles.upperBound)
                }
                changes = []
            }
            changes.append((range, last))
        }

        /// Returns whether `pdu`, of the operation `id`, is a write that must not be sent.
        func concern(_ id: OperationID, _ pdu: [UInt8]) -> Bool {
            // Nearly always it is later than all changes.
            guard let newest = changes.last, id.rawValue <= newest.last else { return false }
            var reader = ByteReader(pdu.span)
            guard let opcode = reader.u8(), let handle = reader.u16() else { return false }
            switch ATTOpcode(rawValue: opcode) {
            // As of those that had started, whatever the handles of its other requests are.
            case .prepareWriteRequest: return true
            case .writeRequest, .writeCommand, .signedWriteCommand:
                return changes.contains { id.rawValue <= $0.last && $0.handles.contains(handle) }
            default: return false
            }
        }
    }
}

// MARK: - The peer's prepared queue

extension GATTClient {
    /// The turns at the peer's one queue for prepared writes. What is left in it would be written by the next operation
    /// that executes it, so the operations that fill it take turns.
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

        /// Ends the turn of `id`, or its wait; returns the operation whose turn comes next.
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

        /// Continues after the request that has emptied the queue; returns the operation whose turn it is.
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
