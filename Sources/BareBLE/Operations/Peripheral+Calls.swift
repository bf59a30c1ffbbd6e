internal import BLECore
internal import BLELinux

// Where calls meet the gate: a caller that must wait is kept here, and released once, by its turn, its deadline, its task,
// `cancelAll()` or the end of the link.

/// The scopes that a task is in, the innermost one last; tasks that it starts are in them too.
enum CallScopes {
    @TaskLocal static var current: [OperationGate.Scope] = []

    private static let lastNumber = Lock<UInt64>(0)

    /// A scope that no link has had.
    static func next() -> OperationGate.Scope {
        OperationGate.Scope(
            number: lastNumber.withLock { number in
                number &+= 1
                return number
            })
    }
}

extension Peripheral {
    typealias GateWaiter = CheckedContinuation<Result<Void, OperationGate.Refusal>, Never>

    /// Makes a whole call when it is its turn.
    func calling<Value: Sendable>(
        until deadline: BootInstant, during operation: @autoclosure () -> String,
        _ body: () async throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        let scopes = entersFreely() ? [] : try await beginCall(until: deadline, during: operation())
        defer { endCall(scopes) }
        do {
            return try await body()
        } catch {
            throw interrupted(error, during: operation())
        }
    }

    /// What a call fails with that failed with `error`.
    func interrupted(_ error: BLEError, during operation: @autoclosure () -> String) -> BLEError {
        // While everything is cancelled an error says how it was interrupted, not why.
        guard gate.isClearing, error.code != .disconnected else { return error }
        let cleared = cleared(during: operation())
        return error.partialValue.map(cleared.carrying) ?? cleared
    }

    /// Waits for a call's turn, where the gate does not let it in freely; answers where it was made, which `endCall` wants to
    /// know.
    func beginCall(
        until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> [OperationGate.Scope] {
        let scopes = CallScopes.current
        try await enter(as: .call, from: scopes, until: deadline, during: operation)
        perform(gate.arrive(scopes))
        perform(gate.begin(from: scopes))
        return scopes
    }

    /// Lets a call in that need not wait for anybody.
    func entersFreely() -> Bool {
        takePlaces()
        return gate.enterFreely()
    }

    func endCall(_ scopes: [OperationGate.Scope]) {
        perform(gate.leave(scopes))
    }

    /// Waits until the gate lets the caller in.
    func enter(
        as entry: OperationGate.Entry, from scopes: [OperationGate.Scope], until deadline: BootInstant?,
        during operation: String
    ) async throws(BLEError) {
        takePlaces()
        lastNumber &+= 1
        let number = lastNumber
        try await wait(as: number, until: deadline, during: operation) { gate.enter(number, as: entry, from: scopes) }
    }

    /// Waits until the one with this number is admitted, unless `decide` says that it is already.
    func wait(
        as number: OperationGate.Ticket, until deadline: BootInstant?, during operation: String,
        _ decide: () -> OperationGate.Decision
    ) async throws(BLEError) {
        let timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { $0.perform($0.gate.withdraw(number, .timedOut)) }
            }
        }
        defer { timer.map(loop.cancel) }
        let result = await onLoop {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (waiter: GateWaiter) in
                    if Task.isCancelled { return waiter.resume(returning: .failure(.cancelled)) }
                    if end != nil { return waiter.resume(returning: .failure(.linkLost)) }
                    switch decide() {
                    case .admitted: waiter.resume(returning: .success(()))
                    case .refused(let refusal): waiter.resume(returning: .failure(refusal))
                    case .waits: gateWaiters[number] = waiter
                    }
                }
            } onCancel: {
                Task(executorPreference: loop) { await self.withdraw(number) }
            }
        }
        guard case .failure(let refusal) = result else { return }
        throw error(refusal, during: operation)
    }

    private func withdraw(_ number: OperationGate.Ticket) {
        perform(gate.withdraw(number, .cancelled))
    }

    /// How many calls wait for their turn; for tests.
    package var waitingCallCount: Int { gateWaiters.count }

    /// How many operations are unfinished; for tests.
    package var unfinishedCount: Int { waiters.count }

    func perform(_ actions: [OperationGate.Action]) {
        for action in actions {
            switch action {
            case .admit(let number):
                decided(number, .success(()))
            case .refuse(let number, let refusal):
                decided(number, .failure(refusal))
            }
        }
    }

    private func decided(_ number: OperationGate.Ticket, _ result: Result<Void, OperationGate.Refusal>) {
        if let waiter = gateWaiters.removeValue(forKey: number) { return waiter.resume(returning: result) }
        // The task of a turn has not come to wait yet.
        guard let index = turns.firstIndex(where: { $0.value.number == number }) else { return }
        turns.values[index].result = result
    }

    func cleared(during operation: String) -> BLEError {
        BLEError(
            .cancelled, subject: name, during: operation, because: "everything on this link was cancelled",
            hint: "The link is still up.")
    }

    func error(_ refusal: OperationGate.Refusal, during operation: String) -> BLEError {
        switch refusal {
        case .busy:
            BLEError(
                .busy, subject: name, during: operation, because: "somebody has the link alone, and lets nobody wait",
                hint: "Try again when that is over.")
        case .disconnecting:
            BLEError(
                .disconnecting, subject: name, during: operation,
                because: "this program ends the link behind what was called before")
        case .cleared: cleared(during: operation)
        case .queueFull(let limit): BLEError(.queueFull(limit: limit), subject: name, during: operation)
        case .linkLost: endError(during: operation)
        case .timedOut:
            BLEError(
                .timedOut, subject: name, during: operation, because: "its turn did not come in time",
                hint: "Somebody has the link alone, or waits to; allow more time.")
        case .cancelled: BLEError(.cancelled, subject: name, during: operation)
        }
    }
}
