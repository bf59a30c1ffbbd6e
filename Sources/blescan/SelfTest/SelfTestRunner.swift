import BLECore
import BLELinux
import BareBLE

// The self-test of one adapter.
//
// Duties: refuse what must not be tested, run the checks in their order, and keep the report. `SelfTestAccess` has the
// adapter, `SelfTestController` what is known of its controller, and `SelfTestPeering` the peer and the link to it.
//
// Invariants
// - A check that cannot run is in the report with the reason. So are all that follow after the adapter has disappeared,
//   or the user has interrupted the test.
// - However the test ends, links and the second adapter are let go of first, then the adapter is restored.
// - One self-test runs on an adapter at a time: a second one would restore what the first has changed.

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
    let access: SelfTestAccess
    let controller = SelfTestController()
    let peering: SelfTestPeering
    private(set) var facts: SystemFacts
    /// The adapter under test; its facts grow by what the controller reports.
    var adapter: AdapterFacts
    var report = SelfTestReport()
    /// What the checks of the scan have heard, for those that compare.
    var restarts: SelfTestRestarts?
    var heard: SelfTestHeard?

    private let show: (SelfTestResult) -> Void
    private let begin: (SelfTestCheck) -> Void
    private var end: SelfTestEnd?
    private var logBefore = 0
    private var claims: [RecoveryClaim]

    /// Prepares the self-test of an adapter.
    ///
    /// - Throws: `Failure` if the adapter is not there, is in use or under test, or may not be used.
    init(
        _ selector: AdapterSelector, on machine: SelfTestMachine, _ plan: SelfTestPlan,
        begin: @escaping (SelfTestCheck) -> Void = { _ in }, show: @escaping (SelfTestResult) -> Void
    ) async throws(Failure) {
        self.machine = machine
        self.plan = plan
        self.begin = begin
        self.show = show
        let before = await machine.facts()
        var wanted = [try Self.find(selector, in: before)]
        if let selector = plan.peerAdapter { wanted.append(try Self.find(selector, in: before)) }
        claims = try Self.claim(wanted, on: machine)
        // What another self-test had changed until then is restored.
        facts = await machine.facts()
        let found = try Self.find(selector, in: facts)
        adapter = found
        access = SelfTestAccess(found, on: machine, trace: plan.configuration.traceHCI)
        peering = SelfTestPeering(plan, from: found.name, on: machine, access)
        try mayRun()
        if let selector = plan.peerAdapter {
            let peer = try Self.find(selector, in: facts)
            if peer.index == found.index {
                throw Failure(
                    message: "--peer-adapter is \(found.name), the adapter under test", hint: "Name another one.",
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
                message: "this kernel has no Bluetooth [errno \(facts.radio.controllerSocket)]",
                hint:
                    "Load its module: `modprobe bluetooth`; in a container, use the host's network. `blescan doctor` shows "
                    + "more.", status: .noAdapter, cause: .unsupported)
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
            message: "there is no \(selector)",
            hint: names.isEmpty ? "No adapter is there." : "There are: \(names).",
            status: .noAdapter)
    }

    private static func claim(
        _ adapters: [AdapterFacts], on machine: SelfTestMachine
    ) throws(Failure) -> [RecoveryClaim] {
        var claims: [RecoveryClaim] = []
        var subjects: Set<String> = []
        for adapter in adapters {
            let address = BluetoothAddress(adapter.address) ?? .zero
            // Clones share an address, and a claim with it. An adapter without one is claimed by its name.
            guard subjects.insert(address == .zero ? adapter.name : adapter.address).inserted else { continue }
            let info = ControllerInfo(index: adapter.index, name: adapter.name, address: address, isUp: adapter.isUp)
            do throws(RecoveryFailure) {
                if let claim = try machine.claim(info) { claims.append(claim) }
            } catch {
                throw Failure(
                    message: "another self-test of \(adapter.name) runs",
                    hint:
                        "Wait for its end: `ss -xap | grep bareble-selftest` as root names the program, which can be ended.",
                    status: .timedOut)
            }
        }
        return claims
    }

    private func mayRun() throws(Failure) {
        let rights = machine.system.privileges()
        guard rights.has(.netRaw) else {
            throw Failure(
                message: "a self-test sends commands to \(adapter.name), which needs CAP_NET_RAW",
                hint:
                    "Run it as root: `sudo blescan selftest`; with CAP_NET_ADMIN it can also switch the adapter off and on.",
                status: .notPermitted)
        }
        if machine.system.isBlocked(adapter.name) {
            throw Failure(
                message: "\(adapter.name) is blocked by rfkill",
                hint: "`sudo blescan doctor --fix rfkill` removes the block.",
                status: .noAdapter, cause: .blocked)
        }
        if !adapter.isUp, !rights.has(.netAdmin) {
            throw Failure(
                message: "\(adapter.name) is off, and switching it on needs CAP_NET_ADMIN",
                hint: "Run it as root, or switch the adapter on first: `sudo hciconfig \(adapter.name) up`.",
                status: .noAdapter, cause: .adapterDown)
        }
        try refuseOwner(of: adapter)
        try refuseLinks(of: adapter)
    }

    /// Ends with an error where links would end, of either kind of Bluetooth.
    private func refuseLinks(of adapter: AdapterFacts) throws(Failure) {
        guard !plan.isForced, adapter.isUp else { return }
        guard let links = machine.system.linkHandles(adapter.index)?.count else {
            throw Failure(
                message: "the links of \(adapter.name) cannot be seen, and a self-test would end them",
                hint: "Add --force if there are none.", status: .timedOut)
        }
        guard links > 0 else { return }
        throw Failure(
            message: "\(adapter.name) has \(links.counted("link")), which a self-test would disturb or end",
            hint: "Disconnect first, or add --force.", status: .timedOut)
    }

    /// Why the adapter cannot be switched off and on: links of other programs are up; `nil` if it can.
    func linksInTheWay() -> String? {
        guard !plan.isForced else { return nil }
        guard let links = machine.system.linkHandles(adapter.index)?.count else { return "its links cannot be seen" }
        let others = links - (peering.link == nil ? 0 : 1)
        return others > 0 ? "\(others.counted("link")) of other programs would end" : nil
    }

    private func refuseOwner(of adapter: AdapterFacts) throws(Failure) {
        guard let owner = facts.radio.openers?.first(where: { $0.kind == .user && $0.adapter == adapter.index }) else {
            return
        }
        throw Failure(
            message: "\(owner.program.printable) has exclusive access to \(adapter.name)", hint: "End it first.",
            status: .timedOut, cause: .busy)
    }

    // MARK: Running

    /// Runs all checks, and restores the adapter.
    ///
    /// - Throws: `Failure` if the adapter cannot be opened or switched on, or another program scans.
    func run() async throws(Failure) -> SelfTestReport {
        begin(.identity)
        describe()
        try await access.open()
        do throws(Failure) {
            try await refuseForeignScans()
        } catch {
            await restore()
            throw error
        }
        await peering.prepare(facts)
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
        while end == nil, controller.scanner != nil, !Task.isCancelled, machine.loop.now() < deadline {
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
        access.beginCheck()
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
            check: check, judgement: judgement, time: machine.loop.now() - start,
            statuses: access.statuses)
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
                access.isUp
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

    // MARK: Beginning and end

    private func refuseForeignScans() async throws(Failure) {
        guard !plan.isForced else { return }
        if await access.hearsForeignScan() { throw Self.foreignScan(of: adapter) }
        guard let selector = plan.peerAdapter else { return }
        let found = try Self.find(selector, in: facts)
        let other = SelfTestAccess(found, on: machine, trace: nil)
        // Why it cannot be opened is reported when it is to serve.
        guard found.isUp, (try? await other.channel.open()) != nil else { return }
        let isScanning = await other.hearsForeignScan()
        await other.channel.close()
        if isScanning { throw Self.foreignScan(of: found) }
    }

    private static func foreignScan(of adapter: AdapterFacts) -> Failure {
        Failure(
            message: "another program scans with \(adapter.name), and a self-test would end its scan",
            hint: "Stop it first (`blescan doctor` names it), or add --force.", status: .timedOut)
    }

    /// Lets go of what the checks have left, and restores the adapter.
    private func restore() async {
        report.restoration += await peering.end()
        report.restoration += await access.restore()
        claims = []
    }
}
