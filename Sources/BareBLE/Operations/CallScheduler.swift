internal import BLECore
internal import BLELinux

// Schedules the calls of one link: owns the gate, the callers that wait, the security upgrades that calls wait for, and
// the decisions about refused calls.
//
// Duties
// - Resumes every waiting caller once: on its turn, its deadline, its cancellation, `cancelAll()` or the end of the
//   link.
// - Passes the places that were taken outside the loop to the gate before any other request to it.
// - Starts one security upgrade at a time, for all calls that need its level.
//
// Invariants
// - A caller is in `waiters`, under its ticket, exactly while the gate keeps that ticket. A turn that its task does not
//   await yet is in `turns` instead, also once the gate has decided about it.
// - A call that waits for the security hook is in `upgradeWaiters` exactly while its ticket is in `upgrades`. The hook
//   runs for the first upgrade.
// - Only the peripheral uses it, on its event loop. The peripheral reports what the deadlines and the cancellation of
//   waiting tasks mean.

/// Decides which calls of one link proceed, and which wait.
final class CallScheduler {
    typealias Ticket = OperationGate.Ticket
    typealias Scope = OperationGate.Scope
    /// The gate's decision about one caller.
    typealias Decision = Result<Void, OperationGate.Refusal>

    /// A call of the security hook that must be made.
    struct HookCall: Sendable {
        let request: Configuration.SecurityRequest
        /// The scope of the hook's own calls.
        let scope: Scope
    }

    /// A turn that its task does not await yet.
    private struct PlacedTurn {
        let ticket: Ticket
        /// The gate's decision; `nil` while it waits.
        var result: Decision?
    }

    /// A level of security, and the calls that wait for it.
    private struct SecurityUpgrade {
        let request: Configuration.SecurityRequest
        /// The scope of the hook's own calls, once the hook runs.
        var scope: Scope?
        var tickets: [Ticket] = []
    }

    private let places: QueuePlaces
    private var gate = OperationGate()
    private let waiters: Waiters<Decision>
    private var turns: [Scope: PlacedTurn] = [:]
    private var lastTicket: Ticket = 0
    private var upgrades: [SecurityUpgrade] = []
    private let upgradeWaiters: Waiters<Bool>
    private var recovery = CallRecovery()

    init(places: QueuePlaces, on loop: EventLoop) {
        self.places = places
        waiters = Waiters(on: loop)
        upgradeWaiters = Waiters(on: loop)
    }

    /// Whether all calls are being cancelled.
    var isClearing: Bool { gate.isClearing }

    /// The number of calls that wait for their turn.
    var waitingCount: Int { waiters.count }

    /// The number of calls, and waits of calls, that have not ended.
    var outstanding: Int { waiters.count + gate.callCount + upgrades.count }
}

// MARK: - Calls

extension CallScheduler {
    /// Admits a call that need not wait.
    func enterFreely() -> Bool {
        takePlaces()
        return gate.enterFreely()
    }

    /// Returns the ticket of a caller that arrives now.
    func nextTicket() -> Ticket {
        takePlaces()
        lastTicket &+= 1
        return lastTicket
    }

    /// Waits until the caller with this ticket is admitted or refused. `begin` enters it, and returns the decision if
    /// that has been made.
    func wait(
        as ticket: Ticket, until deadline: BootInstant?, interruption: WaitInterruption,
        isolation: isolated (any Actor)? = #isolation, _ begin: () -> Decision?
    ) async -> Decision {
        let end = await waiters.wait(
            as: ticket, until: deadline, interruption: interruption, isolation: isolation, { _ in begin() })
        switch end {
        case .resumed(let decision): return decision
        case .timedOut: return .failure(.timedOut)
        case .cancelled: return .failure(.cancelled)
        }
    }

    /// Lets a caller enter. Returns the decision about it; `nil` if it must wait.
    func enter(_ ticket: Ticket, as entry: OperationGate.Entry, from scopes: [Scope]) -> Decision? {
        switch gate.enter(ticket, as: entry, from: scopes) {
        case .admitted: .success(())
        case .refused(let refusal): .failure(refusal)
        case .waits: nil
        }
    }

    /// Records that a call that waited proceeds.
    func callBegins(from scopes: [Scope]) {
        perform(gate.arrive(scopes))
        perform(gate.begin(from: scopes))
    }

    func callEnds(_ scopes: [Scope]) {
        perform(gate.leave(scopes))
    }

    /// Records that exclusive access begins, for a caller in `scopes`.
    func exclusiveAccessBegins(from scopes: [Scope]) {
        perform(gate.begin(from: scopes))
    }

    /// Ends exclusive access, or a turn.
    func close(_ scope: Scope) {
        perform(gate.close(scope: scope))
    }

    func withdraw(_ ticket: Ticket, _ refusal: OperationGate.Refusal) {
        perform(gate.withdraw(ticket, refusal))
    }

    /// Refuses all callers that wait, and admits none until the pending calls have ended.
    func clear() {
        takePlaces()
        perform(gate.clear())
    }

    /// Releases everything that waits: the link is lost.
    func linkLost() {
        perform(gate.linkLost())
        let tickets = upgrades.flatMap(\.tickets)
        upgrades = []
        release(tickets, false)
    }

    private func perform(_ actions: [OperationGate.Action]) {
        for action in actions {
            switch action {
            case .admit(let ticket): decided(ticket, .success(()))
            case .refuse(let ticket, let refusal): decided(ticket, .failure(refusal))
            }
        }
    }

    private func decided(_ ticket: Ticket, _ result: Decision) {
        if waiters.contains(ticket) { return waiters.resume(ticket, result) }
        // The task of a turn does not wait for it yet.
        guard let index = turns.firstIndex(where: { $0.value.ticket == ticket }) else { return }
        turns.values[index].result = result
    }
}

// MARK: - Turns

extension CallScheduler {
    /// Passes the taken places to the gate.
    private func takePlaces() {
        for place in places.takeAll() {
            lastTicket &+= 1
            let result = enter(lastTicket, as: .turn(place.scope), from: place.outer)
            turns[place.scope] = PlacedTurn(ticket: lastTicket, result: result)
        }
    }

    /// Returns the ticket of a turn that its task does not await yet.
    func ticket(ofTurn scope: Scope) -> Ticket? {
        takePlaces()
        return turns[scope]?.ticket
    }

    /// Makes the turn one that its task awaits. Returns the decision about it; `nil` if it must wait.
    func awaitTurn(_ scope: Scope) -> Decision? {
        turns.removeValue(forKey: scope)?.result
    }

    /// Ends a turn that failed before its calls were made.
    func abandonTurn(_ scope: Scope, as ticket: Ticket) {
        // It was cancelled, or the link was lost, before its task waited for it.
        if turns.removeValue(forKey: scope)?.result == nil { perform(gate.withdraw(ticket, .cancelled)) }
        close(scope)
    }
}

// MARK: - Recovery

extension CallScheduler {
    /// Returns what may help against a refusal, as `CallRecovery.action` decides; `nil` if the call fails with it.
    func recoveryAction(
        for failure: BLEError, after attempts: CallRecovery.Attempts, mayUpgrade: Bool,
        isFromEarlierLink: (AttributeHandle) -> Bool
    ) -> CallRecovery.Action? {
        recovery.action(
            for: failure.attError, at: failure.attributeHandle, after: attempts, mayUpgrade: mayUpgrade,
            isFromEarlierLink: isFromEarlierLink)
    }

    /// The peer's services have changed: actions that have not helped may help now.
    func servicesChanged() {
        recovery.servicesChanged()
    }

    /// Whether a call from `scopes` is made by the running hook, for which it must not wait.
    func isCallOfHook(from scopes: [Scope]) -> Bool {
        upgrades.first?.scope.map(scopes.contains) ?? false
    }

    /// Waits for the hook's result, which the call with this ticket requests in `begin`.
    func waitForUpgrade(
        as ticket: Ticket, until deadline: BootInstant?, interruption: WaitInterruption,
        isolation: isolated (any Actor)? = #isolation, _ begin: () -> Bool?
    ) async -> Bool {
        let end = await upgradeWaiters.wait(
            as: ticket, until: deadline, interruption: interruption, isolation: isolation, { _ in begin() })
        if case .resumed(let isUpgraded) = end { return isUpgraded }
        return false
    }

    /// Requests an upgrade; a call shares a pending one to the same level.
    ///
    /// - Returns: The call of the hook that must be made now.
    func requestUpgrade(_ request: Configuration.SecurityRequest, as ticket: Ticket) -> HookCall? {
        if let index = upgrades.firstIndex(where: { $0.request.level == request.level }) {
            upgrades[index].tickets.append(ticket)
            return nil
        }
        upgrades.append(SecurityUpgrade(request: request, tickets: [ticket]))
        return upgrades.count == 1 ? nextHookCall() : nil
    }

    /// Reports that the hook has returned.
    ///
    /// - Returns: The call of the hook that must be made now.
    func hookReturned(_ isUpgraded: Bool, from scope: Scope) -> HookCall? {
        close(scope)
        guard !upgrades.isEmpty else { return nil }
        release(upgrades.removeFirst().tickets, isUpgraded)
        return nextHookCall()
    }

    /// Begins the first upgrade that a call still waits for.
    private func nextHookCall() -> HookCall? {
        while let first = upgrades.first, first.tickets.isEmpty { upgrades.removeFirst() }
        guard let request = upgrades.first?.request else { return nil }
        // The hook's calls on this link must not wait for the calls that wait for the hook.
        let scope = CallScopes.next()
        gate.open(scope)
        upgrades[0].scope = scope
        return HookCall(request: request, scope: scope)
    }

    func stopWaitingForUpgrade(_ ticket: Ticket) {
        for index in upgrades.indices { upgrades[index].tickets.removeAll { $0 == ticket } }
        upgradeWaiters.resume(ticket, false)
    }

    /// Releases all calls that wait for an upgrade; later calls may still use the hook's result.
    func stopWaitingForUpgrades() {
        for index in upgrades.indices {
            let tickets = upgrades[index].tickets
            upgrades[index].tickets = []
            release(tickets, false)
        }
    }

    private func release(_ tickets: [Ticket], _ isUpgraded: Bool) {
        for ticket in tickets { upgradeWaiters.resume(ticket, isUpgraded) }
    }
}
