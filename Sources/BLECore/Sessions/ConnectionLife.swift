// The life of a connection that is to last: through lost links, failed connects and an adapter that goes and comes.
//
// Duties: say when to connect, when to make a link ready, when to wait and for what, and when to give up; tell all of it in
// order. What a failure was, only the owner knows: it hands in a `Setback` that says what kind it is.
//
// Invariants:
// - One thing is under way at a time: a connect, the work on a fresh link, a wait. `letGo` comes before the next one begins.
// - Nobody has the link before the work on it is done; if that fails or takes too long, it was a failed connect.
// - The counts of attempts and pauses start over only when a link has proven itself by having been ready for `provenAfter`, or
//   when the program says so. A peer that takes links and drops them is called ever more rarely.
// - An adapter that is away costs no attempt and has no pauses. One that comes back again and again without a proven link in
//   between is given longer and longer pauses all the same: it would be a loop without an end.
// - A wish to end overtakes everything. Behind `end` nothing is begun, and `.ended` is told once, when all has been let go.
//
// The machine never acts and never asks for the time.

/// Keeps a connection wanted, or ends it.
package struct ConnectionLife: ~Copyable {
    /// What kind of failure, or loss, it was.
    package enum Setback: Hashable, Sendable {
        /// It may go better another time.
        case passing
        /// The adapter is off or away.
        case adapterLost
        /// It will be the same each time.
        case final
    }

    /// Who decides about the next attempt.
    package enum Verdict: Hashable, Sendable {
        /// The policy, with a random number for its jitter.
        case byPolicy(chance: UInt64)
        /// The program: a pause, or no more attempts.
        case custom(Duration?)
    }

    /// When the next attempt is made.
    package enum Next: Hashable, Sendable {
        case after(Duration)
        case whenAdapterReturns
        case never
    }

    /// What happened.
    package enum Event: Hashable, Sendable {
        case connecting(attempt: Int)
        case connected
        case ready
        case disconnected(Next)
        case gaveUp
        case paused
        case ended
    }

    /// What to do now.
    package enum Action: Hashable, Sendable {
        /// Tell everybody.
        case tell(Event)
        /// Connect; call `linkUp` or `failed`.
        case connect
        /// Make the link ready; call `prepared` or `failed`.
        case prepare
        /// Making the link ready takes too long: call `failed`.
        case overdue
        /// Wait for the adapter; call `adapterReturned`.
        case awaitAdapter
        /// Take back what is under way, and end the link if there is one. After `end`, call `released` when that is done.
        case letGo
    }

    private enum State {
        case idle
        case connecting
        case preparing(until: BootInstant?)
        case ready(since: BootInstant)
        case waiting(until: BootInstant)
        case waitingForAdapter
        case gaveUp
        /// The program has the link.
        case paused
        case ending
        case ended
    }

    private let policy: ReconnectPolicy
    private let provenAfter: Duration
    private let preparation: Duration?
    private var state = State.idle
    private var attempts = 0
    private var pauses = 0
    private var returns = 0

    /// A connection that nobody wants yet.
    ///
    /// - Parameters:
    ///   - provenAfter: For how long a link must have been ready for the counts to start over.
    ///   - preparation: How long making a link ready may take; `nil` for any time.
    package init(_ policy: ReconnectPolicy, provenAfter: Duration, preparation: Duration?) {
        self.policy = policy
        self.provenAfter = provenAfter
        self.preparation = preparation
    }
}

// MARK: - What is so

extension ConnectionLife {
    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .preparing(let until): until
        case .waiting(let until): until
        case .idle, .connecting, .ready, .waitingForAdapter, .gaveUp, .paused, .ending, .ended: nil
        }
    }

    /// Whether nobody wants the connection any more.
    package var isEnding: Bool {
        switch state {
        case .ending, .ended: true
        case .idle, .connecting, .preparing, .ready, .waiting, .waitingForAdapter, .gaveUp, .paused: false
        }
    }

    /// Whether the program has the link, and none is made until it wants one.
    package var isPaused: Bool {
        if case .paused = state { true } else { false }
    }

    /// How many connects have failed in a row if one, or the link, fails now.
    package func failures(at now: BootInstant) -> Int {
        if case .ready(let since) = state, now - since >= provenAfter { return 0 }
        return attempts
    }
}

// MARK: - What happens

extension ConnectionLife {
    /// Somebody wants the connection now: no pause is awaited any more, and the counts start over.
    package mutating func want() -> [Action] {
        switch state {
        case .idle, .gaveUp, .waiting, .paused:
            startOver()
            return connect()
        case .waitingForAdapter:
            startOver()
            return [.letGo] + connect()
        case .connecting, .preparing, .ready, .ending, .ended:
            return []
        }
    }

    /// The link is up.
    package mutating func linkUp(at now: BootInstant) -> [Action] {
        guard case .connecting = state else { return [] }
        state = .preparing(until: preparation.map { now + $0 })
        return [.tell(.connected), .prepare]
    }

    /// The link is ready for everybody.
    package mutating func prepared(at now: BootInstant) -> [Action] {
        guard case .preparing = state else { return [] }
        state = .ready(since: now)
        return [.tell(.ready)]
    }

    /// The program has taken the link that was ready: its end is none of this machine's business, and none is made until `want`.
    package mutating func pause() -> [Action] {
        guard case .ready = state else { return [] }
        state = .paused
        return [.tell(.paused)]
    }

    /// The connect or the work on the link has failed, or the link was lost.
    package mutating func failed(_ setback: Setback, _ verdict: Verdict, at now: BootInstant) -> [Action] {
        switch state {
        case .connecting, .preparing:
            break
        case .ready(let since):
            if now - since >= provenAfter { startOver() }
        case .idle, .waiting, .waitingForAdapter, .gaveUp, .paused, .ending, .ended:
            return []
        }
        switch setback {
        case .adapterLost where policy != .never:
            if attempts > 0 { attempts -= 1 }
            state = .waitingForAdapter
            return [.letGo, .tell(.disconnected(.whenAdapterReturns)), .awaitAdapter]
        case .final, .adapterLost:
            return giveUp()
        case .passing:
            pauses += 1
            let pause =
                switch verdict {
                case .byPolicy(let chance): policy.pause(afterFailures: attempts, number: pauses, chance: chance)
                case .custom(let pause): pause
                }
            guard let pause else { return giveUp() }
            return [.letGo] + wait(pause > .zero ? pause : pauses > 1 ? Self.pauseInsteadOfNone : .zero, at: now)
        }
    }

    /// The adapter can be used again.
    package mutating func adapterReturned(at now: BootInstant) -> [Action] {
        guard case .waitingForAdapter = state else { return [] }
        returns += 1
        guard returns > 1 else { return connect() }
        return wait(min(Self.firstReturn * (1 << min(returns - 2, 10)), Self.longestReturn), at: now)
    }

    /// The clock went on.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        switch state {
        case .preparing:
            state = .preparing(until: nil)
            return [.overdue]
        case .waiting:
            return connect()
        case .idle, .connecting, .ready, .waitingForAdapter, .gaveUp, .paused, .ending, .ended:
            return []
        }
    }

    /// Nobody wants the connection any more.
    package mutating func end() -> [Action] {
        switch state {
        case .ending, .ended:
            return []
        case .idle, .connecting, .preparing, .ready, .waiting, .waitingForAdapter, .gaveUp, .paused:
            state = .ending
            return [.letGo]
        }
    }

    /// All has been let go after `end`.
    package mutating func released() -> [Action] {
        guard case .ending = state else { return [] }
        state = .ended
        return [.tell(.ended)]
    }
}

// MARK: - Steps

extension ConnectionLife {
    private mutating func startOver() {
        attempts = 0
        pauses = 0
        returns = 0
    }

    private mutating func connect() -> [Action] {
        attempts += 1
        state = .connecting
        return [.tell(.connecting(attempt: attempts)), .connect]
    }

    private mutating func wait(_ pause: Duration, at now: BootInstant) -> [Action] {
        state = .waiting(until: now + pause)
        return [.tell(.disconnected(.after(pause)))]
    }

    private mutating func giveUp() -> [Action] {
        state = .gaveUp
        return [.letGo, .tell(.disconnected(.never)), .tell(.gaveUp)]
    }

    /// What a policy of no pauses gets from the second on: it would do nothing but connect.
    package static let pauseInsteadOfNone: Duration = .milliseconds(100)
    /// The pause after the second return of the adapter in a row; each further one is twice as long.
    package static let firstReturn: Duration = .seconds(1)
    /// The longest pause after a return.
    package static let longestReturn: Duration = .seconds(30)
}
