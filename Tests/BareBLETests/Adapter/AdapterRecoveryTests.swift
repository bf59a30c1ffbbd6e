import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

/// Adapters that have stopped reporting or responding, and what makes them work again.
@Suite(.timeLimit(.minutes(5))) struct AdapterRecoveryTests {
    /// Each controller receives again by the step that helps, and the events name that step.
    @Test(
        .row("W29", "W56"),
        arguments: [
            (VirtualPersonality.Recovery.rescan, RecoveryPolicy.Step.rescan), (.eventMask, .eventMasks),
            (.power, .power),
            (.radioSwitch, .radioSwitch), (.usbPort, .usbPort), (.driver, .driver),
        ])
    func theStepThatHelpsIsTaken(recovery: VirtualPersonality.Recovery, expected: RecoveryPolicy.Step) async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.deafness = VirtualPersonality.Deafness(afterReports: 5, recovery: recovery)
        try await run(personality, .usb, [.commands, .administration, .recovery]) { time, radio, central in
            // The radio's switch is tried where that is what keeps the adapter off.
            let isBlocked = expected == .radioSwitch
            if isBlocked { await radio.block() }
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...5 { _ = try await heard.next() }
            let before = time.now
            var steps: [RecoveryPolicy.Step] = []
            var helpful: RecoveryPolicy.Step?
            while helpful == nil, let event = try await events.next() {
                switch event {
                case .began(let step, let reason):
                    steps.append(step)
                    #expect(reason == .silence(.seconds(90)))
                case .recovered(let step, _): helpful = step
                case .failed(.power, let error) where isBlocked: #expect(error.code == .blocked)
                case .failed, .exhausted, .dropped: Issue.record("\(event)")
                }
            }
            #expect(helpful == expected)
            #expect(
                steps == RecoveryPolicy.Step.allCases.filter { $0 <= expected && (isBlocked || $0 != .radioSwitch) })
            #expect(time.now - before < .seconds(200))
            // And it goes on.
            while let event = try await heard.next() {
                if case .updated(let result) = event, result.lastSeen > before + .seconds(90) { break }
            }
        }
    }

    /// By default no link is ended, and the adapter stays on.
    @Test(.row("W29")) func withoutPermissionTheAdapterStaysOn() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .rescan) { time, _, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...20 { _ = try await heard.next() }
            #expect(try await events.next() == .began(.rescan, because: .silence(.seconds(90))))
            #expect(try await events.next() == .began(.eventMasks, because: .silence(.seconds(90))))
            #expect(try await events.next() == .exhausted(because: .silence(.seconds(90)), next: nil))
            try await time.clock.sleep(for: .seconds(3600))
            #expect(await central.statistics.losses == 0)
        }
    }

    /// The scan has two seconds in twelve beside a connect that waits for its device.
    @Test(.row("W29")) func silenceIsNoticedWhileAConnectWaitsForItsDevice() async throws {
        var personality = try self.personality("raspberryPiGoneDeaf")
        personality.deafness?.reports = 0
        try await run(personality, .rescan) { time, _, central in
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0009), type: .random)
            let connect = time.task { _ = try await central.connect(absent, ConnectOptions(timeout: nil)) }
            try await time.clock.sleep(for: .seconds(900))
            #expect(await central.statistics.stalls >= 1)
            connect.cancel()
            await #expect(throws: (any Error).self) { try await connect.value }
        }
    }

    @Test func nothingIsDoneWhereNothingIsWanted() async throws {
        try await run(try personality("rtl8723bu"), .none) { time, _, central in
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            try await time.clock.sleep(for: .seconds(200))
            let statistics = await central.statistics
            #expect(statistics.stalls == 2 && statistics.recoverySteps == 0)
        }
    }

    /// A controller that responds to no command is switched off and on, although nobody scans.
    @Test(.row("W30")) func commandsWithoutAResponseLeadToPower() async throws {
        try await run(.bluetooth5, .power) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            var events = central.recoveryEvents.makeAsyncIterator()
            await radio.silence(true)
            let attempts = time.task {
                for _ in 1...4 { _ = try? await central.connect(peer, ConnectOptions(timeout: .seconds(8))) }
            }
            #expect(try await events.next() == .began(.power, because: .commandTimeouts(3)))
            await radio.silence(false)
            _ = try await attempts.value
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
        }
    }

    /// The management interface would not switch off a controller that does not respond, would take the advertisements
    /// of other programs away, and keep an adapter under management that was not: decision 11. It switches on what this
    /// program manages.
    @Test(.row("W29"), arguments: [false, true])
    func thePowerStepSwitchesOffWithoutTheManagementInterface(isManaged: Bool) async throws {
        let calls = Lock<[String]>([])
        let recording: @Sendable (inout AdapterSystem) -> Void = { system in
            let powerDown = system.powerDown
            let powerUp = system.powerUp
            let openManagement = system.openManagement
            system.powerDown = { index throws(SystemCallError) in
                calls.withLock { $0.append("off") }
                try powerDown(index)
            }
            system.powerUp = { index throws(SystemCallError) in
                calls.withLock { $0.append("on") }
                try powerUp(index)
            }
            system.openManagement = { () throws(SystemCallError) in
                calls.withLock { $0.append("management") }
                return try openManagement()
            }
        }
        let security: SecurityConfiguration? = isManaged ? SecurityConfiguration(bonds: .inMemory) : nil
        try await run(try personality("raspberryPiGoneDeaf"), .power, security: security, changing: recording) {
            time, _, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .recovered(.power, _) = event { break }
            }
            let made = calls.withLock { $0 }
            #expect(made.filter { $0 != "management" } == (isManaged ? ["off"] : ["off", "on"]))
            #expect(made.contains("management") == isManaged)
            scan.cancel()
            _ = await scan.result
        }
    }

    /// The driver's last command had no response: the kernel reports that, and has switched the adapter off.
    @Test func anAdapterThatIsOffInSpiteOfAnErrorIsSwitchedOn() async throws {
        let isReportingErrors: @Sendable (inout AdapterSystem) -> Void = { system in
            let powerDown = system.powerDown
            system.powerDown = { index throws(SystemCallError) in
                try powerDown(index)
                throw SystemCallError(call: "HCIDEVDOWN", errno: ETIMEDOUT)
            }
        }
        try await recoversByPower(isReportingErrors)
    }

    /// The errors of a USB device that does not respond are those of one that was unplugged, and this one is there.
    @Test(arguments: [EPIPE, ENODEV]) func anAdapterThatSeemsToBeGoneIsSwitchedOn(errno: Int32) async throws {
        let attempts = Lock(0)
        let failsOnce: @Sendable (inout AdapterSystem) -> Void = { system in
            let powerUp = system.powerUp
            system.powerUp = { index throws(SystemCallError) in
                let isFirst = attempts.withLock { count in
                    count += 1
                    return count == 1
                }
                if isFirst { throw SystemCallError(call: "HCIDEVUP", errno: errno) }
                try powerUp(index)
            }
        }
        try await recoversByPower(failsOnce)
        #expect(attempts.withLock { $0 } == 2)
    }

    /// The power step of a silent controller leaves the adapter on.
    private func recoversByPower(_ change: @escaping @Sendable (inout AdapterSystem) -> Void) async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power, changing: change) { time, _, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            while let event = try await events.next(), event != .began(.power, because: .silence(.seconds(90))) {}
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it was left off")
                return
            }
            #expect(await central.adapterState == .poweredOn)
        }
    }

    /// A controller that refuses each further scan as disallowed, although nothing scans and no link is up.
    @Test(.row("H14")) func aScanThatIsRefusedForGoodContinuesAfterAPowerCycle() async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.acceptedScans = 1
        try await run(personality, .power) { time, radio, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            // Another program ends the scan, so that it is begun again.
            await radio.foreign(HCICommandPacket(LESetScanEnable(isEnabled: false)))
            guard case .began(.power, because: .scanRefused(let refused))? = try await events.next() else {
                Issue.record("no step was taken")
                return
            }
            #expect(refused >= .seconds(120) && refused < .seconds(150))
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
            let before = time.now
            while let event = try await heard.next() {
                if case .updated(let result) = event, result.lastSeen > before { break }
            }
        }
    }

    @Test(.row("H14")) func aScanThatIsRefusedForGoodIsReportedOnceAndTriedRarely() async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.acceptedScans = 1
        let log = KeptLog(detail: "seconds")
        try await run(personality, .rescan, log: log) { time, radio, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            await radio.foreign(HCICommandPacket(LESetScanEnable(isEnabled: false)))
            guard case .exhausted(because: .scanRefused, next: nil)? = try await events.next() else {
                Issue.record("it was not reported")
                return
            }
            let before = await central.statistics.failedStarts
            try await time.clock.sleep(for: .seconds(315))
            #expect(await central.statistics.failedStarts == before + 10)
            #expect(await central.statistics.recoverySteps == 0)
        }
        let lines = log.all.filter { $0.hasPrefix("the controller refuses to begin a scan") }
        #expect(lines.count == 1)
    }

    /// Some controllers do not scan beside a link: switching them off would end it.
    @Test(.row("H14", "W02")) func noStepIsTakenForAScanThatALinkPrevents() async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.responsesWhileLinked = [0x200C: .statusIfEnabling(.commandDisallowed)]
        let log = KeptLog(detail: "remedy")
        try await run(personality, .usb, log: log) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            try await time.clock.sleep(for: .seconds(1))
            let link = try await central.connect(peer)
            try await time.clock.sleep(for: .seconds(600))
            #expect(await central.statistics.recoverySteps == 0)
            #expect(try await link.read(0x2A38) == [1])
            await link.disconnect()
        }
        let lines = log.all.filter { $0.hasPrefix("the controller refuses to begin a scan") }
        #expect(lines.count == 1 && lines.first?.contains("while a link is up") == true)
    }

    /// Some controllers do not scan while they advertise: switching them off would end the advertisement and the links.
    @Test(.row("H14", "W66")) func noStepIsTakenForAScanThatTheOwnAdvertisementPrevents() async throws {
        let log = KeptLog(detail: "remedy")
        try await run(try personality("brokenStates"), .power, log: log) { time, radio, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            _ = try await heard.next()
            let local = LocalPeripheral(on: central)
            let advertisement = try await local.advertise([.localName("Busy")])
            // Another program ends the scan, so that it is begun again.
            await radio.foreign(HCICommandPacket(LESetScanEnable(isEnabled: false)))
            guard
                case .exhausted(because: .scanRefusedWhileAdvertising(let refused), next: nil)? =
                    try await events.next()
            else {
                Issue.record("it was not reported")
                return
            }
            #expect(refused >= .seconds(120) && refused < .seconds(150))
            try await time.clock.sleep(for: .seconds(600))
            let statistics = await central.statistics
            #expect(statistics.recoverySteps == 0 && statistics.losses == 0)
            #expect(statistics.scansRefusedWhileAdvertising > 20)
            #expect(statistics.scansRefusedWhileAdvertising == statistics.failedStarts)
            #expect(await advertisement.state == .on)
            let end = time.now
            await advertisement.stop()
            guard case .recovered(nil, _)? = try await events.next() else {
                Issue.record("it has not begun to scan")
                return
            }
            #expect(time.now - end < .seconds(1))
            while let event = try await heard.next() {
                if case .updated(let result) = event, result.lastSeen > end { break }
            }
            await local.stop()
        }
        let lines = log.all.filter { $0.hasPrefix("this controller cannot scan while it advertises") }
        #expect(lines.count == 1 && lines.first?.contains("stop advertising") == true)
    }

    /// A scan that begins beside the advertisement fails with what helps.
    @Test(.row("H14", "W66")) func theErrorOfAScanThatTheOwnAdvertisementPreventsNamesIt() async throws {
        try await run(try personality("brokenStates"), .power) { _, _, central in
            let local = LocalPeripheral(on: central)
            let advertisement = try await local.advertise([.localName("Busy")])
            let error = await #expect(throws: BLEError.self) { _ = try await central.collect(for: .seconds(1)) }
            #expect(error?.code == .busy && error?.reason.contains("because it advertises") == true)
            await advertisement.stop()
            #expect(try await central.collect(for: .seconds(3)).count == 1)
            await local.stop()
        }
    }

    /// Links of other programs are in the way, also where everything else is permitted.
    @Test func linksOfOtherProgramsStay() async throws {
        for permitsLinks in [false, true] {
            var policy = RecoveryPolicy.usb
            policy.endsLinksOfOthers = permitsLinks
            try await run(try personality("raspberryPiGoneDeaf"), policy) { _, radio, central in
                let other = Central(radio: radio)
                let peer = try #require(try await other.collect(for: .seconds(1)).first?.peer)
                let link = try await other.connect(peer)
                await radio.add(.battery)
                var events = central.recoveryEvents.makeAsyncIterator()
                let scan = Task(executorPreference: radio.loop) {
                    for try await _ in central.scan(.any, .passive.duplicates(.all)) {}
                }
                var last: RecoveryEvent?
                while let event = try await events.next() {
                    last = event
                    if case .failed(.power, _) = event { break }
                    if case .recovered = event { break }
                }
                if permitsLinks {
                    guard case .recovered(.power, _) = last else {
                        Issue.record("\(String(describing: last))")
                        return
                    }
                    await #expect(throws: BLEError.self) { _ = try await link.read(0x2A38) }
                } else {
                    guard case .failed(.power, let error) = last else {
                        Issue.record("\(String(describing: last))")
                        return
                    }
                    #expect(error.code == .busy)
                    #expect(error.description.contains("1 link of other programs would end"))
                    #expect(try await link.read(0x2A38) == [1])
                }
                scan.cancel()
            }
        }
    }

    /// A link that the controller has and nobody else: once the controller says so, a power cycle ends it.
    @Test(.row("W52")) func aLinkThatOnlyTheControllerHasEndsWithAPowerCycle() async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.hiddenLinks = 1
        try await run(personality, .power) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            var events = central.recoveryEvents.makeAsyncIterator()
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            // One missing event is no proof.
            #expect(await central.statistics.recoverySteps == 0)
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(try await events.next() == .began(.power, because: .suspectedLink(peer)))
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
            let link = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            #expect(try await link.read(0x2A38) == [1])
            #expect(await central.statistics.suspectedLinks == 1)
        }
    }

    /// No link that works is ended for one that nobody has: not this program's own, and none of other programs.
    @Test(.row("W52"), arguments: [true, false]) func aPowerCycleForOneLinkWaitsForTheOthers(isOwn: Bool) async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.hiddenLinks = 1
        try await run(personality, .usb) { time, radio, central in
            let peer = try #require(try await central.collect(for: .seconds(1)).first?.peer)
            var events = central.recoveryEvents.makeAsyncIterator()
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            let battery = try #require(await radio.id(of: radio.add(.battery)))
            let link = try await (isOwn ? central : Central(radio: radio)).connect(battery)
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(try await events.next() == .began(.power, because: .suspectedLink(peer)))
            guard case .failed(.power, let error)? = try await events.next() else {
                Issue.record("the step was taken")
                return
            }
            #expect(error.code == .busy)
            #expect(error.reason == "1 link of \(isOwn ? "this program" : "other programs") would end")
            #expect(try await events.next() == .exhausted(because: .suspectedLink(peer), next: .seconds(300)))
            #expect(try await link.read(0x2A19).count == 1)
            await link.disconnect()
            // It needs another sign: the link may have ended by its supervision timeout.
            try await time.clock.sleep(for: .seconds(301))
            #expect(await central.statistics.recoverySteps == 1)
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(try await events.next() == .began(.power, because: .suspectedLink(peer)))
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
            #expect(try await central.connect(peer, ConnectOptions(timeout: .seconds(5))).read(0x2A38) == [1])
        }
    }

    /// Both scan, and begin their scans again with each other's.
    @Test(.row("W29")) func twoProgramsOnASilentAdapterNoticeIt() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .rescan) { time, radio, first in
            let second = Central(radio: radio)
            let report = time.task {
                for try await event in first.recoveryEvents {
                    if case .exhausted = event { return }
                }
                throw CancellationError()
            }
            let scans = [first, second].map { central in
                time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            }
            try await time.clock.sleep(for: .seconds(300))
            report.cancel()
            await #expect(throws: Never.self) { try await report.value }
            for scan in scans { scan.cancel() }
        }
    }

    /// Two programs never take a step for one adapter at once, by their own rights or the helper's.
    @Test(.row("W29"), arguments: [VirtualPermissions.administration, .recovery])
    func anAdapterThatAnotherProgramRecoversIsLeftAlone(right: VirtualPermissions) async throws {
        let permissions = right.union(.commands)
        try await run(try personality("raspberryPiGoneDeaf"), .power, permissions) { time, radio, central in
            let adapter = try #require(try radio.system.list().first)
            var other = try radio.system.claimRecovery(adapter)
            try #require(other != nil)
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            while let event = try await events.next(), event != .began(.power, because: .silence(.seconds(90))) {}
            guard case .failed(.power, let error)? = try await events.next() else {
                Issue.record("the step was taken")
                return
            }
            #expect(error.code == .busy)
            #expect(error.reason == "another program takes a recovery step for this adapter")
            #expect(
                error.hint == "It is tried again by itself. `ss -xap | grep bareble-recovery` as root names the "
                    + "program, which can be ended.")
            #expect(
                try await events.next() == .exhausted(because: .silence(.seconds(90)), next: .seconds(300)))
            #expect(await central.adapterState == .poweredOn)
            withExtendedLifetime(other) {}
            other = nil
            #expect(try await events.next() == .began(.power, because: .silence(.seconds(90))))
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
        }
    }

    /// Between off and on of another program's step, which this one was too late for, it does nothing either.
    @Test(.row("W29")) func anAdapterThatAnotherProgramHasSwitchedOffIsLeftOff() async throws {
        let attempts = Lock(0)
        let isLate: @Sendable (inout AdapterSystem) -> Void = { system in
            let powerDown = system.powerDown
            system.recover = { _, adapter, _, _ throws(RecoveryFailure) in
                attempts.withLock { $0 += 1 }
                try? powerDown(adapter.index)
                throw .underWay
            }
        }
        let permissions: VirtualPermissions = [.commands, .recovery]
        try await run(try personality("raspberryPiGoneDeaf"), .power, permissions, changing: isLate) {
            time, _, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .failed(.power, let error) = event {
                    #expect(error.code == .busy)
                    break
                }
            }
            scan.cancel()
            _ = await scan.result
            try await time.clock.sleep(for: .seconds(600))
            #expect(attempts.withLock { $0 } == 1)
            #expect(await central.adapterState == .poweredOff)
        }
    }

    /// An adapter that a step has left off is not switched on in the middle of another program's step.
    @Test(.row("W29")) func anAdapterIsNotSwitchedOnWhileAnotherProgramRecoversIt() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            await radio.failPowerUps(.max)
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .exhausted = event { break }
            }
            let adapter = try #require(try radio.system.list().first)
            var other = try radio.system.claimRecovery(adapter)
            try #require(other != nil)
            await radio.failPowerUps(0)
            scan.cancel()
            _ = await scan.result
            try await time.clock.sleep(for: .seconds(100))
            #expect(await central.adapterState == .poweredOff)
            withExtendedLifetime(other) {}
            other = nil
            try await time.clock.sleep(for: .seconds(300))
            #expect(await central.adapterState == .poweredOn)
        }
    }

    /// Nor is one that has come back meanwhile, also where this program keeps it on: that waits for the step's end too.
    @Test(.row("W29")) func anAdapterThatComesBackIsNotSwitchedOnWhileAnotherProgramRecoversIt() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            try await central.ready(powerOn: true)
            await radio.failPowerUps(.max)
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .exhausted = event { break }
            }
            let adapter = try #require(try radio.system.list().first)
            var other = try radio.system.claimRecovery(adapter)
            try #require(other != nil)
            await radio.failPowerUps(0)
            await radio.unplug()
            try await time.clock.sleep(for: .seconds(10))
            await radio.plugIn()
            try await time.clock.sleep(for: .seconds(60))
            #expect(await central.adapterState == .poweredOff)
            withExtendedLifetime(other) {}
            other = nil
            try await time.clock.sleep(for: .seconds(300))
            #expect(await central.adapterState == .poweredOn)
            scan.cancel()
            _ = await scan.result
        }
    }

    /// A program without the right and without the helper says what it lacks.
    @Test func aStepWithoutARightIsAnErrorWithARemedy() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power, [.commands]) { _, _, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...20 { _ = try await heard.next() }
            var failure: BLEError?
            while failure == nil, let event = try await events.next() {
                if case .failed(.power, let error) = event { failure = error }
            }
            #expect(failure?.code == .notPermitted)
            #expect(failure?.hint?.contains("bareble-recover") == true)
            guard case .exhausted? = try await events.next() else {
                Issue.record("it goes on without a right")
                return
            }
        }
    }

    /// After the last step that there is, the log names what is left to do.
    @Test(.row("W56"), arguments: [RecoveryPolicy.power, .usb])
    func theLogHasTheRemedyAfterTheLastStep(policy: RecoveryPolicy) async throws {
        let log = KeptLog(detail: "remedy")
        try await run(try personality("rtl8761buGoneDeaf"), policy, [.commands], log: log) { time, _, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .exhausted = event { break }
            }
            scan.cancel()
        }
        let line = try #require(log.all.first { $0.contains("no permitted step has helped") })
        #expect(line.contains("the power of its port or of the machine") == (policy == .usb))
    }

    /// The log of a new adapter that hears nothing has the possible causes once, and the commands that find them. One
    /// that has heard something may be at a place that is silent now.
    @Test(.row("W19"), arguments: [0, 5], [RecoveryPolicy.none, .rescan, .power])
    func anAdapterThatNeverHeardAnythingIsLoggedOnce(reports: Int, policy: RecoveryPolicy) async throws {
        var personality = VirtualPersonality.bluetooth5
        personality.deafness = VirtualPersonality.Deafness(afterReports: reports, recovery: .driver)
        let log = KeptLog(detail: "remedy")
        try await run(personality, policy, log: log) { time, _, central in
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            try await time.clock.sleep(for: .seconds(600))
            scan.cancel()
        }
        let lines = log.all.filter { $0.hasPrefix("nothing was ever heard") }
        #expect(lines.count == (reports == 0 ? 1 : 0))
        #expect(lines.allSatisfy { $0.contains("`sudo blescan doctor`") && $0.contains("`sudo blescan selftest`") })
    }

    /// An adapter that is unplugged in the middle of a step is one error, and hears again when it is back: one that
    /// comes back off is switched on, because the step has found it on.
    @Test(arguments: [true, false]) func anAdapterThatGoesDuringAStepIsLookedFor(isUp: Bool) async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            var heard = central.scan(.any, .passive.duplicates(.all)).makeAsyncIterator()
            for _ in 1...20 { _ = try await heard.next() }
            while let event = try await events.next(), event != .began(.power, because: .silence(.seconds(90))) {}
            // It is off by now, and about to be switched on.
            try await time.clock.sleep(for: .milliseconds(100))
            await radio.unplug()
            guard case .failed(.power, let error)? = try await events.next() else {
                Issue.record("the step has not failed")
                return
            }
            #expect(error.code == .noAdapter)
            await radio.plugIn(isUp: isUp)
            try await time.clock.sleep(for: .seconds(30))
            try #require(await central.adapterState == .poweredOn)
            while let event = try await heard.next(), event != .resumed {}
            #expect(try await heard.next() != nil)
        }
    }

    /// So is one that comes back after the helper's time, by the helper.
    @Test(.row("W56")) func anAdapterThatReturnsLateIsSwitchedOnByTheHelper() async throws {
        try await run(try personality("rtl8761buGoneDeaf"), .usb, [.commands, .recovery]) { time, radio, central in
            await radio.delayReturn(by: .seconds(60))
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .failed(.driver, let error) = event {
                    #expect(error.code == .noAdapter)
                    break
                }
            }
            #expect(await central.adapterState == .absent)
            try await time.clock.sleep(for: .seconds(90))
            #expect(await central.adapterState == .poweredOn)
            scan.cancel()
        }
    }

    /// Nothing announces that it would succeed now.
    @Test func anAdapterThatCannotBeSwitchedOnIsTriedAgain() async throws {
        try await run(try personality("rtl8761buGoneDeaf"), .usb, [.commands, .recovery]) { time, radio, central in
            let scan = try await scanUntilRecoveryHasFailed(time, radio, central)
            await radio.setPermissions([.commands])
            try await time.clock.sleep(for: .seconds(90))
            #expect(await central.adapterState == .poweredOff)
            try await time.clock.sleep(for: .seconds(120))
            await radio.setPermissions([.commands, .recovery])
            #expect(await central.adapterState == .poweredOff)
            let granted = time.now
            for try await state in central.adapterStates where state == .poweredOn { break }
            #expect(time.now - granted <= .seconds(300))
            scan.cancel()
        }
    }

    /// Somebody else may have switched it on and have links by then; a program that does nothing does not notice.
    @Test func anAdapterThatIsOnWhenItIsTriedAgainIsLeftAlone() async throws {
        try await run(try personality("rtl8761buGoneDeaf"), .usb, [.commands, .recovery]) { time, radio, central in
            let battery = try #require(await radio.id(of: radio.add(.battery)))
            let scan = try await scanUntilRecoveryHasFailed(time, radio, central)
            await radio.setPermissions([.commands])
            try await time.clock.sleep(for: .seconds(90))
            scan.cancel()
            _ = await scan.result
            #expect(await central.adapterState == .poweredOff)
            await radio.setPermissions([.commands, .recovery])
            await radio.powerOn()
            let link = try await Central(radio: radio).connect(battery)
            try await time.clock.sleep(for: .seconds(600))
            #expect(await link.isConnected)
            await link.disconnect()
        }
    }

    /// What is off before a step stays off, and so does what somebody else switches off after it.
    @Test func anAdapterThatWasSwitchedOffOnPurposeStaysOff() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            var events = central.recoveryEvents.makeAsyncIterator()
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            while let event = try await events.next() {
                if case .recovered(.power, _) = event { break }
            }
            await radio.powerOff()
            try await time.clock.sleep(for: .seconds(30))
            await radio.unplug()
            try await time.clock.sleep(for: .seconds(30))
            await radio.plugIn(isUp: false)
            try await time.clock.sleep(for: .seconds(3600))
            #expect(await central.adapterState == .poweredOff)
            scan.cancel()
        }
    }

    /// A controller that does not respond when it is switched on is tried again in the same step.
    @Test(.row("W30")) func onePowerUpWithoutAResponseIsNoFailure() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            await radio.failPowerUps(1)
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            var events = central.recoveryEvents.makeAsyncIterator()
            while let event = try await events.next(), event != .began(.power, because: .silence(.seconds(90))) {}
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
        }
    }

    /// An adapter that a step has left off never listens, and is switched on by the next run.
    @Test(.row("W30")) func aStepThatLeavesTheAdapterOffIsRepeated() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            await radio.failPowerUps(.max)
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            var events = central.recoveryEvents.makeAsyncIterator()
            while let event = try await events.next(), event != .began(.power, because: .silence(.seconds(90))) {}
            guard case .failed(.power, let error)? = try await events.next() else {
                Issue.record("the step has not failed")
                return
            }
            #expect(error.code == .system && error.reason.contains("HCIDEVUP"))
            #expect(
                try await events.next() == .exhausted(because: .silence(.seconds(90)), next: .seconds(60)))
            await radio.failPowerUps(0)
            #expect(try await events.next() == .began(.power, because: .silence(.seconds(90))))
            guard case .recovered(.power, _)? = try await events.next() else {
                Issue.record("it has not recovered")
                return
            }
        }
    }

    /// No step is taken for an adapter that was unplugged after one had left it off.
    @Test func anAdapterThatIsUnpluggedWhileOffEndsTheTrouble() async throws {
        try await run(try personality("raspberryPiGoneDeaf"), .power) { time, radio, central in
            await radio.failPowerUps(.max)
            let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
            defer { scan.cancel() }
            var events = central.recoveryEvents.makeAsyncIterator()
            while let event = try await events.next() {
                if case .exhausted = event { break }
            }
            let steps = await central.statistics.recoverySteps
            await radio.unplug()
            try await central.clock.sleep(for: .seconds(3600))
            #expect(await central.statistics.recoverySteps == steps)
        }
    }

    /// A program that is restarted by its service manager does not begin the steps again at once, also where somebody
    /// sets the clock meanwhile.
    @Test(arguments: [0, 86_400, -86_400] as [Int64]) func stepsAreRareOverRestarts(clockStep: Int64) async throws {
        let folder = try Folder()
        do {
            try await VirtualTime.run { time in
                let radio = VirtualRadio(time: time)
                var personality = try self.personality("rtl8761buGoneDeaf")
                personality.deafness?.reports = 0
                await radio.setPersonality(personality)
                await radio.add(.heartRate)
                for run in 1...3 {
                    var configuration = Configuration()
                    configuration.recovery = .power
                    configuration.stateStore = StateStore(directory: folder.path, identifier: "daemon")
                    let central = Central(configuration, radio: radio) { system in
                        system.timeOfDay = { UInt64(clamping: 1_790_000_000 + Int64(run) * clockStep) }
                        system.bootIdentifier = { BootIdentifier("01234567-89ab-cdef-fedc-ba9876543210") }
                    }
                    _ = try await central.restore()
                    var events = central.recoveryEvents.makeAsyncIterator()
                    let scan = Task(executorPreference: radio.loop) {
                        for try await _ in central.scan(.any, .passive) {}
                    }
                    var steps: [RecoveryPolicy.Step] = []
                    while let event = try await events.next() {
                        if case .began(let step, _) = event { steps.append(step) }
                        if case .exhausted = event { break }
                    }
                    // After the second time there is a pause of five minutes.
                    #expect(steps == (run < 3 ? [.rescan, .eventMasks, .power] : [.rescan, .eventMasks]))
                    scan.cancel()
                    _ = try? await scan.value
                    try await central.saveState()
                    _ = await central.suspend()
                }
            }
        }
    }

    /// A program that was ended between off and on would leave the adapter off for good.
    @Test(arguments: [RecoveryPolicy.power, .rescan])
    func whatAStepHasLeftOffIsSwitchedOnByTheNextProgram(policy: RecoveryPolicy) async throws {
        let folder = try Folder()
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(try self.personality("raspberryPiGoneDeaf"))
            await radio.setPermissions([.commands, .administration])
            await radio.add(.heartRate)
            let store = StateStore(directory: folder.path, identifier: "daemon")
            let boot: @Sendable (inout AdapterSystem) -> Void = { system in
                system.bootIdentifier = { BootIdentifier("01234567-89ab-cdef-fedc-ba9876543210") }
            }
            do {
                var configuration = Configuration()
                configuration.recovery = .power
                configuration.stateStore = store
                // It never comes to switch the adapter on.
                let central = Central(configuration, radio: radio) { system in
                    boot(&system)
                    system.powerUp = { _ throws(SystemCallError) in
                        throw SystemCallError(call: "HCIDEVUP", errno: 110)
                    }
                }
                _ = try await central.restore()
                var events = central.recoveryEvents.makeAsyncIterator()
                let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
                while let event = try await events.next() {
                    if case .failed(.power, _) = event { break }
                }
                // What is stored now is what a program that is killed leaves.
                try await central.saveState()
                _ = await central.suspend()
                scan.cancel()
                _ = await scan.result
            }
            // Its last attempt ends, and with it its claim of the adapter.
            try await time.clock.sleep(for: .seconds(60))
            var configuration = Configuration()
            configuration.recovery = policy
            configuration.stateStore = store
            let central = Central(configuration, radio: radio, changing: boot)
            _ = try await central.restore()
            try await time.clock.sleep(for: .seconds(30))
            let expected: AdapterState = policy == .power ? .poweredOn : .poweredOff
            #expect(await central.adapterState == expected)
            try await central.saveState()
            _ = await central.suspend()
        }
    }

    /// Somebody may have switched it off on purpose by then.
    @Test func anAdapterThatIsOnAtTheNextStartIsNotSwitchedOnAtALaterOne() async throws {
        let folder = try Folder()
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPermissions([.commands, .administration])
            let store = StateStore(directory: folder.path, identifier: "daemon")
            let boot = BootIdentifier("01234567-89ab-cdef-fedc-ba9876543210")
            var state = RestorationState()
            state.setRecoveryRuns(
                [], isAdapterLeftOff: true, at: MachineTime(now: time.now, timeOfDay: 1_790_000_000, boot: boot))
            try store.open().save(state)
            for expected in [AdapterState.poweredOn, .poweredOff] {
                var configuration = Configuration()
                configuration.recovery = .power
                configuration.stateStore = store
                let central = Central(configuration, radio: radio) { system in system.bootIdentifier = { boot } }
                _ = try await central.restore()
                try await time.clock.sleep(for: .seconds(30))
                #expect(await central.adapterState == expected)
                try await central.saveState()
                _ = await central.suspend()
                await radio.powerOff()
            }
        }
    }

    /// Returns a scan for which recovery has taken its last step: the adapter comes back later than that waits.
    private func scanUntilRecoveryHasFailed(
        _ time: VirtualTime, _ radio: VirtualRadio, _ central: Central
    ) async throws -> Task<Void, any Error> {
        await radio.delayReturn(by: .seconds(60))
        var events = central.recoveryEvents.makeAsyncIterator()
        let scan = time.task { for try await _ in central.scan(.any, .passive.duplicates(.all)) {} }
        while let event = try await events.next() {
            if case .failed(.driver, _) = event { break }
        }
        return scan
    }

    private func personality(_ name: String) throws -> VirtualPersonality {
        try #require(VirtualPersonality.all.first { $0.name == name }?.personality)
    }

    private func run(
        _ personality: VirtualPersonality, _ policy: RecoveryPolicy,
        _ permissions: VirtualPermissions = [.commands, .administration], log: KeptLog? = nil,
        security: SecurityConfiguration? = nil,
        changing change: @escaping @Sendable (inout AdapterSystem) -> Void = { _ in },
        _ body: @escaping @Sendable (VirtualTime, VirtualRadio, Central) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            await radio.setPermissions(permissions)
            await radio.add(.heartRate)
            var configuration = Configuration()
            configuration.recovery = policy
            configuration.security = security
            if let log { configuration.logger = log.logger }
            try await body(time, radio, Central(configuration, radio: radio, changing: change))
        }
    }
}
