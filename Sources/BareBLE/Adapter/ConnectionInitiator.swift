internal import BLECore
internal import BLELinux

// Which task connects now, and which ones wait for that: the owner of the machines `Initiator` and `LinkLimit`.
//
// Duties: give connects their turns, one after the other; make one connection attempt for the task that has the turn,
// or confirm the cancel of an earlier one; cancel the attempt when that task is cancelled; know whether another link
// may be initiated.
//
// Invariants
// - All state belongs to the event loop's thread.
// - Only the task that has the turn waits for an attempt, so there is one at most.
// - It never acts on the controller: it returns commands, in order. Those that follow from a task of its own go to the
//   handler of `onActions`.

/// Initiates connections for tasks, one at a time.
// Unchecked: only the loop's thread touches its state.
final class ConnectionInitiator: @unchecked Sendable {
    enum Action {
        /// Put this command into the queue, and call `commandFinished` with its result.
        case send(HCICommandPacket)
        /// Take the command with this opcode out of the queue if it still waits there.
        case withdraw(HCIOpcode)
        /// Disconnect a link to the peer, by its address on air, and have the next connect to it wait for the end.
        case disconnect(ConnectionHandle, from: PeerID)
    }

    /// What a task that has the turn waits for.
    private enum End {
        case attemptEnded(Result<LEConnectionComplete, Initiator.Failure>)
        case cancelConfirmed
    }

    private let loop: EventLoop
    private var machine = Initiator()
    private var limit: LinkLimit
    private let turns: Waiters<Void>
    private let attempts: Waiters<End>
    /// The task that waits for the machine.
    private var waiter: UInt64?
    private var actionHandler: (@Sendable ([Action]) -> Void)?
    /// When the last turn has ended in which the peer was not heard.
    private(set) var unheardTurnEnd: BootInstant?
    /// How many times a link may have come up that nobody holds.
    private(set) var suspectedLinks = 0
    /// The peers of those that may still be up, how many times each was noticed, and when it was last.
    private var suspects: [PeerID: (count: Int, time: BootInstant)] = [:]
    /// Two signs that are further apart are two first ones.
    private static let suspicionTime: Duration = .seconds(600)
    private static let suspectLimit = 64

    /// - Parameter maximumLinks: How many links there may be, as configured.
    init(on loop: EventLoop, maximumLinks: Int?) {
        self.loop = loop
        limit = LinkLimit(maximumLinks)
        turns = Waiters(on: loop)
        attempts = Waiters(on: loop)
    }

    /// Has a handler perform the actions that follow from a task: its attempt begins, or is cancelled.
    func onActions(_ handler: @escaping @Sendable ([Action]) -> Void) { actionHandler = handler }

    /// Counts a link that may be up and that nobody holds, once.
    ///
    /// - Returns: How many times it was noticed; 0 if there are too many already.
    func suspectLink(to peer: PeerID, at now: BootInstant) -> Int {
        suspects = suspects.filter { now - $0.value.time < Self.suspicionTime }
        if let known = suspects[peer] {
            suspects[peer] = (known.count + 1, now)
            return known.count + 1
        }
        guard suspects.count < Self.suspectLimit else { return 0 }
        suspects[peer] = (1, now)
        suspectedLinks += 1
        return 1
    }

    /// A link to the peer has come up, so no other one is.
    func forgetSuspicion(of peer: PeerID) { suspects[peer] = nil }

    /// Whether an attempt has begun and not ended.
    var isBusy: Bool { machine.isBusy }

    /// Whether another program's attempt was known to be pending beside the last attempt.
    var hasSeenForeignAttempt: Bool { machine.hasSeenForeignAttempt }

    var nextDeadline: BootInstant? { machine.nextDeadline }

    /// Tasks that wait, and the attempt that is pending.
    var outstanding: Int { turns.count + attempts.count + machine.waitingConnects + (isBusy ? 1 : 0) }

    // MARK: The number of links

    /// Whether there is a limit to the number of links, as far as is known.
    var hasLinkLimit: Bool { limit.isKnown }

    /// What to do before another link is initiated, beside those that are up.
    func advice(links: Int) -> LinkLimit.Advice { limit.advice(links: links) }

    /// A link has come up beside others.
    func linkHeld(beside links: Int) { limit.held(beside: links) }

    /// The controller has refused another link as one too many.
    func linkRefused(beside links: Int) { limit.refused(beside: links) }

    // MARK: Turns

    /// Waits for the turn to connect; pass it on with `passTurn`.
    ///
    /// - Returns: Whether others had theirs before, or why it did not come.
    func takeTurn(until deadline: BootInstant?) async -> WaitEnd<Bool> {
        if machine.takeTurn() { return .resumed(false) }
        var number: UInt64 = 0
        let end = await turns.wait(until: deadline) {
            number = $0
            // The turn may have become free since the look above.
            if machine.takeTurn() { return () }
            machine.awaitTurn($0)
            return nil
        }
        switch end {
        case .resumed: return .resumed(true)
        case .timedOut, .cancelled:
            machine.cancelAwaitingTurn(number)
            if case .timedOut = end { return .timedOut }
            return .cancelled
        }
    }

    /// The turn ends, and its peer was not heard.
    func noteUnheardTurn() { unheardTurnEnd = loop.now() }

    func passTurn() {
        if let next = machine.passTurn({ turns.contains($0) }) { turns.resume(next, ()) }
    }

    // MARK: Attempts

    /// Makes an attempt, and waits for its end.
    func initiate(_ attempt: Initiator.Attempt) async -> Result<LEConnectionComplete, Initiator.Failure> {
        let end = await wait { machine, now in machine.begin(attempt, at: now) }
        if case .resumed(.attemptEnded(let result)) = end { return result }
        return .failure(.cancelled)
    }

    /// Waits until the controller has confirmed that no cancelled attempt is pending, before one to `peer`.
    ///
    /// - Returns: Why it was not confirmed; `nil` if it was, or there was nothing to confirm.
    func confirmCancel(for peer: PeerID, until deadline: BootInstant) async -> WaitEnd<Initiator.Failure?> {
        guard machine.hasPendingCancel else { return .resumed(nil) }
        let end = await wait { machine, now in machine.confirmCancel(for: peer, until: deadline, at: now) }
        switch end {
        case .resumed(.attemptEnded(.failure(let failure))): return .resumed(failure)
        case .resumed: return .resumed(nil)
        case .timedOut: return .timedOut
        case .cancelled: return .cancelled
        }
    }

    private func wait(_ begin: (inout Initiator, BootInstant) -> [Initiator.Action]) async -> WaitEnd<End> {
        let interruption = WaitInterruption.handled { [weak self] number, _ in self?.cancel(number) }
        let end = await attempts.wait(interruption: interruption) { number in
            waiter = number
            actionHandler?(perform(begin(&machine, loop.now())))
            return nil
        }
        waiter = nil
        return end
    }

    /// The task that waits for the machine was cancelled; the end of the attempt resumes it.
    private func cancel(_ number: UInt64) {
        guard number == waiter else { return }
        actionHandler?(perform(machine.cancel(at: loop.now())))
    }

    // MARK: What the controller reports

    /// A command of this owner has its response, or failed for the reason given.
    func commandFinished(_ opcode: HCIOpcode, _ failure: HCICommandFailure?) -> [Action] {
        perform(machine.commandFinished(opcode, failure, at: loop.now()))
    }

    /// The controller has responded to a command, of whatever owner.
    func controllerResponded(_ opcode: HCIOpcode) -> [Action] { perform(machine.controllerResponded(opcode)) }

    /// Another program, or the kernel, sends a command.
    func received(_ foreign: HCICommandPacket) { machine.received(foreign) }

    /// A response came late, or to another program's command.
    func foreignCompletion(_ opcode: HCIOpcode, _ status: HCIStatus?) -> [Action] {
        perform(machine.foreignCompletion(opcode, status, at: loop.now()))
    }

    /// A Connection Complete was read.
    func received(_ complete: LEConnectionComplete) -> [Action] {
        perform(machine.received(complete, at: loop.now()))
    }

    /// The adapter was unplugged, switched off or reset.
    func adapterLost() -> [Action] {
        suspects = [:]
        return perform(machine.adapterLost(at: loop.now()))
    }

    func timePassed() -> [Action] { perform(machine.timePassed(loop.now())) }

    private func perform(_ requests: [Initiator.Action]) -> [Action] {
        var actions: [Action] = []
        for request in requests {
            switch request {
            case .send(let command): actions.append(.send(command))
            case .withdraw(let opcode): actions.append(.withdraw(opcode))
            case .disconnect(let handle, let peer): actions.append(.disconnect(handle, from: peer))
            case .finish(let result): end(.attemptEnded(result))
            case .cancelConfirmed: end(.cancelConfirmed)
            }
        }
        return actions
    }

    private func end(_ end: End) {
        if let waiter { attempts.resume(waiter, end) }
    }
}
