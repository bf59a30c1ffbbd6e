// One call to a peer through the controller: LE (Extended) Create Connection, its end, and a cancel that really cancels.
//
// Duties: send the call, wait for the Connection Complete that belongs to it, keep the deadline, take the call back when it
// passes or the caller gives up. The owner has paused the scan before and resumes it afterwards; it attaches a socket to
// the link within 2 s, else the kernel drops the link.
//
// Invariants:
// - The call ends exactly once, in a `finish` action, whatever the controller does; nothing is finished before the
//   controller is free for the next call, or has been given 3 s in all to become so, and 1 s for the call's end.
// - A controller calls one peer at a time. Refused with Command Disallowed, somebody else's call is out: this one waits
//   its turn, within its deadline.
// - A call that nobody wants any more is withdrawn where it still waits in the queue of commands: it is never made.
// - The link may come up in the very moment in which the call is taken back. It is then disconnected, never left over.
// - Completions of other peers' links are not ours, and a link in which this host is the peripheral never is. A failed
//   call may be reported without an address.
// - Cancel answered with Command Disallowed says that no call is out: its completion is on its way, or was lost.
// - A cancel without an answer is repeated once, unless the call had no answer either. A controller that is silent then may call on:
//   the end says so, and the owner takes that call back before it lets the next one go out.

/// Calls one peer.
package struct LEConnect: ~Copyable {
    /// What to call, and how.
    package struct Call: Hashable, Sendable {
        package var initiation: LEInitiation
        /// The PHYs to call on with the extended command.
        package var phys: LEPHYs
        /// Whether the controller has the extended command; the legacy one must then not be used.
        package var isExtended: Bool
        package var deadline: BootInstant

        package init(
            _ initiation: LEInitiation, phys: LEPHYs = .le1M, isExtended: Bool, deadline: BootInstant
        ) {
            self.initiation = initiation
            self.phys = phys
            self.isExtended = isExtended
            self.deadline = deadline
        }
    }

    /// Why there is no link.
    package enum Failure: Error, Hashable, Sendable {
        /// The controller did not take the call, or was silent.
        case refused(HCICommandFailure)
        /// The controller took the call, and it failed.
        case failed(HCIStatus)
        /// Somebody else's call was out until the deadline.
        case busy
        /// The peer was not heard before the deadline.
        case timedOut
        /// The caller gave up.
        case cancelled
        /// The adapter was unplugged, switched off or reset.
        case adapterLost
        /// The call was to be taken back, for the reason given, and the controller did not say that it was: it may call on.
        indirect case notTakenBack(Failure)
    }

    /// What to do now.
    package enum Action: Hashable, Sendable {
        /// Put this command into the adapter's queue, and call `commandFinished` with what comes of it.
        case send(HCICommandPacket)
        /// Take the command with this opcode out of the queue if it still waits there: it ends as `.cancelled` then.
        case withdraw(HCIOpcode)
        /// Tell the caller.
        case finish(Result<LEConnectionComplete, Failure>)
    }

    private enum State {
        case idle
        /// The call was sent and is not confirmed. That it has failed may have been read already.
        case calling(failed: HCIStatus?)
        /// As before, but nobody wants it any more: it is taken back as soon as it is confirmed, and the end comes by `until`.
        case unwanted(Failure, until: BootInstant)
        /// The controller refused because of another call; ours is sent again at `until`.
        case waitingForTurn(until: BootInstant)
        /// The controller calls.
        case waiting
        /// The call is being taken back, the first or the second time it was asked for; the end comes by `until`.
        case cancelling(Failure, attempt: Int, until: BootInstant)
        /// The controller has said that nothing is out any more; what became of the call comes by `until`.
        case ending(Failure, until: BootInstant)
        case finished
    }

    private let call: Call
    /// Who is called.
    package let peer: PeerID
    private var state = State.idle
    private var turns = 0

    package init(_ call: Call) {
        self.call = call
        peer = PeerID(address: call.initiation.peerAddress, type: call.initiation.peerAddressType)
    }

    /// Whether the call has ended.
    package var isFinished: Bool {
        if case .finished = state { return true }
        return false
    }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .idle, .finished: nil
        case .waitingForTurn(let until): min(until, call.deadline)
        case .calling, .waiting: call.deadline
        case .unwanted(_, let until), .cancelling(_, _, let until), .ending(_, let until): until
        }
    }

    /// Sends the call.
    package mutating func begin(at now: BootInstant) -> [Action] {
        guard case .idle = state else { return [] }
        guard call.deadline > now else { return finish(.failure(.timedOut)) }
        return send()
    }

    /// A command of this call has been answered, or failed for the reason given.
    package mutating func commandFinished(
        _ opcode: HCIOpcode, _ failure: HCICommandFailure?, at now: BootInstant
    ) -> [Action] {
        if failure?.reason == .adapterLost { return adapterLost() }
        switch state {
        case .idle, .waitingForTurn, .waiting, .ending, .finished:
            return []
        case .calling(let failed):
            return opcode == callOpcode ? callAnswered(failure, failed, at: now) : []
        case .unwanted(let reason, let end):
            return opcode == callOpcode ? unwantedCallAnswered(failure, reason, until: end) : []
        case .cancelling(let reason, let attempt, let end):
            guard opcode == .leCreateConnectionCancel else { return [] }
            return cancelAnswered(failure, reason, attempt, until: end, at: now)
        }
    }

    /// A Connection Complete was read.
    package mutating func received(_ complete: LEConnectionComplete, at now: BootInstant) -> [Action] {
        guard complete.isOfCall(to: peer) else { return [] }
        switch state {
        case .idle, .waitingForTurn, .finished:
            return []
        // The socket that carries LE events may be ahead of the one that carries the confirmation.
        case .calling:
            if complete.status.isSuccess { return finish(.success(complete)) }
            // Without the address, or as one that was taken back, it may be the end of an earlier call.
            guard complete.peer == peer, complete.status != .unknownConnection else { return [] }
            state = .calling(failed: complete.status)
            return []
        case .unwanted(let reason, _):
            return complete.status.isSuccess ? drop(complete, reason) : []
        case .waiting:
            return finish(complete.status.isSuccess ? .success(complete) : .failure(.failed(complete.status)))
        case .cancelling(let reason, _, _), .ending(let reason, _):
            return complete.status.isSuccess ? drop(complete, reason) : finish(.failure(reason))
        }
    }

    /// The caller gives up.
    package mutating func cancel(at now: BootInstant) -> [Action] {
        giveUp(.cancelled, at: now)
    }

    /// The clock went on.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        switch state {
        case .idle, .finished: return []
        case .calling: return giveUp(.timedOut, at: now)
        case .unwanted(let reason, _): return finish(.failure(.notTakenBack(reason)))
        case .waitingForTurn: return call.deadline <= now ? finish(.failure(.busy)) : send()
        case .waiting: return takeBack(.timedOut, until: now + Self.patience)
        case .cancelling(let reason, _, _): return finish(.failure(.notTakenBack(reason)))
        case .ending(let reason, _): return finish(.failure(reason))
        }
    }

    /// The adapter was unplugged, switched off or reset.
    package mutating func adapterLost() -> [Action] {
        if isFinished { return [] }
        return finish(.failure(.adapterLost))
    }
}

extension LEConnect {
    private var callOpcode: HCIOpcode {
        call.isExtended ? .leExtendedCreateConnection : .leCreateConnection
    }

    private mutating func callAnswered(
        _ failure: HCICommandFailure?, _ failed: HCIStatus?, at now: BootInstant
    ) -> [Action] {
        if let failed, failure?.status == nil { return finish(.failure(.failed(failed))) }
        guard let failure else {
            state = .waiting
            return call.deadline <= now ? takeBack(.timedOut, until: now + Self.patience) : []
        }
        if failure.reason == .timeout {
            // The controller may be calling all the same.
            return takeBack(.refused(failure), attempt: Self.cancelAttempts, until: now + Self.patience)
        }
        guard failure.status == .commandDisallowed else { return finish(.failure(.refused(failure))) }
        turns += 1
        state = .waitingForTurn(until: now + min(Self.firstTurn * turns, Self.longestTurn))
        return call.deadline <= now ? finish(.failure(.busy)) : []
    }

    private mutating func unwantedCallAnswered(
        _ failure: HCICommandFailure?, _ reason: Failure, until end: BootInstant
    ) -> [Action] {
        guard let failure else { return takeBack(reason, until: end) }
        if failure.reason == .timeout { return takeBack(reason, attempt: Self.cancelAttempts, until: end) }
        return finish(.failure(reason == .timedOut ? Self.obstacle(failure) : reason))
    }

    /// What kept the controller from calling says more than that the time is over.
    private static func obstacle(_ failure: HCICommandFailure) -> Failure {
        switch failure.reason {
        case .status(.commandDisallowed): .busy
        // Withdrawn: others had no answer for so long.
        case .cancelled: .refused(HCICommandFailure(opcode: failure.opcode, reason: .timeout))
        default: .refused(failure)
        }
    }

    private mutating func cancelAnswered(
        _ failure: HCICommandFailure?, _ reason: Failure, _ attempt: Int, until end: BootInstant, at now: BootInstant
    ) -> [Action] {
        guard let failure, failure.status != .commandDisallowed else {
            state = .ending(reason, until: max(end, now + Self.endPatience))
            return []
        }
        if failure.status != nil { return finish(.failure(reason)) }
        guard attempt < Self.cancelAttempts else { return finish(.failure(.notTakenBack(reason))) }
        return takeBack(reason, attempt: attempt + 1, until: end)
    }

    private mutating func send() -> [Action] {
        state = .calling(failed: nil)
        return [
            .send(
                call.isExtended
                    ? HCICommandPacket(LEExtendedCreateConnection(call.initiation, phys: call.phys))
                    : HCICommandPacket(LECreateConnection(call.initiation)))
        ]
    }

    private mutating func giveUp(_ reason: Failure, at now: BootInstant) -> [Action] {
        switch state {
        case .idle, .waitingForTurn:
            return finish(.failure(reason))
        case .calling:
            state = .unwanted(reason, until: now + Self.patience)
            return [.withdraw(callOpcode)]
        case .waiting:
            return takeBack(reason, until: now + Self.patience)
        case .unwanted, .cancelling, .ending, .finished:
            return []
        }
    }

    private mutating func takeBack(_ reason: Failure, attempt: Int = 1, until end: BootInstant) -> [Action] {
        state = .cancelling(reason, attempt: attempt, until: end)
        return [.send(HCICommandPacket(LECreateConnectionCancel()))]
    }

    private mutating func drop(_ complete: LEConnectionComplete, _ reason: Failure) -> [Action] {
        [.send(HCICommandPacket(HCIDisconnect(handle: complete.handle)))] + finish(.failure(reason))
    }

    private mutating func finish(_ result: Result<LEConnectionComplete, Failure>) -> [Action] {
        state = .finished
        return [.finish(result)]
    }

    /// How long it may take in all to take a call back.
    package static let patience: Duration = .seconds(3)
    /// How long the end of a call may take at least, once the controller has said that it takes it back.
    package static let endPatience: Duration = .seconds(1)
    /// How often the controller is told to take a call back.
    package static let cancelAttempts = 2
    /// The first wait for somebody else's call; each further one is this much longer.
    package static let firstTurn: Duration = .milliseconds(100)
    /// The longest wait for somebody else's call.
    package static let longestTurn: Duration = .milliseconds(500)
}
