// Our own operations: into the queue, out to the socket, and the time they may take.

extension ATTQueue {
    /// How many operations are unfinished, those included whose caller gave up while the peer thinks.
    package var count: Int {
        if case .taken = slot { waiting.count + 1 } else { waiting.count }
    }

    /// The operation whose packet the owner has in its hands; `nil` when there is none, or its caller has given up.
    package var operationInHand: RequestID? {
        if case .offered(.operation) = writing { waiting.first?.id } else { nil }
    }

    /// Takes a request or command; it is sent when its turn comes.
    ///
    /// - Parameters:
    ///   - pdu: the whole packet. Anything but a request is finished as soon as it was sent.
    ///   - id: names the caller in `.finish`, which comes exactly once.
    ///   - deadline: when the caller gives up; `nil` leaves it to the response time.
    ///   - isExempt: whether it is taken also by a full queue, because it clears up behind an operation that is over.
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
            statistics.refusedByFullQueue += 1
            actions.append(.finish(id, .failure(.queueFull)))
            return actions
        }
        let isRequest = ATTOpcode(rawValue: first).isRequest
        waiting.append(Operation(id: id, pdu: pdu, isRequest: isRequest, deadline: deadline))
        offerNext(&actions, at: now)
        return actions
    }

    /// Gives an operation up. What was not sent yet never will be; what was sent keeps its slot until the peer answers.
    ///
    /// - Parameter isLate: Whether its deadline has passed, which the owner keeps for what takes several requests.
    package mutating func cancel(_ id: RequestID, isLate: Bool = false, at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard giveUp(id, isLate ? .timedOut : .cancelled, &actions) else { return actions }
        countGivenUp(isLate: isLate)
        offerNext(&actions, at: now)
        return actions
    }

    /// Counts an operation that was given up; the owner calls it for one that had nothing in the queue yet.
    package mutating func countGivenUp(isLate: Bool) {
        if isLate { statistics.timedOut += 1 } else { statistics.cancelled += 1 }
    }

    /// The writes to `handles` that wait for their turn; none that the owner may be writing.
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

    /// Tells that the last `.send` was written.
    package mutating func sent(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard case .offered(let offer) = writing else { return actions }
        writing = .ready
        if isClosed { return actions }
        switch offer {
        case .confirmation:
            confirmationsDue -= 1
            statistics.confirmations += 1
        case .answer:
            answer = nil
            answeredPeer()
        case .operation:
            operationWasSent(&actions, at: now)
        }
        offerNext(&actions, at: now)
        return actions
    }

    /// Tells that the last `.send` could not be written now; it comes again after `writable`.
    package mutating func blocked() {
        guard case .offered(let offer) = writing else { return }
        writing = .blocked
        if case .operation = offer, let first = waiting.first, first.id == nil { waiting.removeFirst() }
    }

    /// Takes back the operation whose packet the owner has in its hands, and keeps all operations until `release`, so that the owner can
    /// read what arrived before them. Confirmations and responses to the peer go out meanwhile.
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

    /// Tells that the last `.send` can never be written: its operation fails, and what is next goes on.
    ///
    /// - Parameter code: the owner's own number for why; it comes back in `ATTFailure.unsendable`.
    package mutating func refused(_ code: Int32, at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard case .offered(let offer) = writing else { return actions }
        writing = .ready
        if isClosed { return actions }
        statistics.unsendable += 1
        switch offer {
        case .confirmation:
            confirmationsDue -= 1
        case .answer:
            answer = nil
        case .operation:
            guard !waiting.isEmpty else { break }
            if let id = waiting.removeFirst().id { actions.append(.finish(id, .failure(.unsendable(code)))) }
        }
        offerNext(&actions, at: now)
        return actions
    }

    /// Tells that the socket takes packets again.
    package mutating func writable(at now: BootInstant) -> ATTActions {
        var actions = ATTActions()
        guard case .blocked = writing else { return actions }
        writing = .ready
        offerNext(&actions, at: now)
        return actions
    }

    /// When `timePassed` must be called next; `nil` while nothing waits for the time.
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

    /// Ends what has waited long enough.
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

    /// Closes the link when the peer has been silent for too long.
    private mutating func closeIfUnanswered(_ actions: inout ATTActions, at now: BootInstant) {
        if case .taken(let request) = slot, request.end <= now { close(.responseTimeout, &actions) }
    }

    /// Hands the owner the next packet, if it can take one and there is one whose turn it is.
    mutating func offerNext(_ actions: inout ATTActions, at now: BootInstant) {
        guard case .ready = writing, !isClosed else { return }
        if confirmationsDue > 0 {
            writing = .offered(.confirmation)
            return actions.append(.send(ATTHandleValueConfirmation().bytes))
        }
        if let answer {
            writing = .offered(.answer)
            return actions.append(.send(answer))
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

    /// Requests wait for the slot. Commands do not, except for more room when the MTU is just being exchanged.
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
            slot = .taken(Outstanding(operation, end: now + limits.responseTime))
        } else {
            statistics.commandsSent += 1
            if let id = operation.id { actions.append(.finish(id, .success([]))) }
        }
    }

    /// Finishes one caller early; answers whether it was still there.
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
}

extension ATTQueue.Outstanding {
    init(_ operation: ATTQueue.Operation, end: BootInstant) {
        var reader = ByteReader(operation.pdu.span)
        opcode = ATTOpcode(rawValue: reader.u8() ?? 0)
        let parameter = reader.u16()
        switch opcode {
        case .exchangeMTURequest: (handle, offeredMTU) = (nil, parameter)
        case .executeWriteRequest: (handle, offeredMTU) = (nil, nil)
        default: (handle, offeredMTU) = (parameter, nil)
        }
        id = operation.id
        deadline = operation.deadline
        self.end = end
    }
}
