internal import BLECore
internal import BLELinux

// The one way by which every call that asks the peer for something goes: `recovering`. A call that fails may be cured and
// is then made again, whole, with what is left of its time.
//
// Duties
// - Knows which failures can be cured, and how.
// - Applies each kind of cure once a call at most, so that no peer can keep a call going for ever.
// - Asks the security hook once for all calls that need the same level at the same time, one level after the other.
// - Ends the wait for a cure with the call's deadline, its task and the link; the cure itself may go on.
//
// Invariants
// - A call is repeated only where its first attempt had no effect: a peer that refuses has not carried out the request.
// - A wait for the hook is in `raises` until it has been answered, exactly once.
// - An attribute that still wanted more security behind a successful raise is not asked about again, unless the services
//   change.
// - The hook may call the same peripheral. Such a call is never cured by the hook that makes it: both would wait for ever.

/// What may be done about a failed call before it is made again.
enum Cure: Hashable, Sendable {
    /// Ask the application to secure the link.
    case raiseSecurity(SecurityLevel, for: AttributeHandle)
    /// Find out what the peer's services are now.
    case resynchronize(Contradiction)

    /// How a peer shows that what is known of its services is wrong.
    enum Contradiction: Hashable, Sendable {
        /// It says so.
        case outOfSync
        /// It has no attribute where there was one on an earlier link.
        case invalidHandle
    }

    enum Kind: Hashable, Sendable {
        case raiseSecurity, resynchronize
    }

    var kind: Kind {
        switch self {
        case .raiseSecurity: .raiseSecurity
        case .resynchronize: .resynchronize
        }
    }
}

/// What has been tried for one call.
struct Recovery {
    /// What was known of the peer's services when the last attempt began.
    var known: GATTDatabase?
    var applied: Set<Cure> = []

    init(knowing known: GATTDatabase?) {
        self.known = known
    }
}

/// The hook's answer on one level of security, and the calls that wait for it.
struct SecurityRaise {
    typealias Waiter = CheckedContinuation<Bool, Never>

    let request: SecurityRequest
    /// Where the hook's own calls come from, as soon as it was asked.
    var scope: OperationGate.Scope?
    var waiters: [(number: UInt64, waiter: Waiter)] = []
}

extension Peripheral {
    /// Makes a call when it is its turn, and again behind a cure of what it failed with.
    ///
    /// `attempt` must look up everything anew, handles too: a cure may have changed what is known of the peer. Where it
    /// cannot, or must not be made again behind a change of the peer's services, `repetition` says so.
    // Inlined, so that a call that meets no trouble is its attempt alone: each asynchronous function on the way is felt in the time
    // of a read.
    @inline(__always)
    func recovering<Value: Sendable>(
        within timeout: Duration, during operation: @autoclosure () -> String,
        repeating repetition: @autoclosure () -> Repetition = .always,
        _ attempt: (_ deadline: BootInstant) async throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        let deadline = loop.now() + timeout
        let scopes = entersFreely() ? [] : try await beginCall(until: deadline, during: operation())
        defer { endCall(scopes) }
        var recovery = Recovery(knowing: knowledge.database)
        while true {
            let failure: BLEError
            do {
                return try await attempt(deadline)
            } catch {
                failure = error
            }
            do throws(BLEError) {
                try await recover(
                    &recovery, from: failure, until: deadline, during: operation(), repeating: repetition())
            } catch {
                throw interrupted(error, during: operation())
            }
        }
    }

    /// A part of a call that may be made again by itself.
    func recovering<Value: Sendable>(
        until deadline: BootInstant, during operation: @autoclosure () -> String,
        repeating repetition: Repetition = .always,
        _ attempt: (_ deadline: BootInstant) async throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        var recovery = Recovery(knowing: knowledge.database)
        while true {
            let failure: BLEError
            do {
                return try await attempt(deadline)
            } catch {
                failure = error
            }
            try await recover(&recovery, from: failure, until: deadline, during: operation(), repeating: repetition)
        }
    }

    /// Cures what an attempt has failed with.
    ///
    /// - Throws: The failure itself where there is no cure for it, or none that has not been applied already.
    private func recover(
        _ recovery: inout Recovery, from failure: BLEError, until deadline: BootInstant, during operation: String,
        repeating repetition: Repetition
    ) async throws(BLEError) {
        let known = recovery.known ?? knowledge.database
        markUseless(recovery.applied, behind: failure)
        guard let cure = cure(for: failure), !recovery.applied.contains(where: { $0.kind == cure.kind }) else {
            throw failure
        }
        let isCured = try await apply(cure, to: repetition, knowing: known, of: operation, until: deadline)
        if Task.isCancelled { throw BLEError(.cancelled, subject: name, during: operation) }
        if end != nil { throw endError(during: operation) }
        guard isCured else { throw failure }
        recovery.applied.insert(cure)
        recovery.known = knowledge.database
    }

    private func cure(for failure: BLEError) -> Cure? {
        guard end == nil else { return nil }
        if let level = failure.requiredSecurity, let handle = failure.attributeHandle, raiseSecurity != nil {
            let cure = Cure.raiseSecurity(level, for: handle)
            return uselessCures.contains(cure) ? nil : cure
        }
        switch failure.attError {
        case .databaseOutOfSync?: return .resynchronize(.outOfSync)
        case .invalidHandle? where knowledge.isFromCache:
            // That a handle which the cache does not have is wrong says nothing against the cache.
            guard let handle = failure.attributeHandle, knowledge.database?.type(at: handle) != nil else { return nil }
            return .resynchronize(.invalidHandle)
        default: return nil
        }
    }

    /// Answers whether the call may be made again.
    private func apply(
        _ cure: Cure, to repetition: Repetition, knowing known: GATTDatabase?, of operation: String,
        until deadline: BootInstant
    ) async throws(BLEError) -> Bool {
        switch cure {
        case .raiseSecurity(let level, let handle):
            let request = SecurityRequest(
                peer: id, name: name, level: level, attribute: handle, operation: operation)
            return await raise(request, until: deadline)
        case .resynchronize(let contradiction):
            return try await resynchronize(
                contradiction, for: repetition, knowing: known, of: operation, until: deadline)
        }
    }

    private func markUseless(_ applied: Set<Cure>, behind failure: BLEError) {
        guard let level = failure.requiredSecurity, let handle = failure.attributeHandle else { return }
        if applied.contains(where: { $0.kind == .raiseSecurity }) {
            uselessCures.insert(.raiseSecurity(level, for: handle))
        }
    }
}

// MARK: - Security

extension Peripheral {
    /// Waits for the hook's word on `request`; a call that finds the same level under way shares it.
    private func raise(_ request: SecurityRequest, until deadline: BootInstant) async -> Bool {
        if let scope = raises.first?.scope, CallScopes.current.contains(scope) { return false }
        lastNumber &+= 1
        let number = lastNumber
        let timer = loop.schedule(at: deadline) { [weak self] in
            self?.assumeIsolated { $0.stopWaiting(forRaise: number) }
        }
        defer { loop.cancel(timer) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: SecurityRaise.Waiter) in
                if Task.isCancelled || end != nil || gate.isClearing { return waiter.resume(returning: false) }
                if let index = raises.firstIndex(where: { $0.request.level == request.level }) {
                    return raises[index].waiters.append((number, waiter))
                }
                raises.append(SecurityRaise(request: request, waiters: [(number, waiter)]))
                if raises.count == 1 { askHook() }
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.stopWaiting(forRaise: number) }
        }
    }

    /// Calls the hook for the first raise that somebody still waits for.
    private func askHook() {
        while let first = raises.first, first.waiters.isEmpty { raises.removeFirst() }
        guard let request = raises.first?.request, let raiseSecurity else { return }
        // What the hook calls on this link must not wait for the calls that wait for the hook.
        let scope = CallScopes.next()
        gate.open(scope)
        raises[0].scope = scope
        Task(executorPreference: loop) { [weak self] in
            let isRaised = await CallScopes.$current.withValue([scope]) { await raiseSecurity(request) }
            await self?.raiseEnded(isRaised, scope)
        }
    }

    private func raiseEnded(_ isRaised: Bool, _ scope: OperationGate.Scope) {
        perform(gate.close(scope: scope))
        guard !raises.isEmpty else { return }
        for (_, waiter) in raises.removeFirst().waiters { waiter.resume(returning: isRaised) }
        askHook()
    }

    private func stopWaiting(forRaise number: UInt64) {
        for index in raises.indices {
            guard let position = raises[index].waiters.firstIndex(where: { $0.number == number }) else { continue }
            return raises[index].waiters.remove(at: position).waiter.resume(returning: false)
        }
    }

    /// Releases all calls that wait for a cure; the hook's word may be of use to later ones.
    func stopWaitingForRaises() {
        for index in raises.indices {
            let waiting = raises[index].waiters
            raises[index].waiters = []
            for (_, waiter) in waiting { waiter.resume(returning: false) }
        }
    }

    /// Releases all calls that wait for a cure: the link is gone.
    func endRaises() {
        let waiting = raises.flatMap(\.waiters)
        raises = []
        for (_, waiter) in waiting { waiter.resume(returning: false) }
    }
}
