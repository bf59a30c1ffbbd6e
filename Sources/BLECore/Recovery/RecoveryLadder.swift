// The recovery of one adapter that has stopped reporting or responding: one step after the other, until one helps.
//
// Duties: decide which step comes next and when, judge each by what is received after it,
// and keep steps that end links rare.
//
// | step | after | judged after |
// |---|---|---|
// | rescan | 90 s of silence, 30 s on an adapter that hears much; the scan session takes it | 15 s |
// | event masks | rescan without effect | 15 s |
// | power | event masks without effect, or 3 commands without a response in 30 s | 10 s |
// | power | a link that only the controller has | at once: the controller has no links after it |
// | power | a scan that was refused for 2 minutes, without a link | 10 s |
// | none | a scan that was refused for 2 minutes while the controller advertised | reported alone |
// | radio switch | power refused, because the radio is blocked | 5 s |
// | USB port | power without effect | 10 s |
// | driver | USB port without effect, or none there | 10 s |
//
// Invariants:
// - One step is taken at a time. A step that is being taken ends by `stepFinished`, whatever happens meanwhile.
// - A step is judged only while the program listens: not while the scan makes way for a connect, or cannot run, and not
//   by the time in which it made way, or in which the machine or this program slept (`SleepWatch`). After a step that
//   has left the adapter off nothing listens, and the next run does not wait for it.
// - Links are ended for silence after 120 s at the earliest, also where 30 s were unusual.
// - A step that was refused because of links or of other programs is no run, and is followed by no harsher one but by
//   a pause of 5 minutes; so is one for which no helper program took the request. For missing responses a probe follows
//   at once. After one that the helper program has not responded to, which it may have taken, the run ends. An adapter
//   that has gone ends the trouble.
// - A step for missing responses that has become due follows a probe that has failed too: an idle program does not know
//   that the controller responds again.
// - Silence ends with a report that has data, missing responses end with a response, and a refusal to scan ends with a
//   scan that is accepted, or that runs when a step is done. What else comes while a step is being taken proves
//   nothing. A link that only the controller has ends with the first step that ends links, and when the peer turns out
//   to have none. No step is taken for it but with a sign of it, also after a pause.
// - An adapter that is silent, or does not respond, is worse than one with such a link, whose steps then give way. One
//   that refuses to scan cannot be judged by what it hears: the steps for its silence give way to those for that.
// - A scan that is refused while the controller advertises shows nothing of its state: that is reported, and no step is
//   taken. Silence of a controller that was never heard while it advertised may have the same reason. One run is taken
//   for that: if the controller advertises after it, and nothing is heard, no other follows while it advertises.
// - A run is what is done from `power` on, until something helps or nothing is left. After the first run in a row there
//   is a pause of 1 minute, after the second of 5 and after each further one of 30, and there are 4 runs in an hour at
//   most. An hour without a run begins a new row.
// - After everything that is permitted, the next run begins when it may; without a right to runs, there is none. The
//   session of the scan goes on to begin it again, and each time the events are switched on again, without a notice:
//   what has masked them may have come later. `exhausted` is reported once for each trouble, and for missing responses
//   at once where `power` is not permitted, because nothing milder helps.
// - Trouble is over when nobody wants to hear any more, and when the adapter was switched off or unplugged by somebody
//   else.

/// Decides about the recovery of an adapter.
package struct RecoveryLadder: ~Copyable {
    package enum Event: Hashable, Sendable {
        case began(RecoveryPolicy.Step, because: RecoveryPolicy.Reason)
        case failed(RecoveryPolicy.Step, RecoveryFailure)
        /// It works again, so long after the trouble was noticed; `nil` for the step where none had been judged, or all
        /// had had no effect.
        case recovered(by: RecoveryPolicy.Step?, after: Duration)
        /// Nothing that is permitted has helped; the next run begins after that time, if any does.
        case exhausted(because: RecoveryPolicy.Reason, next: Duration?)
    }

    package enum Action: Hashable, Sendable {
        /// Take this step, and call `stepFinished`.
        case perform(RecoveryPolicy.Step)
        /// Send a harmless command: its response shows that the controller works.
        case probe
        case notify(Event)
    }

    private enum State {
        /// It works, as far as is known.
        case healthy
        /// The step is being taken.
        case performing(RecoveryPolicy.Step, Trouble)
        /// The step is being taken, for a trouble whose end nobody waits for any more.
        case finishing(RecoveryPolicy.Step)
        /// The step was taken; whether it has helped is looked at then.
        case judging(RecoveryPolicy.Step, Trouble, until: BootInstant)
        /// Everything that is permitted had no effect; the next run begins then.
        case exhausted(Trouble, next: BootInstant?)
    }

    private struct Trouble {
        let reason: RecoveryPolicy.Reason
        /// When it was noticed, later by the time that was slept since, and by that in which the scan made way.
        var began: BootInstant
        /// Whether it was reported that everything permitted had no effect.
        var isReported = false
        /// Whether the step that is due waits for the end of a probe.
        var isProbed = false

        /// How long nothing was heard when it was noticed; `nil` where that is not the trouble.
        var silence: Duration? {
            if case .silence(let time) = reason { time } else { nil }
        }

        /// Whether a response ends it.
        var isUnresponsiveness: Bool {
            if case .commandTimeouts = reason { true } else { false }
        }

        /// Whether a scan that is accepted ends it, and steps are taken for it.
        var isRefusal: Bool {
            if case .scanRefused = reason { true } else { false }
        }

        /// Whether a scan that is accepted ends it, and no step is taken for it.
        var isDueToAdvertising: Bool {
            if case .scanRefusedWhileAdvertising = reason { true } else { false }
        }

        /// Whose link only the controller has; `nil` where that is not the trouble.
        var suspect: PeerID? {
            if case .suspectedLink(let peer) = reason { peer } else { nil }
        }
    }

    /// The peers for which a step was taken, and to which no link has come up since: the last ones, because some never
    /// come back.
    private var treated: [PeerID] = []
    private static let treatedLimit = 64
    private let policy: RecoveryPolicy
    private var state = State.healthy
    private var timeouts: [BootInstant] = []
    /// When runs in a row began, the last eight.
    package private(set) var runs: [BootInstant] = []
    /// Until when no run begins, because other programs were in the way of the last one.
    private var refusedUntil: BootInstant?
    /// Since when the controller advertises; `nil` while it does not, as far as is known.
    private var advertisingSince: BootInstant?
    /// Whether a report has come while the controller advertised: it can do both.
    private var hasHeardWhileAdvertising = false
    /// Whether a run was taken for silence while the controller advertised.
    private var hasRunWhileAdvertising = false
    /// The same before the run that was begun last, which is none if its step is refused.
    private var hadRunWhileAdvertising = false
    private var sleepWatch = SleepWatch()
    /// Since when the scan makes way for a connect; `nil` while it does not.
    private var makesWaySince: BootInstant?

    package init(_ policy: RecoveryPolicy) { self.policy = policy }

    /// A Boolean value that indicates whether reports and responses matter.
    package var isInTrouble: Bool {
        if case .healthy = state { false } else { true }
    }

    /// A Boolean value that indicates whether a report matters: while it does not, `heard` need not be called.
    package var awaitsReport: Bool { isInTrouble || advertisingSince != nil && !hasHeardWhileAdvertising }

    package var nextDeadline: BootInstant? {
        switch state {
        case .healthy, .performing, .finishing: nil
        // Nothing is heard before the end of the connect.
        case .judging(_, let trouble, let until): makesWaySince != nil && trouble.silence != nil ? nil : until
        // What follows a suspicion needs another sign of it, so nothing waits for that.
        case .exhausted(let trouble, let next): trouble.suspect == nil ? next : nil
        }
    }

    private var trouble: Trouble? {
        switch state {
        case .healthy, .finishing: nil
        case .performing(_, let trouble), .judging(_, let trouble, _), .exhausted(let trouble, _): trouble
        }
    }

    /// The reason that steps are being taken; `nil` while none are.
    package var reason: RecoveryPolicy.Reason? { trouble?.reason }

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
        switch state {
        case .exhausted(let trouble, _) where trouble.silence != nil:
            state = .performing(.eventMasks, trouble)
            return [.perform(.eventMasks)]
        case .healthy: return beginRescan(time, at: now)
        case .exhausted(let trouble, _) where trouble.suspect != nil: return beginRescan(time, at: now)
        case .performing, .finishing, .judging, .exhausted: return []
        }
    }

    private mutating func beginRescan(_ silence: Duration, at now: BootInstant) -> [Action] {
        let reason = RecoveryPolicy.Reason.silence(silence)
        state = .judging(.rescan, Trouble(reason: reason, began: now), until: now + Self.timeLimit(after: .rescan))
        return [.notify(.began(.rescan, because: reason))]
    }

    /// The controller has a link to the peer that nobody else has.
    ///
    /// While there is another trouble nothing is done for it: the next connect to the peer that fails reports it again.
    /// Nor is anything done twice for one peer, unless a link to it was up in between: a controller that reports this
    /// of every link is not helped by that.
    package mutating func linkSuspected(to peer: PeerID, at now: BootInstant) -> [Action] {
        guard policy.permits(.power), !treated.contains(peer) else { return [] }
        switch state {
        case .healthy: break
        case .exhausted(let trouble, let next?) where trouble.suspect != nil && next <= now: break
        case .exhausted(let trouble, _) where trouble.isDueToAdvertising: break
        case .performing, .finishing, .judging, .exhausted: return []
        }
        return take(.power, for: Trouble(reason: .suspectedLink(peer), began: now), at: now)
    }

    /// The controller has no such link to the peer, or not any more.
    package mutating func linkNotSuspected(to peer: PeerID, at now: BootInstant) -> [Action] {
        treated.removeAll { $0 == peer }
        guard trouble?.suspect == peer else { return [] }
        return recovered(at: now)
    }

    /// The controller has refused for so long to begin a scan, and no link is up that would explain it.
    package mutating func scanRefused(for time: Duration, at now: BootInstant) -> [Action] {
        guard policy.permits(.rescan) else { return [] }
        switch state {
        case .healthy: break
        case .performing, .finishing: return []
        case .judging(_, let trouble, _), .exhausted(let trouble, _):
            if trouble.isUnresponsiveness || trouble.isRefusal { return [] }
        }
        let began = trouble?.silence == nil ? now : trouble?.began ?? now
        return take(.power, for: Trouble(reason: .scanRefused(time), began: began), at: now)
    }

    /// The controller has refused for so long to begin a scan, has advertised all the time, and no link is up.
    package mutating func scanRefusedWhileAdvertising(for time: Duration, at now: BootInstant) -> [Action] {
        guard policy.permits(.rescan) else { return [] }
        switch state {
        case .healthy: break
        case .performing, .finishing: return []
        // What is not refused would be silent, and a suspicion needs another sign.
        case .judging(_, let trouble, _), .exhausted(let trouble, _):
            guard trouble.silence != nil || trouble.suspect != nil else { return [] }
        }
        let reason = RecoveryPolicy.Reason.scanRefusedWhileAdvertising(time)
        state = .exhausted(Trouble(reason: reason, began: now, isReported: true), next: nil)
        return [.notify(.exhausted(because: reason, next: nil))]
    }

    /// The controller has accepted a scan.
    package mutating func scanAccepted(at now: BootInstant) -> [Action] {
        guard let trouble, trouble.isRefusal || trouble.isDueToAdvertising else { return [] }
        return recovered(at: now)
    }

    /// The scan makes way for a connect from now on, or not any more. A connect that is repeated leaves it a part of
    /// the time, and silence is judged by that part alone.
    package mutating func scanMakesWay(_ makesWay: Bool, at now: BootInstant) {
        guard let since = makesWaySince else {
            if makesWay { makesWaySince = now }
            return
        }
        guard !makesWay else { return }
        makesWaySince = nil
        guard case .judging(let step, var trouble, let until) = state, trouble.silence != nil else { return }
        trouble.began = trouble.began + (now - since)
        state = .judging(step, trouble, until: until + (now - since))
    }

    /// Advertisements went on air, or none is any more.
    package mutating func advertisingChanged(_ isAdvertising: Bool, at now: BootInstant) {
        advertisingSince = isAdvertising ? advertisingSince ?? now : nil
    }

    /// A command had no response.
    package mutating func commandTimedOut(at now: BootInstant) -> [Action] {
        timeouts.removeAll { now - $0 > Self.timeoutWindow }
        timeouts.append(now)
        if let trouble, trouble.isProbed { return takeDueStep(at: now) }
        guard timeouts.count >= Self.timeoutLimit, policy.permits(.rescan) else { return [] }
        switch state {
        case .performing, .finishing: return []
        case .healthy, .judging, .exhausted:
            if let trouble, trouble.isUnresponsiveness { return [] }
            let reason = RecoveryPolicy.Reason.commandTimeouts(timeouts.count)
            let began = trouble?.silence == nil ? now : trouble?.began ?? now
            return take(.power, for: Trouble(reason: reason, began: began), at: now)
        }
    }

    /// A command has its response.
    package mutating func responded(at now: BootInstant) -> [Action] {
        timeouts = []
        guard let trouble, trouble.isUnresponsiveness else { return [] }
        return recovered(at: now)
    }

    /// A report with data has come.
    package mutating func heard(at now: BootInstant) -> [Action] {
        sleepWatch.heard()
        // What is read right after the beginning may have been heard before it.
        if let advertisingSince, now - advertisingSince >= ScanSession.readingTime { hasHeardWhileAdvertising = true }
        guard trouble?.silence != nil else { return [] }
        return recovered(at: now)
    }

    /// Nobody wants to hear any more.
    package mutating func scanEnded() {
        guard let trouble, trouble.silence != nil || trouble.isRefusal || trouble.isDueToAdvertising else { return }
        giveUp()
    }

    /// The adapter was switched off or unplugged; by a step, where one is being taken.
    package mutating func adapterLost() {
        if case .performing = state { return }
        giveUp()
    }

    /// The step that was to be taken is done, or could not be.
    package mutating func stepFinished(_ failure: RecoveryFailure?, at now: BootInstant) -> [Action] {
        let step: RecoveryPolicy.Step
        let trouble: Trouble?
        switch state {
        case .performing(let taken, let cause): (step, trouble) = (taken, cause)
        case .finishing(let taken): (step, trouble) = (taken, nil)
        case .healthy, .judging, .exhausted: return []
        }
        let report: [Action] = failure.map { [.notify(.failed(step, $0))] } ?? []
        // Without the adapter there is nothing to recover: what comes back begins from the start. The driver may bring
        // one back that its port has not.
        let isGone = failure == .adapterGone && !(step == .usbPort && policy.permits(.driver))
        let wasRefused = failure?.wasRefused ?? false
        // Nothing was done: that was no run, also where nobody waits for its end any more.
        if step == .power, wasRefused { voidRun() }
        guard let trouble, !isGone else {
            state = .healthy
            return report
        }
        if wasRefused {
            // No harsher step is due. Where it is about one link, an adapter that works for no peer must not wait.
            if trouble.suspect == nil { refusedUntil = now + Self.refusalPause }
            // A program that is idle meanwhile would not learn that the controller responds again.
            let probe: [Action] = trouble.isUnresponsiveness ? [.probe] : []
            return report + exhausted(trouble, at: now, for: Self.refusalPause) + probe
        }
        switch failure {
        // The request for the next step would wait for as long again.
        case .noResponse: return report + exhausted(trouble, at: now)
        case let failure?: return report + proceed(after: step, failure, for: trouble, at: now)
        case nil:
            timeouts = []
            state = .judging(step, trouble, until: now + Self.timeLimit(after: step))
            if let peer = trouble.suspect {
                treated = (treated + [peer]).suffix(Self.treatedLimit)
                return recovered(at: now)
            }
            return trouble.isUnresponsiveness ? [.probe] : []
        }
    }

    /// Called when time has passed.
    ///
    /// - Parameters:
    ///   - isListening: Whether a step can be judged: the radio listens, and does not make way for a connect. True as
    ///     well while the adapter is off, because nothing but the next step changes that.
    ///   - makesWay: Whether the scan makes way for a connect, so that it is neither refused nor accepted.
    package mutating func timePassed(
        _ now: BootInstant, isListening: Bool, makesWay: Bool = false
    ) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        let hasSlept = sleepWatch.hasSlept(since: deadline, at: now)
        switch state {
        case .healthy, .performing, .finishing: return []
        case .judging(let step, var trouble, _):
            if trouble.silence != nil, hasSlept {
                trouble.began = trouble.began + (now - deadline)
                state = .judging(step, trouble, until: now + Self.timeLimit(after: step))
                return []
            }
            if trouble.isRefusal, makesWay {
                state = .judging(step, trouble, until: now + Self.timeLimit(after: step))
                return []
            }
            if let silence = trouble.silence {
                if !isListening {
                    state = .judging(step, trouble, until: now + Self.timeLimit(after: step))
                    return []
                }
                let earliest = trouble.began + (Self.silenceBeforePower - silence)
                if step == .eventMasks, now < earliest, policy.permits(.power) {
                    state = .judging(step, trouble, until: earliest)
                    return []
                }
            }
        case .exhausted(let trouble, _):
            // A step would cancel the connect, and one that has slept may hear again.
            if trouble.silence != nil && (!isListening || hasSlept) || trouble.isRefusal && makesWay {
                state = .exhausted(trouble, next: now + Self.timeLimit(after: .power))
                return []
            }
        }
        return beginProbe(at: now) ? [.probe] : takeDueStep(at: now)
    }
}

// MARK: - Transitions

extension RecoveryLadder {
    /// Has the step that is due wait for a probe, where missing responses are the trouble; `false` for any other, after
    /// the probe, and where no step follows.
    private mutating func beginProbe(at now: BootInstant) -> Bool {
        guard var trouble, trouble.isUnresponsiveness, !trouble.isProbed else { return false }
        trouble.isProbed = true
        switch state {
        case .healthy, .performing, .finishing: return false
        case .judging(let step, _, _):
            guard let next = Self.step(after: step, nil), policy.permits(next) else { return false }
            state = .judging(step, trouble, until: now + Self.probeTime)
        case .exhausted: state = .exhausted(trouble, next: now + Self.probeTime)
        }
        return true
    }

    private mutating func takeDueStep(at now: BootInstant) -> [Action] {
        switch state {
        case .healthy, .performing, .finishing: []
        case .judging(let step, let trouble, _): proceed(after: step, nil, for: trouble, at: now)
        case .exhausted(let trouble, _): take(.power, for: trouble, at: now)
        }
    }

    /// Takes the next step; there is a failure where the last one could not be taken.
    private mutating func proceed(
        after step: RecoveryPolicy.Step, _ failure: RecoveryFailure?, for trouble: Trouble, at now: BootInstant
    ) -> [Action] {
        guard let next = Self.step(after: step, failure) else { return exhausted(trouble, at: now) }
        return take(next, for: trouble, at: now)
    }

    private static func step(after step: RecoveryPolicy.Step, _ failure: RecoveryFailure?) -> RecoveryPolicy.Step? {
        switch step {
        case .rescan: .eventMasks
        case .eventMasks: .power
        case .power: failure == .blocked ? .radioSwitch : .usbPort
        case .radioSwitch: .usbPort
        case .usbPort: .driver
        case .driver: nil
        }
    }

    private mutating func take(_ step: RecoveryPolicy.Step, for trouble: Trouble, at now: BootInstant) -> [Action] {
        var trouble = trouble
        trouble.isProbed = false
        guard policy.permits(step) else { return exhausted(trouble, at: now) }
        if step == .power {
            guard !isExplained(trouble), nextRun(at: now) <= now else { return exhausted(trouble, at: now) }
            hadRunWhileAdvertising = hasRunWhileAdvertising
            if trouble.silence != nil, advertisingSince != nil { hasRunWhileAdvertising = true }
            if let last = runs.last, now - last >= Self.hour { runs = [] }
            runs = (runs + [now]).suffix(Self.runMemory)
        }
        state = .performing(step, trouble)
        return [.notify(.began(step, because: trouble.reason)), .perform(step)]
    }

    /// The step of the run that was begun last was refused: that was none.
    private mutating func voidRun() {
        _ = runs.popLast()
        hasRunWhileAdvertising = hadRunWhileAdvertising
    }

    private mutating func exhausted(
        _ trouble: Trouble, at now: BootInstant, for pause: Duration = Self.pauses[0]
    ) -> [Action] {
        var trouble = trouble
        let mayRun = policy.permits(.power) && !isExplained(trouble)
        let next: BootInstant? = mayRun ? max(nextRun(at: now), now + pause) : nil
        let isNews = !trouble.isReported
        trouble.isReported = true
        state = .exhausted(trouble, next: next)
        return isNews ? [.notify(.exhausted(because: trouble.reason, next: next.map { $0 - now }))] : []
    }

    /// Whether the controller may hear nothing because it advertises, and a run has not changed that.
    private func isExplained(_ trouble: Trouble) -> Bool {
        trouble.silence != nil && advertisingSince != nil && !hasHeardWhileAdvertising && hasRunWhileAdvertising
    }

    private mutating func recovered(at now: BootInstant) -> [Action] {
        let (step, trouble): (RecoveryPolicy.Step?, Trouble)
        switch state {
        case .healthy, .performing, .finishing: return []
        case .judging(let taken, let cause, _): (step, trouble) = (taken, cause)
        case .exhausted(let cause, _): (step, trouble) = (nil, cause)
        }
        state = .healthy
        return [.notify(.recovered(by: step, after: now - trouble.began))]
    }

    private mutating func giveUp() {
        switch state {
        case .performing(let step, _): state = .finishing(step)
        case .finishing: break
        case .healthy, .judging, .exhausted: state = .healthy
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

    /// Returns the time until a step can have helped.
    package static func timeLimit(after step: RecoveryPolicy.Step) -> Duration {
        switch step {
        case .rescan, .eventMasks: .seconds(15)
        case .power, .usbPort, .driver: .seconds(10)
        case .radioSwitch: .seconds(5)
        }
    }

    /// The number of commands without a response that are trouble, and the time for that.
    package static let timeoutLimit = 3
    package static let timeoutWindow: Duration = .seconds(30)
    /// The time in which a probe ends that can be sent, also where the controller has to return a credit first.
    package static let probeTime: Duration = .seconds(5)
    /// The pauses after runs in a row.
    package static let pauses: [Duration] = [.seconds(60), .seconds(300), .seconds(1800)]
    /// The pause after a step that was refused because of other programs.
    package static let refusalPause: Duration = .seconds(300)
    /// The maximum number of runs in an hour.
    package static let runLimit = 4
    /// The number of runs of a row that are remembered.
    package static let runMemory = 8
    /// The time without reports before links are ended for it.
    package static let silenceBeforePower: Duration = .seconds(120)
    package static let hour: Duration = .seconds(3600)
}
