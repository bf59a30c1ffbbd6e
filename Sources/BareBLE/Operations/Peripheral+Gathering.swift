internal import BLECore
internal import BLELinux

// Calls that listen for what they want: the meeting of `ResponseCollector` with the link, tasks and time.

/// One such call: what it gathers, and the caller once it waits.
struct RunningCollector {
    typealias Waiter = CheckedContinuation<Result<ResponseCollector.Outcome, BLEError>, Never>

    /// What the call does, for messages.
    let operation: String
    var gathering: ResponseCollector
    /// The operation that writes the request, in its last attempt.
    var request: OperationID?
    var waiter: Waiter?
    var timer: TimerID?
    /// What ended it from outside.
    var failure: BLEError?

    var result: Result<ResponseCollector.Outcome, BLEError>? {
        if let failure { return .failure(failure) }
        return gathering.outcome.map { .success($0) }
    }
}

extension Peripheral {
    /// A request whose answer is gathered.
    struct GatheredRequest {
        let value: [UInt8]
        let characteristic: CharacteristicReference
        let kind: WriteKind
    }

    /// Listens, asks, and waits for what is wanted: one call.
    ///
    /// A subscription that is made for it is taken back when it is over; one that is there is shared.
    ///
    /// - Parameters:
    ///   - request: what is written behind listening; `nil` for nothing.
    ///   - deadline: by when the peer must listen and have confirmed the request.
    /// - Returns: What it ended with, and what was gathered.
    func gather(
        _ gathering: ResponseCollector, from source: CharacteristicReference, behind request: GatheredRequest?,
        until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> (outcome: ResponseCollector.Outcome, gathering: ResponseCollector) {
        try await calling(until: deadline, during: operation) { () async throws(BLEError) in
            lastNumber &+= 1
            let id = Subscriptions.ID(lastNumber)
            gatherings[id] = RunningCollector(operation: operation, gathering: gathering)
            defer { endGathering(id) }
            do throws(BLEError) {
                _ = try await recovering(until: deadline, during: operation) { (deadline) async throws(BLEError) in
                    try await listen(
                        to: source, as: id, into: .gathering, preferring: .notifications, sharing: nil,
                        until: deadline, during: operation)
                }
                try await ask(request, for: id, until: deadline, during: operation)
                let outcome = try await outcome(of: id)
                return (outcome, gatherings[id]?.gathering ?? gathering)
            } catch {
                let bytes = gatherings[id]?.gathering.bytes ?? []
                throw bytes.isEmpty ? error : error.carrying(bytes)
            }
        }
    }

    private func ask(
        _ request: GatheredRequest?, for id: Subscriptions.ID, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) {
        if let request {
            try await recovering(until: deadline, during: operation, repeating: .never) {
                (deadline) async throws(BLEError) in
                let handle = try await writableHandle(
                    request.characteristic, request.kind, until: deadline, during: operation)
                switch request.kind {
                case .withResponse:
                    try await writeOnce(request.value, to: handle, until: deadline, during: operation, askingFor: id)
                case .withoutResponse:
                    try await sendCommand(request.value, to: handle, until: deadline, during: operation, askingFor: id)
                }
            }
        } else {
            gatherings[id]?.gathering.asked()
        }
        gatherings[id]?.gathering.confirmed(at: loop.now())
    }

    /// The call whose request is in hand, to be written.
    var gatheringInHand: Subscriptions.ID? {
        guard let operation = client.operationInHand else { return nil }
        return gatherings.first { $0.value.request == operation }?.key
    }

    private func outcome(of id: Subscriptions.ID) async throws(BLEError) -> ResponseCollector.Outcome {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: RunningCollector.Waiter) in
                guard !Task.isCancelled, !scheduler.isClearing, let running = gatherings[id] else {
                    return waiter.resume(returning: .failure(cancellation(of: id)))
                }
                if let result = running.result { return waiter.resume(returning: result) }
                gatherings[id]?.waiter = waiter
                progress(id)
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.cancelGathering(id) }
        }
        return try result.get()
    }

    private func cancelGathering(_ id: Subscriptions.ID) {
        interruptGathering(id, with: cancellation(of: id))
    }

    private func cancellation(of id: Subscriptions.ID) -> BLEError {
        BLEError(.cancelled as OperationFailure, subject: name, during: gatherings[id]?.operation ?? "wait for values")
    }

    /// Ends them all: everything is cancelled, or the link is gone.
    func endGatherings() {
        for (id, running) in gatherings.sorted(by: { $0.key.number < $1.key.number }) {
            let operation = running.operation
            interruptGathering(id, with: end == nil ? cleared(during: operation) : endError(during: operation))
        }
    }

    /// Takes a value that came for it.
    func gather(_ value: ReceivedValue, for id: Subscriptions.ID) {
        gatherings[id]?.gathering.received(value.bytes, at: value.time)
        progress(id)
    }

    /// Ends it from outside.
    func interruptGathering(_ id: Subscriptions.ID, with error: BLEError) {
        guard let running = gatherings[id], running.result == nil else { return }
        gatherings[id]?.failure = error
        progress(id)
    }

    /// Resumes the caller when it is over, and else sees to it that time is looked at.
    private func progress(_ id: Subscriptions.ID) {
        guard let running = gatherings[id], let waiter = running.waiter else { return }
        if let result = running.result {
            gatherings[id]?.waiter = nil
            return waiter.resume(returning: result)
        }
        let deadline = running.gathering.nextDeadline
        // One that is too early stays: each value of a long answer would set and cancel one.
        if let timer = running.timer {
            if let deadline, timer.deadline <= deadline { return }
            loop.cancel(timer)
        }
        gatherings[id]?.timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { peripheral in
                    peripheral.gatherings[id]?.timer = nil
                    peripheral.gatherings[id]?.gathering.timePassed(peripheral.loop.now())
                    peripheral.progress(id)
                }
            }
        }
    }

    private func endGathering(_ id: Subscriptions.ID) {
        if let timer = gatherings.removeValue(forKey: id)?.timer { loop.cancel(timer) }
        stopListening(id)
    }
}

extension BLEError {
    /// The same failure, with what had come before it.
    func carrying(_ partial: [UInt8]) -> BLEError {
        BLEError(
            code, subject: subject, during: operation, because: reason, hint: hint, attError: attError,
            attributeHandle: attributeHandle, hciStatus: hciStatus, errorNumber: errorNumber, partialValue: partial)
    }
}
