internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter takes the steps of recovery.

extension Adapter {
    /// How long the adapter may take to return after a step.
    private static let returnTimeout: Duration = .seconds(20)
    /// Between off and on.
    private static let powerPause: Duration = .milliseconds(500)

    /// Counts the runs of earlier processes, and has a handler keep the times of all runs, and whether a step has left
    /// the adapter off, after each change.
    func continueRecovery(after runs: [BootInstant], keepingBy handler: @escaping RecoveryCoordinator.RunHandler) {
        recovery.restore(runs: runs)
        recovery.onRuns(handler)
    }

    /// Switches the adapter on that a step of an earlier process has left off, because that was ended meanwhile.
    ///
    /// - Parameter address: The adapter of that process, where it is known: any other one is left as it is.
    func finishEarlierStep(of address: BluetoothAddress?) {
        guard recovery.policy.permits(.power) else { return }
        try? find(during: "switch the adapter on")
        guard presence == .down, let info, address == nil || address == info.address else { return }
        logger.notice("the adapter is off since an earlier step of recovery", metadata: ["adapter": "\(name)"])
        recovery.adapterLeftOff()
        restorePower()
    }

    func perform(_ actions: [RecoveryLadder.Action]) {
        for action in actions {
            switch action {
            case .notify(let event): report(event)
            case .probe: send(HCICommandPacket(LEReadLocalFeatures()), for: .none)
            case .perform(let step):
                guard step.endsLinks else {
                    perform(identification.eventCommands(isSilent: true))
                    perform(scan.rearm(at: loop.now()))
                    perform(recovery.stepFinished(nil, at: loop.now()))
                    continue
                }
                Task(executorPreference: loop) { [weak self] in
                    guard let failure = await self?.take(step) else { return }
                    await self?.stepFinished(failure.reason)
                }
            }
        }
        // The end of the trouble leaves no step due.
        if !actions.isEmpty { resetTimer() }
    }

    /// The controller has refused for so long to begin a scan.
    ///
    /// Some controllers refuse a scan while a link of any program is up: no step is taken for them.
    func scanRefused(for time: Duration, isNews: Bool) {
        let hasLinks = hasLinksUp
        // After a step it is still the same refusal.
        let isKnown = if case .scanRefused = recovery.reason { true } else { false }
        if isNews, !isKnown {
            let remedy =
                hasLinks
                ? "it may not scan while a link is up: end the links, or use another adapter"
                : "end other programs that scan or connect; `sudo blescan doctor -i \(name) --fix cycle` switches it off and on"
            logger.warning(
                "the controller refuses to begin a scan",
                metadata: [
                    "adapter": "\(name)", "seconds": "\(time.components.seconds)",
                    "again in": "\(ScanSession.longestPause.components.seconds) s",
                    "remedy": "\(remedy)",
                ])
        }
        if !hasLinks { perform(recovery.scanRefused(for: time, at: loop.now())) }
    }

    /// The controller has refused for so long to begin a scan, and has advertised all the time.
    func scanRefusedWhileAdvertising(for time: Duration, isNews: Bool) {
        let hasLinks = hasLinksUp
        if isNews {
            let condition = hasLinks ? "while it advertises, or while a link is up" : "while it advertises"
            let remedy =
                advertising == .thisProgram
                ? "stop advertising while a scan runs, or use another adapter: this one begins to scan when nothing is on air"
                : "end the advertisements of other programs, or use another adapter"
            logger.warning(
                "this controller cannot scan \(condition)",
                metadata: [
                    "adapter": "\(name)", "seconds": "\(time.components.seconds)", "remedy": "\(remedy)",
                ])
        }
        if !hasLinks { perform(recovery.scanRefusedWhileAdvertising(for: time, at: loop.now())) }
    }

    /// Whether a link of any program is up.
    private var hasLinksUp: Bool {
        links.hasLinks || info.flatMap { system.linkHandles($0.index) }?.isEmpty == false
    }

    private struct StepEnd: Sendable {
        var reason: RecoveryFailure?
    }

    private func stepFinished(_ failure: RecoveryFailure?) {
        // What the step has done to it is no loss by others, as long as the step is not finished.
        checkPresence()
        perform(recovery.stepFinished(failure, at: loop.now()))
        // A scan that was accepted during the step is not accepted again.
        if scan.isScanning { perform(recovery.scanAccepted(at: loop.now())) }
        if presence == .up { recovery.adapterIsUp() }
        restorePower()
        logWarnings()
    }

    /// Switches the adapter on where a step has left it off and no further one is due, as for one that has come back
    /// after the time limit of the step.
    ///
    /// - Returns: Whether that begins.
    @discardableResult
    func restorePower() -> Bool {
        guard presence == .down, let info, recovery.takePowerUp() else { return false }
        Task(executorPreference: loop) { [weak self] in await self?.restorePower(of: info) }
        return true
    }

    private func restorePower(of adapter: ControllerInfo) async {
        // A program that has switched it on meanwhile may have links, and an idle program looks for nothing.
        checkPresence()
        guard presence == .down else { return }
        let isDoneHere = system.privileges().has(.netAdmin)
        do throws(RecoveryFailure) {
            // It may be off because another program takes a step.
            let claim = try isDoneHere ? system.claimRecovery(adapter) : nil
            defer { withExtendedLifetime(claim) {} }
            if !isDoneHere {
                try await system.recover(.power, adapter, recovery.policy.helper, loop)
                commandsReadable()
            }
            try await awaitReturn()
        } catch {
            recovery.powerUpFailed(error, byHelper: !isDoneHere, at: loop.now())
            armTimer()
            logger.warning(
                "the adapter was switched off by a step of recovery, and is still off",
                metadata: ["reason": "\(BLEError(error, .power, subject: name))"])
        }
    }

    private func take(_ step: RecoveryPolicy.Step) async -> StepEnd {
        do throws(RecoveryFailure) {
            let info = try presentAdapter()
            try checkLinks(of: info.index)
            let isTakenHere = step == .power && system.privileges().has(.netAdmin)
            // Any other step is claimed where it is taken: beside the loop, or by the helper program.
            let claim = try isTakenHere ? system.claimRecovery(info) : nil
            defer { withExtendedLifetime(claim) {} }
            if info.isUp { recovery.adapterLeftOff() }
            if isTakenHere {
                try await cyclePower(info)
            } else {
                do throws(RecoveryFailure) {
                    try await system.recover(step, info, recovery.policy.helper, loop)
                } catch {
                    if error == .underWay, info.isUp { recovery.adapterLeftToOther() }
                    throw error
                }
                // An adapter that was away is another one to the kernel, even with the same name.
                commandsReadable()
                try await awaitReturn()
            }
            return StepEnd(reason: nil)
        } catch {
            return StepEnd(reason: error)
        }
    }

    /// The adapter, as the kernel has it now: its index may be another adapter's.
    private func presentAdapter() throws(RecoveryFailure) -> ControllerInfo {
        guard let known = info, let all = try? system.list() else { throw .adapterGone }
        guard let found = all.first(where: { $0.index == known.index && $0.address == known.address }) else {
            throw .adapterGone
        }
        return found
    }

    /// Links of other programs are ended only where that was permitted, and links of this program for nothing less than
    /// all of them.
    private func checkLinks(of index: UInt16) throws(RecoveryFailure) {
        let policy = recovery.policy
        if policy.limit >= .usb, policy.endsLinksOfOthers { return }
        guard let handles = system.linkHandles(index) else { throw .failed("the links that are up cannot be seen") }
        let others = handles.filter { links.peer(of: $0) == nil }
        if !others.isEmpty { throw .linksOfOthers(others.count) }
        switch recovery.reason {
        case .suspectedLink, .scanRefused: if links.hasLinks { throw .linksInUse(links.linkCount) }
        case .silence, .commandTimeouts, .scanRefusedWhileAdvertising, nil: break
        }
    }

    /// Switches the adapter off by `HCIDEVDOWN`, not by Set Powered of the management interface: that one fails where
    /// the controller does not respond, and takes the advertisements of other programs away (decision 11).
    private func cyclePower(_ adapter: ControllerInfo) async throws(RecoveryFailure) {
        if system.isBlocked(adapter.name) { throw .blocked }
        let system = system
        let failure: SystemCallError?
        do throws(WorkFailure) {
            failure = try await loop.offload { () -> SystemCallError? in
                do throws(SystemCallError) {
                    try system.powerDown(adapter.index)
                    return nil
                } catch {
                    return error
                }
            }
        } catch {
            throw .failed("there is no room for another thread")
        }
        checkPresence()
        // An error of the driver, as for a controller that does not respond, does not keep the kernel from switching it
        // off (`hci_dev_close_sync`).
        if let failure, !adapter.isUp || presence != .down {
            throw failure.meaning == .adapterGone ? .adapterGone : .failed(failure.description)
        }
        _ = await suspend(until: loop.now() + Self.powerPause) { _ in }
        if let failure = await powerUp(adapter.index, during: "switch the adapter on") {
            switch failure.meaning {
            case .blocked: throw .blocked
            case .adapterGone where presence != .down: throw .adapterGone
            // It may respond to one of the next attempts. The driver may report a device that is there as gone.
            case .noResponse, .adapterGone: break
            default: throw .failed(failure.description)
            }
        }
        try await awaitReturn()
    }

    /// Waits until the adapter is there, and switched on.
    private func awaitReturn() async throws(RecoveryFailure) {
        let deadline = loop.now() + Self.returnTimeout
        while true {
            checkPresence()
            if presence == .up { return }
            var failure: SystemCallError?
            if presence == .down, let index = info?.index {
                failure = await powerUp(index, during: "switch the adapter on")
            }
            if presence == .up { return }
            guard loop.now() < deadline else {
                if failure?.meaning == .blocked { throw .blocked }
                throw failure.map { .failed($0.description) } ?? .adapterGone
            }
            _ = await suspend(until: loop.now() + .seconds(2)) { _ in }
        }
    }

    // MARK: Reporting

    private func report(_ event: RecoveryLadder.Event) {
        let subject = name
        switch event {
        case .began(let step, let reason):
            logger.log(
                level: step.endsLinks ? .notice : .debug,
                "the adapter does not work as it should: a step of recovery begins",
                metadata: ["adapter": "\(subject)", "step": "\(step)", "because": "\(reason.words)"])
            recovery.events.report(.began(step, because: reason))
        case .failed(let step, let failure):
            let error = BLEError(failure, step, subject: subject)
            logger.warning("a step of recovery was not taken", metadata: ["reason": "\(error)"])
            recovery.events.report(.failed(step, error))
        case .recovered(let step, let time):
            // Silence that a scan ends may be that of the air.
            logger.log(
                level: step?.endsLinks ?? false ? .notice : .debug, "the adapter works again",
                metadata: [
                    "adapter": "\(subject)", "after step": "\(step?.name ?? "none")",
                    "seconds": "\(time.components.seconds)",
                ])
            recovery.events.report(.recovered(by: step, after: time))
        case .exhausted(let reason, let next):
            var metadata: Logger.Metadata = [
                "adapter": "\(subject)", "because": "\(reason.words)",
                "again in": next.map { "\($0.components.seconds) s" } ?? "never",
            ]
            // A link that nobody holds ends without that.
            if case .silence = reason, next == nil, recovery.policy.permits(.power) {
                metadata["remedy"] =
                    "it has heard nothing while it advertised, and may not be able to do both: stop advertising, or use another adapter"
            } else if recovery.policy.permits(.driver), reason.hasStep {
                metadata["remedy"] = "unplug it, or switch the power of its port or of the machine off and on"
            }
            let level: Logger.Level =
                switch reason {
                case .commandTimeouts: .warning
                // Silence may be that of the air.
                case .silence, .suspectedLink: recovery.policy.permits(.power) ? .warning : .info
                // That it refuses was logged.
                case .scanRefused: recovery.policy.permits(.power) ? .warning : .debug
                case .scanRefusedWhileAdvertising: .debug
                }
            logger.log(
                level: level,
                "\(reason.persistence), and no permitted step has helped", metadata: metadata)
            if case .silence = reason, !scan.hasHeard { monitor.reportSilence() }
            recovery.events.report(.exhausted(because: reason, next: next))
        }
    }
}

extension RecoveryPolicy.Reason {
    fileprivate var words: String {
        switch self {
        case .silence(let time): "nothing was heard for \(time.components.seconds) s"
        case .commandTimeouts(let count): "\(count) commands had no response"
        case .suspectedLink(let peer): "the controller has a link to \(peer) that nobody holds"
        case .scanRefused(let time): "the controller has refused to scan for \(time.components.seconds) s"
        case .scanRefusedWhileAdvertising(let time):
            "the controller has refused to scan for \(time.components.seconds) s while it advertised"
        }
    }

    /// Whether it takes a step or a person to end it.
    fileprivate var hasStep: Bool {
        switch self {
        case .silence, .commandTimeouts, .scanRefused: true
        case .suspectedLink, .scanRefusedWhileAdvertising: false
        }
    }

    /// What may still be the case.
    fileprivate var persistence: Logger.Message {
        switch self {
        case .silence: "the adapter does not work, or nothing is on air"
        case .commandTimeouts: "the adapter does not work"
        case .suspectedLink: "a link may be up that nobody holds"
        case .scanRefused: "the adapter does not scan"
        case .scanRefusedWhileAdvertising: "the adapter does not scan while it advertises"
        }
    }
}

extension BLEError {
    /// A step of recovery was not taken.
    init(_ failure: RecoveryFailure, _ step: RecoveryPolicy.Step, subject: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch failure {
            case .notPermitted(let text):
                (
                    .notPermitted, "this process may not do that: \(text)",
                    step == .power
                        ? "Install the helper `bareble-recover` with its socket, or give the program CAP_NET_ADMIN."
                        : "Install the helper `bareble-recover` with its socket, or run the program as root."
                )
            case .linksOfOthers(let count):
                (
                    .busy, "\(count) \(count == 1 ? "link" : "links") of other programs would end",
                    "Set `RecoveryPolicy.endsLinksOfOthers`, with the limit `usb`, to permit that."
                )
            case .linksInUse(let count):
                (
                    .busy, "\(count) \(count == 1 ? "link" : "links") of this program would end",
                    "It is done later if it is still due; `RecoveryPolicy.endsLinksOfOthers`, with the limit `usb`, ends them."
                )
            case .blocked: (.blocked, "the adapter is blocked by rfkill", "Unblock it: `rfkill unblock bluetooth`.")
            case .notApplicable: (.notSupported, "the adapter has no part for this step", nil)
            case .adapterGone: (.noAdapter, "the adapter did not come back", "Unplug it and plug it in again.")
            case .underWay:
                (
                    .busy, "another program takes a recovery step for this adapter",
                    "It is tried again by itself. `ss -xap | grep bareble-recovery` as root names the program, which can be ended."
                )
            case .refused(let text): (.busy, text, nil)
            case .unavailable(let text):
                (
                    .busy, text,
                    "It is tried again by itself. `journalctl -u 'bareble-recover@*'` shows what the helper program reports."
                )
            case .noResponse(let text):
                (.timedOut, text, "`journalctl -u 'bareble-recover@*'` shows what the helper program reports.")
            case .failed(let text): (.system, text, nil)
            }
        self.init(code, subject: subject, during: "take the recovery step \(step)", because: reason, hint: hint)
    }
}
