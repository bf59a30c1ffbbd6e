// The scan of one adapter: starts it, keeps it running, and ends it.
//
// Duties: choose the legacy or the extended commands once, by what the controller has, and never mix them. Arm the scan
// in the same order each time: disable, set parameters, enable; a scan of a program that died may still run. Notice
// when another program touched the scan and re-arm it. Notice a controller that has gone quiet.
//
// Invariants:
// - One command of the session is out at a time. What is requested meanwhile is kept in `goal` and `pausing` and looked
//   at when the response is there.
// - Command Disallowed on disable means that nothing was on. On the parameters it means that a scan runs: disable and
//   retry once. On enable it means that the controller is busy (some do not scan while a link is up), unless another
//   program was seen to enable the scan meanwhile: a controller that scans does not accept the parameters. Then
//   `scanBusy` is reported, and the session waits (row H14).
// - A controller that refuses the coded PHY is scanned with without it, and one that lists the extended commands and
//   refuses them is scanned with by the legacy ones, until it is switched off. It has accepted no command of the other
//   set then.
// - A controller uses one set of commands until it is reset, and refuses the other as Command Disallowed: some kernels
//   use the legacy set on controllers that list the extended one. If another program's command of the legacy set was
//   accepted, that is the set. If nothing was seen and the controller refuses everything, the other set has its turn
//   from the seventh attempt on.
// - A busy controller is tried again as soon as a link has ended. One that has refused each attempt for 2 minutes, five
//   at least, may be stuck: that is reported with each further refusal but the first one after a link or a connection
//   attempt. Then it is tried at the longest pause alone, also by a new plan, until it accepts a scan or was switched
//   off (row H14).
// - Some controllers refuse a scan while they advertise. Such refusals are counted and reported apart from the others:
//   they indicate nothing about a controller that does not advertise. It is tried again as soon as this program has
//   ended or paused its advertisements, and only refusals while nothing is on air can indicate that it is stuck
//   (row W66): they are counted on after advertisements in between. One that has begun a scan while it advertised can
//   do both, and has no such reason; beside another program, whose advertisements may have ended unseen, a report
//   shows that.
// - Whatever fails is retried after a pause that doubles up to 30 s, and starts small again after a healthy minute.
//   Two programs that take the scan from each other therefore do so ever more rarely.
// - The kernel turns scanning off around each of its own connects, and nothing turns it on again: another program's
//   completion of a scan enable leads to a re-arm half a second later, not at once, because the kernel may be
//   initiating a connection just then.
// - A report without data does not show that the controller works: stuck controllers continue to send those (row H16).
//   Silence is noticed after 90 s, and after 30 s where more than one report in a second was usual in the last ten
//   minutes. Time in which the machine or this program slept is no silence (`SleepWatch`).
// - Two programs that take the scan from each other listen all the same, and would otherwise never notice that the
//   controller is silent: the time without data continues over such a disturbance, unless the controller refuses the
//   scan, which indicates that it does something else. It is looked at when the scan is re-armed.
// - A program that connects again and again, or changes its plan, ends its own scan before that time has passed: the
//   time in which a scan has heard nothing counts on when the next one runs, and the time in between does not.
// - A scan whose end the controller did not confirm is disabled again, before the next connection attempt or after a
//   pause.
// - `pause` and `stop` are acknowledged exactly once, by `paused` and `ended`, when the radio no longer scans for us.
//
// The session never acts; it returns commands to send and events to report, in order.

/// Keeps a scan running on one adapter.
package struct ScanSession: ~Copyable {
    /// Something that the owner of the session needs to know.
    package enum Event: Hashable, Sendable {
        /// The scan runs, for the first time or again.
        case started
        /// Another program changed the scan; it is re-armed in a moment.
        case disturbed(by: HCIOpcode)
        /// No report with data came for this time, so many times in a row; the scan is re-armed,
        /// unless that is not wanted.
        case stalled(count: Int, after: Duration)
        /// A step failed; it is retried after `retry`.
        case unable(HCICommandFailure, retry: Duration)
        /// Another program or the kernel holds the scanner; the next attempt follows after `retry`.
        case scanBusy(retry: Duration)
        /// The controller has refused each attempt for so long, as Command Disallowed. Each further refusal reports it
        /// again, but for one right after a link or a connection attempt; `isNews` is true for the first report.
        case refused(for: Duration, isNews: Bool)
        /// As `refused`, of a controller that has advertised all the time, which may be the reason. `isNews` is true
        /// for the first report until it has accepted a scan while it advertised.
        case refusedWhileAdvertising(for: Duration, isNews: Bool)
        /// The pause that was requested has begun: the radio does not scan for us.
        case paused
        /// The stop that was requested is done: the radio no longer scans for us.
        case ended
    }

    /// An action for the owner to perform.
    package enum Action: Hashable, Sendable {
        /// Put this command into the adapter's queue, and call `commandFinished` with its result.
        case send(HCICommandPacket)
        /// Notify the owner.
        case notify(Event)
    }

    private enum State {
        /// No scan of ours runs and no command is out.
        case resting
        /// Scan off is out; `again` when parameters were refused before, and `isRefused` when the command before those
        /// was too.
        case disabling(again: Bool, isRefused: Bool)
        /// The parameters are out; `again` when they were refused before, and `isRefused` when the controller has
        /// refused every command so far.
        case configuring(ScanPlan, again: Bool, isRefused: Bool)
        /// Scan on is out; another program may have changed the scan since.
        case enabling(ScanPlan, wasDisturbed: Bool)
        /// The scan runs; data came last, or it began, at `lastReport`.
        case scanning(ScanPlan, since: BootInstant, lastReport: BootInstant)
        /// The scan runs or not; it is re-armed, or disabled again, at `until`.
        /// A busy controller may be free before that.
        case waiting(until: BootInstant, isBusy: Bool)
        /// The adapter is down.
        case asleep
    }

    /// The state that the owner requests.
    private enum Goal {
        case none
        /// No scan, and to hear of its end.
        case ended
        case scan(ScanPlan)
    }

    private enum Pausing {
        case no
        /// Not acknowledged yet.
        case requested
        case acknowledged
    }

    /// Who advertises on the controller.
    package enum Advertising: Hashable, Sendable {
        case nobody
        /// Another program or the kernel, as far as its commands were seen.
        case others
        case thisProgram
    }

    /// The controller, as it has shown itself since it was switched on.
    package private(set) var controller: Controller
    private let claimed: Controller
    private var state = State.resting
    private var goal = Goal.none
    private var pausing = Pausing.no
    private var attempts = 0
    /// Of a controller that does not advertise.
    private var refusal: Refusal?
    /// Of one that has advertised all the time.
    private var hinderedRefusal: Refusal?
    private var coexistence = Coexistence()
    /// Whether it was reported that the controller refuses scans while it advertises.
    private var hasReportedAdvertising = false
    private var stalls = 0
    private var sleepWatch = SleepWatch()
    /// Since when no data came, or the scan runs, while another program disturbs it; `nil` while none does.
    private var quietSince: BootInstant?
    /// For how long the last scan had heard nothing when it made way for a connect or for another plan.
    private var quietBefore = Duration.zero
    private let rearmsWhenSilent: Bool
    private var rate = ReportRate()
    /// The set of commands that other programs and the kernel use, as far as that was seen since the power-up.
    private var foreignSet: CommandSet?

    /// The controller refuses to begin a scan, as Command Disallowed.
    private struct Refusal {
        let since: BootInstant
        var count = 0
        var isReported = false
        /// Whether a link or a connection attempt has ended since the last refusal, and may be the reason for the next
        /// one.
        var isExcused = false
    }

    /// Who advertises, and whether the controller has shown that it scans meanwhile.
    private struct Coexistence {
        private(set) var advertising = Advertising.nobody
        /// Whether an advertisement is on air at this moment.
        private var isCertain = false
        /// Whether other programs or the kernel advertise, as far as their commands were seen.
        private var areOthersOnAir = false
        /// When a scan has begun while others advertised, who have done so since; `nil` without one.
        private var besideOthersSince: BootInstant?
        /// Whether the controller has begun a scan while it advertised.
        private var scansMeanwhile = false

        /// Whether the controller may refuse a scan because it advertises.
        var mayRefuseScan: Bool { advertising != .nobody && !scansMeanwhile }

        mutating func changed(_ advertising: Advertising, isCertain: Bool, areOthersOnAir: Bool) {
            self.advertising = advertising
            self.isCertain = isCertain
            self.areOthersOnAir = areOthersOnAir
            if !areOthersOnAir { besideOthersSince = nil }
        }

        mutating func scanBegan(at now: BootInstant) {
            if isCertain { scansMeanwhile = true }
            besideOthersSince = areOthersOnAir ? now : nil
        }

        /// A running scan has heard something. The end of an advertisement is read before the reports after it.
        mutating func heard(at now: BootInstant) {
            if let besideOthersSince, now - besideOthersSince >= ScanSession.readingTime { scansMeanwhile = true }
        }
    }

    private enum CommandSet {
        case legacy
        case extended
    }

    /// - Parameter rearmsWhenSilent: Whether a silent scan is re-armed; otherwise that is reported alone.
    package init(_ controller: Controller, rearmsWhenSilent: Bool = true) {
        self.controller = controller
        self.rearmsWhenSilent = rearmsWhenSilent
        claimed = controller
    }

    /// A Boolean value that indicates whether the legacy commands are in use on a controller that lists the extended
    /// ones. It refuses the extended ones for connects as well then.
    package var hasFallenBack: Bool {
        claimed.hasExtendedScan && (!controller.hasExtendedScan || foreignSet == .legacy)
    }

    /// A Boolean value that indicates whether reports can come in.
    package var isScanning: Bool {
        if case .scanning = state { return true }
        return false
    }

    /// A Boolean value that indicates whether the radio listens for this session, or for another program that has just
    /// changed the scan.
    package var isListening: Bool { isScanning || quietSince != nil }

    /// A Boolean value that indicates whether the controller advertises, as far as is known, and may refuse a scan for
    /// that.
    package var isHinderedByAdvertising: Bool { coexistence.mayRefuseScan }

    /// A Boolean value that indicates whether nothing runs and no command is out.
    package var isResting: Bool {
        switch state {
        case .resting, .asleep: true
        case .disabling, .configuring, .enabling, .scanning, .waiting: false
        }
    }

    private var hasCommandOut: Bool {
        switch state {
        case .disabling, .configuring, .enabling: true
        case .resting, .asleep, .scanning, .waiting: false
        }
    }

    /// When `timePassed` is to be called at the latest. A report moves it later: there is no need to look after each.
    package var nextDeadline: BootInstant? {
        switch state {
        case .resting, .asleep, .disabling, .configuring, .enabling: nil
        case .scanning(_, _, let lastReport): lastReport + silenceLimit(at: lastReport)
        case .waiting(let until, _): until
        }
    }

    /// The plan to scan by now; `nil` while no scan should run.
    private var target: ScanPlan? {
        guard case .scan(var plan) = goal, case .no = pausing else { return nil }
        if !controller.hasCodedPHY { plan.phys = .le1M }
        return plan
    }
}

// MARK: - What is wanted

extension ScanSession {
    /// Scans by a plan from now on; also for a new plan while a scan runs.
    package mutating func start(_ plan: ScanPlan, at now: BootInstant) -> [Action] {
        let actions = acknowledgeStop()
        goal = .scan(plan)
        attempts = 0
        stalls = 0
        quietSince = nil
        return actions + proceed(at: now)
    }

    /// Ends the scan; acknowledged by `ended`.
    package mutating func stop(at now: BootInstant) -> [Action] {
        goal = .ended
        quietSince = nil
        forgetRefusals()
        let actions = proceed(at: now)
        quietBefore = .zero
        return actions
    }

    /// Makes way for a connection attempt; acknowledged by `paused`.
    package mutating func pause(at now: BootInstant) -> [Action] {
        pausing = .requested
        quietSince = nil
        return proceed(at: now)
    }

    /// Scans again, if a scan is wanted.
    package mutating func resume(at now: BootInstant) -> [Action] {
        let actions = acknowledgePause()
        pausing = .no
        attempts = 0
        excuseRefusals()
        return actions + proceed(at: now)
    }
}

// MARK: - What happens

extension ScanSession {
    /// The command that was sent last has its response, or failed for the reason given.
    package mutating func commandFinished(_ failure: HCICommandFailure?, at now: BootInstant) -> [Action] {
        guard hasCommandOut else { return [] }
        // No later command can report more, not even that the scan is unwanted.
        if failure?.reason == .adapterLost { return adapterDown() }
        return switch state {
        case .disabling(let again, let isRefused): disabled(failure, again: again, isRefused: isRefused, at: now)
        case .configuring(let plan, let again, let isRefused):
            configured(plan, failure, again: again, isRefused: isRefused, at: now)
        case .enabling(let plan, let wasDisturbed): enabled(plan, failure, wasDisturbed: wasDisturbed, at: now)
        case .resting, .scanning, .waiting, .asleep: []
        }
    }

    /// Another program's command completed on this adapter.
    package mutating func foreignCompletion(
        _ opcode: HCIOpcode, _ status: HCIStatus?, at now: BootInstant
    ) -> [Action] {
        if status == .success { foreignSet = Self.commandSet(of: opcode) ?? foreignSet }
        guard opcode == .leSetScanEnable || opcode == .leSetExtendedScanEnable, status == .success else { return [] }
        switch state {
        case .resting, .asleep, .waiting, .disabling, .configuring:
            return []
        case .enabling(let plan, _):
            state = .enabling(plan, wasDisturbed: true)
            return []
        case .scanning(_, let since, let lastReport):
            noteTimeScanned(since: since, at: now)
            quietSince = lastReport
            state = .waiting(until: now + nextPause(), isBusy: false)
            return [.notify(.disturbed(by: opcode))]
        }
    }

    /// A link has ended: a controller that does not scan beside links is free.
    package mutating func linkEnded(at now: BootInstant) -> [Action] {
        excuseRefusals()
        guard case .waiting(_, isBusy: true) = state else { return [] }
        // The next pause is no longer for that.
        attempts = max(0, attempts - 1)
        return proceed(at: now)
    }

    /// Advertisements went on air or off: a controller that does not scan while it advertises is free after the last
    /// one.
    ///
    /// Only the end of this program's own leads to an attempt at once: the kernel takes those of others off air for
    /// moments when it changes them.
    ///
    /// - Parameters:
    ///   - advertising: Who advertises now.
    ///   - isCertain: Whether an advertisement is on air at this moment: not one that is put on air again at once.
    ///   - areOthersOnAir: Whether other programs or the kernel advertise at this moment, as far as their commands were
    ///     seen; also beside this program.
    ///   - now: The present time.
    package mutating func advertisingChanged(
        _ advertising: Advertising, isCertain: Bool = false, areOthersOnAir: Bool = false, at now: BootInstant
    ) -> [Action] {
        let hasEnded = coexistence.advertising == .thisProgram && advertising != .thisProgram
        coexistence.changed(advertising, isCertain: isCertain, areOthersOnAir: areOthersOnAir)
        guard hasEnded else { return [] }
        // The pauses were for that, and so may be the refusal of the command that is out.
        attempts = 0
        guard case .waiting(_, isBusy: true) = state else { return [] }
        return proceed(at: now)
    }

    /// A report was read.
    package mutating func reportSeen(hasData: Bool, at now: BootInstant) {
        guard hasData else { return }
        stalls = 0
        sleepWatch.heard()
        rate.add(at: now)
        if quietSince != nil { quietSince = now }
        quietBefore = .zero
        guard case .scanning(let plan, let since, _) = state else { return }
        state = .scanning(plan, since: since, lastReport: now)
        coexistence.heard(at: now)
    }

    /// Called when time has passed.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        let hasSlept = sleepWatch.hasSlept(since: deadline, at: now)
        if case .waiting = state {
            if hasSlept, quietSince != nil { quietSince = now }
            return noteSilence(at: now) + proceed(at: now)
        }
        guard case .scanning(let plan, let since, let lastReport) = state else { return [] }
        noteTimeScanned(since: since, at: now)
        if hasSlept {
            // What ran may have ended meanwhile.
            if rearmsWhenSilent { return rearm() }
            state = .scanning(plan, since: since, lastReport: now)
            return []
        }
        stalls += 1
        let event = Event.stalled(count: stalls, after: silenceLimit(at: lastReport))
        if rearmsWhenSilent { return [.notify(event)] + rearm() }
        state = .scanning(plan, since: since, lastReport: now)
        return [.notify(event)]
    }

    /// A scan that was accepted for so long, and is set up again now, was not refused: pauses are short again.
    private mutating func noteTimeScanned(since began: BootInstant, at now: BootInstant) {
        if now - began >= Self.healthy { attempts = 0 }
    }

    /// Reports that no data came for too long while another program disturbed the scan.
    private mutating func noteSilence(at now: BootInstant) -> [Action] {
        guard let quietSince, quietSince + silenceLimit(at: quietSince) <= now else { return [] }
        self.quietSince = now
        stalls += 1
        return [.notify(.stalled(count: stalls, after: silenceLimit(at: quietSince)))]
    }

    /// Ends the scan that runs, and begins it again: after silence or sleep, and as a step of recovery. After a
    /// disturbance or a failure `proceed` does so.
    package mutating func rearm() -> [Action] {
        guard case .scanning = state else { return [] }
        return rearmOrDisable()
    }

    /// The longest time without data, if the last came then.
    private func silenceLimit(at lastReport: BootInstant) -> Duration {
        rate.isHigh(at: lastReport) ? Self.stallTimeoutInBusyAir : Self.stallTimeout
    }

    /// The adapter went down, was unplugged or is being reset: whatever ran has ended.
    package mutating func adapterDown() -> [Action] {
        state = .asleep
        controller = claimed
        foreignSet = nil
        quietSince = nil
        quietBefore = .zero
        forgetRefusals()
        return acknowledge()
    }

    /// The adapter is up again, or its reset is over: the scan is re-armed.
    package mutating func adapterUp(at now: BootInstant) -> [Action] {
        guard case .asleep = state else { return [] }
        state = .resting
        attempts = 0
        return proceed(at: now)
    }
}

// MARK: - Transitions

extension ScanSession {
    /// Goes on from a state in which no command is out; in any other the response leads on.
    private mutating func proceed(at now: BootInstant) -> [Action] {
        switch state {
        case .disabling, .configuring, .enabling: []
        case .asleep: acknowledge()
        case .resting: target != nil ? rearmOrDisable() : acknowledge()
        case .scanning(let plan, _, let lastReport): plan == target ? [] : interrupt(lastReport, at: now)
        case .waiting: rearmOrDisable()
        }
    }

    private mutating func disabled(
        _ failure: HCICommandFailure?, again: Bool, isRefused: Bool, at now: BootInstant
    ) -> [Action] {
        if let plan = target {
            if let failure, failure.status != .commandDisallowed {
                return useLegacyCommands(after: failure) ? rearmOrDisable() : retry(failure, at: now)
            }
            return configure(plan, again: again, isRefused: failure != nil && (isRefused || !again))
        }
        if failure?.reason == .timeout {
            // The scan may run on, and keep the controller from initiating: disable it again later.
            state = .waiting(until: now + nextPause(), isBusy: false)
        } else {
            // Whatever the response, nothing more can be done against a scan that is not wanted.
            state = .resting
        }
        return acknowledge()
    }

    private mutating func configured(
        _ plan: ScanPlan, _ failure: HCICommandFailure?, again: Bool, isRefused: Bool, at now: BootInstant
    ) -> [Action] {
        guard target != nil else { return rearmOrDisable() }
        guard let failure else {
            state = .enabling(plan, wasDisturbed: false)
            return [.send(controller.scanOn(for: plan))]
        }
        guard failure.status == .commandDisallowed else {
            return useLessCommands(of: plan, after: failure) ? rearmOrDisable() : retry(failure, at: now)
        }
        if useCommandsInUse(isRefused: again && isRefused) { return rearmOrDisable() }
        return again ? retry(nil, at: now) : rearmOrDisable(again: true, isRefused: isRefused)
    }

    private mutating func enabled(
        _ plan: ScanPlan, _ failure: HCICommandFailure?, wasDisturbed: Bool, at now: BootInstant
    ) -> [Action] {
        if let failure, failure.status != .commandDisallowed {
            return target == nil ? rearmOrDisable() : retry(failure, at: now)
        }
        guard target != nil else { return rearmOrDisable() }
        if failure != nil, !wasDisturbed { return retry(nil, at: now) }
        forgetRefusals()
        if coexistence.advertising != .nobody { hasReportedAdvertising = false }
        let lastReport = quietSince ?? now + (.zero - quietBefore)
        quietBefore = .zero
        if wasDisturbed {
            quietSince = lastReport
            state = .waiting(until: now + nextPause(), isBusy: false)
            return [.notify(.started)]
        }
        coexistence.scanBegan(at: now)
        state = .scanning(plan, since: now, lastReport: lastReport)
        quietSince = nil
        return [.notify(.started)] + proceed(at: now)
    }

    /// Ends the scan that runs for another one that follows.
    private mutating func interrupt(_ lastReport: BootInstant, at now: BootInstant) -> [Action] {
        // Where the time is over already, the machine may have slept.
        let isOverdue = now >= lastReport + silenceLimit(at: lastReport)
        quietBefore = isOverdue ? .zero : now - lastReport
        return rearmOrDisable()
    }

    /// Disables the scan, which is the first step of each re-arm: where a scan is wanted, `disabled` goes on with the
    /// parameters.
    private mutating func rearmOrDisable(again: Bool = false, isRefused: Bool = false) -> [Action] {
        state = .disabling(again: again, isRefused: isRefused)
        return [.send(controller.scanOff)]
    }

    private mutating func configure(_ plan: ScanPlan, again: Bool, isRefused: Bool) -> [Action] {
        state = .configuring(plan, again: again, isRefused: isRefused)
        return [.send(controller.parameters(for: plan))]
    }

    /// Uses the legacy commands from now on if the controller does not know an extended one.
    private mutating func useLegacyCommands(after failure: HCICommandFailure) -> Bool {
        guard controller.hasExtendedScan, failure.status == .unknownCommand else { return false }
        useLegacyCommands()
        return true
    }

    /// Uses what the controller may know, if it does not know or accept the parameters: no coded PHY, then the legacy
    /// commands.
    private mutating func useLessCommands(of plan: ScanPlan, after failure: HCICommandFailure) -> Bool {
        switch failure.status {
        case .unknownCommand?, .unsupportedFeature?, .invalidParameters?: break
        default: return false
        }
        guard controller.hasExtendedScan else { return false }
        if plan.phys.contains(.leCoded), failure.status != .unknownCommand {
            controller.hasCodedPHY = false
        } else {
            useLegacyCommands()
        }
        return true
    }

    private mutating func useLegacyCommands() {
        controller.hasExtendedScan = false
        controller.hasCodedPHY = false
    }

    /// Uses the other set of commands, if this one is refused because the other is in use.
    ///
    /// - Parameter isRefused: Whether the controller has refused every command since the last pause.
    private mutating func useCommandsInUse(isRefused: Bool) -> Bool {
        guard claimed.hasExtendedScan else { return false }
        let isOther = foreignSet == (controller.hasExtendedScan ? .legacy : .extended)
        guard isOther || isRefused && attempts >= Self.attemptsOfOneSet else { return false }
        foreignSet = nil
        if controller.hasExtendedScan { useLegacyCommands() } else { controller = claimed }
        attempts = 0
        return true
    }

    /// The set that a scan command belongs to; `nil` for any other command: kernels that scan with the legacy set may
    /// advertise with the extended one.
    private static func commandSet(of opcode: HCIOpcode) -> CommandSet? {
        switch opcode {
        case .leSetScanParameters, .leSetScanEnable: .legacy
        case .leSetExtendedScanParameters, .leSetExtendedScanEnable: .extended
        default: nil
        }
    }

    /// Waits before the next attempt; without a failure another program holds the scanner.
    private mutating func retry(_ failure: HCICommandFailure?, at now: BootInstant) -> [Action] {
        quietSince = nil
        quietBefore = .zero
        guard let failure else { return retryRefused(at: now) }
        forgetRefusals()
        let pause = nextPause()
        state = .waiting(until: now + pause, isBusy: false)
        return [.notify(.unable(failure, retry: pause))]
    }

    private mutating func retryRefused(at now: BootInstant) -> [Action] {
        let isHindered = isHinderedByAdvertising
        var refusal = (isHindered ? hinderedRefusal : self.refusal) ?? Refusal(since: now)
        let time = now - refusal.since
        refusal.count += 1
        let isDue = time >= Self.refusalTime && refusal.count >= Self.refusalCount && !refusal.isExcused
        let isNews = isDue && !refusal.isReported
        if isNews { refusal.isReported = true }
        refusal.isExcused = false
        if isHindered {
            hinderedRefusal = refusal
        } else {
            self.refusal = refusal
            hinderedRefusal = nil
        }
        let pause = nextPause()
        state = .waiting(until: now + pause, isBusy: true)
        let busy = Action.notify(.scanBusy(retry: pause))
        guard isDue else { return [busy] }
        guard isHindered else { return [busy, .notify(.refused(for: time, isNews: isNews))] }
        let wasReported = hasReportedAdvertising
        hasReportedAdvertising = true
        return [busy, .notify(.refusedWhileAdvertising(for: time, isNews: !wasReported))]
    }

    private mutating func forgetRefusals() {
        refusal = nil
        hinderedRefusal = nil
    }

    private mutating func excuseRefusals() {
        refusal?.isExcused = true
        hinderedRefusal?.isExcused = true
    }

    /// Acknowledges what was requested while the radio was not free.
    private mutating func acknowledge() -> [Action] {
        acknowledgeStop() + acknowledgePause()
    }

    private mutating func acknowledgeStop() -> [Action] {
        guard case .ended = goal else { return [] }
        goal = .none
        return [.notify(.ended)]
    }

    private mutating func acknowledgePause() -> [Action] {
        guard case .requested = pausing else { return [] }
        pausing = .acknowledged
        return [.notify(.paused)]
    }

    private mutating func nextPause() -> Duration {
        let pause = Self.firstPause * (1 << min(attempts, 6))
        attempts += 1
        if let refusal, refusal.isReported { return Self.longestPause }
        if let hinderedRefusal, hinderedRefusal.isReported { return Self.longestPause }
        return min(pause, Self.longestPause)
    }

    /// The number of attempts with a set of commands that the controller refuses, before the other has its turn.
    package static let attemptsOfOneSet = 6
    /// The longest time without data of a running scan before it is re-armed, and where much was heard before.
    package static let stallTimeout: Duration = .seconds(90)
    package static let stallTimeoutInBusyAir: Duration = .seconds(30)
    /// The time after which no report is read any more that was heard before.
    package static let readingTime: Duration = .seconds(1)
    /// After how long without trouble pauses are short again.
    package static let healthy: Duration = .seconds(60)
    /// The first pause before a retry.
    package static let firstPause: Duration = .milliseconds(500)
    /// The time and the number of refusals after which the controller is no longer taken for busy alone.
    package static let refusalTime: Duration = .seconds(120)
    package static let refusalCount = 5
    /// The longest pause before a retry.
    package static let longestPause: Duration = .seconds(30)
}

// MARK: - The controller

extension ScanSession {
    /// The properties of the controller that the session needs.
    package struct Controller: Hashable, Sendable {
        package var hasExtendedScan: Bool
        package var hasCodedPHY: Bool
        package var ownAddressType: AddressType

        /// The kernel chooses by the commands that the controller lists, and the choice has to be the same. The feature
        /// decides where it does not list any.
        package init(
            features: LEFeatures, commands: HCISupportedCommands? = nil, ownAddressType: AddressType = .public
        ) {
            hasExtendedScan = commands?.hasExtendedScan ?? features.contains(.extendedAdvertising)
            hasCodedPHY = hasExtendedScan && features.contains(.coded)
            self.ownAddressType = ownAddressType
        }
    }
}

// The two sets of commands; a controller that has received one refuses the other until it is reset.
extension ScanSession.Controller {
    /// Ends a scan.
    package var scanOff: HCICommandPacket {
        hasExtendedScan
            ? HCICommandPacket(LESetExtendedScanEnable(isEnabled: false))
            : HCICommandPacket(LESetScanEnable(isEnabled: false))
    }

    /// Sets how a scan listens.
    package func parameters(for plan: ScanPlan) -> HCICommandPacket {
        hasExtendedScan
            ? HCICommandPacket(
                LESetExtendedScanParameters(
                    isActive: plan.isActive, interval: plan.interval, window: plan.window, phys: plan.phys,
                    ownAddressType: ownAddressType))
            : HCICommandPacket(
                LESetScanParameters(
                    isActive: plan.isActive, interval: plan.interval, window: plan.window,
                    ownAddressType: ownAddressType))
    }

    /// Starts a scan.
    package func scanOn(for plan: ScanPlan) -> HCICommandPacket {
        hasExtendedScan
            ? HCICommandPacket(
                LESetExtendedScanEnable(isEnabled: true, filtersDuplicates: plan.filtersDuplicates))
            : HCICommandPacket(LESetScanEnable(isEnabled: true, filtersDuplicates: plan.filtersDuplicates))
    }
}

/// How often reports with data have come in the last minutes: five at least, and ten at most.
private struct ReportRate {
    private var windowBegan: BootInstant?
    private var count = 0
    /// The number in the window before; `nil` where there was none.
    private var countBefore: Int?

    private static let window: Duration = .seconds(300)

    mutating func add(at now: BootInstant) {
        advance(to: now)
        count += 1
    }

    /// Whether more than one report in a second was usual.
    func isHigh(at now: BootInstant) -> Bool {
        var copy = self
        copy.advance(to: now)
        guard let before = copy.countBefore, let began = copy.windowBegan else { return false }
        return .seconds(before + copy.count) > Self.window + (now - began)
    }

    private mutating func advance(to now: BootInstant) {
        guard let began = windowBegan else { return windowBegan = now }
        let age = now - began
        guard age >= Self.window else { return }
        countBefore = age < Self.window * 2 ? count : nil
        count = 0
        windowBegan = now
    }
}
