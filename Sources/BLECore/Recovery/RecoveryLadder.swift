// The recovery of one adapter that has stopped reporting or responding: one step after the other, until one helps.
//
// Duties: decide which step comes next and when, judge each by what is received after it, and keep steps that end links rare.
//
// | step | after | judged after |
// |---|---|---|
// | rescan | 90 s of silence, 30 s on an adapter that hears much; the scan session takes it | 15 s |
// | event masks | rescan in vain | 15 s |
// | power | event masks in vain, or 3 commands without a response in 30 s | 10 s |
// | radio switch | power refused, because the radio is blocked | 5 s |
// | USB port | power in vain | 10 s |
// | driver | USB port in vain, or none there | 10 s |
//
// Invariants:
// - One step is taken at a time. A step that is being taken ends by `stepFinished`, whatever happens meanwhile.
// - A step is judged only while the program listens: not while the scan makes way for a connect, or cannot run.
// - Links are ended for silence after 120 s at the earliest, also where 30 s were unusual.
// - A step that was refused because of other programs is no run, and is followed by no harsher one but by a pause of 5 minutes. An
//   adapter that has gone ends the trouble.
// - Silence ends with a report that has data, and missing responses end with a response. What comes while a step is being taken
//   proves nothing.
// - A run is what is done from `power` on, until something helps or nothing is left. After the first run in a row there is a
//   pause of 1 minute, after the second of 5 and after each further one of 30, and there are 4 runs in an hour at most. An hour
//   without a run begins a new row.
// - After everything that is permitted, the next run begins when it may; without a right to runs, there is none. The session of
//   the scan goes on to begin it again, and each time the events are switched on again, without a notice: what has masked them
//   may have come later. `exhausted` is reported once for each trouble.
// - Trouble is over when nobody wants to hear any more, and when the adapter was switched off or unplugged by somebody else.

/// Decides about the recovery of an adapter.
package struct RecoveryLadder {
    package enum Event: Hashable, Sendable {
        case began(RecoveryStep, because: RecoveryReason)
        case failed(RecoveryStep, RecoveryFailure)
        /// It works again, so long after the trouble was noticed; `nil` for the step where none had been judged, or all had been in
        /// vain.
        case recovered(by: RecoveryStep?, after: Duration)
        /// Nothing that is permitted has helped; the next run begins after that time, if any does.
        case exhausted(because: RecoveryReason, next: Duration?)
    }

    package enum Action: Hashable, Sendable {
        /// Take this step, and call `stepFinished`.
        case perform(RecoveryStep)
        /// Send a harmless command: its response shows that the controller works.
        case probe
        case notify(Event)
    }

    private enum State {
        case healthy
        case performing(RecoveryStep)
        /// The step was taken; whether it has helped is looked at then.
        case judging(RecoveryStep, until: BootInstant)
        /// Everything that is permitted was in vain; the next run begins then.
        case exhausted(next: BootInstant?)
    }

    private struct Trouble {
        var reason: RecoveryReason
        var began: BootInstant
        var wasExhausted = false
        /// Nobody waits for its end any more.
        var isOver = false
    }

    private let policy: RecoveryPolicy
    private var state = State.healthy
    private var trouble: Trouble?
    private var timeouts: [BootInstant] = []
    /// When runs in a row began, the last eight.
    package private(set) var runs: [BootInstant] = []
    /// Until when no run begins, because other programs were in the way of the last one.
    private var refusedUntil: BootInstant?

    package init(_ policy: RecoveryPolicy) { self.policy = policy }

    /// Whether reports and responses matter.
    package var isInTrouble: Bool { trouble != nil }

    package var nextDeadline: BootInstant? {
        switch state {
        case .healthy, .performing: nil
        case .judging(_, let until): until
        case .exhausted(let next): next
        }
    }

    /// Runs before the program was started.
    package mutating func restore(runs: [BootInstant]) {
        self.runs = (runs + self.runs).sorted().suffix(Self.runMemory)
    }
}

// MARK: - What happens

extension RecoveryLadder {
    /// No report with data has come for so long; the scan is begun again by its session.
    package mutating func silent(for time: Duration, at now: BootInstant) -> [Action] {
        guard policy.permits(.rescan) else { return [] }
        if case .exhausted = state, case .silence = trouble?.reason {
            state = .performing(.eventMasks)
            return [.perform(.eventMasks)]
        }
        guard trouble == nil else { return [] }
        let reason = RecoveryReason.silence(time)
        trouble = Trouble(reason: reason, began: now)
        state = .judging(.rescan, until: now + Self.patience(after: .rescan))
        return [.notify(.began(.rescan, because: reason))]
    }

    /// A command had no response.
    package mutating func commandTimedOut(at now: BootInstant) -> [Action] {
        timeouts.removeAll { now - $0 > Self.timeoutWindow }
        timeouts.append(now)
        guard timeouts.count >= Self.timeoutLimit, policy.permits(.power) else { return [] }
        let reason = RecoveryReason.commandTimeouts(timeouts.count)
        switch (state, trouble?.reason) {
        case (.performing, _), (_, .commandTimeouts): return []
        case (.healthy, _), (.judging, _), (.exhausted, _):
            trouble = Trouble(reason: reason, began: trouble?.began ?? now)
            return take(.power, at: now)
        }
    }

    /// A command has its response.
    package mutating func responded(at now: BootInstant) -> [Action] {
        timeouts = []
        guard case .commandTimeouts = trouble?.reason else { return [] }
        return recovered(at: now)
    }

    /// A report with data has come.
    package mutating func heard(at now: BootInstant) -> [Action] {
        guard case .silence = trouble?.reason else { return [] }
        return recovered(at: now)
    }

    /// Nobody wants to hear any more.
    package mutating func scanEnded() {
        guard case .silence = trouble?.reason else { return }
        giveUp()
    }

    /// The adapter was switched off or unplugged; by a step, where one is being taken.
    package mutating func adapterLost() {
        if case .performing = state { return }
        giveUp()
    }

    /// The step that was to be taken is done, or could not be.
    package mutating func stepFinished(_ failure: RecoveryFailure?, at now: BootInstant) -> [Action] {
        guard case .performing(let step) = state, let trouble else { return [] }
        let report: [Action] = failure.map { [.notify(.failed(step, $0))] } ?? []
        // Without the adapter there is nothing to recover: what comes back begins from the start. The driver may bring one back
        // that its port has not.
        let isGone = failure == .adapterGone && !(step == .usbPort && policy.permits(.driver))
        if trouble.isOver || isGone {
            self.trouble = nil
            state = .healthy
            return report
        }
        switch failure {
        case .linksOfOthers, .refused:
            // Nothing was done: that was no run, and no harsher step is due.
            if step == .power { runs.removeLast() }
            refusedUntil = now + Self.refusalPause
            return report + exhausted(at: now)
        default: break
        }
        if let failure { return report + proceed(after: step, failure, at: now) }
        timeouts = []
        state = .judging(step, until: now + Self.patience(after: step))
        if case .commandTimeouts = trouble.reason { return report + [.probe] }
        return report
    }

    /// Called when time has passed.
    ///
    /// - Parameter isListening: Whether a step can be judged: a scan runs, and does not make way for a connect.
    package mutating func timePassed(_ now: BootInstant, isListening: Bool) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now, let trouble else { return [] }
        switch state {
        case .healthy, .performing: return []
        case .judging(let step, _):
            if !isListening, case .silence = trouble.reason {
                state = .judging(step, until: now + Self.patience(after: step))
                return []
            }
            if step == .eventMasks, case .silence(let time) = trouble.reason {
                let earliest = trouble.began + (Self.silenceBeforePower - time)
                if now < earliest, policy.permits(.power) {
                    state = .judging(step, until: earliest)
                    return []
                }
            }
            return proceed(after: step, nil, at: now)
        case .exhausted:
            if !isListening, case .silence = trouble.reason {
                state = .exhausted(next: now + Self.patience(after: .power))
                return []
            }
            return take(.power, at: now)
        }
    }
}

// MARK: - Transitions

extension RecoveryLadder {
    /// Takes the next step; there is a failure where the last one could not be taken.
    private mutating func proceed(
        after step: RecoveryStep, _ failure: RecoveryFailure?, at now: BootInstant
    ) -> [Action] {
        switch step {
        case .rescan: return take(.eventMasks, at: now)
        case .eventMasks: return take(.power, at: now)
        case .power: return take(failure == .blocked ? .radioSwitch : .usbPort, at: now)
        case .radioSwitch: return take(.usbPort, at: now)
        case .usbPort: return take(.driver, at: now)
        case .driver: return exhausted(at: now)
        }
    }

    private mutating func take(_ step: RecoveryStep, at now: BootInstant) -> [Action] {
        guard let reason = trouble?.reason, policy.permits(step) else { return exhausted(at: now) }
        if step == .power {
            guard nextRun(at: now) <= now else { return exhausted(at: now) }
            if let last = runs.last, now - last >= Self.hour { runs = [] }
            runs = (runs + [now]).suffix(Self.runMemory)
        }
        state = .performing(step)
        return [.notify(.began(step, because: reason)), .perform(step)]
    }

    private mutating func exhausted(at now: BootInstant) -> [Action] {
        guard let trouble else { return [] }
        let next: BootInstant? = policy.permits(.power) ? max(nextRun(at: now), now + Self.pauses[0]) : nil
        state = .exhausted(next: next)
        guard !trouble.wasExhausted else { return [] }
        self.trouble?.wasExhausted = true
        return [.notify(.exhausted(because: trouble.reason, next: next.map { $0 - now }))]
    }

    private mutating func recovered(at now: BootInstant) -> [Action] {
        guard let trouble else { return [] }
        let step: RecoveryStep?
        switch state {
        case .healthy, .performing: return []
        case .judging(let taken, _): step = taken
        case .exhausted: step = nil
        }
        self.trouble = nil
        state = .healthy
        return [.notify(.recovered(by: step, after: now - trouble.began))]
    }

    private mutating func giveUp() {
        if case .performing = state {
            trouble?.isOver = true
        } else {
            trouble = nil
            state = .healthy
        }
    }

    /// When the next run may begin.
    private func nextRun(at now: BootInstant) -> BootInstant {
        let earliest = max(now, refusedUntil ?? now)
        guard let last = runs.last, now - last < Self.hour else { return earliest }
        let next = max(earliest, last + Self.pauses[min(runs.count, Self.pauses.count) - 1])
        guard runs.count >= Self.runLimit else { return next }
        return max(next, runs[runs.count - Self.runLimit] + Self.hour)
    }

    /// How long it takes until a step can have helped.
    package static func patience(after step: RecoveryStep) -> Duration {
        switch step {
        case .rescan, .eventMasks: .seconds(15)
        case .power, .usbPort, .driver: .seconds(10)
        case .radioSwitch: .seconds(5)
        }
    }

    /// How many commands without a response are trouble, and within what time.
    package static let timeoutLimit = 3
    package static let timeoutWindow: Duration = .seconds(30)
    /// The pauses after runs in a row.
    package static let pauses: [Duration] = [.seconds(60), .seconds(300), .seconds(1800)]
    /// The pause after a step that was refused because of other programs.
    package static let refusalPause: Duration = .seconds(300)
    /// How many runs there are in an hour at most.
    package static let runLimit = 4
    /// How many runs of a row are remembered.
    package static let runMemory = 8
    /// How long nothing was heard before links are ended for it.
    package static let silenceBeforePower: Duration = .seconds(120)
    package static let hour: Duration = .seconds(3600)
}
