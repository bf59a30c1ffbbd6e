// The scan of one adapter: gets it going, keeps it going, and ends it.
//
// Duties: choose the legacy or the extended commands once, by what the controller has, and never mix them. Begin each
// time from the same place: disable, set parameters, enable; a scan of a program that died may still run. Notice when
// somebody else touched the scan and set it up again. Notice a controller that has gone quiet.
//
// Invariants:
// - One command of the session is out at a time; what is wanted meanwhile is kept in `wanted` and `isPaused` and looked at
//   when the answer is there.
// - Command Disallowed on enable and disable means "already so": what matters is whether reports come. On the parameters
//   it means that a scan runs: disable and try once more, then say `scanBusy` and wait (row H14).
// - Whatever fails is tried again after a pause that doubles up to 30 s, and starts small again after a healthy minute.
//   Two programs that take the scan from each other therefore do so ever more rarely.
// - The kernel turns scanning off around each of its own connects, and nobody turns it on again: somebody else's
//   completion of a scan enable leads to a fresh start half a second later, not at once, because the kernel may be
//   calling a peer just then.
// - A report without data is no sign of life: stuck controllers go on sending those (row H16).
// - A scan whose end the controller did not confirm is ended again, before the next call or after a pause.
// - `pause` and `stop` are answered exactly once, by `paused` and `ended`, when the radio no longer scans for us.
//
// The session never acts; it returns commands to send and events to tell, in order.

/// Keeps a scan going on one adapter.
package struct ScanSession: ~Copyable {
    enum State {
        /// No scan of ours runs and no command is out.
        case resting
        /// Scan off is out; `again` when parameters were refused before.
        case disabling(again: Bool)
        /// The parameters are out; `again` when they were refused before.
        case configuring(again: Bool)
        /// Scan on is out.
        case enabling
        /// The scan runs.
        case scanning(since: BootInstant)
        /// The scan runs or not; it is set up anew at `until`.
        case waiting(until: BootInstant)
        /// The adapter is down.
        case asleep
    }

    package let controller: Controller
    var state = State.resting
    var wanted: ScanPlan?
    var configured: ScanPlan?
    var isPaused = false
    var owesPaused = false
    var owesEnded = false
    var wasDisturbed = false
    var lastLife = BootInstant.zero
    var attempts = 0
    var stalls = 0

    package init(_ controller: Controller) {
        self.controller = controller
    }

    /// Whether reports can come in.
    package var isScanning: Bool {
        if case .scanning = state { return true }
        return false
    }

    /// Whether nothing runs and no command is out.
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
        case .scanning: lastLife + Self.patience
        case .waiting(let until): until
        }
    }
}

// MARK: - What is wanted

extension ScanSession {
    /// Scans under a plan from now on; also for a new plan while a scan runs.
    package mutating func start(_ plan: ScanPlan, at now: BootInstant) -> [Action] {
        var plan = plan
        if !controller.hasCodedPHY { plan.phys = .le1M }
        wanted = plan
        attempts = 0
        stalls = 0
        var actions = settleEnded()
        actions += proceed(at: now)
        return actions
    }

    /// Ends the scan; answered by `ended`.
    package mutating func stop(at now: BootInstant) -> [Action] {
        wanted = nil
        owesEnded = true
        return proceed(at: now)
    }

    /// Makes way for a connect; answered by `paused`.
    package mutating func pause(at now: BootInstant) -> [Action] {
        isPaused = true
        owesPaused = true
        return proceed(at: now)
    }

    /// Scans again, if a scan is wanted.
    package mutating func resume(at now: BootInstant) -> [Action] {
        isPaused = false
        var actions: [Action] = []
        if owesPaused {
            owesPaused = false
            actions.append(.tell(.paused))
        }
        attempts = 0
        actions += proceed(at: now)
        return actions
    }
}

// MARK: - What happens

extension ScanSession {
    /// The command that was sent last has been answered, or failed for the reason given.
    package mutating func commandFinished(_ failure: HCICommandFailure?, at now: BootInstant) -> [Action] {
        let refused = failure?.status == .commandDisallowed
        // There is nobody to be told anything more, not even that the scan is unwanted.
        if hasCommandOut, failure?.reason == .adapterLost { return adapterDown() }
        switch state {
        case .resting, .scanning, .waiting, .asleep:
            return []
        case .disabling(let again):
            guard shouldScan else {
                // Without an answer the scan may run on, and keep the controller from taking calls.
                if failure?.reason == .timeout { return endLater(at: now) }
                // Whatever the answer, there is nothing more to do against a scan that nobody wants.
                return rest(at: now)
            }
            if let failure, !refused { return fail(failure, at: now) }
            return configure(again: again)
        case .configuring(let again):
            guard shouldScan else { return disable() }
            guard let failure else { return enable() }
            guard refused else { return fail(failure, at: now) }
            return again ? fail(nil, at: now) : disable(again: true)
        case .enabling:
            if let failure, !refused {
                state = .resting
                return shouldScan ? fail(failure, at: now) : disable()
            }
            state = .scanning(since: now)
            lastLife = now
            let disturbed = wasDisturbed
            wasDisturbed = false
            var actions: [Action] = shouldScan ? [.tell(.started)] : []
            if disturbed && shouldScan {
                state = .waiting(until: now + nextPause())
            } else {
                actions += proceed(at: now)
            }
            return actions
        }
    }

    /// Somebody else's command was answered on this adapter.
    package mutating func foreignCompletion(
        _ opcode: HCIOpcode, _ status: HCIStatus?, at now: BootInstant
    ) -> [Action] {
        guard opcode == .leSetScanEnable || opcode == .leSetExtendedScanEnable, status == .success else { return [] }
        switch state {
        case .resting, .asleep, .waiting, .disabling, .configuring:
            return []
        case .enabling:
            wasDisturbed = true
            return []
        case .scanning(let since):
            if now - since >= Self.healthy { attempts = 0 }
            state = .waiting(until: now + nextPause())
            return [.tell(.disturbed(by: opcode))]
        }
    }

    /// A report was read.
    package mutating func reportSeen(hasData: Bool, at now: BootInstant) {
        guard hasData else { return }
        lastLife = now
        stalls = 0
    }

    /// The clock went on.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        if case .waiting = state { return proceed(at: now) }
        stalls += 1
        return [.tell(.stalled(count: stalls))] + disable()
    }

    /// The adapter went down, was unplugged or is being reset: whatever ran has ended.
    package mutating func adapterDown() -> [Action] {
        state = .asleep
        configured = nil
        wasDisturbed = false
        return settle()
    }

    /// The adapter is up again.
    package mutating func adapterUp(at now: BootInstant) -> [Action] {
        guard case .asleep = state else { return [] }
        state = .resting
        attempts = 0
        return proceed(at: now)
    }
}
