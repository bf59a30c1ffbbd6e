// The reconnect machine: keeps a connection across lost links, failed connects and an adapter that disappears and
// returns.
//
// Duties: decide when to connect, when to make a link ready, when to wait and for what, and when to give up; report
// each of these in order. Only the owner can classify a failure: it passes the `FailureKind`.
//
// Invariants:
// - One thing is pending at a time: a connect, the preparation of a new link, a wait. `tearDown` comes before the next
//   one begins.
// - The link is not available before it has been prepared; if that fails or takes too long, it counts as a failed
//   connect.
// - The counts of attempts and pauses start over only when a link has proven stable by having been ready for
//   `resetBackoffAfter`, or when the program requests it. A peer that accepts links and drops them is connected less
//   and less often.
// - An adapter that is away costs no attempt and has no pauses. One that comes back again and again without a stable
//   link in between is still given longer and longer pauses, because the loop would never end.
// - A request to end overtakes everything. After `end` nothing new begins, and `.ended` is reported once, when
//   everything has been released.
//
// The machine never acts and never reads the time.

/// Keeps a connection, or ends it.
package struct ReconnectMachine: ~Copyable {
    /// The kind of a failure or loss.
    package enum FailureKind: Hashable, Sendable {
        /// A later attempt may succeed.
        case passing
        /// The adapter is off or away.
        case adapterLost
        /// Every attempt will fail.
        case final
    }

    /// The decision about the next attempt.
    package enum Verdict: Hashable, Sendable {
        /// By the policy, with a random number for its jitter.
        case byPolicy(chance: UInt64)
        /// By the program: a pause, or no more attempts.
        case custom(Duration?)
    }

    /// The time of the next attempt.
    package enum Next: Hashable, Sendable {
        case after(Duration)
        case whenAdapterReturns
        case never
    }

    /// An event to report.
    package enum Event: Hashable, Sendable {
        case connecting(attempt: Int)
        case connected
        case ready
        case disconnected(Next)
        case gaveUp
        case paused
        case ended
    }

    /// An action for the owner to perform.
    package enum Action: Hashable, Sendable {
        /// Report an event.
        case report(Event)
        /// Connect; call `linkUp` or `failed`.
        case connect
        /// Make the link ready; call `prepared` or `failed`.
        case prepare
        /// Making the link ready takes too long: call `failed`.
        case overdue
        /// Wait for the adapter; call `adapterReturned`.
        case awaitAdapter
        /// Cancel pending work, and end the link if there is one. After `end`, call `released` when that is done.
        case tearDown
    }

    private enum State {
        case idle
        case connecting
        case preparing(until: BootInstant?)
        case ready(since: BootInstant)
        case waiting(until: BootInstant)
        case waitingForAdapter
        case gaveUp
        /// The program has taken the link.
        case paused
        case ending
        case ended
    }

    private let policy: ReconnectPolicy
    private let resetBackoffAfter: Duration
    private let preparation: Duration?
    private var state = State.idle
    private var attempts = 0
    private var pauses = 0
    private var returns = 0

    /// Creates a machine for a connection that is not requested yet.
    ///
    /// - Parameters:
    ///   - resetBackoffAfter: The time for which a link must have been ready before the counts start over.
    ///   - preparation: The longest time for making a link ready; `nil` for no limit.
    package init(_ policy: ReconnectPolicy, resetBackoffAfter: Duration, preparation: Duration?) {
        self.policy = policy
        self.resetBackoffAfter = resetBackoffAfter
        self.preparation = preparation
    }
}

// MARK: - State

extension ReconnectMachine {
    /// The latest time of the next call of `timePassed`.
    package var nextDeadline: BootInstant? {
        switch state {
        case .preparing(let until): until
        case .waiting(let until): until
        case .idle, .connecting, .ready, .waitingForAdapter, .gaveUp, .paused, .ending, .ended: nil
        }
    }

    /// A Boolean value that indicates whether the connection is being ended.
    package var isEnding: Bool {
        switch state {
        case .ending, .ended: true
        case .idle, .connecting, .preparing, .ready, .waiting, .waitingForAdapter, .gaveUp, .paused: false
        }
    }

    /// A Boolean value that indicates whether the program has taken the link, and none is made until it requests one.
    package var isPaused: Bool {
        if case .paused = state { true } else { false }
    }

    /// Returns the number of connects that have failed in a row if one, or the link, fails now.
    package func failures(at now: BootInstant) -> Int {
        if case .ready(let since) = state, now - since >= resetBackoffAfter { return 0 }
        return attempts
    }
}

// MARK: - Events

extension ReconnectMachine {
    /// The connection is requested now: pauses are skipped, and the counts start over.
    package mutating func want() -> [Action] {
        switch state {
        case .idle, .gaveUp, .waiting, .paused:
            startOver()
            return connect()
        case .waitingForAdapter:
            startOver()
            return [.tearDown] + connect()
        case .connecting, .preparing, .ready, .ending, .ended:
            return []
        }
    }

    /// The link is up.
    package mutating func linkUp(at now: BootInstant) -> [Action] {
        guard case .connecting = state else { return [] }
        state = .preparing(until: preparation.map { now + $0 })
        return [.report(.connected), .prepare]
    }

    /// The link is ready for use.
    package mutating func prepared(at now: BootInstant) -> [Action] {
        guard case .preparing = state else { return [] }
        state = .ready(since: now)
        return [.report(.ready)]
    }

    /// The program has taken the ready link: its end no longer concerns this machine, and no link is made until
    /// `want`.
    package mutating func pause() -> [Action] {
        guard case .ready = state else { return [] }
        state = .paused
        return [.report(.paused)]
    }

    /// The connect or the preparation of the link has failed, or the link was lost.
    /// What is final may be known only after that.
    package mutating func failed(_ kind: FailureKind, _ verdict: Verdict, at now: BootInstant) -> [Action] {
        switch state {
        case .connecting, .preparing:
            break
        case .ready(let since):
            if now - since >= resetBackoffAfter { startOver() }
        case .waiting, .waitingForAdapter:
            guard kind == .final else { return [] }
        case .idle, .gaveUp, .paused, .ending, .ended:
            return []
        }
        switch kind {
        case .adapterLost where policy != .never:
            if attempts > 0 { attempts -= 1 }
            state = .waitingForAdapter
            return [.tearDown, .report(.disconnected(.whenAdapterReturns)), .awaitAdapter]
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
            return [.tearDown] + wait(pause > .zero ? pause : pauses > 1 ? Self.pauseInsteadOfNone : .zero, at: now)
        }
    }

    /// The adapter can be used again.
    package mutating func adapterReturned(at now: BootInstant) -> [Action] {
        guard case .waitingForAdapter = state else { return [] }
        returns += 1
        guard returns > 1 else { return connect() }
        return wait(min(Self.firstReturn * (1 << min(returns - 2, 10)), Self.longestReturn), at: now)
    }

    /// Called when time has passed.
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

    /// The connection is no longer requested.
    package mutating func end() -> [Action] {
        switch state {
        case .ending, .ended:
            return []
        case .idle, .connecting, .preparing, .ready, .waiting, .waitingForAdapter, .gaveUp, .paused:
            state = .ending
            return [.tearDown]
        }
    }

    /// Everything has been released after `end`.
    package mutating func released() -> [Action] {
        guard case .ending = state else { return [] }
        state = .ended
        return [.report(.ended)]
    }
}

// MARK: - Steps

extension ReconnectMachine {
    private mutating func startOver() {
        attempts = 0
        pauses = 0
        returns = 0
    }

    private mutating func connect() -> [Action] {
        attempts += 1
        state = .connecting
        return [.report(.connecting(attempt: attempts)), .connect]
    }

    private mutating func wait(_ pause: Duration, at now: BootInstant) -> [Action] {
        state = .waiting(until: now + pause)
        return [.report(.disconnected(.after(pause)))]
    }

    private mutating func giveUp() -> [Action] {
        state = .gaveUp
        return [.tearDown, .report(.disconnected(.never)), .report(.gaveUp)]
    }

    /// The pause from the second one on for a policy without pauses, which would otherwise only connect.
    package static let pauseInsteadOfNone: Duration = .milliseconds(100)
    /// The pause after the second return of the adapter in a row; each further one is twice as long.
    package static let firstReturn: Duration = .seconds(1)
    /// The longest pause after a return.
    package static let longestReturn: Duration = .seconds(30)
}
