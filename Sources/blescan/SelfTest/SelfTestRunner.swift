import BLECore
import BLELinux
import BareBLE

// The self-test of one adapter.
//
// Duties: run the checks in their order, each with the commands that it needs; keep the report; leave the adapter as it was
// found, however the test ends.
//
// Invariants
// - It alone owns the channel to the controller, and with it the deadline of every command.
// - A check that cannot run is in the report with the reason. So are all that follow after the adapter has disappeared, or
//   the user has interrupted the test.
// - What it has begun it ends itself: a scan, a connection attempt, a change of the power or of LE. It never sends a Reset.

/// Why a self-test ends before its last check.
enum SelfTestEnd: Error, Hashable, Sendable {
    /// The adapter was unplugged, or the driver reset it; the last command and whether it had no response.
    case gone(after: HCIOpcode?, wasSilent: Bool)
    /// Another program has switched it off.
    case off
    case interrupted
}

/// What the user wants of a self-test.
struct SelfTestPlan: Sendable {
    /// Whether devices are known to advertise nearby, so that silence is a defect.
    var expectsReports = false
    /// Whether it runs beside links and scans of other programs.
    var isForced = false
    var peerAdapter: AdapterSelector?
    var peer: PeerArgument?
    var soak: Duration?
    /// Takes every packet for a recording.
    var configuration = Configuration()
}

/// Runs the checks.
final class SelfTestRunner {
    let machine: SelfTestMachine
    let plan: SelfTestPlan
    let channel: SelfTestChannel
    private(set) var facts: SystemFacts
    /// The adapter under test; its facts grow by what the controller says.
    var adapter: AdapterFacts
    var report = SelfTestReport()
    var commands: HCISupportedCommands?
    var features: LEFeatures?
    /// How the controller scans; `nil` before that is known, or if it cannot.
    var scanner: ScanSession.Controller?
    var connectsExtended = false
    /// The LE event mask that the scans need, where the kernel's may lack something.
    var wantedMask: LEEventMask?
    /// What the checks of the scan have heard, for those that compare.
    var restarts: SelfTestRestarts?
    var heard: SelfTestHeard?

    /// The second adapter, while it advertises and serves.
    var peer: SelfTestPeer?
    /// The device to connect to, and why there is none.
    var target: PeerID?
    var central: Central?
    /// The link that several checks use.
    var link: SelfTestLink?

    private let show: (SelfTestResult) -> Void
    private let begin: (SelfTestCheck) -> Void
    private var statuses: [SelfTestStatuses] = []
    private var end: SelfTestEnd?
    private var lastCommand: (opcode: HCIOpcode, wasSilent: Bool)?
    private var isScanning = false
    /// The command that ends the scan which was begun last.
    private var endOfScan: HCICommandPacket?
    private var hasAttempt = false
    private let wasUp: Bool
    private(set) var isUp: Bool
    private var hadNoLowEnergy = false
    private var logBefore = 0

    /// Prepares the self-test of an adapter.
    ///
    /// - Throws: `Failure` if the adapter is not there, is in use, or may not be used.
    init(
        _ selector: AdapterSelector, on machine: SelfTestMachine, _ plan: SelfTestPlan,
        begin: @escaping (SelfTestCheck) -> Void = { _ in }, show: @escaping (SelfTestResult) -> Void
    ) async throws(Failure) {
        self.machine = machine
        self.plan = plan
        self.begin = begin
        self.show = show
        facts = await machine.facts()
        let found = try Self.find(selector, in: facts)
        adapter = found
        wasUp = found.isUp
        isUp = found.isUp
        channel = SelfTestChannel(
            adapter.index, name: adapter.name, system: machine.system, loop: machine.loop,
            trace: plan.configuration.traceHCI)
        try mayRun()
        if let selector = plan.peerAdapter {
            let peer = try Self.find(selector, in: facts)
            if peer.index == found.index {
                throw Failure(
                    message: "--peer-adapter is \(found.name), the adapter under test; name another one.",
                    status: .usage)
            }
            try refuseOwner(of: peer)
            try refuseLinks(of: peer)
        }
        report.expectsPeer = plan.peer != nil || plan.peerAdapter != nil
        report.expectsPeerAdapter = plan.peerAdapter != nil
        logBefore = machine.kernelLog().count
    }

    /// Returns the adapter of this machine that a selector names.
    static func find(_ selector: AdapterSelector, in facts: SystemFacts) throws(Failure) -> AdapterFacts {
        guard facts.radio.controllerSocket == 0 else {
            throw Failure(
                message:
                    "the kernel offers no Bluetooth sockets here. Load the module `bluetooth`; in a container use the "
                    + "network of the host. [errno \(facts.radio.controllerSocket)] `blescan doctor` finds out more.",
                status: .noAdapter)
        }
        let all = facts.radio.adapters
        let found = all.first { adapter in
            switch selector {
            case .first: true
            case .named(let name): adapter.name == name
            case .address(let address): adapter.address == address.description
            }
        }
        if let found { return found }
        let names = all.map { "\($0.name) (\($0.address))" }.joined(separator: ", ")
        throw Failure(
            message: "there is no \(selector)." + (names.isEmpty ? " No adapter is there." : " There are: \(names)."),
            status: .noAdapter)
    }

    private func mayRun() throws(Failure) {
        let rights = machine.system.privileges()
        guard rights.has(.netRaw) else {
            throw Failure(
                message: "a self-test sends commands to \(adapter.name), which needs CAP_NET_RAW. Run it as root: "
                    + "`sudo blescan selftest`; with CAP_NET_ADMIN it can also switch the adapter off and on.",
                status: .notPermitted)
        }
        if machine.system.isBlocked(adapter.name) {
            throw Failure(
                message: "\(adapter.name) is blocked by rfkill. `sudo blescan doctor --fix rfkill` removes the block.",
                status: .noAdapter)
        }
        if !adapter.isUp, !rights.has(.netAdmin) {
            throw Failure(
                message:
                    "\(adapter.name) is off, and switching it on needs CAP_NET_ADMIN. Run it as root, or switch the "
                    + "adapter on first: sudo hciconfig \(adapter.name) up", status: .noAdapter)
        }
        try refuseOwner(of: adapter)
        try refuseLinks(of: adapter)
    }

    /// Ends with an error where links would end, of either kind of Bluetooth.
    private func refuseLinks(of adapter: AdapterFacts) throws(Failure) {
        guard !plan.isForced, adapter.isUp else { return }
        guard let links = machine.system.linkHandles(adapter.index)?.count else {
            throw Failure(
                message: "the links of \(adapter.name) cannot be seen, and a self-test would end them. Add --force if "
                    + "there are none.", status: .timedOut)
        }
        guard links > 0 else { return }
        throw Failure(
            message: "\(adapter.name) has \(links.counted("link")), which a self-test would disturb or end. Disconnect "
                + "first, or add --force.", status: .timedOut)
    }

    /// Why the adapter cannot be switched off and on: links of other programs are up; `nil` if it can.
    func linksInTheWay() -> String? {
        guard !plan.isForced else { return nil }
        guard let links = machine.system.linkHandles(adapter.index)?.count else { return "its links cannot be seen" }
        let others = links - (link == nil ? 0 : 1)
        return others > 0 ? "\(others.counted("link")) of other programs would end" : nil
    }

    private func refuseOwner(of adapter: AdapterFacts) throws(Failure) {
        guard let owner = facts.radio.openers?.first(where: { $0.kind == .user && $0.adapter == adapter.index }) else {
            return
        }
        throw Failure(
            message: "\(owner.program.printable) has exclusive access to \(adapter.name). End it first.",
            status: .noAdapter)
    }

    // MARK: The peer

    /// Has the second adapter advertise, before the scans that are to hear it.
    private func preparePeer() async {
        guard let selector = plan.peerAdapter else { return }
        do throws(Failure) {
            let found = try Self.find(selector, in: facts)
            let peer = SelfTestPeer(found, on: machine)
            try await peer.start()
            self.peer = peer
        } catch {
            peerObstacle = error.message
        }
    }

    /// Why the second adapter does not serve.
    private(set) var peerObstacle: String?

    // MARK: Running

    /// Runs all checks, and restores the adapter.
    ///
    /// - Throws: `Failure` if the adapter cannot be opened or switched on, or another program scans.
    func run() async throws(Failure) -> SelfTestReport {
        begin(.identity)
        describe()
        try await open()
        do throws(Failure) {
            try await refuseForeignScan()
        } catch {
            await restore()
            throw error
        }
        await preparePeer()
        await runChecks()
        if let time = plan.soak { await soak(for: time) }
        await restore()
        report.kernelLog = Array(machine.kernelLog().dropFirst(logBefore))
        return report
    }

    private func runChecks() async {
        await run(.identity) { () async throws(SelfTestEnd) in try await self.identity() }
        await run(.responses) { () async throws(SelfTestEnd) in try await self.responses() }
        await run(.capabilities) { () async throws(SelfTestEnd) in try await self.capabilities() }
        await run(.kernelChoice) { () async throws(SelfTestEnd) in try await self.kernelChoice() }
        await run(.scanSwitch) { () async throws(SelfTestEnd) in try await self.scanSwitch() }
        await run(.scanRestarts) { () async throws(SelfTestEnd) in try await self.scanRestarts() }
        await run(.passiveScan) { () async throws(SelfTestEnd) in try await self.passiveScan() }
        await run(.activeScan) { () async throws(SelfTestEnd) in try await self.activeScan() }
        await run(.duplicates) { () async throws(SelfTestEnd) in try await self.duplicates() }
        await run(.duty) { () async throws(SelfTestEnd) in try await self.duty() }
        await run(.autosuspend) { () async throws(SelfTestEnd) in try await self.autosuspend() }
        await run(.attempt) { () async throws(SelfTestEnd) in try await self.attempt() }
        await run(.refusals) { () async throws(SelfTestEnd) in try await self.refusals() }
        await run(.connects) { () async throws(SelfTestEnd) in try await self.connects() }
        await run(.scanWhileLinked) { () async throws(SelfTestEnd) in try await self.scanWhileLinked() }
        await run(.procedures) { () async throws(SelfTestEnd) in try await self.procedures() }
        await run(.throughput) { () async throws(SelfTestEnd) in try await self.throughput() }
        await run(.linkLimit) { () async throws(SelfTestEnd) in try await self.linkLimit() }
        await run(.advertiseWhileLinked) { () async throws(SelfTestEnd) in try await self.advertiseWhileLinked() }
        await run(.supervision) { () async throws(SelfTestEnd) in try await self.supervision() }
        await run(.powerCycles) { () async throws(SelfTestEnd) in try await self.powerCycles() }
    }

    /// Repeats the checks of `--soak` until its time is over, and keeps the worst judgement of each.
    private func soak(for time: Duration) async {
        let deadline = machine.loop.now() + time
        var rounds = 1
        // Without a scan no check of a round waits for anything.
        while end == nil, scanner != nil, !Task.isCancelled, machine.loop.now() < deadline {
            rounds += 1
            await run(.scanRestarts) { () async throws(SelfTestEnd) in try await self.scanRestarts() }
            await run(.passiveScan) { () async throws(SelfTestEnd) in try await self.passiveScan() }
            await run(.connects) { () async throws(SelfTestEnd) in try await self.connects() }
        }
        report.rounds = rounds
    }

    /// Runs one check, unless the test has ended.
    func run(
        _ check: SelfTestCheck, _ body: () async throws(SelfTestEnd) -> SelfTestJudgement
    ) async {
        begin(check)
        statuses = []
        let start = machine.loop.now()
        let judgement: SelfTestJudgement
        if let end {
            judgement = .notRun(Self.reason(end))
        } else {
            do throws(SelfTestEnd) {
                judgement = try await body()
            } catch {
                end = error
                judgement = ended(by: error, in: check)
            }
        }
        let result = SelfTestResult(
            check: check, judgement: judgement, time: machine.loop.now() - start, statuses: statuses)
        if let place = report.results.firstIndex(where: { $0.check == check }) {
            // A round of `--soak`: the worst one stays.
            guard report.results[place].judgement.verdict < judgement.verdict else { return }
            report.results[place] = result
        } else {
            report.results.append(result)
        }
        show(result)
    }

    private func ended(by end: SelfTestEnd, in check: SelfTestCheck) -> SelfTestJudgement {
        switch end {
        case .interrupted:
            report.isInterrupted = true
            report.end = "interrupted during \(check.id)"
            return .notRun("interrupted")
        case .off:
            report.end =
                isUp
                ? "the adapter was switched off during \(check.id), by another program or by rfkill"
                : "the adapter could not be switched on again during \(check.id)"
            report.endIsFailure = true
            return .notRun("the adapter was switched off")
        case .gone(let opcode, let wasSilent):
            let last = opcode.map { " after \($0)" + (wasSilent ? ", which had no response" : "") } ?? ""
            report.end = "the adapter disappeared during \(check.id)\(last)"
            report.endIsFailure = true
            var judgement = SelfTestJudgement(.unfit, "the adapter disappeared\(last)")
            if wasSilent {
                judgement.quirk("W17")
                if opcode == .leSetScanEnable { judgement.quirk("W03") }
            }
            return judgement
        }
    }

    private static func reason(_ end: SelfTestEnd) -> String {
        switch end {
        case .gone: "the adapter has disappeared"
        case .off: "the adapter was switched off"
        case .interrupted: "interrupted"
        }
    }

    private func describe() {
        report.date = Timestamp.now()
        report.kernel = facts.kernelRelease
        report.distribution = machine.distribution
        report.board = facts.board
        report.hostName = facts.hostName
        let device = machine.device(adapter.name)
        report.adapter.name = adapter.name
        report.adapter.address = BluetoothAddress(adapter.address) ?? .zero
        report.adapter.bus = adapter.bus
        report.adapter.usb = facts.usbDevices[adapter.name]?.identifier
        report.adapter.bcdDevice = device.bcdDevice
        report.adapter.driver = device.driver
        let log = ControllerLog(facts.kernelMessages ?? [], adapter: adapter.name)
        report.adapter.firmwareLines = log.messages.filter { ControllerLog.isIdentity($0) }
        report.environment.autosuspend = facts.usbDevices[adapter.name]?.control
        report.environment.wireless = facts.wirelessInterfaces
        report.environment.hasDaemon = facts.daemon != nil
        report.environment.openers = (facts.radio.openers ?? []).filter {
            $0.adapter == nil || $0.adapter == adapter.index
        }.map(\.program)
    }

    // MARK: The adapter's state

    private func open() async throws(Failure) {
        do throws(SystemCallError) {
            try await channel.open()
            if !wasUp, let failure = await power(on: true) { throw failure }
        } catch {
            await channel.close()
            throw Failure(
                message: "\(adapter.name) cannot be used: \(error.meaning.sentence) `blescan doctor` finds out more. "
                    + "[\(error)]", status: error.meaning == .notPermitted(.netRaw) ? .notPermitted : .noAdapter)
        }
        if let management = adapter.management, management.can(.lowEnergy), !management.has(.lowEnergy) {
            hadNoLowEnergy = await channel.ask(HCICommandPacket(HCIWriteLEHostSupport(isSupported: true))).isSuccess
        }
    }

    private func refuseForeignScan() async throws(Failure) {
        guard !plan.isForced else { return }
        let heard: SelfTestHeard
        do throws(SelfTestEnd) {
            heard = try await listen(for: Self.foreignScanTime) { $0.reports > 0 }
        } catch {
            // The first check reports that.
            return
        }
        guard heard.reports > 0 else { return }
        throw Failure(
            message: "another program scans with \(adapter.name), and a self-test would end its scan. Stop it first "
                + "(`blescan doctor` names it), or add --force.", status: .timedOut)
    }

    private static let foreignScanTime: Duration = .seconds(1)

    /// Switches the adapter on or off; the kernel's own commands are then in the backlog.
    func power(on isOn: Bool) async -> SystemCallError? {
        let (system, index) = (machine.system, adapter.index)
        do throws(WorkFailure) {
            let failure = try await machine.loop.offload { () -> SystemCallError? in
                do throws(SystemCallError) {
                    try isOn ? system.powerUp(index) : system.powerDown(index)
                    return nil
                } catch {
                    return error
                }
            }
            if failure == nil { isUp = isOn }
            return failure
        } catch {
            return SystemCallError(call: "pthread_create", errno: SystemCallError.tryAgain)
        }
    }

    /// Restores what was changed: nothing is left that the adapter did not have before.
    private func restore() async {
        await link?.device.disconnect()
        link = nil
        await peer?.stop()
        // Their sockets close with them.
        peer = nil
        central = nil
        if hasAttempt, !(await channel.isGone) {
            let reply = await channel.ask(HCICommandPacket(LECreateConnectionCancel()))
            if reply.status == nil { report.restoration.append("a connection attempt could not be cancelled") }
        }
        if isScanning, let endOfScan, !(await channel.isGone) {
            let reply = await channel.ask(endOfScan)
            if reply.status == nil { report.restoration.append("the scan could not be ended") }
        }
        if hadNoLowEnergy { _ = await channel.ask(HCICommandPacket(HCIWriteLEHostSupport(isSupported: false))) }
        if isUp != wasUp, !(await channel.isGone), let failure = await power(on: wasUp) {
            report.restoration.append("the adapter could not be switched \(wasUp ? "on" : "off") again: \(failure)")
        }
        await channel.close()
    }

    // MARK: Commands

    /// Sends a command and waits for its response.
    func ask(_ command: HCICommandPacket) async throws(SelfTestEnd) -> SelfTestChannel.Reply {
        if Task.isCancelled { throw .interrupted }
        let reply = await channel.ask(command)
        note(command, reply)
        lastCommand = (command.opcode, reply.end == .silence || reply.end == .gone)
        switch reply.end {
        case .gone: throw gone
        case .notSent(let errno) where SystemCallError(call: "send", errno: errno).meaning == .adapterDown:
            throw (try? machine.system.info(adapter.index)) == nil ? gone : .off
        case .notSent, .status, .silence, .malformed: return reply
        }
    }

    private var gone: SelfTestEnd {
        .gone(after: lastCommand?.opcode, wasSilent: lastCommand?.wasSilent ?? false)
    }

    private func note(_ command: HCICommandPacket, _ reply: SelfTestChannel.Reply) {
        let opcode = command.opcode.rawValue
        if let place = statuses.firstIndex(where: { $0.opcode == opcode }) {
            statuses[place].statuses.append(reply.status)
        } else {
            statuses.append(SelfTestStatuses(opcode: opcode, statuses: [reply.status]))
        }
        let isEnabling = command.parameters.first == 1
        switch command.opcode {
        case .leSetScanEnable, .leSetExtendedScanEnable:
            // Without a response it may have taken effect.
            if isEnabling, reply.status == nil || reply.isSuccess {
                isScanning = true
                endOfScan =
                    command.opcode == .leSetScanEnable
                    ? HCICommandPacket(LESetScanEnable(isEnabled: false))
                    : HCICommandPacket(LESetExtendedScanEnable(isEnabled: false))
            }
            if !isEnabling, reply.isSuccess { isScanning = false }
        case .leCreateConnection, .leExtendedCreateConnection:
            if reply.status == nil || reply.isSuccess { hasAttempt = true }
        default: break
        }
    }

    /// The connection attempt has its completion.
    func attemptEnded() { hasAttempt = false }

    /// Waits for a packet that `body` takes.
    func wait<Value>(
        for time: Duration, _ body: (SelfTestChannel.Packet) -> Value?
    ) async throws(SelfTestEnd) -> Value? {
        let deadline = machine.loop.now() + time
        while true {
            if Task.isCancelled { throw .interrupted }
            let now = machine.loop.now()
            // Short waits: the user may interrupt the test.
            if let packet = await channel.next(until: min(deadline, now + Self.turn)) {
                if let value = body(packet) { return value }
            } else if await channel.isGone {
                throw gone
            }
            if machine.loop.now() >= deadline { return nil }
        }
    }

    private static let turn: Duration = .milliseconds(200)

    /// Collects the reports of a time, or until there are enough.
    func listen(
        for time: Duration, until isEnough: (SelfTestHeard) -> Bool = { _ in false }
    ) async throws(SelfTestEnd) -> SelfTestHeard {
        let start = machine.loop.now()
        var heard = SelfTestHeard(time: time)
        let end = try await wait(for: time) { packet -> Bool? in
            heard.add(packet, since: start)
            return isEnough(heard) ? true : nil
        }
        if end != nil { heard.time = machine.loop.now() - start }
        return heard
    }
}
