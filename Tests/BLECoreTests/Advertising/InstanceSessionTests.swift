import BLECore
import TestSupport
import Testing

/// The packets follow the layouts of the kernel's `mgmt.h`; the features are those of BlueZ's `tools/mgmt-tester.c`.
@Suite struct InstanceSessionTests {
    private typealias Event = InstanceSession.Event
    private let start = BootInstant(nanoseconds: 5_000_000_000)

    private static func plan(
        _ data: [UInt8] = [2, 1, 6], kind: AdvertisingPlan.Kind = .connectable, response: [UInt8] = []
    ) throws -> AdvertisingPlan {
        try AdvertisingPlan(
            AdvertisementData.Payload(advertisingData: data, scanResponse: response), kind: kind,
            interval: .milliseconds(20)...(.milliseconds(40)))
    }

    private func legacyRun() -> InstanceRun {
        InstanceRun(flags: 0x1F07F, maximum: 5, at: start)
    }

    private func extendedRun(maximum: UInt8 = 3) -> InstanceRun {
        InstanceRun(flags: 0x1FFFF, maximum: maximum, at: start)
    }

    // MARK: Starting

    @Test func anInstanceIsDescribedAndThenGivenItsData() throws {
        let run = legacyRun()
        let id = run.start(try Self.plan(response: [2, 10, 4]))
        #expect(run.sent == [packet("54000000 1200 05 01400000 0000 0000 20000000 40000000 7f")])
        #expect(run.session.status(of: id) == .starting)
        run.respondAll()
        #expect(run.sent.dropFirst() == [packet("55000000 0900 05 03 03 020106 020a04")])
        #expect(run.events == [.started(id)])
        #expect(run.session.status(of: id) == .on && run.session.nextDeadline == nil)
        #expect(run.kernel == [5])
    }

    @Test(
        arguments: [
            (.connectable, false, .le1M, .le1M, "01400000"),
            (.scannable, false, .le1M, .le1M, "00400100"), (.nonconnectable, false, .le1M, .le1M, "00400000"),
            (.connectable, true, .le1M, .le1M, "81400000"), (.connectable, true, .le1M, .le2M, "01410000"),
            (.nonconnectable, true, .leCoded, .leCoded, "00420000"),
        ] as [(AdvertisingPlan.Kind, Bool, PHY, PHY, String)]) func theFlagsAreThoseOfTheKindAndThePHYs(
            _ kind: AdvertisingPlan.Kind, _ isExtended: Bool, _ primary: PHY, _ secondary: PHY, _ flags: String
        ) throws
    {
        let run = extendedRun()
        _ = run.start(
            try AdvertisingPlan(
                AdvertisementData.Payload(advertisingData: []), kind: kind, usesExtendedPDUs: isExtended,
                primaryPHY: primary, secondaryPHY: secondary))
        #expect(run.sent == [packet("54000000 1200 03 \(flags) 0000 0000 a0000000 f0000000 7f")])
    }

    @Test func thePowerIsGivenOnlyIfItIsSet() throws {
        let run = extendedRun()
        _ = run.start(try AdvertisingPlan(AdvertisementData.Payload(advertisingData: []), txPower: -12))
        #expect(run.sent == [packet("54000000 1200 03 01c00000 0000 0000 a0000000 f0000000 f4")])
    }

    @Test func whatTheKernelCannotBeGivenIsNotSupported() throws {
        let payload = AdvertisementData.Payload(advertisingData: [])
        let long = AdvertisementData.Payload(advertisingData: [UInt8](repeating: 0, count: 252))
        let plans = [
            try AdvertisingPlan(payload, usesExtendedPDUs: true, primaryPHY: .leCoded, secondaryPHY: .le1M),
            try AdvertisingPlan(payload, usesExtendedPDUs: true, primaryPHY: .le1M, secondaryPHY: .leCoded),
            try AdvertisingPlan(long, usesExtendedPDUs: true),
        ]
        for plan in plans {
            let run = extendedRun()
            let id = run.start(plan)
            #expect(run.sent.isEmpty && run.events == [.failed(id, .notSupported)])
        }
        let run = legacyRun()
        let extended = run.start(try AdvertisingPlan(payload, usesExtendedPDUs: true))
        // A kernel that has Add Advertising only.
        let old = InstanceRun(flags: 0x7F, maximum: 5, at: start)
        let any = old.start(try Self.plan())
        #expect(run.sent.isEmpty && run.events == [.failed(extended, .notSupported)])
        #expect(old.sent.isEmpty && old.events == [.failed(any, .notSupported)])
    }

    @Test func numbersAreTakenFromTheGreatestDownAndAreNotThoseOfOthers() throws {
        let run = legacyRun()
        run.kernel = [1, 4]
        let first = run.started(try Self.plan())
        let second = run.start(try Self.plan(), avoiding: [3])
        run.respondAll()
        #expect(run.kernel == [1, 2, 4, 5] && run.session.usedNumbers == [2, 5])
        let third = run.start(try Self.plan(), avoiding: [3])
        #expect(run.events == [.started(first), .started(second), .failed(third, .noFreeInstance(limit: 5))])
        let sets = extendedRun(maximum: 240)
        _ = sets.started(try Self.plan())
        // 0xE0 and up are advertising sets of this library.
        #expect(sets.kernel == [0xDF])
    }

    @Test func whatAKilledProgramHasLeftIsRemovedIfItMayBe() throws {
        for reclaims in [false, true] {
            let run = legacyRun()
            run.kernel = [1, 3, 4, 5]
            let id = run.start(try Self.plan(), avoiding: [4], reclaims: reclaims)
            run.respondAll()
            #expect(run.events == [.started(id)])
            #expect(run.kernel == (reclaims ? [1, 4, 5] : [1, 2, 3, 4, 5]))
            #expect(run.session.usedNumbers == (reclaims ? [5] : [2]))
        }
    }

    @Test func whatTheKernelDoesNotListIsRemovedAsWell() throws {
        let run = legacyRun()
        run.kernel = [4, 5]
        run.listsAll = false
        let id = run.start(try Self.plan(), reclaims: true)
        #expect(run.session.usedNumbers == [5] && run.session.claimedNumbers == [3, 4, 5])
        run.respondAll()
        #expect(run.sent.prefix(3) == ["3f000000010005", "3f000000010004", "3f000000010003"])
        #expect(run.events == [.started(id)] && run.kernel == [5])
        #expect(run.session.claimedNumbers == [5])
    }

    @Test func theNumbersOfThisLibraryAreTheUpperHalfAndSixteenAtMost() {
        func own(_ maximum: UInt8) -> [UInt8] {
            InstanceSession.ownNumbers(of: InstanceRun.features(flags: 0, maximum: maximum, instances: []))
        }
        #expect(own(0) == [] && own(1) == [1] && own(2) == [2] && own(5) == [5, 4, 3])
        let last: [UInt8] = (0xD0...0xDF).reversed()
        #expect(own(240) == last && own(255) == last)
    }

    @Test func aDefiniteRefusalFailsTheStartAtOnce() throws {
        for status: ManagementStatus in [.permissionDenied, .invalidParameters, .notSupported, .rejected] {
            let run = legacyRun()
            let id = run.start(try Self.plan())
            run.respond(status)
            #expect(run.events == [.failed(id, .command(run.failure(.addExtendedAdvertisingParameters, status)))])
            run.respondAll()
            let isResting = run.session.isResting
            #expect(isResting && run.kernel.isEmpty)
        }
        let full = extendedRun()
        _ = full.started(try Self.plan())
        let second = full.start(try Self.plan())
        full.respond(.noResources)
        let failure = full.failure(.addExtendedAdvertisingParameters, .noResources)
        #expect(full.events.last == .failed(second, .command(failure)))
    }

    @Test func aStartIsRetriedWhereAnotherProgramIsBusyAndFailsAtLast() throws {
        let run = legacyRun()
        let id = run.start(try Self.plan())
        run.respond(.busy)
        #expect(run.session.nextDeadline == start + .milliseconds(500))
        run.settle()
        #expect(run.events == [.started(id)])
        let second = run.start(try Self.plan())
        for _ in 0..<AdvertisingRetry.startAttempts {
            run.respond { $0 == .addExtendedAdvertisingParameters ? .busy : nil }
        }
        #expect(run.events.last == .failed(second, .command(run.failure(.addExtendedAdvertisingParameters, .busy))))
        run.settle()
        #expect(run.kernel == [5])
    }

    // MARK: Stopping

    @Test func aStoppedInstanceIsRemoved() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.stop(id, at: run.now))
        #expect(run.sent.last == packet("3f000000 0100 05") && run.session.status(of: id) == .stopped)
        let again = run.session.stop(id, at: run.now)
        #expect(again.isEmpty)
        run.respondAll()
        #expect(run.events == [.started(id), .stopped(id, nil)] && run.kernel.isEmpty && run.session.isResting)
        run.perform(run.session.stop(id, at: run.now))
        #expect(run.events.last == .stopped(id, nil))
    }

    @Test func aStopEndsAStartThatIsUnderWay() throws {
        let run = legacyRun()
        let id = run.start(try Self.plan())
        run.perform(run.session.stop(id, at: run.now))
        #expect(run.events == [.failed(id, .stopped)])
        run.respondAll()
        #expect(run.events == [.failed(id, .stopped), .stopped(id, nil)] && run.kernel.isEmpty)
    }

    @Test func whatCouldNotBeRemovedIsRemovedLater() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.stop(id, at: run.now))
        run.respond(.busy)
        #expect(run.events.last == .stopped(id, run.failure(.removeAdvertising, .busy)))
        #expect(run.kernel == [5] && !run.session.isResting)
        run.settle()
        #expect(run.kernel.isEmpty && run.session.isResting)
    }

    @Test func whatCannotBeRemovedIsReplacedIfNoOtherNumberIsFree() throws {
        let run = extendedRun(maximum: 1)
        let id = run.started(try Self.plan())
        run.perform(run.session.stop(id, at: run.now))
        run.respond(.failed)
        let second = run.start(try Self.plan())
        #expect(run.sent.last == "3f000000010001")
        run.respond(.failed)
        run.respondAll()
        #expect(run.events.last == .started(second) && run.kernel == [1] && run.session.usedNumbers == [1])
        // While its removal is out, it is not taken.
        run.perform(run.session.stop(second, at: run.now))
        let third = run.start(try Self.plan())
        #expect(run.events.last == .failed(third, .noFreeInstance(limit: 1)))
    }

    // MARK: What happens

    @Test(.row("P29")) func anInstanceThatAnotherProgramHasRemovedIsAddedAgainAfterAPause() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        for pause in [500, 1_000, 2_000] {
            run.remove(5)
            #expect(run.session.status(of: id) == .paused(.removed))
            #expect(run.session.nextDeadline == run.now + .milliseconds(pause))
            run.settle()
            #expect(run.events.suffix(2) == [.interrupted(id, .removed), .resumed(id)] && run.kernel == [5])
        }
        run.advance(by: AdvertisingRetry.healthy)
        run.remove(5)
        #expect(run.session.nextDeadline == run.now + .milliseconds(500))
        let count = run.events.count
        run.perform(run.session.received(.advertisingRemoved(4), at: run.now))
        #expect(run.events.count == count)
    }

    @Test func anInstanceThatIsRemovedWhileItIsAddedIsAddedAgain() throws {
        let run = legacyRun()
        let id = run.start(try Self.plan())
        run.respond()
        run.remove(5)
        run.kernel.insert(5)
        run.respond()
        #expect(run.events == [.started(id), .interrupted(id, .removed)])
        run.settle()
        #expect(run.events.last == .resumed(id))
    }

    @Test func aStartContinuesIfAnotherProgramRemovesTheInstanceMeanwhile() throws {
        let run = legacyRun()
        let id = run.start(try Self.plan())
        run.respond()
        run.remove(5)
        run.respond(.invalidParameters)
        #expect(run.events.isEmpty && run.session.status(of: id) == .starting)
        run.settle()
        #expect(run.events == [.started(id)] && run.kernel == [5])
    }

    @Test(.row("P29")) func aConnectableInstanceIsAddedAgainAtOnceAfterACentralHasConnected() throws {
        let run = extendedRun()
        let id = run.started(try Self.plan())
        let beacon = run.started(try Self.plan(kind: .nonconnectable))
        let count = run.sent.count
        try run.connect()
        #expect(run.session.status(of: id) == .paused(.connected) && run.session.status(of: beacon) == .on)
        run.respondAll()
        #expect(run.sent.dropFirst(count).map { String($0.prefix(14)) } == ["54000000120003", "55000000060003"])
        #expect(run.events.last == .resumed(id))
        // This side has made the link.
        try run.connect(flags: "08000000")
        #expect(run.session.status(of: id) == .on)
        // Without sets the kernel does it.
        let legacy = legacyRun()
        let only = legacy.started(try Self.plan())
        try legacy.connect()
        #expect(legacy.session.status(of: only) == .on && legacy.out == nil)
    }

    @Test(.row("P11")) func withoutRoomForALinkTheNextAttemptFollowsWhenOneEnds() throws {
        let run = extendedRun()
        let id = run.started(try Self.plan())
        try run.connect()
        run.respond(.rejected)
        let failure = run.failure(.addExtendedAdvertisingParameters, .rejected)
        #expect(run.session.status(of: id) == .paused(.failed(failure)) && run.out == nil)
        try run.disconnect()
        run.respondAll()
        #expect(run.session.status(of: id) == .on)
    }

    @Test(.row("P29")) func afterAPowerCycleAnInstanceIsReplaced() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.received(.newSettings(.lowEnergy), at: run.now))
        // The adapter reports it as well.
        run.perform(run.session.adapterDown(at: run.now))
        #expect(run.session.status(of: id) == .paused(.adapterDown) && run.out == nil)
        #expect(run.session.nextDeadline == nil)
        let count = run.sent.count
        run.perform(run.session.received(.newSettings([.powered, .lowEnergy]), at: run.now))
        run.perform(run.session.adapterUp(at: run.now))
        run.respondAll()
        #expect(run.sent.dropFirst(count).map { String($0.prefix(4)) } == ["3f00", "5400", "5500"])
        #expect(run.events == [.started(id), .interrupted(id, .adapterDown), .resumed(id)] && run.kernel == [5])
    }

    @Test func whatIsStoppedWhileTheAdapterIsOffIsRemovedFromTheKernel() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.adapterDown(at: run.now))
        run.perform(run.session.stop(id, at: run.now))
        run.respondAll()
        #expect(run.events.last == .stopped(id, nil) && run.kernel.isEmpty)
        let second = run.start(try Self.plan())
        #expect(run.events.last == .failed(second, .adapterDown))
    }

    @Test func whatTheKernelDoesNotRemoveWhileTheAdapterIsOffIsRemovedOnceItIsOn() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.adapterDown(at: run.now))
        run.perform(run.session.stop(id, at: run.now))
        // ENETDOWN.
        run.respond(.notSent(errno: 100))
        let failure = ManagementCommandFailure(code: .removeAdvertising, reason: .notSent(errno: 100))
        #expect(run.events.last == .stopped(id, failure))
        #expect(run.kernel == [5] && run.out == nil && run.session.nextDeadline == nil)
        run.perform(run.session.adapterUp(at: run.now))
        run.respondAll()
        #expect(run.kernel.isEmpty && run.session.isResting)
    }

    @Test func aRemovalThatFailsBecauseThePowerWentOffIsRepeatedAfterAStop() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.adapterDown(at: run.now))
        run.perform(run.session.adapterUp(at: run.now))
        #expect(run.sent.last?.hasPrefix("3f00") == true, "it is replaced")
        run.perform(run.session.adapterDown(at: run.now))
        run.respond(.notSent(errno: 100))
        run.perform(run.session.stop(id, at: run.now))
        run.perform(run.session.adapterUp(at: run.now))
        run.settle()
        #expect(run.kernel.isEmpty && run.session.isResting)
    }

    @Test func anAdapterThatWasUnpluggedHasForgottenItsInstances() throws {
        let run = legacyRun()
        let (id, other) = (run.started(try Self.plan()), run.started(try Self.plan()))
        run.perform(run.session.stop(other, at: run.now))
        run.respond(.adapterLost)
        #expect(run.events.suffix(2) == [.interrupted(id, .adapterDown), .stopped(other, nil)])
        run.kernel = []
        let count = run.sent.count
        run.perform(run.session.adapterUp(at: run.now))
        run.respondAll()
        #expect(run.sent.dropFirst(count).map { String($0.prefix(4)) } == ["5400", "5500"])
        #expect(run.session.status(of: id) == .on && run.kernel == [5])
    }

    /// Another program may switch it on, before this one has given the kernel the keys of bonds again.
    @Test func anAdapterThatWasUnpluggedAdvertisesWhenItsOwnerReportsItNotWhenItIsPowered() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.perform(run.session.adapterGone())
        run.kernel = []
        let count = run.sent.count
        run.perform(run.session.received(.newSettings(.lowEnergy), at: run.now))
        run.perform(run.session.received(.newSettings([.powered, .lowEnergy]), at: run.now))
        #expect(run.sent.count == count)
        #expect(run.session.status(of: id) == .paused(.adapterDown))
        run.perform(run.session.adapterUp(at: run.now))
        run.respondAll()
        #expect(run.session.status(of: id) == .on && run.kernel == [5])
    }

    @Test func aLostSocketHasTheInstancesReplaced() throws {
        let run = legacyRun()
        let id = run.started(try Self.plan())
        run.session.interfaceLost(at: run.now)
        let count = run.sent.count
        run.settle()
        #expect(run.sent.dropFirst(count).map { String($0.prefix(4)) } == ["3f00", "5400", "5500"])
        #expect(run.session.status(of: id) == .on)
    }

    @Test func afterALongTimeOnAirPausesAreShortAgain() throws {
        let run = extendedRun()
        _ = run.started(try Self.plan())
        func disturb() {
            for _ in 0..<3 {
                run.remove(3)
                run.settle()
            }
            run.advance(by: AdvertisingRetry.healthy)
        }
        disturb()
        run.session.interfaceLost(at: run.now)
        #expect(run.session.nextDeadline == run.now + .milliseconds(500))
        run.settle()
        disturb()
        try run.connect()
        run.respond(.busy)
        #expect(run.session.nextDeadline == run.now + .milliseconds(500))
    }

    /// It is on air again at once after each of them.
    @Test func connectionsOfCentralsDoNotEndTheTimeOnAir() throws {
        let run = extendedRun()
        let id = run.started(try Self.plan())
        for _ in 0..<3 {
            run.remove(3)
            run.settle()
        }
        for _ in 0..<2 {
            run.advance(by: .seconds(6))
            try run.connect()
            run.respondAll()
            #expect(run.session.status(of: id) == .on)
        }
        run.remove(3)
        #expect(run.session.nextDeadline == run.now + .milliseconds(500))
    }

    @Test func aConnectionAttemptPausesAllInstances() throws {
        let run = legacyRun()
        let (first, second) = (run.started(try Self.plan()), run.started(try Self.plan()))
        run.perform(run.session.pause(at: run.now))
        #expect(!run.events.contains(.paused))
        run.respondAll()
        #expect(run.kernel.isEmpty)
        #expect(
            run.events.suffix(3) == [.interrupted(first, .requested), .interrupted(second, .requested), .paused])
        run.perform(run.session.resume(at: run.now))
        run.respondAll()
        #expect(run.events.suffix(2) == [.resumed(first), .resumed(second)] && run.kernel == [4, 5])
        // Nothing is on air.
        let idle = legacyRun()
        idle.perform(idle.session.pause(at: idle.now))
        #expect(idle.events == [.paused])
    }

    // MARK: Any order

    @Test(arguments: 0..<40) func whateverHappensOneCommandIsOutAndTheKernelIsAsWanted(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        let run = seed % 2 == 0 ? legacyRun() : extendedRun()
        var ids: [InstanceSession.InstanceID] = []
        for _ in 0..<300 {
            switch Int.random(in: 0..<12, using: &numbers) {
            case 0: ids.append(run.start(try Self.plan()))
            case 1: if let id = ids.randomElement(using: &numbers) { run.perform(run.session.stop(id, at: run.now)) }
            case 2: run.remove(UInt8.random(in: 1...5, using: &numbers))
            case 3: try run.connect()
            case 4: try run.disconnect()
            case 5: run.perform(run.session.pause(at: run.now))
            case 6: run.perform(run.session.resume(at: run.now))
            case 7: run.perform(run.session.adapterDown(at: run.now))
            case 8: run.perform(run.session.adapterUp(at: run.now))
            case 9: run.respond(.busy)
            case 10: run.advance(by: .milliseconds(700))
            default: run.respond()
            }
        }
        run.perform(run.session.adapterUp(at: run.now))
        run.perform(run.session.resume(at: run.now))
        run.settle()
        #expect(!run.hasBrokenTheRule)
        #expect(run.kernel == run.session.usedNumbers)
        for id in ids { run.perform(run.session.stop(id, at: run.now)) }
        run.settle()
        #expect(run.kernel.isEmpty && run.session.isResting)
        for id in ids {
            let ends = run.events.count { event in
                switch event {
                case .started(id), .failed(id, _): true
                default: false
                }
            }
            #expect(ends == 1, "a start ends once")
        }
    }
}

/// A session with a kernel whose responses the test lets come.
final class InstanceRun: TimedRun {
    var session = InstanceSession()
    /// The numbers of the instances that the kernel has.
    var kernel: Set<UInt8> = []
    /// Whether the kernel lists all of them; since 6.1 only those whose numbers are not greater than their number.
    var listsAll = true
    private let flags: UInt32
    private let maximum: UInt8
    private(set) var now: BootInstant
    private(set) var out: InstanceSession.Command?
    private(set) var sent: [String] = []
    private(set) var events: [InstanceSession.Event] = []
    /// Whether a second command was sent while one was out.
    private(set) var hasBrokenTheRule = false

    init(flags: UInt32, maximum: UInt8, at now: BootInstant) {
        self.flags = flags
        self.maximum = maximum
        self.now = now
    }

    /// When the session has to do something.
    var deadline: BootInstant? { session.nextDeadline }

    static func features(flags: UInt32, maximum: UInt8, instances: [UInt8]) -> ManagementAdvertisingFeatures {
        let hasSets = flags & 0x80 != 0
        return ManagementAdvertisingFeatures(
            supportedFlags: ManagementAdvertisingFlags(rawValue: flags), maximumDataLength: hasSets ? 251 : 31,
            maximumScanResponseLength: hasSets ? 251 : 31, maximumInstances: maximum, instances: instances)
    }

    func start(
        _ plan: AdvertisingPlan, avoiding others: Set<UInt8> = [], reclaims: Bool = false
    ) -> InstanceSession.InstanceID {
        let listed = kernel.filter { listsAll || Int($0) <= kernel.count }
        let features = Self.features(flags: flags, maximum: maximum, instances: listed.sorted())
        let (id, actions) = session.start(plan, on: features, avoiding: others, reclaims: reclaims, at: now)
        perform(actions)
        return id
    }

    func started(_ plan: AdvertisingPlan) -> InstanceSession.InstanceID {
        let id = start(plan)
        respondAll()
        #expect(events.last == .started(id))
        return id
    }

    func perform(_ actions: [InstanceSession.Action]) {
        for action in actions {
            switch action {
            case .notify(let event): events.append(event)
            case .send(let command):
                if out != nil { hasBrokenTheRule = true }
                out = command
                sent.append(Hex.encode(Self.packet(command).bytes))
            }
        }
    }

    private static func packet(_ command: InstanceSession.Command) -> ManagementPacket {
        switch command {
        case .remove(let remove): remove.packet(adapter: 0)
        case .setParameters(let parameters): parameters.packet(adapter: 0)
        case .setData(let data): data.packet(adapter: 0)
        }
    }

    /// Executes the command that is out.
    func respond() {
        guard let command = out else { return }
        var failure: ManagementCommandFailure?
        switch command {
        case .remove(let remove):
            if kernel.remove(remove.instance) == nil { failure = self.failure(.removeAdvertising, .invalidParameters) }
        case .setParameters: break
        case .setData(let data): kernel.insert(data.instance)
        }
        out = nil
        perform(session.commandFinished(failure, at: now))
    }

    /// Fails the command that is out with a status.
    func respond(_ status: ManagementStatus) {
        guard let command = out else { return }
        end(ManagementCommandCode(rawValue: Self.packet(command).code), .status(status))
    }

    /// Fails the command that is out.
    func respond(_ reason: ManagementCommandFailure.Reason) {
        guard let command = out else { return }
        end(ManagementCommandCode(rawValue: Self.packet(command).code), reason)
    }

    /// Responds to the commands that are out, and passes the pauses, until one was failed.
    func respond(_ status: (ManagementCommandCode) -> ManagementStatus?) {
        for _ in 0..<100 {
            guard let command = out else {
                guard let due = session.nextDeadline else { return }
                advance(by: max(.zero, due - now))
                continue
            }
            if let status = status(ManagementCommandCode(rawValue: Self.packet(command).code)) {
                return respond(status)
            }
            respond()
        }
    }

    private func end(_ code: ManagementCommandCode, _ reason: ManagementCommandFailure.Reason) {
        out = nil
        perform(session.commandFinished(ManagementCommandFailure(code: code, reason: reason), at: now))
    }

    func failure(_ code: ManagementCommandCode, _ status: ManagementStatus) -> ManagementCommandFailure {
        ManagementCommandFailure(code: code, reason: .status(status))
    }

    func respondAll() {
        for _ in 0..<100 where out != nil { respond() }
    }

    func advance(by duration: Duration) {
        now = now + duration
        perform(session.timePassed(now))
    }

    /// Another program removes an instance.
    func remove(_ number: UInt8) {
        guard kernel.remove(number) != nil || out != nil else { return }
        perform(session.received(.advertisingRemoved(number), at: now))
    }

    /// A link comes up.
    func connect(flags: String = "00000000") throws {
        try receive("0b000000 0d00 1122334455c6 02 \(flags) 0000")
    }

    /// A link ends.
    func disconnect() throws {
        try receive("0c000000 0800 1122334455c6 02 03")
    }

    private func receive(_ hex: String) throws {
        perform(session.received(try ManagementEvent(bytes(hex).span).content, at: now))
    }
}

/// A packet as one word.
private func packet(_ hex: String) -> String { hex.filter { $0 != " " } }
