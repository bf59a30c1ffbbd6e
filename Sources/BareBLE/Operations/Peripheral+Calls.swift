internal import BLECore
internal import BLELinux

// The deadlines, the cancellation and the errors of the calls that `CallScheduler` admits.

/// The scopes that a task is in, the innermost one last; tasks that it starts inherit them.
enum CallScopes {
    @TaskLocal static var current: [OperationGate.Scope] = []

    private static let lastNumber = Lock<UInt64>(0)

    /// Returns a scope that no link has used.
    static func next() -> OperationGate.Scope {
        OperationGate.Scope(
            number: lastNumber.withLock { number in
                number &+= 1
                return number
            })
    }
}

extension Peripheral {
    /// Makes a whole call when its turn comes.
    func calling<Value: Sendable>(
        _ context: CallContext, _ body: () async throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        let scopes = scheduler.enterFreely() ? [] : try await beginCall(in: context)
        defer { scheduler.callEnds(scopes) }
        do {
            return try await body()
        } catch {
            throw interrupted(error, in: context)
        }
    }

    /// Returns the error of a call that failed with `error`.
    func interrupted(_ error: BLEError, in context: CallContext) -> BLEError {
        // While everything is cancelled, a call reports its cancellation and not the underlying error.
        guard scheduler.isClearing, error.code != .disconnected else { return error }
        let cleared = cleared(during: context.operation)
        return error.partialValue.map(cleared.carrying) ?? cleared
    }

    /// Waits for a call's turn if it is not admitted freely. Returns the scopes in which it was made, for
    /// `CallScheduler.callEnds`.
    func beginCall(
        in context: CallContext
    ) async throws(BLEError) -> [CallScheduler.Scope] {
        let scopes = CallScopes.current
        try await enter(as: .call, from: scopes, in: context)
        scheduler.callBegins(from: scopes)
        return scopes
    }

    /// Waits until the scheduler admits the caller.
    func enter(
        as entry: OperationGate.Entry, from scopes: [CallScheduler.Scope], in context: CallContext
    ) async throws(BLEError) {
        let ticket = scheduler.nextTicket()
        try await wait(as: ticket, in: context) { scheduler.enter(ticket, as: entry, from: scopes) }
    }

    /// Waits until the caller with this ticket is admitted; `begin` returns the scheduler's decision if there is one.
    func wait(
        as ticket: CallScheduler.Ticket, in context: CallContext, _ begin: () -> CallScheduler.Decision?
    ) async throws(BLEError) {
        let interruption = WaitInterruption.handled { [self] ticket, failure in
            assumeIsolated { $0.scheduler.withdraw(ticket, failure == .timedOut ? .timedOut : .cancelled) }
        }
        let result = await onLoop {
            await scheduler.wait(as: ticket, until: context.deadline, interruption: interruption) {
                end == nil ? begin() : .failure(.linkLost)
            }
        }
        guard case .failure(let refusal) = result else { return }
        throw error(refusal, in: context)
    }

    /// The number of calls that wait for their turn; for tests.
    package var waitingCallCount: Int { scheduler.waitingCount }

    /// The number of unfinished operations; for tests.
    package var unfinishedCount: Int { link.operationCount }

    func cleared(during operation: String) -> BLEError {
        BLEError(
            .cancelled, subject: name, during: operation, because: "everything on this link was cancelled",
            hint: "The link is still up.")
    }

    func error(_ refusal: OperationGate.Refusal, in context: CallContext) -> BLEError {
        switch refusal {
        case .busy:
            BLEError(
                .busy, subject: name, during: context.operation,
                because: "another task has exclusive access to the link, and lets no call wait",
                hint: "Try again when that is over.")
        case .disconnecting:
            BLEError(
                .disconnecting, subject: name, during: context.operation,
                because: "this program ends the link after the calls made before")
        case .cleared: cleared(during: context.operation)
        case .queueFull(let limit): BLEError(.queueFull(limit: limit), subject: name, during: context.operation)
        case .linkLost: endError(during: context.operation)
        case .timedOut:
            BLEError(
                .timedOut, subject: name, during: context.operation, because: "its turn did not come in time",
                hint: "Another task has exclusive access to the link, or waits for it; allow more time.")
        case .cancelled: BLEError(.cancelled, subject: name, during: context.operation)
        }
    }
}
