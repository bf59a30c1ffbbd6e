import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Foundation
import Glibc
import Testing

@testable import blescan

/// The self-test on virtual adapters: what it finds, and what it leaves behind.
@Suite(.timeLimit(.minutes(5))) struct SelfTestRunnerTests {
    /// Runs the self-test of `hci0` in virtual time.
    private static func report(
        _ personality: VirtualPersonality = .bluetooth5, devices: Int = 3, plan: SelfTestPlan = SelfTestPlan(),
        before: @escaping @Sendable (VirtualRadio) async -> Void = { _ in },
        changing change: @escaping @Sendable (inout SelfTestMachine, VirtualRadio) -> Void = { _, _ in },
        after: @escaping @Sendable (VirtualRadio) async throws -> Void = { _ in },
        during: (@Sendable (SelfTestResult, VirtualRadio) -> Void)? = nil
    ) async throws -> SelfTestReport {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            for _ in 0..<devices { await radio.add(.heartRate) }
            await before(radio)
            var machine = SelfTestMachine(radio: radio, time: time)
            change(&machine, radio)
            let runner = try await SelfTestRunner(.first, on: machine, plan) { result in during?(result, radio) }
            let report = try await runner.run()
            await time.settle()
            try await after(radio)
            return report
        }
    }

    /// Claims an adapter, as a program that takes a step of recovery for it.
    private static func claim(_ radio: VirtualRadio, _ name: String = "hci0") throws -> RecoveryClaim? {
        let adapter = try #require(try radio.system.list().first { $0.name == name })
        return try radio.system.claimRecovery(adapter)
    }

    /// A self-test with all checks: a device is connected, as the adapters of a virtual radio do not hear each other.
    private static var planWithLinks: SelfTestPlan {
        var plan = SelfTestPlan()
        plan.peer = .address(BluetoothAddress(rawValue: 0xC0FF_EE00_0001), nil)
        plan.peerAdapter = .named("hci1")
        return plan
    }

    private static func quirks(_ report: SelfTestReport) -> [String: [String]] {
        var found: [String: [String]] = [:]
        for result in report.results where !result.judgement.quirks.isEmpty {
            found[result.check.id] = result.judgement.quirks
        }
        return found
    }

    // MARK: Imitations

    /// What the self-test must see of each imitation beside the filter of duplicates, of which it has no opinion.
    private static let expected: [String: (SelfTestVerdict, [String: [String]])] = [
        "bluetooth5": (.fit, [:]), "bluetooth4": (.fit, [:]), "rtl8761bOnKernel72": (.remark, ["S04": ["W01"]]),
        // What shows itself beside a link alone, or by the other set of commands.
        "rtl8761bu": (.fit, [:]), "rtl8761buWithoutLegacyScan": (.fit, [:]), "bcm4345c0": (.fit, [:]),
        "csr8510": (.fit, [:]), "csr8510Clone": (.fit, [:]), "raspberryPiUART": (.fit, [:]),
        "ats2851": (.remark, ["S05": ["W04"], "S12": ["W05"]]),
        "wcn3990": (.remark, ["S03": ["W06"], "S05": ["W04"], "S12": ["W05"]]),
        "bcm43438": (.remark, ["S12": ["W38"]]), "raspberryPiGoneDeaf": (.unfit, ["S07": ["W29"]]),
        "rtl8761buGoneDeaf": (.unfit, ["S07": ["W29"]]), "rtl8723bu": (.unfit, ["S07": ["W32"]]),
        "intelAX200": (.fit, ["S03": ["W13"]]), "intelAX201": (.fit, ["S03": ["W13"]]), "intelAX210": (.fit, [:]),
        "bcm4378": (.remark, ["S07": ["W18"]]),
        // What shows itself beside an advertisement alone.
        "zephyrUSB": (.fit, [:]), "brokenStates": (.fit, [:]),
    ]

    @Test(arguments: VirtualPersonality.all.map(\.name)) func everyImitationIsDetected(_ name: String) async throws {
        let personality = try #require(VirtualPersonality.all.first { $0.name == name }).personality
        let (verdict, quirks) = try #require(Self.expected[name], "an imitation that the self-test does not know")
        let report = try await Self.report(personality)
        var found = Self.quirks(report)
        found["S09"] = nil
        #expect(report.verdict == verdict, "\(report.remarks)")
        #expect(found == quirks)
        #expect(report.results.map(\.check) == SelfTestCheck.allCases)
        #expect(report.status == (verdict == .fit ? 0 : verdict == .remark ? 1 : 2))
    }

    /// The self-test finds of a controller made from a report what that says.
    @Test(arguments: [
        "bluetooth5", "bluetooth4", "ats2851", "wcn3990", "bcm43438", "rtl8761bOnKernel72", "bcm4378", "rtl8723bu",
        "raspberryPiGoneDeaf",
    ])
    func aReportImitatesItsController(_ name: String) async throws {
        let original = try #require(VirtualPersonality.all.first { $0.name == name }).personality
        let first = try await Self.report(original)
        let data = Data(first.json(redacted: true).bytes)
        let read = try JSONDecoder().decode(AdapterReport.self, from: data)
        let second = try await Self.report(try VirtualPersonality(report: read))
        #expect(second.verdict == first.verdict, "\(second.remarks)")
        #expect(second.capabilities == first.capabilities)
        #expect(second.adapter.version == first.adapter.version)
        #expect(second.kernelChoice == first.kernelChoice)
        // The memory of the filter of duplicates is not known.
        let found = [first, second].map { report in Self.quirks(report).filter { $0.key != "S09" } }
        #expect(found[0] == found[1])
    }

    private static func with(_ change: (inout VirtualPersonality) -> Void) -> VirtualPersonality {
        var personality = VirtualPersonality.bluetooth5
        change(&personality)
        return personality
    }

    /// Deviations that no imitation has, each with the check that must see it.
    private static let deviations: [(check: String, row: String, personality: VirtualPersonality)] = [
        ("S02", "W15", with { $0.responses = [0x1009: .late(.milliseconds(300))] }),
        ("S02", "W16", with { $0.credits = 0 }), ("S05", "W17", with { $0.responses = [0x2041: .silence] }),
        ("S07", "W35", with { $0.rssi = 127 }), ("S09", "W21", with { $0.duplicateCache = 16 }),
        ("S09", "W22", with { $0.duplicateCache = nil }), ("S12", "W34", with { $0.losesEvery = 1 }),
        ("S12", "W37", with { $0.responses = [0x200E: .silence] }),
    ]

    @Test(arguments: deviations.map(\.row)) func aDeviationIsSeen(_ row: String) async throws {
        let (check, _, personality) = try #require(Self.deviations.first { $0.row == row })
        // More of them than the cache of duplicates holds.
        let report = try await Self.report(personality, devices: row == "W21" ? 20 : 3)
        #expect(Self.quirks(report)[check]?.contains(row) == true, "\(report.remarks)")
    }

    // MARK: What is left behind

    @Test func theAdapterIsLeftAsItWasFound() async throws {
        _ = try await Self.report(after: { radio in
            #expect(await !radio.isScanning())
            #expect(await !radio.isInUse())
            #expect(radio.system.isUp("hci0"))
            #expect((try? Self.claim(radio)) != nil)
        })
        // One that was off is off again.
        let report = try await Self.report(
            before: { await $0.powerOff() }, after: { radio in #expect(!radio.system.isUp("hci0")) })
        #expect(report.verdict == .fit)
    }

    /// The kernel's mask, which the test has widened, and the setting that the kernel changes when it switches an
    /// adapter on.
    @Test(arguments: [true, false]) func settingsAreRestoredAsFound(isBondable: Bool) async throws {
        let masks = Lock<[[UInt8]]>([])
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        plan.configuration.traceHCI = { packet in
            guard packet.type == .command, packet.bytes.starts(with: [0x01, 0x20]) else { return }
            masks.withLock { $0.append(packet.bytes) }
        }
        let names = ["hci0", "hci1"]
        _ = try await Self.report(
            .rtl8761bOnKernel72, plan: plan,
            before: { radio in
                await radio.addAdapter()
                for name in names { await radio.setBondable(isBondable, name) }
            },
            after: { radio in
                for name in names { #expect(await radio.isBondable(name) == isBondable) }
            },
            during: { result, radio in
                guard result.check == .scanRestarts else { return }
                radio.assumeIsolated { radio in for name in names { radio.setBondable(!isBondable, name) } }
            })
        let all = masks.withLock { $0 }
        #expect(all.count > 2 && all.first == all.last && Set(all).count == 2)
    }

    @Test(arguments: SelfTestCheck.allCases.filter { !$0.needsPeer })
    func anInterruptedTestCleansUp(_ check: SelfTestCheck) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            let machine = SelfTestMachine(radio: radio, time: time)
            let task = time.task {
                let runner = try await SelfTestRunner(.first, on: machine, SelfTestPlan()) { begun in
                    if begun == check { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                } show: { _ in
                }
                return try await runner.run()
            }
            let report = try await task.value
            await time.settle()
            #expect(report.isInterrupted && report.remarks.contains { $0.contains("interrupted during") })
            // All checks are in the report, and none after that is fit.
            #expect(report.results.count == SelfTestCheck.allCases.count)
            #expect(
                report.results.allSatisfy {
                    $0.check.rawValue < check.rawValue || $0.judgement.verdict == .notRun
                        || $0.check == .autosuspend
                })
            #expect(await !radio.isScanning())
            #expect(await !radio.isInUse())
            #expect(machine.system.isUp("hci0"))
            #expect((try? Self.claim(radio)) != nil)
        }
    }

    /// The parameters of an advertisement make a set, of which a controller has few.
    @Test func anInterruptedAdvertisementLeavesNoSet() async throws {
        let sent = Lock<[HCIOpcode]>([])
        let trace: @Sendable (TracedHCIPacket) -> Void = { packet in
            guard packet.isOutgoing, packet.type == .command, packet.bytes.count >= 2 else { return }
            let opcode = HCIOpcode(rawValue: UInt16(packet.bytes[0]) | UInt16(packet.bytes[1]) << 8)
            sent.withLock { $0.append(opcode) }
            // On the task that sends it.
            if opcode == .leSetExtendedAdvertisingParameters { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
        }
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(.bluetooth5)
            await radio.add(.heartRate)
            await radio.addAdapter()
            let machine = SelfTestMachine(radio: radio, time: time)
            let task = time.task {
                var plan = Self.planWithLinks
                plan.configuration.traceHCI = trace
                let runner = try await SelfTestRunner(.first, on: machine, plan) { _ in }
                return try await runner.run()
            }
            let report = try await task.value
            #expect(report.remarks.contains { $0.contains("interrupted during S19") }, "\(report.remarks)")
        }
        let commands = sent.withLock { $0 }
        let begin = try #require(commands.firstIndex(of: .leSetExtendedAdvertisingParameters))
        #expect(commands[begin...].contains(.leRemoveAdvertisingSet))
    }

    /// A controller may respond to a later attempt.
    @Test func anAdapterThatCouldNotBeSwitchedOnIsTriedAgain() async throws {
        let report = try await Self.report(
            before: { await $0.failPowerUps(3) }, after: { radio in #expect(radio.system.isUp("hci0")) })
        #expect(report.end?.contains("could not be switched on again during S04") == true)
        #expect(report.restoration == [])
    }

    /// The errors of a USB device that does not respond are those of one that was unplugged, and this one is there.
    @Test(arguments: [EPIPE, ENODEV]) func anAdapterThatSeemsToBeGoneIsTriedAgain(errno: Int32) async throws {
        let attempts = Lock(0)
        let report = try await Self.report(
            changing: { machine, _ in
                let powerUp = machine.system.powerUp
                machine.system.powerUp = { index throws(SystemCallError) in
                    let isEarly = attempts.withLock { count in
                        count += 1
                        return count <= 2
                    }
                    if isEarly { throw SystemCallError(call: "HCIDEVUP", errno: errno) }
                    try powerUp(index)
                }
            },
            after: { radio in #expect(radio.system.isUp("hci0")) })
        #expect(report.end?.contains("could not be switched on again during S04") == true)
        #expect(report.restoration == [])
    }

    /// The driver's last command had no response: the kernel reports that, and has switched the adapter off.
    @Test func adaptersThatAreOffInSpiteOfAnErrorAreSwitchedOn() async throws {
        let report = try await Self.report(
            plan: Self.planWithLinks, before: { await $0.addAdapter() },
            changing: { machine, _ in
                let powerDown = machine.system.powerDown
                machine.system.powerDown = { index throws(SystemCallError) in
                    try powerDown(index)
                    throw SystemCallError(call: "HCIDEVDOWN", errno: ETIMEDOUT)
                }
            },
            after: { radio in #expect(radio.system.isUp("hci0") && radio.system.isUp("hci1")) })
        #expect(report.end == nil)
        #expect(report.restoration == [])
    }

    /// Setting its controller up again after S20 switches it off and on.
    @Test func aSecondAdapterThatCouldNotBeSwitchedOnIsTriedAgain() async throws {
        let report = try await Self.report(
            plan: Self.planWithLinks, before: { await $0.addAdapter() },
            after: { radio in #expect(radio.system.isUp("hci1")) },
            during: { result, radio in
                guard result.check == .advertiseWhileLinked else { return }
                radio.assumeIsolated { $0.failPowerUps(2, "hci1") }
            })
        let supervision = try #require(report.results.first { $0.check == .supervision }).judgement
        #expect(supervision.verdict != .notRun, "\(supervision.text)")
        #expect(report.restoration == [])
    }

    @Test func aSecondAdapterThatMayNotBeSwitchedOnLeavesNothingToRestore() async throws {
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        let report = try await Self.report(
            plan: plan,
            before: { radio in
                await radio.addAdapter()
                await radio.powerOff("hci1")
                await radio.setPermissions([.commands])
            },
            changing: { machine, _ in
                machine.system.powerDown = { _ throws(SystemCallError) in
                    throw SystemCallError(call: "HCIDEVDOWN", errno: EPERM)
                }
            })
        #expect(report.results.first { $0.check == .connects }?.judgement.text.contains("cannot be the peer") == true)
        #expect(report.restoration == [])
    }

    @Test func aSecondAdapterThatStaysOffIsRemarked() async throws {
        let report = try await Self.report(
            plan: Self.planWithLinks, before: { await $0.addAdapter() },
            during: { result, radio in
                guard result.check == .advertiseWhileLinked else { return }
                radio.assumeIsolated { $0.failPowerUps(.max, "hci1") }
            })
        #expect(report.restoration.contains { $0.hasPrefix("hci1 could not be switched on again") })
    }

    /// Its number is another adapter's by the end of the test.
    @Test func anAdapterInThePlaceOfTheSecondOneIsLeftAsItIs() async throws {
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        _ = try await Self.report(
            plan: plan,
            before: { radio in
                await radio.addAdapter()
                await radio.powerOff("hci1")
                await radio.addAdapter()
                await radio.unplug("hci2")
            },
            after: { radio in #expect(radio.system.isUp("hci1")) },
            during: { result, radio in
                guard result.check == .scanRestarts else { return }
                radio.assumeIsolated { radio in
                    radio.unplug("hci1")
                    radio.plugIn("hci2", as: "hci1", isUp: true)
                }
            })
    }

    /// At the beginning of each check that sends a command.
    @Test(arguments: SelfTestCheck.allCases.filter { !$0.needsPeer && ![.identity, .autosuspend].contains($0) })
    func anAdapterThatDisappearsEndsTheTest(_ check: SelfTestCheck) async throws {
        let report = try await Self.report(during: { result, radio in
            guard result.check.rawValue == check.rawValue - 1 else { return }
            radio.assumeIsolated { $0.unplug() }
        })
        #expect(report.verdict == .unfit && report.status == 2)
        #expect(report.end?.contains("disappeared during \(check.id)") == true)
        let rest = report.results.filter { $0.check.rawValue > check.rawValue }
        #expect(!rest.isEmpty && rest.allSatisfy { $0.judgement.verdict == .notRun })
    }

    /// It begins with a power cycle, before any command.
    @Test func anAdapterThatDisappearsBeforeThePowerCyclesEndsTheTest() async throws {
        let report = try await Self.report(
            plan: Self.planWithLinks, before: { await $0.addAdapter() },
            during: { result, radio in
                if result.check == .supervision { radio.assumeIsolated { $0.unplug() } }
            })
        #expect(report.verdict == .unfit && report.status == 2)
        #expect(report.end?.contains("disappeared during S21") == true, "\(String(describing: report.end))")
    }

    /// As when the driver resets its device: the kernel gives it another number, and leaves it off.
    @Test(arguments: [true, false]) func anAdapterThatComesBackIsAsItWas(wasUp: Bool) async throws {
        let report = try await Self.report(
            before: { radio in
                if !wasUp { await radio.powerOff() }
            },
            after: { radio in
                #expect(radio.system.isUp("hci3") == wasUp)
            },
            during: { result, radio in
                guard result.check == .scanSwitch else { return }
                radio.assumeIsolated { radio in
                    radio.unplug()
                    radio.plugIn(as: "hci3")
                }
            })
        #expect(report.end?.contains("disappeared during S06") == true)
        #expect(report.restoration == [])
    }

    @Test func anAdapterThatDisappearsWhileItIsOffEndsTheTest() async throws {
        let isGone = Lock(false)
        let report = try await Self.report(changing: { machine, _ in
            let info = machine.system.info
            machine.system.info = { index throws(SystemCallError) in
                if isGone.withLock(\.self) { throw SystemCallError(call: "HCIGETDEVINFO", errno: ENODEV) }
                return try info(index)
            }
            machine.system.list = { () throws(SystemCallError) in [] }
            machine.system.powerUp = { _ throws(SystemCallError) in
                isGone.withLock { $0 = true }
                throw SystemCallError(call: "HCIDEVUP", errno: ENODEV)
            }
        })
        #expect(report.end?.contains("disappeared during S04") == true)
        #expect(report.restoration == [])
    }

    @Test func anAdapterThatIsSwitchedOffEndsTheTest() async throws {
        let report = try await Self.report(during: { result, radio in
            if result.check == .scanSwitch { radio.assumeIsolated { $0.powerOff() } }
        })
        #expect(report.status == 2 && report.end?.contains("switched off during S06") == true)
    }

    /// A driver that resets the USB device after a command without a response.
    @Test func aResetAfterSilenceIsNamed() async throws {
        var personality = VirtualPersonality.bluetooth4
        personality.responses = [0x200C: .silence]
        personality.isResetWhenSilent = true
        let report = try await Self.report(personality)
        #expect(report.verdict == .unfit)
        #expect(report.quirks.map(\.row).contains("W17"), "\(report.remarks)")
        #expect(report.end?.contains("0x200c") == true)
    }

    // MARK: Other programs that switch the power

    @Test func anAdapterThatAnotherProgramRecoversIsNotTested() async throws {
        let other = Lock<RecoveryClaim?>(nil)
        let failure = try await Self.refusal { radio in
            let claim = try Self.claim(radio)
            other.withLock { $0 = claim }
        }
        #expect(other.withLock { $0 } != nil)
        #expect(failure?.status == .timedOut)
        #expect(failure?.message == "hci0 cannot be used: another program takes a recovery step for it")
        #expect(failure?.hint?.contains("`ss -xap | grep bareble-recovery`") == true)
    }

    /// Off and on, at each of the moments in which it does that.
    @Test func noOtherProgramTakesAStepWhileThePowerIsSwitched() async throws {
        let isClaimed = Lock<[Bool]>([])
        _ = try await Self.report(
            before: { await $0.powerOff() },
            changing: { machine, _ in
                let system = machine.system
                let note: @Sendable (UInt16) -> Void = { index in
                    var isFree = false
                    if let adapter = try? system.info(index) { isFree = (try? system.claimRecovery(adapter)) != nil }
                    isClaimed.withLock { $0.append(!isFree) }
                }
                machine.system.powerUp = { index throws(SystemCallError) in
                    note(index)
                    try system.powerUp(index)
                }
                machine.system.powerDown = { index throws(SystemCallError) in
                    note(index)
                    try system.powerDown(index)
                }
            },
            after: { radio in #expect((try? Self.claim(radio)) != nil) })
        // At the beginning, twice in S04, and at the end.
        #expect(isClaimed.withLock { $0 } == [true, true, true, true])
    }

    @Test func theKernelsChoiceIsNotObservedDuringAStepOfAnotherProgram() async throws {
        let other = Lock<RecoveryClaim?>(nil)
        let report = try await Self.report(
            after: { radio in #expect(radio.system.isUp("hci0")) },
            during: { result, radio in
                var claim: RecoveryClaim?
                if result.check == .capabilities { claim = try? Self.claim(radio) }
                other.withLock { $0 = claim }
            })
        let choice = try #require(report.results.first { $0.check == .kernelChoice }).judgement
        #expect(choice.verdict == .note && choice.text.contains("another program takes a recovery step"))
        #expect(report.kernelChoice?.source == .inferred && report.verdict == .fit)
    }

    /// They say nothing of the controller.
    @Test func theLastChecksDoNotRunDuringAStepOfAnotherProgram() async throws {
        let other = Lock<RecoveryClaim?>(nil)
        let report = try await Self.report(
            plan: Self.planWithLinks, before: { await $0.addAdapter() },
            during: { result, radio in
                var claim: RecoveryClaim?
                if result.check == .advertiseWhileLinked { claim = try? Self.claim(radio, "hci1") }
                if result.check == .supervision { claim = try? Self.claim(radio) }
                other.withLock { $0 = claim }
            })
        for check in [SelfTestCheck.supervision, .powerCycles] {
            let judgement = try #require(report.results.first { $0.check == check }).judgement
            #expect(judgement.verdict == .notRun, "\(check)")
            #expect(judgement.text.contains("another program takes a recovery step"), "\(judgement.text)")
        }
    }

    @Test func aSecondAdapterThatAnotherProgramRecoversIsNoPeer() async throws {
        let other = Lock<RecoveryClaim?>(nil)
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        let report = try await Self.report(
            plan: plan,
            before: { radio in
                await radio.addAdapter()
                let claim = try? Self.claim(radio, "hci1")
                other.withLock { $0 = claim }
            })
        #expect(other.withLock { $0 } != nil)
        let connects = try #require(report.results.first { $0.check == .connects }).judgement
        #expect(connects.text == "hci1 cannot be the peer: another program takes a recovery step for it")
        #expect(connects.verdict == .notRun)
    }

    /// What another program has off for a moment is not what was found.
    @Test(arguments: ["hci0", "hci1"]) func anAdapterThatIsOnByTheBeginningStaysOn(name: String) async throws {
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        _ = try await Self.report(
            plan: plan, before: { await $0.addAdapter() },
            changing: { machine, radio in
                let facts = machine.facts
                machine.facts = {
                    await radio.powerOff(name)
                    let found = await facts()
                    await radio.powerOn(name)
                    return found
                }
            },
            after: { radio in #expect(radio.system.isUp(name)) })
    }

    /// The step of the other program ends, with the adapter on.
    @Test func theAdapterIsSwitchedOffAgainAfterAStepOfAnotherProgram() async throws {
        let refusals = Lock(0)
        let report = try await Self.report(
            before: { await $0.powerOff() },
            changing: { machine, _ in
                let claim = machine.system.claimRecovery
                machine.system.claimRecovery = { adapter throws(RecoveryFailure) in
                    let isUnderWay = refusals.withLock { count in
                        count -= 1
                        return count >= 0
                    }
                    if isUnderWay { throw .underWay }
                    return try claim(adapter)
                }
            },
            after: { radio in #expect(!radio.system.isUp("hci0")) },
            during: { result, _ in
                if result.check == .powerCycles { refusals.withLock { $0 = 3 } }
            })
        #expect(report.restoration == [])
    }

    /// The second one would restore what the first has changed.
    @Test func anAdapterHasOneSelfTestAtATime() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            await radio.addAdapter()
            let claimed = Lock<Set<String>>([])
            var shared = SelfTestMachine(radio: radio, time: time)
            shared.claim = { adapter throws(RecoveryFailure) in
                let name = adapter.name
                guard claimed.withLock({ $0.insert(name).inserted }) else { throw .underWay }
                return RecoveryClaim { claimed.withLock { _ = $0.remove(name) } }
            }
            let machine = shared
            var plan = SelfTestPlan()
            plan.peerAdapter = .named("hci1")
            let names = Lock<Set<Set<String>>>([])
            let first = try await SelfTestRunner(.first, on: machine, plan) { _ in
                let now = claimed.withLock { $0 }
                names.withLock { _ = $0.insert(now) }
            }
            for name in ["hci0", "hci1"] {
                let refused = await #expect(throws: Failure.self) {
                    _ = try await SelfTestRunner(.named(name), on: machine, SelfTestPlan()) { _ in }
                }
                #expect(refused?.status == .timedOut)
                #expect(refused?.message == "another self-test of \(name) runs")
            }
            _ = try await first.run()
            // Until its end, and no longer.
            #expect(names.withLock { $0 } == [["hci0", "hci1"]])
            #expect(claimed.withLock { $0 } == [])
        }
    }

    /// They are claimed by their addresses, and adapters without one by their names.
    @Test(arguments: [("00:AA:01:00:00:42", ["hci0"]), ("00:00:00:00:00:00", ["hci0", "hci1"])])
    func adaptersWithOneAddressAreClaimedOnce(address: String, expected: [String]) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.addAdapter()
            let claimed = Lock<[String]>([])
            var machine = SelfTestMachine(radio: radio, time: time)
            let facts = machine.facts
            machine.facts = {
                var found = await facts()
                found.radio.adapters = found.radio.adapters.map { adapter in
                    AdapterFacts(
                        index: adapter.index, name: adapter.name, address: address, isUp: adapter.isUp,
                        isRunning: adapter.isRunning, bus: "virtual")
                }
                return found
            }
            machine.claim = { adapter throws(RecoveryFailure) in
                claimed.withLock { $0.append(adapter.name) }
                return nil
            }
            var plan = SelfTestPlan()
            plan.peerAdapter = .named("hci1")
            _ = try await SelfTestRunner(.first, on: machine, plan) { _ in }
            #expect(claimed.withLock { $0 } == expected)
        }
    }

    // MARK: What it refuses

    private static func refusal(
        _ plan: SelfTestPlan = SelfTestPlan(), _ selector: AdapterSelector = .first,
        _ prepare: @escaping @Sendable (VirtualRadio) async throws -> Void
    ) async throws -> Failure? {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            try await prepare(radio)
            do throws(Failure) {
                let runner = try await SelfTestRunner(
                    selector, on: SelfTestMachine(radio: radio, time: time), plan
                ) { _ in }
                _ = try await runner.run()
                return nil
            } catch {
                #expect(await !radio.isScanning() || error.message.contains("scans"))
                return error
            }
        }
    }

    @Test func rightsThatAreMissingAreNamed() async throws {
        let none = try await Self.refusal { await $0.setPermissions([]) }
        #expect(none?.status == .notPermitted && none?.message.contains("CAP_NET_RAW") == true)
        let off = try await Self.refusal {
            await $0.setPermissions([.commands])
            await $0.powerOff()
        }
        #expect(off?.status == .noAdapter && off?.message.contains("CAP_NET_ADMIN") == true)
        #expect(off?.code == "adapterDown")
        // Without that right, the kernel's choice cannot be observed; everything else can.
        let report = try await Self.report(before: { await $0.setPermissions([.commands]) })
        let choice = try #require(report.results.first { $0.check == .kernelChoice }).judgement
        #expect(choice.verdict == .note && choice.text.contains("CAP_NET_ADMIN"))
        #expect(report.kernelChoice?.source == .inferred && report.verdict == .fit)
    }

    @Test func anotherProgramIsNotDisturbed() async throws {
        let failure = try await Self.refusal { radio in
            await radio.foreign(
                HCICommandPacket(LESetExtendedScanParameters(isActive: false, interval: 96, window: 48)))
            await radio.foreign(HCICommandPacket(LESetExtendedScanEnable(isEnabled: true)))
        }
        #expect(failure?.message.contains("another program scans") == true)
    }

    @Test func anotherProgramOnTheSecondAdapterIsNotDisturbed() async throws {
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        let failure = try await Self.refusal(plan) { radio in
            await radio.addAdapter()
            await radio.foreign(
                HCICommandPacket(LESetExtendedScanParameters(isActive: false, interval: 96, window: 48)), "hci1")
            await radio.foreign(HCICommandPacket(LESetExtendedScanEnable(isEnabled: true)), "hci1")
        }
        #expect(failure?.message.contains("another program scans with hci1") == true)
        #expect(failure?.status == .timedOut)
    }

    @Test func aLinkIsNotDisturbed() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.add(.heartRate)
            let central = Central(radio: radio)
            let (device, _) = try await central.connect(toFirst: .services(0x180D))
            let machine = SelfTestMachine(radio: radio, time: time)
            await #expect(throws: Failure.self) {
                _ = try await SelfTestRunner(.first, on: machine, SelfTestPlan()) { _ in }
            }
            #expect(await device.disconnectReason == nil)
            await device.disconnect()
        }
    }

    /// The status and the code of the other commands, whether its owner is seen before it is opened or not.
    @Test(arguments: [true, false]) func anAdapterThatAnotherProgramHasIsBusy(isOwnerSeen: Bool) async throws {
        let failure = await #expect(throws: Failure.self) {
            _ = try await Self.report(changing: { machine, _ in
                let facts = machine.facts
                if isOwnerSeen {
                    machine.facts = {
                        var found = await facts()
                        found.radio.openers = [SocketOpener(program: "bumble", kind: .user, adapter: 0)]
                        return found
                    }
                } else {
                    machine.system.open = { _ throws(SystemCallError) in
                        throw SystemCallError(call: "bind", errno: EBUSY)
                    }
                }
            })
        }
        #expect(failure?.status == .timedOut && failure?.code == "busy")
        #expect(failure?.message.contains("exclusive access") == true)
    }

    @Test func anAdapterThatIsNotThereIsNamed() async throws {
        let failure = try await Self.refusal(SelfTestPlan(), .named("hci7")) { _ in }
        #expect(failure?.status == .noAdapter && failure?.hint?.contains("hci0") == true)
        #expect(failure?.code == "noAdapter")
    }

    /// In JSON a cause has the same code as in the other commands, which is that of the library.
    @Test func aKernelWithoutBluetoothHasItsCode() throws {
        var facts = SystemFacts()
        facts.radio = RadioFacts(controllerSocket: 97, managementSocket: 97, linkSocket: 97)
        let failure = try #require(throws: Failure.self) { try SelfTestRunner.find(.first, in: facts) }
        #expect(failure.code == "unsupported" && failure.status == .noAdapter)
    }

    // MARK: The air and a peer

    @Test func silentAirIsNoDefectUnlessSomethingAdvertises() async throws {
        let quiet = try await Self.report(devices: 0)
        #expect(quiet.verdict == .remark && quiet.remarks.count == 1)
        var plan = SelfTestPlan()
        plan.expectsReports = true
        #expect(try await Self.report(devices: 0, plan: plan).verdict == .unfit)
    }

    @Test func aDeviceOfTheUserIsConnected() async throws {
        var plan = SelfTestPlan()
        plan.peer = .address(BluetoothAddress(rawValue: 0xC0FF_EE00_0001), nil)
        let report = try await Self.report(plan: plan)
        let verdicts = Dictionary(uniqueKeysWithValues: report.results.map { ($0.check, $0.judgement.verdict) })
        #expect(verdicts[.connects] == .fit && verdicts[.scanWhileLinked] == .fit && verdicts[.procedures] == .fit)
        #expect(verdicts[.throughput] == .notRun && verdicts[.powerCycles] == .notRun)
        let connects = try #require(report.results.first { $0.check == .connects })
        #expect(connects.judgement.text.hasPrefix("15 of 15 connects"))
    }

    @Test func aScanThatIsRefusedWhileLinkedIsSeen() async throws {
        var plan = SelfTestPlan()
        plan.peer = .address(BluetoothAddress(rawValue: 0xC0FF_EE00_0001), .random)
        let report = try await Self.report(.rtl8761bu, plan: plan)
        #expect(Self.quirks(report)["S15"] == ["W02"] && report.verdict == .remark)
    }

    @Test func aPeerThatIsNotHeardIsNamed() async throws {
        var plan = SelfTestPlan()
        plan.peer = .address(BluetoothAddress(rawValue: 0xC0FF_EE77_0001), nil)
        let report = try await Self.report(plan: plan)
        let connects = try #require(report.results.first { $0.check == .connects }).judgement
        #expect(connects.verdict == .notRun && connects.text == "the peer was not heard")
        // What the user has asked for and did not run is a remark; what needs a second adapter is not.
        #expect(report.verdict == .remark && report.remarks.count == 3)
    }

    /// The adapters of a virtual radio do not hear each other.
    @Test func theSecondAdapterAdvertisesForTheTimeOfTheTest() async throws {
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci1")
        let counts = Lock<[Int]>([])
        let report = try await Self.report(
            plan: plan, before: { await $0.addAdapter() },
            after: { radio in
                #expect(await radio.advertisements(of: "hci1").isEmpty)
                #expect(await !radio.isInUse("hci1"))
            },
            during: { result, radio in
                guard result.check == .scanRestarts else { return }
                counts.withLock { $0.append(radio.assumeIsolated { $0.advertisements(of: "hci1").count }) }
            })
        #expect(counts.withLock { $0 } == [3])
        #expect(report.results.first { $0.check == .throughput }?.judgement.text == "the peer was not heard")
        #expect(report.verdict == .remark)
    }

    @Test func aSecondAdapterThatIsNoneIsNamed() async throws {
        var plan = SelfTestPlan()
        plan.peerAdapter = .named("hci9")
        let missing = try await Self.refusal(plan) { _ in }
        #expect(missing?.status == .noAdapter && missing?.message.contains("hci9") == true)
        plan.peerAdapter = .named("hci0")
        #expect(try await Self.refusal(plan) { _ in }?.status == .usage)
    }

    @Test func aSoakRepeatsUntilItsTimeIsOver() async throws {
        var plan = SelfTestPlan()
        plan.soak = .seconds(3600)
        let report = try await Self.report(plan: plan)
        #expect(try #require(report.rounds) > 100 && report.verdict == .fit)
        #expect(report.results.count == SelfTestCheck.allCases.count)
        // One that becomes deaf in the second hour is not fit.
        var personality = VirtualPersonality.bluetooth5
        personality.deafness = VirtualPersonality.Deafness(afterReports: 20_000, recovery: .power)
        #expect(try await Self.report(personality, plan: plan).verdict == .unfit)
    }

    // MARK: Recording

    @Test func everyPacketIsTraced() async throws {
        let packets = Lock<[TracedHCIPacket]>([])
        var plan = SelfTestPlan()
        plan.configuration.traceHCI = { packet in packets.withLock { $0.append(packet) } }
        let report = try await Self.report(plan: plan)
        let sent = packets.withLock { $0.filter { $0.isOutgoing && $0.type == .command } }
        let counted = report.results.flatMap(\.statuses).reduce(0) { $0 + $1.statuses.count }
        // Those of the kernel at the power cycle as well.
        #expect(sent.count >= counted && counted > 100)
        #expect(packets.withLock { $0.contains { $0.type == .event } })
    }
}

extension AdapterSystem {
    fileprivate func isUp(_ name: String) -> Bool { (try? list())?.contains { $0.name == name && $0.isUp } ?? false }
}
