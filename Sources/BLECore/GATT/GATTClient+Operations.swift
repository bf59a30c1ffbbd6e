// The life of one operation: admitted, step by step through its requests, ended once.

extension GATTClient {
    /// Answers whether there is room for another operation; one that finds none ends at once.
    mutating func admit(_ id: OperationID, _ actions: inout [Action]) -> Bool {
        if queue.isClosed {
            actions.append(.finish(id, .failure(.linkLost)))
            return false
        }
        guard running.count < queue.limits.operations else {
            queue.statistics.refusedByFullQueue += 1
            actions.append(.finish(id, .failure(.queueFull(limit: queue.limits.operations))))
            return false
        }
        return true
    }

    mutating func advance(
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

    mutating func nextRequest() -> RequestID {
        lastRequest &+= 1
        return RequestID(lastRequest)
    }

    mutating func absorb(_ queued: consuming ATTActions, _ actions: inout [Action], at now: BootInstant) {
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
        if case .clearing(request, let waiting) = prepared {
            return passPreparedQueue(to: waiting, &actions, at: now)
        }
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
        releasePreparedQueue(id, &actions, at: now)
    }

    /// Ends an operation before its procedure does, and clears up behind it.
    mutating func giveUp(
        _ id: OperationID, _ failure: OperationFailure, _ actions: inout [Action], at now: BootInstant
    ) {
        guard let operation = running.remove(id) else { return }
        actions.append(.finish(id, .failure(failure)))
        let clearing = holdsPreparedQueue(id) ? operation.abandoned() : nil
        let isLate = failure == .timedOut
        if let request = operation.request {
            absorb(queue.cancel(request, isLate: isLate, at: now), &actions, at: now)
        } else if awaitsPreparedQueue(id) {
            queue.countGivenUp(isLate: isLate)
        }
        if let clearing, case .held(_, let waiting) = prepared {
            let request = nextRequest()
            prepared = .clearing(request, waiting: waiting)
            absorb(queue.enqueue(clearing, id: request, isExempt: true, at: now), &actions, at: now)
        } else {
            releasePreparedQueue(id, &actions, at: now)
        }
    }

    /// The link is gone, or must go: nothing goes on.
    mutating func failEverything(_ actions: inout [Action]) {
        prepared = .idle
        let unfinished = running.ids
        running.removeAll()
        for id in unfinished { actions.append(.finish(id, .failure(.linkLost))) }
    }
}
