import BLECore
import BLELinux

/// A repair that `--fix` has made, or could not make.
struct Repair: Hashable, Sendable {
    let fix: Fix
    let adapter: String?
    let text: String
    /// The exit status of a failed repair.
    var failure: ExitStatus?
}

extension Repair {
    /// Makes one repair wherever a finding offers it, and nowhere else. An adapter is switched off and on because that
    /// was asked for: no finding shows that it is needed.
    static func all(_ fix: Fix, _ facts: SystemFacts, root: String?) async -> [Repair] {
        if fix == .cycle {
            let adapters = facts.radio.adapters.filter(\.isUp)
            if adapters.isEmpty { return [Repair(fix: fix, adapter: nil, text: fix.needless, failure: .noAdapter)] }
            var repairs: [Repair] = []
            for adapter in adapters where !Task.isCancelled { repairs.append(cycle(adapter)) }
            return repairs
        }
        let findings = Diagnosis(facts).lines.map(\.finding).filter { $0.fix == fix }
        guard !findings.isEmpty else { return [Repair(fix: fix, adapter: nil, text: fix.needless)] }
        // All of the radio's switches are set at once.
        guard fix != .rfkill else { return [unblock(root)] }
        var repairs: [Repair] = []
        for finding in findings {
            guard let adapter = facts.radio.adapters.first(where: { $0.name == finding.adapter }) else { continue }
            repairs.append(await repair(fix, adapter))
        }
        return repairs
    }

    private static func unblock(_ root: String?) -> Repair {
        do throws(SystemCallError) {
            let opened = RootAccess.current.withLock { $0 }?.switches
            try (opened ?? RadioSwitches(root: (root ?? "") + "/sys/class/rfkill")).unblock()
            return Repair(fix: .rfkill, adapter: nil, text: "unblocked the radio")
        } catch {
            return Repair(fix: .rfkill, adapter: nil, text: "could not unblock the radio: \(error.description)", error)
        }
    }

    private static func repair(_ fix: Fix, _ adapter: AdapterFacts) async -> Repair {
        do throws(SystemCallError) {
            switch fix {
            case .rfkill:
                return unblock(nil)
            case .up:
                return try switchOn(adapter)
            case .le:
                var dialogue = try ControllerDialogue(adapter: adapter.index)
                let response = await dialogue.ask(HCICommandPacket(HCIWriteLEHostSupport(isSupported: true)))
                return Repair(fix, adapter, response.result, done: "switched Low Energy on")
            case .cycle:
                return cycle(adapter)
            case .staleScan:
                var dialogue = try ControllerDialogue(adapter: adapter.index)
                let result = await dialogue.endScan(heard: adapter.before)
                return Repair(fix, adapter, result, done: "ended the scan without an owner")
            }
        } catch {
            return Repair(
                fix: fix, adapter: adapter.name, text: "could not \(fix.purpose): \(error.description)", error)
        }
    }

    /// Switches an adapter on, but not in the middle of a step of another program, which does that at its end.
    static func switchOn(
        _ adapter: AdapterFacts,
        claim: (ControllerInfo) throws(RecoveryFailure) -> RecoveryClaim? = { info throws(RecoveryFailure) in
            try RecoveryClaim.make(for: info)
        },
        power: (UInt16) throws(SystemCallError) -> Void = { index throws(SystemCallError) in
            try Controllers.powerUp(index)
        },
        describe: (UInt16) throws(SystemCallError) -> ControllerInfo = { index throws(SystemCallError) in
            try Controllers.info(index)
        }
    ) throws(SystemCallError) -> Repair {
        let info = try describe(adapter.index)
        let held: RecoveryClaim?
        do throws(RecoveryFailure) {
            held = try claim(info)
        } catch {
            return Repair(.up, adapter, error)
        }
        defer { withExtendedLifetime(held) {} }
        try power(adapter.index)
        return Repair(fix: .up, adapter: adapter.name, text: "switched on")
    }

    /// Switches an adapter off and on where no link would end.
    static func cycle(
        _ adapter: AdapterFacts, by recovery: AdapterRecovery = AdapterRecovery(),
        handles: (UInt16) throws(SystemCallError) -> [ConnectionHandle] = { index throws(SystemCallError) in
            try Controllers.handlesOfLinks(of: index)
        },
        describe: (UInt16) throws(SystemCallError) -> ControllerInfo = { index throws(SystemCallError) in
            try Controllers.info(index)
        }
    ) -> Repair {
        let fix = Fix.cycle
        do throws(SystemCallError) {
            let links = try handles(adapter.index).count
            guard links == 0 else {
                let what = links == 1 ? "1 link is up, and would end" : "\(links) links are up, and would end"
                return Repair(
                    fix: fix, adapter: adapter.name,
                    text:
                        "could not \(fix.purpose): \(what); `sudo bareble-recover --with-links power \(adapter.name)` does it",
                    failure: .timedOut)
            }
            let info = try describe(adapter.index)
            Interrupt.beginStep()
            defer { Interrupt.endStep() }
            do throws(RecoveryFailure) {
                try recovery.take(.power, info)
                return Repair(fix: fix, adapter: adapter.name, text: "switched off and on")
            } catch {
                return Repair(fix, adapter, error)
            }
        } catch {
            return Repair(
                fix: fix, adapter: adapter.name, text: "could not \(fix.purpose): \(error.description)", error)
        }
    }

    /// A step of recovery that was not taken, or did not succeed.
    private init(_ fix: Fix, _ adapter: AdapterFacts, _ failure: RecoveryFailure) {
        let (reason, status): (String, ExitStatus) =
            switch failure {
            case .underWay:
                (
                    "another program takes a recovery step for this adapter; try it again in a minute: "
                        + "`ss -xap | grep bareble-recovery` as root names the program, which can be ended", .timedOut
                )
            case .notPermitted: (RecoveryRequest.response(failure), .notPermitted)
            default: (RecoveryRequest.response(failure), .noAdapter)
            }
        self.init(
            fix: fix, adapter: adapter.name, text: "could not \(fix.purpose): \(reason)", failure: status)
    }

    private init(fix: Fix, adapter: String?, text: String, _ error: SystemCallError) {
        self.init(fix: fix, adapter: adapter, text: text)
        if case .notPermitted = error.meaning { failure = .notPermitted } else { failure = .noAdapter }
    }

    /// The result of a command. One that could not be sent has no status: the adapter is off, or a capability is
    /// missing.
    private init(_ fix: Fix, _ adapter: AdapterFacts, _ result: CommandResult, done: String) {
        if result.status == 0 {
            self.init(fix: fix, adapter: adapter.name, text: done)
        } else {
            let reason =
                result.status.map { HCIStatus(rawValue: $0).description }
                ?? "the controller accepted no command, or did not respond"
            self.init(fix: fix, adapter: adapter.name, text: "could not \(fix.purpose): \(reason)", failure: .noAdapter)
        }
    }
}

extension Fix {
    /// The purpose, to follow "could not".
    var purpose: String {
        switch self {
        case .rfkill: "unblock the radio"
        case .up: "switch it on"
        case .le: "switch Low Energy on"
        case .staleScan: "end the scan"
        case .cycle: "switch it off and on"
        }
    }

    /// The message if there is nothing to repair.
    var needless: String {
        switch self {
        case .rfkill: "nothing to unblock"
        case .up: "no adapter is off"
        case .le: "no adapter has Low Energy off"
        case .staleScan: "there is no scan without an owner"
        case .cycle: "no adapter is on"
        }
    }
}

extension ControllerDialogue {
    /// Ends a scan by the set of commands that began it: controllers are known that hang after a command of the other
    /// set.
    ///
    /// - Parameter heard: The reports of the scan, if any: those of a legacy scan have an event of their own.
    mutating func endScan(heard: HeardFacts?) async -> CommandResult {
        let (_, controller) = await describe()
        // Without a response nothing shows which set that is.
        guard var controller else {
            return CommandResult(command: HCIOpcode.leReadLocalFeatures.rawValue, status: nil)
        }
        if let count = heard?.fromLegacyScan, count > 0 { controller.hasExtendedScan = false }
        var result = await ask(controller.scanOff).result
        // The controller has no scan: it has ended meanwhile.
        if result.status == HCIStatus.commandDisallowed.rawValue { result.status = HCIStatus.success.rawValue }
        return result
    }
}
