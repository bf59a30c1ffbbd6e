// The attribute channel of one link, as single requests with single responses.
//
// Duties: keeps one request outstanding, sends everything in the order in which it was enqueued, matches each response
// with its caller, ends requests that receive no response, confirms indications, responds to the peer's own requests,
// and keeps the MTU. It does not interpret responses beyond that: their meaning, and whether a list is consistent, is
// the procedure's concern.
//
// Invariants:
// - At most one request is outstanding. Its slot is free again when the response has come, never earlier: a cancelled
//   caller leaves an orphan, and the late response to it is discarded. Otherwise it would be taken for the next
//   response.
// - 30 s after a request was sent the link closes for good. Nothing restarts that timer. Only `timePassed` checks it: a
//   response that is read late, because this process did not run, counts as in time (row O21). So the owner reads all
//   that has arrived before it reports that time has passed.
// - Every id that was enqueued is finished exactly once, also when the link ends.
// - A response has no number, so a copy of one that arrives while the next request of its kind is pending cannot be
//   distinguished from the response to that. Two measures keep this rare. The owner reads all that has arrived before
//   it writes a request (`hold`), so that a copy that has arrived finds the slot free. And responses to a request that
//   has ended are counted, because they put earlier results in doubt.
// - The owner has at most one `.send` pending. It calls `sent`, `blocked`, `hold` or `refused` before any other method.
//   Only then does the packet count as sent; until then it can be withdrawn.
// - Confirmations and responses to the peer precede this side's own operations, and their number is bounded.
//
// The owner is `GATTClient`, which belongs to the link's actor. It passes in the time, and performs the returned
// actions.

/// The attribute channel of one link, without a socket and without a clock.
///
/// Spec: Core Vol 3 Part F, 3.3.2 and 3.3.3.
package struct ATTQueue: ~Copyable {
    /// The limits of the queue, and its strictness.
    package struct Limits: Hashable, Sendable {
        /// The longest time for the peer's response before the link closes.
        package var responseTime: Duration = .seconds(30)
        /// The maximum number of unfinished operations.
        package var operations = 64
        /// The number of unexpected responses within one request that closes the link.
        package var unexplainedResponses = 3
        /// The number of notifications without a handle that closes the link.
        package var truncatedValues = 16
        /// The longest value that an attribute can have.
        package var valueLength = ATTLimits.valueLength
        /// The largest packet that this side accepts; the response to the peer's MTU request contains it.
        package var mtu: UInt16 = 517
        /// A Boolean value that indicates whether the first unexpected response closes the link.
        package var isStrict = false

        package init() {}
    }

    /// The MTU that every link begins with.
    package static let defaultMTU: UInt16 = 23
    /// The largest MTU that is of use: a value of 512 bytes fits into a Prepare Write Request.
    package static let largestMTU: UInt16 = 517
    /// The maximum number of confirmations due to a peer: one more than the specification permits.
    package static let mostConfirmationsDue = 2

    package let limits: Limits
    package private(set) var statistics = ATTStatistics()
    /// The number of responses to requests that had already ended with another response: one of the two was not meant
    /// for the request.
    package private(set) var contradictions = 0

    private var slot = Slot.free
    private var writing = Writing.ready
    /// Whether operations wait until the owner has read all that has arrived.
    private var isHeld = false
    private var waiting: [Operation] = []
    /// Whether the peer has reported a change of its services in the late response to a request that was cancelled. It
    /// does so once: the next request that uses a handle is refused here, so that its caller knows.
    private var hasUnreportedChange = false
    private var lastEnded: Ended?
    private var debts = PeerDebts()
    private var packetSize: PacketSize

    package init(limits: Limits = Limits(), mtu: UInt16 = ATTQueue.defaultMTU) {
        self.limits = limits
        packetSize = PacketSize(mtu, largest: limits.mtu)
    }

    /// The largest packet that may be sent.
    package var mtu: UInt16 { packetSize.mtu }

    /// A Boolean value that indicates whether the link has ended; nothing is sent or received any more.
    package var isClosed: Bool {
        if case .closed = slot { true } else { false }
    }
}

// MARK: - From the owner

extension ATTQueue {
    /// The number of unfinished operations, including those whose caller has given up while the peer's response is
    /// pending.
    package var count: Int {
        if case .taken = slot { waiting.count + 1 } else { waiting.count }
    }

    /// The operation whose packet the owner is to write; `nil` if there is none, or its caller has given up.
    package var operationInHand: RequestID? {
        if case .offered(.operation) = writing { waiting.first?.id } else { nil }
    }

    /// Adds a request or command; it is sent when its turn comes.
    ///
    /// - Parameters:
    ///   - pdu: The whole packet. Anything but a request is finished as soon as it was sent.
    ///   - id: Identifies the caller in `.finish`, which comes exactly once.
    ///   - deadline: The caller's deadline; `nil` for the response time alone.
    ///   - isExempt: Whether a full queue accepts it too, because it cleans up after an operation that has ended.
    package mutating func enqueue(
        _ pdu: [UInt8], id: RequestID, deadline: BootInstant? = nil, isExempt: Bool = false, at now: BootInstant
    ) -> ATTActions {
        var actions = ATTActions()
        if case .closed(let reason) = slot {
            actions.append(.finish(id, .failure(.closed(reason))))
            return actions
        }
        guard let first = pdu.first else {
            actions.append(.finish(id, .failure(.malformed(MalformedPacket("ATT PDU", at: 0, .tooShort)))))
            return actions
        }
        guard count < limits.operations || isExempt else {
            countRefused()
            actions.append(.finish(id, .failure(.queueFull)))
            return actions
        }
        let opcode = ATTOpcode(rawValue: first)
        if hasUnreportedChange, opcode.usesKnownHandle {
            hasUnreportedChange = false
            actions.append(.finish(id, .failure(Self.outOfSync(opcode, pdu))))
            return actions
        }
        waiting.append(Operation(id: id, pdu: pdu, isRequest: opcode.isRequest, deadline: deadline))
        offerNext(&actions, at: now)
        return actions
    }

    /// Cancels an operation. If it was not sent yet, it never will be; if it was sent, it keeps its slot until the peer
    /// responds.
    ///
    /// - Parameter isLate: Whether its deadline has passed. The owner keeps the deadline of operations with several
    ///   requests.
    package mutating func cancel(_ id: RequestID, isLate: Bool = false, at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard giveUp(id, isLate ? .timedOut : .cancelled, &actions) else { return actions }
        countGivenUp(isLate: isLate)
        offerNext(&actions, at: now)
        return actions
    }

    /// Counts an operation that the limit excluded; the owner calls it for one that never reached the queue.
    package mutating func countRefused() {
        statistics.refusedByFullQueue += 1
    }

    /// Counts a cancelled operation; the owner calls it for one that had nothing in the queue yet.
    package mutating func countGivenUp(isLate: Bool) {
        if isLate { statistics.timedOut += 1 } else { statistics.cancelled += 1 }
    }

    /// The owner knows that the peer's services have changed.
    package mutating func changeIsKnown() {
        hasUnreportedChange = false
        guard case .taken(var request) = slot else { return }
        request.isChangeKnown = true
        slot = .taken(request)
    }

    /// Returns the writes to `handles` that wait for their turn, without one that the owner may be writing.
    package func unsentWrites(to handles: ClosedRange<AttributeHandle>) -> [RequestID] {
        let offered = if case .offered(.operation) = writing { 1 } else { 0 }
        return waiting.dropFirst(offered).compactMap { operation in
            var reader = ByteReader(operation.pdu.span)
            guard let opcode = reader.u8(), let handle = reader.u16(), handles.contains(handle) else { return nil }
            switch ATTOpcode(rawValue: opcode) {
            case .writeRequest, .writeCommand, .signedWriteCommand: return operation.id
            default: return nil
            }
        }
    }

    /// Returns whether a request was sent and has no response yet; also for one that the owner may be writing.
    package func isOutstanding(_ id: RequestID) -> Bool {
        if case .taken(let request) = slot, request.id == id { return true }
        return operationInHand == id
    }

    /// Reports that the last `.send` was written.
    package mutating func sent(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard case .offered(let offer) = writing else { return actions }
        writing = .ready
        if isClosed { return actions }
        switch offer {
        case .confirmation:
            debts.confirmationEnded()
            statistics.confirmations += 1
        case .response:
            debts.responseEnded()
            packetSize.respondedToPeer(isExchanging: isExchangingMTU)
        case .operation:
            operationWasSent(&actions, at: now)
        }
        offerNext(&actions, at: now)
        return actions
    }

    /// Reports that the last `.send` could not be written now; it comes again after `writable`.
    package mutating func blocked() {
        guard case .offered(let offer) = writing else { return }
        writing = .blocked
        if case .operation = offer, let first = waiting.first, first.id == nil { waiting.removeFirst() }
    }

    /// Withdraws the operation whose packet the owner was to write, and keeps all operations until `release`, so that
    /// the owner can read what arrived before them. Confirmations and responses to the peer are sent meanwhile.
    package mutating func hold() {
        guard case .offered(.operation) = writing else { return }
        blocked()
        writing = .ready
        isHeld = true
    }

    /// Offers operations again after `hold`.
    package mutating func release(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        isHeld = false
        offerNext(&actions, at: now)
        return actions
    }

    /// Reports that the last `.send` can never be written: its operation fails, and the next one proceeds.
    ///
    /// - Parameter code: The owner's own number of the cause; `ATTFailure.unsendable` contains it.
    package mutating func refused(_ code: Int32, at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard case .offered(let offer) = writing else { return actions }
        writing = .ready
        if isClosed { return actions }
        statistics.unsendable += 1
        switch offer {
        case .confirmation:
            debts.confirmationEnded()
        case .response:
            debts.responseEnded()
        case .operation:
            guard !waiting.isEmpty else { break }
            if let id = waiting.removeFirst().id { actions.append(.finish(id, .failure(.unsendable(code)))) }
        }
        offerNext(&actions, at: now)
        return actions
    }

    /// Reports that the socket accepts packets again.
    package mutating func writable(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard case .blocked = writing else { return actions }
        writing = .ready
        offerNext(&actions, at: now)
        return actions
    }

    /// The time of the next required call of `timePassed`; `nil` if there is no deadline.
    package var nextDeadline: BootInstant? {
        var next: BootInstant?
        func consider(_ moment: BootInstant?) {
            guard let moment else { return }
            next = next.map { min($0, moment) } ?? moment
        }
        if case .taken(let request) = slot {
            consider(request.end)
            if request.id != nil { consider(request.deadline) }
        }
        for operation in waiting where operation.id != nil { consider(operation.deadline) }
        return next
    }

    /// Ends the operations whose deadlines have passed.
    package mutating func timePassed(_ now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        if isClosed { return actions }
        var late: [RequestID] = []
        if case .taken(let request) = slot, let id = request.id, let deadline = request.deadline, deadline <= now {
            late.append(id)
        }
        for operation in waiting {
            if let id = operation.id, let deadline = operation.deadline, deadline <= now { late.append(id) }
        }
        for id in late where giveUp(id, .timedOut, &actions) { statistics.timedOut += 1 }
        closeIfUnanswered(&actions, at: now)
        offerNext(&actions, at: now)
        return actions
    }

    /// Closes the link if the peer has not responded in time.
    private mutating func closeIfUnanswered(_ actions: inout ATTActions, at now: BootInstant) {
        if case .taken(let request) = slot, request.end <= now { close(.responseTimeout, &actions) }
    }

    /// Takes over the MTU that the peer has requested, where another machine has responded to it: both roles of a link
    /// share one MTU.
    package mutating func peerExchanged(_ mtu: UInt16) {
        packetSize.peerAsked(mtu)
        packetSize.respondedToPeer(isExchanging: isExchangingMTU)
    }

    /// Reports that the link was lost; everything unfinished fails once.
    ///
    /// - Parameter code: The owner's own number of the cause; `CloseReason.linkLost` contains it.
    package mutating func linkLost(_ code: Int32) -> ATTActions {
        var actions = ATTActions()
        if !isClosed { failEverything(.linkLost(code), &actions) }
        return actions
    }
}

// MARK: - From the peer

extension ATTQueue {
    /// Takes one packet from the peer, as it was read.
    package mutating func received(_ pdu: [UInt8], at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        if isClosed { return actions }
        guard let first = pdu.first else {
            statistics.emptyPackets += 1
            return actions
        }
        let opcode = ATTOpcode(rawValue: first)
        switch opcode.kind {
        case .response: receivedResponse(opcode, pdu, &actions)
        case .notification: receivedNotification(opcode, pdu, &actions)
        case .indication: receivedIndication(pdu, &actions)
        case .request: receivedRequest(opcode, pdu, &actions)
        case .confirmation: receivedConfirmation(&actions)
        case .command: statistics.peerCommandsIgnored += 1
        }
        offerNext(&actions, at: now)
        return actions
    }

    /// Matches a response with the outstanding request.
    private mutating func receivedResponse(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        if pdu.count > packetSize.receiveLimit {
            statistics.oversizedResponses += 1
            return close(.oversizedResponse, &actions)
        }
        guard case .taken(let request) = slot else { return receivedStray(opcode, pdu, &actions) }
        if opcode == request.opcode.response {
            return end(request, result(of: pdu, for: request), pdu, &actions)
        }
        guard opcode == .errorResponse else { return receivedStray(opcode, pdu, &actions) }
        do throws(MalformedPacket) {
            let error = try ATTErrorResponse(pdu)
            guard error.requestOpcode == request.opcode else { return receivedStray(opcode, pdu, &actions) }
            if let handle = request.handle, handle != error.handle {
                if isStale(error, pdu) { return receivedStray(opcode, pdu, &actions) }
                statistics.handleMismatches += 1
            }
            end(request, .failure(.refused(error)), pdu, &actions)
            guard error.code == .databaseOutOfSync else { return }
            refuseWaitingRequests(isReported: request.id != nil || request.isChangeKnown, &actions)
        } catch {
            if let named = Self.requestNamed(by: pdu), named != request.opcode {
                return receivedStray(opcode, pdu, &actions)
            }
            end(request, .failure(.malformed(error)), pdu, &actions)
        }
    }

    /// Whether an Error Response that names another handle than the request is a copy of one to the previous request.
    ///
    /// Some devices name wrong handles: 0, the first of a range, or the content of their buffer. Such a response is the
    /// only one that they send, so dropping it would end the link after 30 s (row T04). It counts as a copy only if it
    /// names the opcode and the handle of the request that has just ended, and either repeats the last response or
    /// comes from a peer that has sent responses twice on this link before (row T33).
    private func isStale(_ error: ATTErrorResponse, _ pdu: [UInt8]) -> Bool {
        guard let lastEnded, lastEnded.opcode == error.requestOpcode, lastEnded.handle == error.handle else {
            return false
        }
        return lastEnded.response == pdu || statistics.duplicatedResponses > 0
    }

    /// Refuses requests that were made before a change was known here. The peer takes the next request as a sign that
    /// the client knows the change, and would execute it on a handle that may now belong to another attribute.
    ///
    /// Spec: Core Vol 3 Part G, 2.5.2.1.
    ///
    /// - Parameter isReported: Whether a caller has received the peer's error. Where none does, the next request is
    ///   refused too.
    private mutating func refuseWaitingRequests(isReported: Bool, _ actions: inout ATTActions) {
        var kept: [Operation] = []
        hasUnreportedChange = !isReported
        for operation in waiting {
            let opcode = ATTOpcode(rawValue: operation.pdu.first ?? 0)
            guard operation.isRequest, opcode != .exchangeMTURequest, opcode != .executeWriteRequest else {
                kept.append(operation)
                continue
            }
            guard let id = operation.id else { continue }
            hasUnreportedChange = false
            actions.append(.finish(id, .failure(Self.outOfSync(opcode, operation.pdu))))
        }
        waiting = kept
    }

    /// The failure of a request that is refused in the peer's place.
    private static func outOfSync(_ opcode: ATTOpcode, _ pdu: [UInt8]) -> ATTFailure {
        var reader = ByteReader(pdu.span)
        let handle = reader.skip(1) ? reader.u16() : nil
        return .refused(ATTErrorResponse(requestOpcode: opcode, handle: handle ?? 0, code: .databaseOutOfSync))
    }

    /// Evaluates the one response that concerns the queue itself, and passes on all others.
    private mutating func result(
        of pdu: [UInt8], for request: Outstanding
    ) -> Result<[UInt8], ATTFailure> {
        guard let offered = request.offeredMTU else { return .success(pdu) }
        do throws(MalformedPacket) {
            packetSize.exchanged(offered, try ATTExchangeMTUResponse(pdu).mtu)
            return .success(pdu)
        } catch {
            return .failure(.malformed(error))
        }
    }

    /// Frees the slot and finishes its caller, unless it has given up.
    private mutating func end(
        _ request: Outstanding, _ result: Result<[UInt8], ATTFailure>, _ pdu: [UInt8], _ actions: inout ATTActions
    ) {
        if case .failure(.malformed) = result { statistics.malformedResponses += 1 }
        slot = .free
        lastEnded = Ended(opcode: request.opcode, handle: request.handle, response: pdu)
        if request.offeredMTU != nil { packetSize.agree() }
        guard let id = request.id else {
            statistics.lateResponses += 1
            return
        }
        statistics.responses += 1
        actions.append(.finish(id, result))
    }

    /// Drops an unexpected response, or closes the link because of it.
    private mutating func receivedStray(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        if isKnownStray(opcode, pdu) {
            statistics.knownStrays += 1
            if let lastEnded, lastEnded.fits(opcode, pdu) {
                statistics.duplicatedResponses += 1
                if lastEnded.response != pdu { contradictions += 1 }
            }
        } else {
            statistics.unexplainedResponses += 1
            if case .taken(var request) = slot {
                request.unexplainedResponses += 1
                slot = .taken(request)
                if request.unexplainedResponses >= limits.unexplainedResponses {
                    return close(.unexplainedResponses, &actions)
                }
            }
        }
        if limits.isStrict { close(.unexplainedResponses, &actions) }
    }

    /// Whether existing devices are known to send this unexpectedly, without harm.
    private func isKnownStray(_ opcode: ATTOpcode, _ pdu: [UInt8]) -> Bool {
        if opcode == .exchangeMTUResponse, packetSize.isExchanged { return true }
        if opcode == .errorResponse {
            guard let named = Self.requestNamed(by: pdu) else { return false }
            if named.isCommand { return true }
        }
        return lastEnded?.isFollowed(by: opcode, pdu) ?? false
    }

    /// The request opcode in an Error Response, also if the rest of it is malformed.
    private static func requestNamed(by pdu: [UInt8]) -> ATTOpcode? {
        pdu.dropFirst().first.map { ATTOpcode(rawValue: $0) }
    }

    private mutating func receivedNotification(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        guard opcode == .multipleHandleValueNotification else {
            if let value = value(of: pdu, &actions) {
                statistics.notifications += 1
                actions.append(.deliver(value.handle, value.value, .notification))
            }
            return
        }
        guard pdu.count <= packetSize.receiveLimit else {
            statistics.oversizedValues += 1
            return
        }
        do throws(MalformedPacket) {
            for entry in try ATTMultipleHandleValueNotification(pdu).entries where isDeliverable(entry) {
                statistics.notifications += 1
                actions.append(.deliver(entry.handle, entry.value, .notification))
            }
        } catch {
            statistics.malformedLists += 1
        }
    }

    /// Delivers an indication and queues its confirmation, also if the value is malformed: the peer waits for it.
    private mutating func receivedIndication(_ pdu: [UInt8], _ actions: inout ATTActions) {
        if debts.confirmations > 0 {
            statistics.overlappingIndications += 1
            if limits.isStrict || debts.confirmations >= Self.mostConfirmationsDue {
                return close(.overlappingIndications, &actions)
            }
        }
        let value = value(of: pdu, &actions)
        if isClosed { return }
        if let value {
            statistics.indications += 1
            actions.append(.deliver(value.handle, value.value, .indication))
        }
        debts.oweConfirmation()
    }

    private mutating func receivedConfirmation(_ actions: inout ATTActions) {
        statistics.strayConfirmations += 1
        if limits.isStrict { close(.unexplainedResponses, &actions) }
    }

    /// Responds to the peer's own request: to an MTU request with this side's MTU, to all others with an error.
    private mutating func receivedRequest(_ opcode: ATTOpcode, _ pdu: [UInt8], _ actions: inout ATTActions) {
        if debts.response != nil { return close(.overlappingRequests, &actions) }
        var code = ATTErrorCode.requestNotSupported
        if opcode == .exchangeMTURequest {
            do throws(MalformedPacket) {
                let request = try ATTExchangeMTURequest(pdu)
                statistics.peerMTURequests += 1
                packetSize.peerAsked(request.mtu)
                debts.owe(ATTExchangeMTUResponse(mtu: limits.mtu).bytes)
                return
            } catch {
                code = .invalidPDU
            }
        }
        statistics.peerRequestsRefused += 1
        debts.owe(ATTErrorResponse(requestOpcode: opcode, handle: 0, code: code).bytes)
    }

    /// The handle and value of a notification or indication, if both are present and within the agreed size.
    private mutating func value(
        of pdu: [UInt8], _ actions: inout ATTActions
    ) -> ATTMultipleHandleValueNotification.Entry? {
        var reader = ByteReader(pdu.span)
        guard reader.skip(1), let handle = reader.u16() else {
            statistics.truncatedValues += 1
            if statistics.truncatedValues >= limits.truncatedValues { close(.truncatedValues, &actions) }
            return nil
        }
        guard pdu.count <= packetSize.receiveLimit else {
            statistics.oversizedValues += 1
            return nil
        }
        let value = ATTMultipleHandleValueNotification.Entry(handle: handle, value: reader.rest())
        return isDeliverable(value) ? value : nil
    }

    private mutating func isDeliverable(_ value: ATTMultipleHandleValueNotification.Entry) -> Bool {
        if value.handle == 0 {
            statistics.valuesWithoutHandle += 1
            return false
        }
        if value.value.count > limits.valueLength {
            statistics.oversizedValues += 1
            return false
        }
        return true
    }
}

// MARK: - Sending

extension ATTQueue {
    /// Passes the next packet to the owner, if the owner can take one and one is due.
    private mutating func offerNext(_ actions: inout ATTActions, at now: BootInstant) {
        guard case .ready = writing, !isClosed else { return }
        if debts.confirmations > 0 {
            writing = .offered(.confirmation)
            return actions.append(.send(ATTHandleValueConfirmation().bytes))
        }
        if let response = debts.response {
            writing = .offered(.response)
            return actions.append(.send(response))
        }
        if isHeld { return }
        while let operation = waiting.first {
            if mustWait(operation) { return }
            if let failure = reasonNotToSend(operation, at: now) {
                waiting.removeFirst()
                if let id = operation.id { actions.append(.finish(id, .failure(failure))) }
                continue
            }
            writing = .offered(.operation)
            return actions.append(.send(operation.pdu))
        }
    }

    /// A Boolean value that indicates whether this side's own exchange of the MTU is pending.
    package var isExchangingMTU: Bool {
        if case .taken(let request) = slot { request.offeredMTU != nil } else { false }
    }

    /// Whether an operation must wait. Requests wait for the slot. Commands do not, except those that need the larger
    /// MTU of a pending exchange.
    private func mustWait(_ operation: Operation) -> Bool {
        guard case .taken(let request) = slot else { return false }
        return operation.isRequest || request.offeredMTU != nil && operation.pdu.count > Int(mtu)
    }

    private mutating func reasonNotToSend(_ operation: Operation, at now: BootInstant) -> ATTFailure? {
        if let deadline = operation.deadline, deadline <= now {
            statistics.timedOut += 1
            return .timedOut
        }
        return operation.pdu.count > Int(mtu) ? .tooLong(mtu: mtu) : nil
    }

    private mutating func operationWasSent(_ actions: inout ATTActions, at now: BootInstant) {
        guard !waiting.isEmpty else { return }
        let operation = waiting.removeFirst()
        if operation.isRequest {
            statistics.requestsSent += 1
            slot = .taken(Self.outstanding(operation, until: now + limits.responseTime))
        } else {
            statistics.commandsSent += 1
            if let id = operation.id { actions.append(.finish(id, .success([]))) }
        }
    }

    private static func outstanding(_ operation: Operation, until end: BootInstant) -> Outstanding {
        var reader = ByteReader(operation.pdu.span)
        let opcode = ATTOpcode(rawValue: reader.u8() ?? 0)
        let parameter = reader.u16()
        let (handle, offeredMTU): (AttributeHandle?, UInt16?) =
            switch opcode {
            case .exchangeMTURequest: (nil, parameter)
            case .executeWriteRequest: (nil, nil)
            default: (parameter, nil)
            }
        return Outstanding(
            id: operation.id, opcode: opcode, handle: handle, offeredMTU: offeredMTU, deadline: operation.deadline,
            end: end)
    }

    /// Finishes one caller early; returns whether it was still pending.
    private mutating func giveUp(_ id: RequestID, _ failure: ATTFailure, _ actions: inout ATTActions) -> Bool {
        if case .taken(var request) = slot, request.id == id {
            request.id = nil
            slot = .taken(request)
        } else if let index = waiting.firstIndex(where: { $0.id == id }) {
            if index == 0, case .offered(.operation) = writing {
                waiting[index].id = nil
            } else {
                waiting.remove(at: index)
            }
        } else {
            return false
        }
        actions.append(.finish(id, .failure(failure)))
        return true
    }

    /// Fails everything once, and sends or accepts nothing from then on.
    private mutating func close(_ reason: CloseReason, _ actions: inout ATTActions) {
        if isClosed { return }
        failEverything(reason, &actions)
        actions.append(.close(reason))
    }

    private mutating func failEverything(_ reason: CloseReason, _ actions: inout ATTActions) {
        if case .taken(let request) = slot, let id = request.id {
            actions.append(.finish(id, .failure(.closed(reason))))
        }
        for operation in waiting {
            if let id = operation.id { actions.append(.finish(id, .failure(.closed(reason)))) }
        }
        slot = .closed(reason)
        waiting = []
        debts = PeerDebts()
    }
}

// MARK: - Taking over

// The state that a queue passes to the next one on the same link: the link continues, with the request that the peer
// has not responded to, the confirmations and the response due to the peer, and the MTU. Its callers do not continue:
// their requests fail before.

extension ATTQueue {
    /// The state of a link between two owners.
    package struct Remains: Hashable, Sendable {
        /// A request that was sent and has no response yet.
        package struct Unanswered: Hashable, Sendable {
            package var opcode: ATTOpcode
            package var handle: AttributeHandle?
            package var offeredMTU: UInt16?
            /// The end of the peer's response time.
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
        /// The response to the peer's own request that could not be written yet.
        package var response: [UInt8]?

        package init() {}
    }

    /// The time for reading a response that arrived between two owners.
    private static let readingTime: Duration = .seconds(1)

    /// The state that the link's next owner needs.
    package var remains: Remains {
        var remains = Remains()
        packetSize.write(to: &remains)
        if case .taken(let request) = slot {
            remains.unanswered = Remains.Unanswered(
                opcode: request.opcode, handle: request.handle, offeredMTU: request.offeredMTU, end: request.end)
        }
        remains.confirmationsDue = UInt8(clamping: debts.confirmations)
        remains.response = debts.response
        return remains
    }

    /// Resumes a link that another queue has left.
    ///
    /// The slot of an outstanding request stays occupied until the late response has come, which is dropped. The peer
    /// has the rest of its time, but at least a second: the response may have been waiting to be read.
    package init(limits: Limits, remains: Remains, at now: BootInstant) {
        self.init(limits: limits, mtu: remains.mtu)
        packetSize = PacketSize(remains, largest: limits.mtu)
        debts = PeerDebts(
            confirmations: min(Int(remains.confirmationsDue), Self.mostConfirmationsDue), response: remains.response)
        guard let request = remains.unanswered else { return }
        let end = max(min(request.end, now + limits.responseTime), now + Self.readingTime)
        slot = .taken(
            Outstanding(
                id: nil, opcode: request.opcode, handle: request.handle, offeredMTU: request.offeredMTU, deadline: nil,
                end: end))
    }

    /// Sends what was already due to the peer; the first method to be called after that initializer.
    package mutating func resume(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        offerNext(&actions, at: now)
        return actions
    }
}

// MARK: - States

extension ATTQueue {
    /// The slot of the one outstanding request.
    private enum Slot {
        case free
        case taken(Outstanding)
        case closed(CloseReason)
    }

    /// A request that was sent.
    private struct Outstanding {
        /// The caller; `nil` once it has given up.
        var id: RequestID?
        let opcode: ATTOpcode
        /// The handle that an Error Response should name.
        let handle: AttributeHandle?
        /// The offered MTU, if this is an MTU request.
        let offeredMTU: UInt16?
        /// The caller's deadline.
        let deadline: BootInstant?
        /// The time at which the link closes.
        let end: BootInstant
        var unexplainedResponses = 0
        /// Whether the owner has learned since that the peer's services have changed.
        var isChangeKnown = false
    }

    /// The request that ended last.
    private struct Ended {
        let opcode: ATTOpcode
        let handle: AttributeHandle?
        /// The peer's response.
        let response: [UInt8]

        /// Whether a packet could be another response to it.
        func isFollowed(by other: ATTOpcode, _ pdu: [UInt8]) -> Bool {
            other == .errorResponse ? ATTQueue.requestNamed(by: pdu) == opcode : other == opcode.response
        }

        /// Whether a packet could be another response to it, except for the one response that devices are known to send
        /// twice without harm: no further response to its request is expected.
        func fits(_ other: ATTOpcode, _ pdu: [UInt8]) -> Bool {
            opcode != .exchangeMTURequest && isFollowed(by: other, pdu)
        }
    }

    /// A request or command that was not sent yet.
    private struct Operation {
        /// The caller; `nil` if it gave up while the owner was to write the packet.
        var id: RequestID?
        let pdu: [UInt8]
        let isRequest: Bool
        let deadline: BootInstant?
    }

    /// Whether a packet is being written.
    private enum Writing {
        case ready
        /// The owner has the packet and has not reported the result yet.
        case offered(Offer)
        /// The owner could not write, and will report when it can.
        case blocked
    }

    /// The packet that the owner is to write.
    private enum Offer {
        case confirmation
        case response
        /// The first of `waiting`.
        case operation
    }

    /// The packets due to the peer: a number of confirmations, and at most one response.
    private struct PeerDebts {
        private(set) var confirmations = 0
        private(set) var response: [UInt8]?

        init() {}

        init(confirmations: Int, response: [UInt8]?) {
            self.confirmations = confirmations
            self.response = response
        }

        mutating func oweConfirmation() { confirmations += 1 }

        mutating func owe(_ response: [UInt8]) { self.response = response }

        /// Called when a confirmation was sent, or never can be.
        mutating func confirmationEnded() { confirmations -= 1 }

        /// Called when the response was sent, or never can be.
        mutating func responseEnded() { response = nil }
    }

    /// The MTU. Each side may request an exchange once. If both do, the smallest of all values applies once both
    /// exchanges are over. A peer that has received this side's value may use it at once, so the larger size is
    /// accepted before it is sent.
    private struct PacketSize {
        /// The largest packet that may be sent.
        private(set) var mtu: UInt16
        private var received: UInt16
        /// The MTU that this side offers in its response.
        private let largest: UInt16
        /// The result of this side's own exchange.
        private var exchanged: UInt16?
        /// The MTU that the peer has requested.
        private var peer: UInt16?

        init(_ mtu: UInt16, largest: UInt16) {
            self.mtu = Self.clamped(mtu)
            self.largest = largest
            received = self.mtu
        }

        init(_ remains: Remains, largest: UInt16) {
            self.init(remains.mtu, largest: largest)
            received = Self.clamped(max(remains.receiveLimit, remains.mtu))
            exchanged = remains.exchangedMTU
            peer = remains.peerMTU
        }

        func write(to remains: inout Remains) {
            remains.mtu = mtu
            remains.receiveLimit = received
            remains.exchangedMTU = exchanged
            remains.peerMTU = peer
        }

        /// The largest packet that the peer may send.
        var receiveLimit: Int { Int(received) }

        /// Whether the peer has responded to this side's exchange.
        var isExchanged: Bool { exchanged != nil }

        /// Called when the peer has responded to this side's offer; `agree` puts it into effect.
        mutating func exchanged(_ offered: UInt16, _ response: UInt16) {
            exchanged = max(min(offered, response), ATTQueue.defaultMTU)
        }

        mutating func peerAsked(_ mtu: UInt16) { peer = max(mtu, ATTQueue.defaultMTU) }

        /// Called when the response to the peer's request has been sent.
        ///
        /// - Parameter isExchanging: Whether this side's own exchange is pending.
        mutating func respondedToPeer(isExchanging: Bool) {
            if let peer { received = max(received, Self.clamped(min(peer, largest))) }
            if !isExchanging { agree() }
        }

        /// Called when this side's own exchange is over, and after the peer's if this side's is not pending.
        mutating func agree() {
            var agreed = exchanged
            if let peer {
                let theirs = min(peer, largest)
                agreed = agreed.map { min($0, theirs) } ?? theirs
            }
            guard let agreed else { return }
            mtu = Self.clamped(agreed)
            received = max(received, mtu)
        }

        private static func clamped(_ mtu: UInt16) -> UInt16 {
            min(max(mtu, defaultMTU), largestMTU)
        }
    }
}

extension ATTOpcode {
    /// Whether it requests the attribute at a handle that the client knows. A search needs none.
    fileprivate var usesKnownHandle: Bool {
        switch self {
        case .readRequest, .readBlobRequest, .readMultipleRequest, .readMultipleVariableRequest, .writeRequest,
            .prepareWriteRequest:
            true
        default: false
        }
    }
}
