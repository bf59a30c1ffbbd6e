import BLECore
import BLELinux
import BareBLE

// The adapter under test, as the checks use it.
//
// Duties: send commands one at a time, collect what arrives, switch the power (`SelfTestPower`), and know what has to be
// restored.
//
// Invariants
// - It alone owns the channel to the controller, and with it the deadline of every command.
// - An adapter that was on is on again, also one that the driver has reset meanwhile.
// - What was begun is ended: a scan, a connection attempt, a change of the power, of LE, of the event mask, or of
//   whether the adapter is bondable, which the kernel changes when it switches an adapter on. It never sends a Reset.
// - The event mask cannot be read. What the kernel sets when it switches the adapter on is what was found; without the
//   right to do that it stays as the test has set it, which is wider.

/// Why a self-test ends before its last check.
enum SelfTestEnd: Error, Hashable, Sendable {
    /// The adapter was unplugged, or the driver reset it; the last command and whether it had no response.
    case gone(after: HCIOpcode?, wasSilent: Bool)
    /// Another program has switched it off.
    case off
    case interrupted
}

/// Access to the adapter under test.
final class SelfTestAccess {
    let channel: SelfTestChannel
    private let adapter: AdapterFacts
    private let machine: SelfTestMachine
    private let loop: EventLoop
    /// The statuses of the commands of the check that runs.
    private(set) var statuses: [SelfTestStatuses] = []
    private var lastCommand: (opcode: HCIOpcode, wasSilent: Bool)?
    private var isScanning = false
    /// The command that ends the scan which was begun last.
    private var endOfScan: HCICommandPacket?
    private var hasAttempt = false
    private var wasUp: Bool
    private(set) var isUp: Bool
    private var hadNoLowEnergy = false
    /// The address by which it is found when it comes back; `nil` if another adapter has it too.
    private var ownAddress: BluetoothAddress?
    /// Whether others could bond with it before; `nil` where that cannot be read.
    private var wasBondable: Bool?
    /// The LE event mask that the kernel has set when it switched the adapter on, as far as that was seen.
    private var kernelMask: LEEventMask?
    private var hasOtherMask = false

    init(_ adapter: AdapterFacts, on machine: SelfTestMachine, trace: (@Sendable (TracedHCIPacket) -> Void)?) {
        self.adapter = adapter
        self.machine = machine
        loop = machine.loop
        wasUp = adapter.isUp
        isUp = adapter.isUp
        channel = SelfTestChannel(
            adapter.index, name: adapter.name, system: machine.system, loop: machine.loop, trace: trace)
    }

    /// A check begins: its statuses are collected.
    func beginCheck() { statuses = [] }

    // MARK: Beginning and end

    /// Opens the channel, and switches the adapter and LE on.
    ///
    /// - Throws: `Failure` if it cannot be opened or switched on.
    func open() async throws(Failure) {
        do throws(SelfTestPowerFailure) {
            try await openAsFound()
        } catch {
            await channel.close()
            throw unusable(error)
        }
        if let management = adapter.management, management.can(.lowEnergy), !management.has(.lowEnergy) {
            hadNoLowEnergy = await channel.ask(HCICommandPacket(HCIWriteLEHostSupport(isSupported: true))).isSuccess
        }
    }

    /// Notes what the adapter is found as, opens the channel, and switches the adapter on.
    private func openAsFound() async throws(SelfTestPowerFailure) {
        let claim = try machine.claimPower(of: adapter.index)
        defer { withExtendedLifetime(claim) {} }
        wasBondable = await machine.isBondable(adapter.index)
        do throws(SystemCallError) {
            wasUp = try machine.system.info(adapter.index).isUp
            isUp = wasUp
            let address = BluetoothAddress(adapter.address) ?? .zero
            let hasTwin = try machine.system.list().count { $0.address == address } > 1
            ownAddress = hasTwin || address == .zero ? nil : address
            try await channel.open()
            if !wasUp, let failure = await setPower(true) { throw failure }
        } catch {
            throw .system(error)
        }
    }

    private func unusable(_ failure: SelfTestPowerFailure) -> Failure {
        switch failure {
        case .claimed:
            Failure(
                message: "\(adapter.name) cannot be used: \(failure)",
                hint:
                    "Try it again in a minute: `ss -xap | grep bareble-recovery` as root names the program, which can be ended.",
                status: .timedOut)
        case .system(let error):
            Failure(
                message: "\(adapter.name) cannot be used: \(error.meaning.sentence) [\(error)]",
                hint: "`blescan doctor` shows more.", status: failure.status,
                cause: error.meaning == .inUse ? .busy : nil)
        }
    }

    /// Whether another program scans: reports come although this test has begun no scan.
    func hearsForeignScan() async -> Bool {
        do throws(SelfTestEnd) {
            return try await listen(for: Self.foreignScanTime) { $0.reports > 0 }.reports > 0
        } catch {
            // The first check reports that.
            return false
        }
    }

    private static let foreignScanTime: Duration = .seconds(1)

    /// Switches the adapter off and on; the kernel's own commands are then in the backlog.
    func cyclePower() async -> SelfTestPowerFailure? {
        do throws(SelfTestPowerFailure) {
            let claim = try machine.claimPower(of: adapter.index)
            defer { withExtendedLifetime(claim) {} }
            Interrupt.beginStep()
            defer { Interrupt.endStep() }
            if let failure = await setPower(false) { return .system(failure) }
            await channel.forget()
            return await setPower(true).map { SelfTestPowerFailure.system($0) }
        } catch {
            return error
        }
    }

    /// Switches the adapter on or off, under a claim of the caller.
    private func setPower(_ isOn: Bool) async -> SystemCallError? {
        let failure = await machine.setPower(of: adapter.index, isOn)
        if failure == nil { isUp = isOn }
        return failure
    }

    /// Restores what was changed: nothing is left that the adapter did not have before.
    ///
    /// - Returns: What could not be restored.
    func restore() async -> [String] {
        var failures: [String] = []
        // The commands below need it on.
        if wasUp { await restorePower(&failures) }
        if hasAttempt, !(await channel.isGone) {
            let reply = await channel.ask(HCICommandPacket(LECreateConnectionCancel()))
            if reply.status == nil { failures.append("a connection attempt could not be cancelled") }
        }
        if isScanning, let endOfScan, !(await channel.isGone) {
            let reply = await channel.ask(endOfScan)
            if reply.status == nil { failures.append("the scan could not be ended") }
        }
        if hasOtherMask, isUp, wasUp, let kernelMask, !(await channel.isGone) {
            let reply = await channel.ask(HCICommandPacket(LESetEventMask(kernelMask)))
            if !reply.isSuccess { failures.append("the LE event mask could not be set as it was") }
        }
        if hadNoLowEnergy { _ = await channel.ask(HCICommandPacket(HCIWriteLEHostSupport(isSupported: false))) }
        if !wasUp { await restorePower(&failures) }
        if let wasBondable, !(await channel.isGone),
            !(await machine.restoreBondable(wasBondable, adapter.index))
        {
            failures.append("the adapter could not be made \(wasBondable ? "bondable" : "not bondable") again")
        }
        if wasUp, let ownAddress, await channel.isGone, let failure = await machine.switchOnReturned(ownAddress) {
            failures.append("the adapter has come back, and could not be switched on: \(failure)")
        }
        await channel.close()
        return failures
    }

    private func restorePower(_ failures: inout [String]) async {
        guard isUp != wasUp, !(await channel.isGone) else { return }
        if let failure = await machine.restorePower(of: adapter.index, wasUp) {
            failures.append("the adapter could not be switched \(wasUp ? "on" : "off") again: \(failure)")
        } else {
            isUp = wasUp
        }
    }

    /// The kernel has set this mask when it switched the adapter on.
    func noteKernelMask(_ mask: LEEventMask) {
        kernelMask = mask
        hasOtherMask = false
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
            throw endWithoutPower
        case .notSent, .status, .silence, .malformed: return reply
        }
    }

    /// Why the test ends where the adapter is off: it may have been unplugged meanwhile.
    var endWithoutPower: SelfTestEnd { (try? machine.system.info(adapter.index)) == nil ? gone : .off }

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
        if command.opcode == .leSetEventMask, reply.isSuccess { hasOtherMask = true }
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
        let deadline = loop.now() + time
        while true {
            if Task.isCancelled { throw .interrupted }
            let now = loop.now()
            // Short waits: the user may interrupt the test.
            if let packet = await channel.next(until: min(deadline, now + Self.turn)) {
                if let value = body(packet) { return value }
            } else if await channel.isGone {
                throw gone
            }
            if loop.now() >= deadline { return nil }
        }
    }

    private static let turn: Duration = .milliseconds(200)

    /// Collects the reports of a time, or until there are enough.
    func listen(
        for time: Duration, until isEnough: (SelfTestHeard) -> Bool = { _ in false }
    ) async throws(SelfTestEnd) -> SelfTestHeard {
        let start = loop.now()
        var heard = SelfTestHeard(time: time)
        let end = try await wait(for: time) { packet -> Bool? in
            heard.add(packet, since: start)
            return isEnough(heard) ? true : nil
        }
        if end != nil { heard.time = loop.now() - start }
        return heard
    }
}
