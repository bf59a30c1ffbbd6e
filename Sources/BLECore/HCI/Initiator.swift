// The initiator of one controller: LE (Extended) Create Connection, its end, and a cancel that really cancels.
//
// Duties: send one connection attempt at a time, wait for the Connection Complete that belongs to it, keep its
// deadline, cancel it when that passes or the caller cancels, and keep track of a cancel that the controller never
// confirmed. The connects of a program take turns. The owner has paused the scan before and resumes it afterwards; it
// attaches a socket to the link within 2 s, else the kernel drops the link. What is retried after a failed attempt is
// decided by `ConnectRetry`.
//
// Invariants:
// - An attempt ends exactly once, in a `finish` action, whatever the controller does; nothing is finished before the
//   controller is free for the next one, or has been given 3 s in all to become so, and 1 s for the attempt's end.
// - A controller initiates one connection at a time. Refused with Command Disallowed, another program's attempt is
//   pending: this one waits, within its deadline, and retries. Some controllers refuse with another status (row W38):
//   that means the same while another program's attempt is known to be pending, or was when the command was sent or
//   since: its end is on another socket than the refusal, and may be read first. The legacy command in place of a
//   refused extended one does not wait: a controller that keeps to the extended commands disallows it for good.
// - An attempt that is cancelled while it waits in the queue of commands is withdrawn: it is never sent.
// - The link may come up in the very moment in which the attempt is cancelled. It is then disconnected, never left
//   over.
// - Completions of other peers' links are not ours, and a link in which this host is the peripheral never is. A failed
//   attempt may be reported without an address.
// - Cancel refused with Command Disallowed indicates that no attempt is pending: its completion is on its way, or was
//   lost. Where it does not come, the attempt ends as `endUnreported`: a link may be up that neither the kernel nor any
//   program knows (row W52).
// - A cancel without a response is retried once, unless Create Connection had no response either. A silent controller
//   may then continue: the attempt ends as `cancelUnconfirmed`, and so does the state. The controller refuses every
//   other attempt for as long as it initiates, which may be until the peer is heard. So the cancel is sent again before
//   the next attempt, which waits for it (`confirmCancel`), and after each other response. The response to it, the end
//   of the attempt, a reset and the adapter's loss each leave that state.
// - In that state a link to the peer may be the one that another program has initiated since, unless the controller has
//   refused that. It is left alone then: the kernel drops it after 2 s if nothing attaches to it.
// - Create Connection may have been sent after a reset that was not read yet: the adapter's loss ends the attempt, and
//   the controller begins it all the same. A confirmation that comes soon after the loss is taken as that of this
//   command, unless another program has sent one since, and is followed by a cancel. If the next attempt is on its way
//   then, the cancel follows its refusal: if that is accepted, the earlier one has ended.

/// Initiates connections, one at a time.
package struct Initiator: ~Copyable {
    /// The peer to connect to, and the parameters.
    package struct Attempt: Hashable, Sendable {
        package var initiation: LEInitiation
        /// The PHYs to initiate on with the extended command.
        package var phys: LEPHYs
        /// A Boolean value that indicates whether the controller has the extended command;
        /// the legacy one must then not be used.
        package var isExtended: Bool
        /// A Boolean value that indicates whether it is the legacy command in place of a refused extended one.
        package var isSubstitute = false
        /// A Boolean value that indicates whether the controller may keep to the extended commands, one of which it
        /// knows and has refused: Command Disallowed is about this one then, not about another program's attempt.
        package var mayBeDisallowed = false
        package var deadline: BootInstant

        package init(
            _ initiation: LEInitiation, phys: LEPHYs = .le1M, isExtended: Bool, deadline: BootInstant
        ) {
            self.initiation = initiation
            self.phys = phys
            self.isExtended = isExtended
            self.deadline = deadline
        }

        /// Returns the attempt in place of one that the controller has refused, although it lists what that uses:
        /// without the coded PHY, then by the legacy command; `nil` where neither can help.
        package func substitute(after failure: Failure) -> Attempt? {
            guard isExtended else { return nil }
            var attempt = self
            switch failure {
            case .refused(let refusal) where refusal.status == .unknownCommand:
                attempt.isExtended = false
            case .refused(let refusal)
            where refusal.status == .unsupportedFeature || refusal.status == .invalidParameters:
                attempt.isExtended = phys.contains(.leCoded)
                attempt.mayBeDisallowed = !attempt.isExtended
            default: return nil
            }
            attempt.phys = .le1M
            attempt.isSubstitute = !attempt.isExtended
            return attempt
        }

        fileprivate var peer: PeerID {
            PeerID(address: initiation.peerAddress, type: initiation.peerAddressType)
        }

        fileprivate var opcode: HCIOpcode {
            isExtended ? .leExtendedCreateConnection : .leCreateConnection
        }

        fileprivate var command: HCICommandPacket {
            isExtended
                ? HCICommandPacket(LEExtendedCreateConnection(initiation, phys: phys))
                : HCICommandPacket(LECreateConnection(initiation))
        }
    }

    /// The reason that there is no link.
    package enum Failure: Error, Hashable, Sendable {
        /// The controller did not accept the command, or did not respond.
        case refused(HCICommandFailure)
        /// The controller accepted the command, and the attempt failed.
        case failed(HCIStatus)
        /// The controller refused until the deadline, because of another program's attempt or scan.
        case busy
        /// The peer was not heard before the deadline.
        case timedOut
        /// The caller cancelled.
        case cancelled
        /// The adapter was unplugged, switched off or reset.
        case adapterLost
        /// The attempt was cancelled, for the reason given, and the controller did not confirm that: it may continue.
        indirect case cancelUnconfirmed(Failure)
        /// The attempt was cancelled, for the reason given, and the controller reports that none is pending. It has not
        /// reported the end: a link to the peer may be up that nobody holds.
        indirect case endUnreported(Failure)

        /// The controller's status, when it gave one.
        package var status: HCIStatus? {
            switch self {
            case .refused(let failure): failure.status
            case .failed(let status): status
            case .busy, .timedOut, .cancelled, .adapterLost, .cancelUnconfirmed, .endUnreported: nil
            }
        }
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Put this command into the adapter's queue, and call `commandFinished` with its result.
        case send(HCICommandPacket)
        /// Take the command with this opcode out of the queue if it still waits there: it ends as `.cancelled` then.
        case withdraw(HCIOpcode)
        /// Disconnect the link of an attempt to this peer that nobody wants any more. The next connect to the peer must
        /// not use it.
        case disconnect(ConnectionHandle, from: PeerID)
        /// The attempt has ended. Resume the caller.
        case finish(Result<LEConnectionComplete, Failure>)
        /// The cancel that `confirmCancel` asked for is confirmed. Resume the caller.
        case cancelConfirmed
    }

    private enum State {
        /// Nothing is pending.
        case idle
        /// Create Connection was sent and is not confirmed. That it has failed may have been read already.
        case initiating(Attempt, failed: HCIStatus?)
        /// As before, but cancelled: Cancel follows as soon as it is confirmed, and the end comes by `until`.
        case unwanted(Attempt, Failure, failed: HCIStatus?, until: BootInstant)
        /// The controller refused because of another program's attempt; ours is retried at `until`.
        case busy(Attempt, until: BootInstant)
        /// The controller initiates.
        case pending(Attempt)
        /// Cancel was sent for the first or the second time; the end comes by `until`.
        case cancelling(Attempt, Failure, tries: Int, until: BootInstant)
        /// The controller has confirmed that nothing is pending any more; what became of the attempt comes by `until`.
        /// Otherwise it ends with the failure.
        case ending(Attempt, Failure, until: BootInstant)
        /// The controller may still initiate an attempt whose cancel it did not confirm.
        case cancelUnconfirmed(PendingCancel)
    }

    /// A cancel that the controller never confirmed.
    private struct PendingCancel {
        /// The cancel that is sent again before the next attempt.
        enum Confirmation {
            /// In the queue of commands, or out.
            case sent(for: PeerID, until: BootInstant, end: BootInstant)
            /// The controller has confirmed it; the end of the attempt comes by `until`.
            case ending(for: PeerID, until: BootInstant)

            var next: PeerID {
                switch self {
                case .sent(let peer, _, _), .ending(let peer, _): peer
                }
            }
        }

        /// The peer that the controller may still initiate a connection to.
        let peer: PeerID
        var confirmation: Confirmation?
        /// Whether a cancel that followed another response is in the queue or out.
        var isRetried = false
    }

    /// An attempt that the adapter's loss has ended, and that the controller may begin all the same.
    private enum LostAttempt {
        case none
        /// It was not confirmed before the loss, and may still be, until then.
        case unconfirmed(PeerID, until: BootInstant)
        /// It has been since. A cancel follows unless the controller accepts the next attempt.
        case confirmed(PeerID)
    }

    private enum Turns {
        case free
        case taken(waiting: [UInt64])
    }

    private var state = State.idle
    private var retries = 0
    /// Whether an attempt of another program, or of the kernel, is pending, as far as that was seen.
    private var hasForeignAttempt = false
    /// Whether such an attempt was cancelled, and its Connection Complete was not seen yet: that may come after
    /// the confirmation of an attempt of this machine, because another socket carries it.
    private var awaitsForeignEnd = false
    /// How often another program, or the kernel, has sent Create Connection since the last Connection Complete was
    /// read, without what the controller has refused of that.
    private var foreignCommands = 0
    /// Whether Create Connection of this machine had no response in time. A late one looks like one to another
    /// program's.
    private var mayRespondLate = false
    /// Whether another attempt was known to be pending when the attempt of this machine was sent, or has been since.
    private var hadForeignAttempt = false
    private var lost = LostAttempt.none
    private var turns = Turns.free

    package init() {}

    /// A Boolean value that indicates whether nothing is pending, not even a cancel.
    package var isIdle: Bool {
        if case .idle = state { return true }
        return false
    }

    /// A Boolean value that indicates whether an attempt has begun and not ended.
    package var isBusy: Bool { attempt != nil }

    /// A Boolean value that indicates whether a cancel was not confirmed: call `confirmCancel` before the next attempt.
    package var hasPendingCancel: Bool {
        if case .cancelUnconfirmed = state { return true }
        return false
    }

    /// A Boolean value that indicates whether another program's attempt was known to be pending when the last attempt
    /// of this machine was sent, or has been since. A refusal without that may have another cause, such as a scan.
    package var hasSeenForeignAttempt: Bool { hasForeignAttempt || hadForeignAttempt }

    private var attempt: Attempt? {
        switch state {
        case .idle, .cancelUnconfirmed: nil
        case .initiating(let attempt, _), .unwanted(let attempt, _, _, _), .busy(let attempt, _),
            .pending(let attempt), .cancelling(let attempt, _, _, _), .ending(let attempt, _, _):
            attempt
        }
    }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .idle: nil
        case .busy(let attempt, let until): min(until, attempt.deadline)
        case .initiating(let attempt, _), .pending(let attempt): attempt.deadline
        case .unwanted(_, _, _, let until), .cancelling(_, _, _, let until), .ending(_, _, let until): until
        case .cancelUnconfirmed(let pending):
            switch pending.confirmation {
            case .sent(_, let until, _), .ending(_, let until): until
            case nil: nil
            }
        }
    }

    /// Sends an attempt. The one before must have ended, and its cancel be confirmed.
    package mutating func begin(_ attempt: Attempt, at now: BootInstant) -> [Action] {
        guard case .idle = state else { return [.finish(.failure(.busy))] }
        guard attempt.deadline > now else { return [.finish(.failure(.timedOut))] }
        return send(attempt)
    }

    /// Sends the cancel that was not confirmed again, before an attempt to `peer`: ends in `cancelConfirmed` or in a
    /// `finish` with the failure.
    package mutating func confirmCancel(for peer: PeerID, until deadline: BootInstant, at now: BootInstant) -> [Action]
    {
        guard case .cancelUnconfirmed(var pending) = state else { return [.cancelConfirmed] }
        pending.confirmation = .sent(for: peer, until: now + HCICommandQueue.commandTimeout, end: deadline)
        state = .cancelUnconfirmed(pending)
        return [.send(Self.cancelCommand)]
    }

    /// A command of this machine has its response, or failed for the reason given.
    package mutating func commandFinished(
        _ opcode: HCIOpcode, _ failure: HCICommandFailure?, at now: BootInstant
    ) -> [Action] {
        if failure?.reason == .adapterLost { return adapterLost(at: now) }
        if failure?.reason == .timeout, opcode != .leCreateConnectionCancel { mayRespondLate = true }
        switch state {
        case .idle, .busy, .pending, .ending:
            return []
        case .initiating(let attempt, let failed):
            guard opcode == attempt.opcode else { return [] }
            return createFinished(attempt, failure, failed, at: now) + cancelLost(after: failure)
        case .unwanted(let attempt, let reason, let failed, let end):
            guard opcode == attempt.opcode else { return [] }
            return unwantedCreateFinished(attempt, failure, failed, reason, until: end) + cancelLost(after: failure)
        case .cancelling(let attempt, let reason, let tries, let end):
            guard opcode == .leCreateConnectionCancel else { return [] }
            return cancelFinished(attempt, failure, reason, tries, until: end, at: now)
        case .cancelUnconfirmed(let pending):
            return pendingCommandFinished(pending, opcode, failure, at: now)
        }
    }

    /// The controller has responded to a command, of whatever owner: it may confirm a cancel now.
    package mutating func controllerResponded(_ opcode: HCIOpcode) -> [Action] {
        guard case .cancelUnconfirmed(var pending) = state, opcode != .leCreateConnectionCancel, !pending.isRetried
        else {
            return []
        }
        if case .sent? = pending.confirmation { return [] }
        pending.isRetried = true
        state = .cancelUnconfirmed(pending)
        return [.send(Self.cancelCommand)]
    }

    /// Another program, or the kernel, sends a command.
    package mutating func received(_ foreign: HCICommandPacket) {
        switch foreign.opcode {
        case .leCreateConnection, .leExtendedCreateConnection: foreignCommands += 1
        default: break
        }
    }

    /// A response came late, or to another program's command.
    package mutating func foreignCompletion(_ opcode: HCIOpcode, _ status: HCIStatus?, at now: BootInstant) -> [Action]
    {
        switch (opcode, status) {
        case (.leCreateConnection, .success?), (.leExtendedCreateConnection, .success?):
            mayRespondLate = false
            // One that is late is this machine's own.
            if case .cancelUnconfirmed = state { return [] }
            if case .unconfirmed(let peer, let end) = lost, now < end, foreignCommands == 0 {
                return lostConfirmed(peer)
            }
            (hasForeignAttempt, hadForeignAttempt) = (true, true)
            return []
        case (.leCreateConnection, _?), (.leExtendedCreateConnection, _?):
            if mayRespondLate {
                mayRespondLate = false
            } else if foreignCommands > 0 {
                foreignCommands -= 1
            }
            return []
        case (.leCreateConnectionCancel, .success?):
            awaitsForeignEnd = hasForeignAttempt
            hasForeignAttempt = false
            return []
        case (.leCreateConnectionCancel, .commandDisallowed?):
            // In any case nothing is pending.
            hasForeignAttempt = false
            guard case .cancelUnconfirmed(let pending) = state else { return [] }
            return confirm(pending)
        default: return []
        }
    }

    /// A Connection Complete was read.
    package mutating func received(_ complete: LEConnectionComplete, at now: BootInstant) -> [Action] {
        // A controller makes one attempt at a time.
        let isForeignEnd = awaitsForeignEnd && complete.status == .unknownConnection
        let mayBeForeign = foreignCommands > 0
        if complete.isCentral { (hasForeignAttempt, awaitsForeignEnd, foreignCommands) = (false, false, 0) }
        if case .cancelUnconfirmed(let pending) = state { return ended(pending, complete, mayBeForeign: mayBeForeign) }
        guard let peer = attempt?.peer, complete.mayEndAttempt(to: peer) else { return [] }
        switch state {
        case .idle, .busy, .cancelUnconfirmed:
            return []
        // The socket that carries LE events may be ahead of the one that carries the confirmation.
        case .initiating(let attempt, _):
            if complete.status.isSuccess { return finish(.success(complete)) }
            guard complete.reportsFailure(of: peer) else { return [] }
            state = .initiating(attempt, failed: complete.status)
            return []
        case .unwanted(let attempt, let reason, _, let end):
            if complete.status.isSuccess { return disconnect(complete, from: peer, reason) }
            guard complete.reportsFailure(of: peer) else { return [] }
            state = .unwanted(attempt, reason, failed: complete.status, until: end)
            return []
        // The end of this machine's attempt is still to come.
        case .pending where isForeignEnd, .cancelling where isForeignEnd, .ending where isForeignEnd:
            return []
        case .pending:
            return finish(complete.status.isSuccess ? .success(complete) : .failure(.failed(complete.status)))
        case .cancelling(_, let reason, _, _), .ending(_, .endUnreported(let reason), _), .ending(_, let reason, _):
            return complete.status.isSuccess ? disconnect(complete, from: peer, reason) : finish(.failure(reason))
        }
    }

    /// The caller cancels the attempt, or no longer waits for `confirmCancel`.
    package mutating func cancel(at now: BootInstant) -> [Action] {
        if case .cancelUnconfirmed(let pending) = state { return stopConfirming(pending, .cancelled) }
        return cancel(.cancelled, at: now)
    }

    /// Advances to `now`.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        switch state {
        case .idle: return []
        case .initiating: return cancel(.timedOut, at: now)
        case .unwanted(let attempt, let reason, _, _), .cancelling(let attempt, let reason, _, _):
            return finishUnconfirmed(attempt, reason)
        case .busy(let attempt, _): return attempt.deadline <= now ? finish(.failure(.busy)) : send(attempt)
        case .pending(let attempt): return cancel(attempt, .timedOut, until: now + Self.cancelTimeout)
        case .ending(_, let reason, _): return finish(.failure(reason))
        case .cancelUnconfirmed(let pending):
            // Its end may have been lost; the controller has confirmed that it is over.
            if case .ending? = pending.confirmation { return confirm(pending) }
            return stopConfirming(pending, .cancelUnconfirmed(.timedOut))
        }
    }

    /// The adapter was unplugged, switched off or reset.
    package mutating func adapterLost(at now: BootInstant) -> [Action] {
        (hasForeignAttempt, awaitsForeignEnd, foreignCommands) = (false, false, 0)
        if case .confirmed = lost { lost = .none }
        switch state {
        case .idle: return []
        case .cancelUnconfirmed(let pending):
            state = .idle
            return pending.confirmation == nil ? [] : [.finish(.failure(.adapterLost))]
        case .initiating(let attempt, _), .unwanted(let attempt, _, _, _):
            lost = .unconfirmed(attempt.peer, until: now + HCICommandQueue.commandTimeout)
            mayRespondLate = true
            return finish(.failure(.adapterLost))
        case .busy, .pending, .cancelling, .ending:
            return finish(.failure(.adapterLost))
        }
    }
}

// MARK: - Turns

extension Initiator {
    /// The number of tasks that wait for their turn.
    package var waitingConnects: Int {
        if case .taken(let waiting) = turns { waiting.count } else { 0 }
    }

    /// Takes the turn to connect; `false` where another connect has it.
    package mutating func takeTurn() -> Bool {
        guard case .free = turns else { return false }
        turns = .taken(waiting: [])
        return true
    }

    /// Has a task wait for its turn.
    package mutating func awaitTurn(_ waiter: UInt64) {
        guard case .taken(let waiting) = turns else { return }
        turns = .taken(waiting: waiting + [waiter])
    }

    /// The task no longer waits for its turn.
    package mutating func cancelAwaitingTurn(_ waiter: UInt64) {
        guard case .taken(let waiting) = turns else { return }
        turns = .taken(waiting: waiting.filter { $0 != waiter })
    }

    /// Passes the turn to the first task that still waits: the one to resume.
    package mutating func passTurn(_ isWaiting: (UInt64) -> Bool) -> UInt64? {
        guard case .taken(let waiting) = turns else { return nil }
        guard let index = waiting.firstIndex(where: isWaiting) else {
            turns = .free
            return nil
        }
        turns = .taken(waiting: Array(waiting.dropFirst(index + 1)))
        return waiting[index]
    }
}

// MARK: - Transitions

extension Initiator {
    private mutating func send(_ attempt: Attempt) -> [Action] {
        state = .initiating(attempt, failed: nil)
        hadForeignAttempt = hasForeignAttempt
        return [.send(attempt.command)]
    }

    private mutating func createFinished(
        _ attempt: Attempt, _ failure: HCICommandFailure?, _ failed: HCIStatus?, at now: BootInstant
    ) -> [Action] {
        if let failed, failure?.status == nil { return finish(.failure(.failed(failed))) }
        guard let failure else {
            state = .pending(attempt)
            return attempt.deadline <= now ? cancel(attempt, .timedOut, until: now + Self.cancelTimeout) : []
        }
        if failure.reason == .timeout {
            // The controller may initiate all the same.
            return cancel(attempt, .refused(failure), tries: Self.cancelTries, until: now + Self.cancelTimeout)
        }
        guard isBusy(failure), !(attempt.mayBeDisallowed && failure.status == .commandDisallowed) else {
            return finish(.failure(.refused(failure)))
        }
        retries += 1
        let pause = min(Self.firstBusyPause * retries, Self.longestBusyPause)
        state = .busy(attempt, until: now + pause)
        return attempt.deadline <= now ? finish(.failure(.busy)) : []
    }

    /// Whether the controller refuses because another program's attempt is pending.
    private func isBusy(_ failure: HCICommandFailure) -> Bool {
        switch failure.status {
        case nil, .unknownCommand?, .unsupportedFeature?, .invalidParameters?, .connectionAlreadyExists?: false
        case .commandDisallowed?: true
        default: hasSeenForeignAttempt
        }
    }

    private mutating func unwantedCreateFinished(
        _ attempt: Attempt, _ failure: HCICommandFailure?, _ failed: HCIStatus?, _ reason: Failure,
        until end: BootInstant
    ) -> [Action] {
        // It has ended: a cancel would be refused, as if its end had been lost.
        if failed != nil, failure == nil || failure?.reason == .timeout { return finish(.failure(reason)) }
        guard let failure else { return cancel(attempt, reason, until: end) }
        if failure.reason == .timeout { return cancel(attempt, reason, tries: Self.cancelTries, until: end) }
        return finish(.failure(reason == .timedOut ? obstacle(failure) : reason))
    }

    /// What kept the controller from initiating is a more exact reason than that the time is over.
    private func obstacle(_ failure: HCICommandFailure) -> Failure {
        if isBusy(failure) { return .busy }
        return switch failure.reason {
        // Withdrawn: commands before it had no response for so long.
        case .cancelled: .refused(HCICommandFailure(opcode: failure.opcode, reason: .timeout))
        default: .refused(failure)
        }
    }

    private mutating func cancelFinished(
        _ attempt: Attempt, _ failure: HCICommandFailure?, _ reason: Failure, _ tries: Int, until end: BootInstant,
        at now: BootInstant
    ) -> [Action] {
        guard let failure, failure.status != .commandDisallowed else {
            let unreported = failure == nil ? reason : .endUnreported(reason)
            state = .ending(attempt, unreported, until: max(end, now + Self.endTimeout))
            return []
        }
        if failure.status != nil { return finish(.failure(reason)) }
        guard tries < Self.cancelTries else { return finishUnconfirmed(attempt, reason) }
        return cancel(attempt, reason, tries: tries + 1, until: end)
    }

    /// Cancels the attempt, wherever it stands.
    private mutating func cancel(_ reason: Failure, at now: BootInstant) -> [Action] {
        switch state {
        case .busy:
            return finish(.failure(reason))
        case .initiating(let attempt, let failed):
            state = .unwanted(attempt, reason, failed: failed, until: now + Self.cancelTimeout)
            return [.withdraw(attempt.opcode)]
        case .pending(let attempt):
            return cancel(attempt, reason, until: now + Self.cancelTimeout)
        case .idle, .unwanted, .cancelling, .ending, .cancelUnconfirmed:
            return []
        }
    }

    private mutating func cancel(
        _ attempt: Attempt, _ reason: Failure, tries: Int = 1, until end: BootInstant
    ) -> [Action] {
        state = .cancelling(attempt, reason, tries: tries, until: end)
        return [.send(Self.cancelCommand)]
    }

    private mutating func disconnect(
        _ complete: LEConnectionComplete, from peer: PeerID, _ reason: Failure
    ) -> [Action] {
        [.disconnect(complete.handle, from: peer)] + finish(.failure(reason))
    }

    private mutating func finish(_ result: Result<LEConnectionComplete, Failure>) -> [Action] {
        state = .idle
        retries = 0
        return [.finish(result)]
    }

    // MARK: The cancel that was not confirmed

    /// The controller initiates a connection that nobody waits for since the adapter's loss.
    private mutating func lostConfirmed(_ peer: PeerID) -> [Action] {
        lost = .none
        if case .idle = state { return cancelLost(peer) }
        (hasForeignAttempt, hadForeignAttempt) = (true, true)
        if case .busy = state { return cancelLost(peer) }
        lost = .confirmed(peer)
        return []
    }

    /// The controller has responded to the attempt after that one, or that was withdrawn.
    private mutating func cancelLost(after failure: HCICommandFailure?) -> [Action] {
        guard let failure else {
            // It would have had no room: the lost one was not begun, or has ended.
            lost = .none
            return []
        }
        guard case .confirmed(let peer) = lost else { return [] }
        lost = .none
        // The cancel that follows a missing response is one for both.
        return failure.reason == .timeout ? [] : cancelLost(peer)
    }

    private mutating func cancelLost(_ peer: PeerID) -> [Action] {
        if case .idle = state { state = .cancelUnconfirmed(PendingCancel(peer: peer, isRetried: true)) }
        return [.send(Self.cancelCommand)]
    }

    private mutating func finishUnconfirmed(_ attempt: Attempt, _ reason: Failure) -> [Action] {
        let actions = finish(.failure(.cancelUnconfirmed(reason)))
        state = .cancelUnconfirmed(PendingCancel(peer: attempt.peer))
        return actions
    }

    private mutating func pendingCommandFinished(
        _ pending: PendingCancel, _ opcode: HCIOpcode, _ failure: HCICommandFailure?, at now: BootInstant
    ) -> [Action] {
        var pending = pending
        if opcode == .leCreateConnectionCancel { pending.isRetried = false }
        state = .cancelUnconfirmed(pending)
        // Also to a late Create Connection: it was refused.
        if failure?.status != nil { return confirm(pending) }
        guard opcode == .leCreateConnectionCancel, case .sent(let next, let until, let end)? = pending.confirmation
        else { return [] }
        guard let failure else {
            // There is room for another attempt when this one has ended.
            pending.confirmation = .ending(for: next, until: min(end, now + Self.cancelTimeout))
            state = .cancelUnconfirmed(pending)
            return []
        }
        guard failure.reason == .timeout || failure.reason == .cancelled else {
            return stopConfirming(pending, .refused(failure))
        }
        // Before that time it is the failure of a cancel that was sent earlier.
        return now < until ? [] : stopConfirming(pending, .cancelUnconfirmed(.timedOut))
    }

    private mutating func ended(
        _ pending: PendingCancel, _ complete: LEConnectionComplete, mayBeForeign: Bool
    ) -> [Action] {
        guard complete.mayEndAttempt(to: pending.peer) else { return [] }
        // The task that waits to connect to this very peer has its link.
        let isWanted = pending.confirmation?.next == pending.peer
        let actions = confirm(pending)
        guard complete.status.isSuccess, !isWanted, !mayBeForeign else { return actions }
        return actions + [.disconnect(complete.handle, from: pending.peer)]
    }

    /// No attempt is pending any more.
    private mutating func confirm(_ pending: PendingCancel) -> [Action] {
        state = .idle
        return pending.confirmation == nil ? [] : [.cancelConfirmed]
    }

    /// The task that waits for the confirmation resumes without it; the cancel stays unconfirmed.
    private mutating func stopConfirming(_ pending: PendingCancel, _ failure: Failure) -> [Action] {
        guard let confirmation = pending.confirmation else { return [] }
        var pending = pending
        pending.confirmation = nil
        state = .cancelUnconfirmed(pending)
        guard case .sent = confirmation else { return [.finish(.failure(failure))] }
        return [.withdraw(.leCreateConnectionCancel), .finish(.failure(failure))]
    }

    private static var cancelCommand: HCICommandPacket { HCICommandPacket(LECreateConnectionCancel()) }

    /// The time that a cancel may take in all.
    package static let cancelTimeout: Duration = .seconds(3)
    /// The time that the end of an attempt may take at least, once the controller has confirmed the cancel.
    package static let endTimeout: Duration = .seconds(1)
    /// The number of times that Cancel is sent.
    package static let cancelTries = 2
    /// The first pause before a retry while another program's attempt is pending; each further one is this much longer.
    package static let firstBusyPause: Duration = .milliseconds(100)
    /// The longest such pause.
    package static let longestBusyPause: Duration = .milliseconds(500)
}

extension LEConnectionComplete {
    /// Whether it reports that an attempt to this peer has failed. Without the address, or as a cancelled one, it may
    /// be the end of an earlier attempt.
    fileprivate func reportsFailure(of target: PeerID) -> Bool {
        peer == target && !status.isSuccess && status != .unknownConnection
    }
}
