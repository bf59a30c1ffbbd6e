internal import BLECore
internal import BLELinux

// The path of nearly every call that sends requests to the peer: `recovering`. It retries a refused read, write or
// discovery: after a recovery action the call runs again as a whole, within the rest of its time.
//
// Duties
// - Performs the actions that `CallRecovery` decides on.
// - Calls the security hook once for all calls that need the same level at the same time, one level after the other.
// - Ends the wait for an action at the call's deadline, the cancellation of its task and the end of the link; the
//   action itself may continue.
//
// Invariants
// - A call is retried only if its first attempt had no effect: a peer that refuses has not carried out the request.
// - The hook may call the same peripheral. Such a call never waits for the hook that makes it: both would wait
//   forever.

/// The progress of one call that may be retried.
struct Recovery {
    /// The database that was known when the last attempt began.
    var known: GATTDatabase?
    var attempts = CallRecovery.Attempts()

    init(knowing known: GATTDatabase?) {
        self.known = known
    }
}

extension Peripheral {
    /// Makes a call when its turn comes, and retries it after each recovery action.
    ///
    /// `attempt` must look up everything again, handles too: a recovery action may have changed the known database. If
    /// it cannot do so, or must not be retried after a change of the peer's services, the context's `retryRule`
    /// reports that.
    // Inlined, so that a call without a failure consists of its attempt alone: each additional asynchronous function
    // measurably prolongs a read.
    @inline(__always)
    func recovering<Value: Sendable>(
        _ context: CallContext, _ attempt: () async throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        let scopes = scheduler.enterFreely() ? [] : try await beginCall(in: context)
        defer { scheduler.callEnds(scopes) }
        do {
            return try await retrying(context, attempt)
        } catch {
            throw interrupted(error, in: context)
        }
    }

    /// Makes a call, or a part of one that can be retried separately, and retries it after each recovery action.
    @inline(__always)
    func retrying<Value: Sendable>(
        _ context: CallContext, _ attempt: () async throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        var recovery = Recovery(knowing: peerDatabase.state.database)
        while true {
            let failure: BLEError
            do {
                return try await attempt()
            } catch {
                failure = error
            }
            try await recover(&recovery, from: failure, in: context)
        }
    }

    /// Applies the recovery action for the failure of an attempt.
    ///
    /// - Throws: The failure itself if it has no action, or if an action of this kind has been applied already.
    private func recover(
        _ recovery: inout Recovery, from failure: BLEError, in context: CallContext
    ) async throws(BLEError) {
        let known = recovery.known ?? peerDatabase.state.database
        guard end == nil,
            let action = scheduler.recoveryAction(
                for: failure, after: recovery.attempts, mayUpgrade: protection.mayUpgrade,
                isFromEarlierLink: {
                    peerDatabase.state.isFromCache && peerDatabase.state.database?.type(at: $0) != nil
                })
        else { throw explained(failure) }
        let isRecovered = try await apply(action, knowing: known, in: context)
        if Task.isCancelled { throw BLEError(.cancelled, subject: name, during: context.operation) }
        if end != nil { throw endError(during: context.operation) }
        guard isRecovered else { throw explained(failure) }
        recovery.attempts.succeeded(action)
        recovery.known = peerDatabase.state.database
    }

    /// Returns whether the call may be retried.
    private func apply(
        _ action: CallRecovery.Action, knowing known: GATTDatabase?, in context: CallContext
    ) async throws(BLEError) -> Bool {
        switch action {
        case .upgradeSecurity(let level, let handle):
            let request = Configuration.SecurityRequest(
                peer: id, name: name, level: level, attribute: handle, operation: context.operation)
            return await upgradeSecurity(request, until: context.deadline)
        case .resynchronize(let contradiction):
            return try await resynchronize(contradiction, knowing: known, in: context)
        }
    }
}

// MARK: - Operations

extension Peripheral {
    /// Runs one operation of the client to its end, once; `recovering` may retry it.
    func run(
        in context: CallContext, askingFor collector: Subscriptions.ID? = nil, start: ATTLink.Start
    ) async throws(BLEError) -> GATTOutcome {
        try await runInlined(in: context, askingFor: collector, start: start)
    }

    /// Does the same inside the caller, for the most frequent operation: each asynchronous function on the way looks up
    /// the task's executor three times.
    @inline(__always)
    func runInlined(
        in context: CallContext, askingFor collector: Subscriptions.ID? = nil, start: ATTLink.Start
    ) async throws(BLEError) -> GATTOutcome {
        switch await runOperation(until: context.deadline, askingFor: collector, start: start) {
        case .success(let outcome):
            return outcome
        case .failure(.linkLost):
            throw endError(during: context.operation)
        case .failure(let failure):
            throw error(failure, during: context.operation)
        }
    }

    /// Runs one operation of a call, or of the library itself, which `cancelAll()` does not affect.
    ///
    /// - Parameters:
    ///   - number: The number that the operation was given when its handle was looked up; `nil` if no other job has run
    ///     since.
    ///   - collector: The call that collects the response, if values are the response.
    func runOperation(
        as number: OperationID? = nil, until deadline: BootInstant?, isOfCall: Bool = true,
        askingFor collector: Subscriptions.ID? = nil, start: ATTLink.Start
    ) async -> ATTLink.OperationResult {
        if end != nil { return .failure(.linkLost) }
        // A task that is not on the loop lets other jobs in below, and one of them may read that the services have
        // changed. By its number the client knows that the handle of a write was looked up before.
        let id = number ?? link.nextID()
        let wait = await onLoop {
            // Not by `Waiters.wait`: another asynchronous function would cost a task that is not on the loop two more
            // turns of the loop for each request.
            await withTaskCancellationHandler {
                await withCheckedContinuation { (caller: ATTLink.Caller) in
                    // A later cancellation finds the caller: its job enters the actor after this one.
                    link.wait(for: id, caller) {
                        // Both may have changed since the call's own check.
                        if isOfCall, scheduler.isClearing { return .failure(.cancelled) }
                        if end != nil { return .failure(.linkLost) }
                        if let collector { subscriptionHub.requestBegan(id, for: collector) }
                        link.start(
                            id, until: deadline, isOfCall: isOfCall, isCollected: collector != nil, happened, start)
                        if peerDatabase.isServiceChangedDue { enableServiceChangedAfterCurrent() }
                        return nil
                    }
                }
            } onCancel: {
                Task(executorPreference: loop) { await self.cancel(id) }
            }
        }
        guard case .resumed(let result) = wait else { return .failure(.cancelled) }
        return result
    }

    /// Lets the task prefer the loop while it waits. Otherwise its resumption would pass through the global pool: two
    /// more thread switches, in any order, and not before the program's own tasks leave a thread free there.
    @inline(__always)
    func onLoop<Value: Sendable>(_ wait: () async -> Value) async -> Value {
        let isThere = unsafe withUnsafeCurrentTask { task in
            unsafe task?.unownedTaskExecutor == loop.asUnownedTaskExecutor()
        }
        return isThere ? await wait() : await withTaskExecutorPreference(loop, operation: wait)
    }

    private func cancel(_ id: OperationID) {
        link.cancel(id, happened)
    }
}

// MARK: - Security

extension Peripheral {
    /// Waits for the hook's result on `request`; a call shares a pending upgrade to the same level.
    func upgradeSecurity(_ request: Configuration.SecurityRequest, until deadline: BootInstant?) async -> Bool {
        if scheduler.isCallOfHook(from: CallScopes.current) { return false }
        let ticket = scheduler.nextTicket()
        let interruption = WaitInterruption.handled { [self] ticket, _ in
            assumeIsolated { $0.scheduler.stopWaitingForUpgrade(ticket) }
        }
        return await scheduler.waitForUpgrade(as: ticket, until: deadline, interruption: interruption) {
            if end != nil || scheduler.isClearing { return false }
            callHook(scheduler.requestUpgrade(request, as: ticket))
            return nil
        }
    }

    private func callHook(_ call: CallScheduler.HookCall?) {
        guard let call else { return }
        Task(executorPreference: loop) { [weak self, raiseSecurity = protection.raiseSecurity] in
            let isUpgraded = await CallScopes.$current.withValue([call.scope]) {
                if let raiseSecurity { return await raiseSecurity(call.request) }
                return await self?.pairOnDemand(call.request) ?? false
            }
            await self?.hookReturned(isUpgraded, from: call.scope)
        }
    }

    private func hookReturned(_ isUpgraded: Bool, from scope: CallScheduler.Scope) {
        // The calls that are repeated must not use a cache that the encryption makes doubtful.
        if isUpgraded { secured() }
        callHook(scheduler.hookReturned(isUpgraded, from: scope))
    }
}
