import BLECore
import TestSupport
import Testing

@Suite struct AdvertiseSessionTests {
    private typealias Event = AdvertiseSession.Event
    private let start = BootInstant(nanoseconds: 5_000_000_000)

    private static func plan(
        _ data: [UInt8] = [2, 1, 6], kind: AdvertisingPlan.Kind = .connectable, response: [UInt8] = []
    ) throws -> AdvertisingPlan {
        try AdvertisingPlan(
            AdvertisementData.Payload(advertisingData: data, scanResponse: response), kind: kind,
            interval: .milliseconds(20)...(.milliseconds(40)))
    }

    // MARK: Starting

    @Test(.row("W71")) func aLegacyAdvertiserIsDisabledSetUpAndEnabled() throws {
        let run = AdvertiseRun(hasSets: false, at: start)
        let id = run.start(try Self.plan(response: [2, 10, 4]))
        run.respondAll()
        let padding = String(repeating: "00", count: 28)
        #expect(
            run.sent == [
                "0a200100", "06200f20004000" + "00" + "00" + "00000000000000" + "0700",
                "08202003020106" + padding,
                "09202003020a04" + padding, "0a200101",
            ])
        #expect(run.events == [.started(id)])
        #expect(run.session.status(of: id) == .on && run.session.nextDeadline == nil)
        #expect(run.controller.onAir == [0: [2, 1, 6]])
    }

    @Test func aSetGetsAHandleThatTheKernelDoesNotUse() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 2, at: start)
        let id = run.start(try Self.plan(response: [2, 10, 4]))
        run.respondAll()
        #expect(
            run.sent == [
                // What a killed program may have left.
                "3c2001e0", "3c2001e1",
                "39200600" + "01e0000000",
                "362019e01300" + "200000400000" + "07" + "00" + "00000000000000" + "00" + "7f" + "01000100"
                    + "00",
                "372007e0030103020106", "382007e0030103020a04", "39200601" + "01e0000000",
            ])
        #expect(run.events == [.started(id)])
        #expect(run.controller.onAir == [0xE0: [2, 1, 6]])
    }

    @Test func extendedPDUsCarryTheDataWhereTheKindHasThem() throws {
        let long = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        let cases: [(AdvertisingPlan.Kind, AdvertisementData.Payload, UInt8, [UInt16])] = [
            (.connectable, .init(advertisingData: long), 0x01, [0x2036, 0x2037, 0x2037]),
            (.nonconnectable, .init(advertisingData: long), 0x00, [0x2036, 0x2037, 0x2037]),
            (.scannable, .init(advertisingData: [], scanResponse: long), 0x02, [0x2036, 0x2038, 0x2038]),
        ]
        for (kind, payload, properties, opcodes) in cases {
            let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
            _ = run.start(
                try AdvertisingPlan(payload, kind: kind, usesExtendedPDUs: true, primaryPHY: .leCoded))
            run.respondAll()
            let setUp = run.packets.filter { (0x2036...0x2038).contains($0.opcode.rawValue) }
            #expect(setUp.map(\.opcode.rawValue) == opcodes)
            #expect(setUp.first?.parameters[1] == properties && setUp.first?.parameters[20] == 3)
            #expect(setUp.dropFirst().flatMap { $0.parameters.dropFirst(4) } == long)
        }
    }

    @Test func aRandomAddressIsSetBeforeTheSetIsEnabled() throws {
        let address = try #require(BluetoothAddress("C0:00:00:00:00:01"))
        let plan = try AdvertisingPlan(
            .init(advertisingData: []), kind: .nonconnectable, randomAddress: address)
        let sets = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        _ = sets.start(plan)
        sets.respondAll()
        #expect(
            sets.sent.suffix(3).map { String($0.prefix(22)) }.dropFirst() == [
                "352007e00100000000c0", "3920060101e0000000",
            ])
        #expect(sets.packets[2].parameters[10] == 1)
        let legacy = AdvertiseRun(hasSets: false, at: start)
        _ = legacy.start(plan)
        legacy.respondAll()
        #expect(legacy.sent[1] == "0520060100000000c0")
        #expect(legacy.packets[2].parameters[5] == 1)
    }

    @Test(.row("P33")) func whatAKilledProgramHasLeftIsRemovedOnce() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 4, at: start)
        run.controller.sets[0xE0] = .init(isEnabled: true)
        run.controller.sets[0xE2] = .init(isEnabled: false)
        run.controller.sets[0x01] = .init(isEnabled: true)
        let first = run.start(try Self.plan())
        run.respondAll()
        #expect(run.session.counts.staleSets == 2)
        #expect(run.controller.sets.keys.sorted() == [0x01, 0xE0])
        let removed = run.packets.count { $0.opcode == .leRemoveAdvertisingSet }
        #expect(removed == 5)
        let second = run.start(try Self.plan())
        run.respondAll()
        #expect(run.packets.count { $0.opcode == .leRemoveAdvertisingSet } == removed)
        #expect(run.events == [.started(first), .started(second)])
        #expect(run.controller.onAir.keys.sorted() == [0x01, 0xE0, 0xE1])
    }

    @Test func theHandlesOfOtherProcessesAreNeitherUsedNorRemoved() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 4, at: start)
        for handle in 0xE0...0xE3 as ClosedRange<UInt8> { run.controller.sets[handle] = .init(isEnabled: true) }
        let first = run.start(try Self.plan(), avoiding: [0xE0, 0xE2])
        run.respondAll()
        #expect(run.session.counts.staleSets == 2)
        #expect(run.controller.onAir.keys.sorted() == [0xE0, 0xE1, 0xE2])
        #expect(run.session.usedHandles == [0xE1])
        let second = run.start(try Self.plan(), avoiding: [0xE0])
        run.respondAll()
        #expect(run.session.usedHandles == [0xE1, 0xE2])
        #expect(run.events == [.started(first), .started(second)])
        run.perform(run.session.stop(first, at: run.now))
        run.respondAll()
        #expect(run.session.usedHandles == [0xE2])
    }

    /// Another process would have its new set removed.
    @Test func theHandlesThatAreStillLookedAtAreNotFree() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 4, at: start)
        let id = run.start(try Self.plan(), avoiding: [0xE2])
        #expect(run.session.usedHandles == [0xE0, 0xE1, 0xE3])
        run.perform(run.session.stop(id, at: run.now))
        run.respond()
        #expect(run.session.usedHandles == [0xE0, 0xE1, 0xE3])
        run.respondAll()
        #expect(run.session.usedHandles.isEmpty && run.events == [.failed(id, .stopped), .stopped(id, nil)])
    }

    @Test func aSilentControllerIsNotSweptToItsEnd() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 16, at: start)
        let id = run.start(try Self.plan())
        run.respond(.timeout)
        #expect(run.out?.opcode == .leSetExtendedAdvertisingEnable)
        run.respondAll()
        #expect(run.events == [.started(id)])
    }

    @Test func aDefiniteRefusalFailsTheStartAtOnce() throws {
        for status in [
            HCIStatus.invalidParameters, .unsupportedFeature, .unknownCommand, .packetTooLong,
        ] {
            let run = AdvertiseRun(hasSets: false, at: start)
            let id = run.start(try Self.plan())
            run.respond()
            let opcode = try #require(run.out?.opcode)
            run.respond(.status(status))
            #expect(run.events == [.failed(id, .command(.init(opcode: opcode, reason: .status(status))))])
            run.respondAll()
            #expect(
                run.session.isResting && run.controller.onAir.isEmpty
                    && run.session.status(of: id) == .stopped)
            // There is room for another one.
            let other = run.start(try Self.plan())
            run.respondAll()
            #expect(run.events.last == .started(other))
        }
    }

    @Test func aPassingRefusalIsTriedThreeTimes() throws {
        let run = AdvertiseRun(hasSets: false, at: start)
        let id = run.start(try Self.plan())
        let refusal = HCICommandFailure(
            opcode: .leSetAdvertisingEnable, reason: .status(.commandDisallowed))
        for pause in [Duration.milliseconds(500), .seconds(1), .zero] {
            run.respond(while: { $0 != LESetAdvertisingEnable(isEnabled: true).bytes })
            #expect(run.events.isEmpty)
            run.respond(.status(.commandDisallowed))
            guard pause > .zero else { break }
            run.advance(by: pause - .nanoseconds(1))
            #expect(run.out == nil)
            run.advance(by: .nanoseconds(1))
            #expect(run.out != nil)
        }
        run.respondAll()
        #expect(run.events == [.failed(id, .command(refusal))])
        #expect(run.session.isResting && run.controller.onAir.isEmpty)
    }

    @Test func whatCannotBeStartedFailsAtOnce() throws {
        let legacy = AdvertiseRun(hasSets: false, at: start)
        let extended = try AdvertisingPlan(.init(advertisingData: []), usesExtendedPDUs: true)
        let id = legacy.start(extended)
        #expect(legacy.events == [.failed(id, .notSupported)] && legacy.out == nil)
        _ = legacy.start(try Self.plan())
        let second = legacy.start(try Self.plan())
        #expect(legacy.events.last == .failed(second, .noFreeSet(limit: 1)))
        let down = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        down.perform(down.session.adapterDown())
        let third = down.start(try Self.plan())
        #expect(down.events == [.failed(third, .adapterDown)] && down.out == nil)
        let short = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let long = AdvertisementData.Payload(advertisingData: [UInt8](repeating: 0, count: 1650))
        let fourth = short.start(try AdvertisingPlan(long, usesExtendedPDUs: true))
        #expect(short.events == [.failed(fourth, .notSupported)])
    }

    @Test func aControllerWithoutAFreeSetFailsTheStart() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 16, at: start)
        run.controller.capacity = 1
        let first = run.start(try Self.plan())
        let second = run.start(try Self.plan())
        run.respondAll()
        #expect(run.events == [.started(first), .failed(second, .noFreeSet(limit: 1))])
        #expect(run.controller.onAir.count == 1)
    }

    @Test func plansAreChecked() throws {
        typealias Invalid = AdvertisingPlan.Invalid
        let none = AdvertisementData.Payload(advertisingData: [])
        #expect(throws: Invalid.interval) {
            try AdvertisingPlan(none, interval: .milliseconds(19)...(.seconds(1)))
        }
        #expect(throws: Invalid.interval) {
            try AdvertisingPlan(none, interval: .seconds(1)...(.seconds(11)))
        }
        #expect(throws: Invalid.phy) { try AdvertisingPlan(none, primaryPHY: .leCoded) }
        #expect(throws: Invalid.phy) {
            try AdvertisingPlan(none, usesExtendedPDUs: true, primaryPHY: .le2M)
        }
        #expect(throws: Invalid.phy) { try AdvertisingPlan(none, secondaryPHY: .le2M) }
        let data32 = AdvertisementData.Payload(advertisingData: [UInt8](repeating: 0, count: 32))
        let response = AdvertisementData.Payload(advertisingData: [], scanResponse: [1, 2])
        #expect(throws: Invalid.payload) { try AdvertisingPlan(data32) }
        #expect(throws: Invalid.payload) { try AdvertisingPlan(response, kind: .nonconnectable) }
        #expect(throws: Invalid.payload) { try AdvertisingPlan(response, usesExtendedPDUs: true) }
        #expect(throws: Invalid.payload) {
            try AdvertisingPlan(data32, kind: .scannable, usesExtendedPDUs: true)
        }
        #expect(throws: Never.self) {
            try AdvertisingPlan(data32, usesExtendedPDUs: true, secondaryPHY: .le2M)
        }
        let controller = AdvertiseSession.Controller(
            features: [.extendedAdvertising], maximumSets: 200, maximumDataLength: 251)
        #expect(controller.limits(.connectable, usesExtendedPDUs: true).advertisingData == 251)
        #expect(controller.setLimit == 16)
        #expect(AdvertiseSession.Controller(features: []).setLimit == 1)
    }

    // MARK: On air again

    @Test func aSetIsEnabledAgainAtOnceAfterACentralHasConnected() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.connect(0xE0)
        #expect(run.events == [.started(id), .connected(id, 0x40), .interrupted(id, .connected)])
        #expect(
            run.out?.bytes == LESetExtendedAdvertisingEnable(isEnabled: true, handles: [0xE0]).bytes)
        run.respond()
        #expect(run.events.last == .resumed(id) && run.session.status(of: id) == .on)
        #expect(run.session.nextDeadline == nil)
        #expect(run.session.counts.connections == 1 && run.session.counts.enabled == 2)
    }

    @Test func theOneAdvertiserIsEnabledAgainAtOnceAfterACentralHasConnected() throws {
        let run = AdvertiseRun(hasSets: false, at: start)
        let id = run.started(try Self.plan())
        // A link of this host's own does not concern it.
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: true), at: run.now))
        #expect(run.out == nil)
        run.connect(0)
        #expect(run.events == [.started(id), .interrupted(id, .connected)])
        run.respond()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
    }

    @Test func aSetTerminatedEventThatWasDroppedIsMadeUpFor() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.controller.sets[0xE0]?.isEnabled = false
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
        #expect(run.session.nextDeadline == run.now + .milliseconds(60))
        run.advance(by: .milliseconds(60))
        run.respond()
        #expect(run.controller.onAir.count == 1 && run.events == [.started(id)])
        #expect(run.session.nextDeadline == nil)
    }

    /// Of two centrals, one has connected by a set of another program.
    @Test func aSetTerminatedEventThatWasDroppedIsNotThatOfAnotherLink() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        _ = run.started(try Self.plan())
        run.controller.sets[0xE0]?.isEnabled = false
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
        run.perform(run.session.received(try AdvertiseRun.terminated(1, link: 0x41), at: run.now))
        // Without a central, the event names no link.
        run.perform(run.session.received(try AdvertiseRun.terminated(2, .advertisingTimeout), at: run.now))
        #expect(run.deadline == run.now + .milliseconds(60))
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.controller.onAir.count == 1 && run.deadline == nil)
    }

    enum LinkSign: CaseIterable {
        case accepted, ended
    }

    /// Events of links are dropped where reports come faster than they are read.
    @Test(arguments: [true, false], LinkSign.allCases) func aBeginningThatWasDroppedIsMadeUpFor(
        hasSets: Bool, sign: LinkSign
    ) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.controller.disableAll()
        switch sign {
        case .accepted: run.session.linkAccepted(0x40, at: run.now)
        case .ended: run.perform(run.session.linkEnded(0x40, at: run.now))
        }
        #expect(run.out == nil && run.deadline == run.now + .milliseconds(60))
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.controller.onAir.count == 1 && run.session.status(of: id) == .on && run.deadline == nil)
        // One that was reported.
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: true), at: run.now))
        run.session.linkAccepted(0x40, at: run.now)
        run.perform(run.session.linkEnded(0x40, at: run.now))
        #expect(run.out == nil && run.deadline == nil)
    }

    /// The end of a central's link was dropped, and so was the beginning of its next one, which has the same handle.
    @Test(arguments: [true, false]) func aLinkAfterOneWhoseEndWasDroppedIsMadeUpFor(hasSets: Bool) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.controller.disableAll()
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
        if hasSets { run.perform(run.session.received(try AdvertiseRun.terminated(0xE0), at: run.now)) }
        run.respondAll()
        run.session.linkAccepted(0x40, at: run.now)
        #expect(run.controller.onAir.count == 1 && run.deadline == nil)
        run.controller.disableAll()
        run.session.linkAccepted(0x40, at: run.now)
        #expect(run.deadline == run.now + .milliseconds(60))
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.controller.onAir.count == 1 && run.session.status(of: id) == .on && run.deadline == nil)
    }

    @Test func otherProgramsSetsAreNotOurs() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.perform(run.session.received(try AdvertiseRun.terminated(1), at: run.now))
        #expect(run.out == nil && run.events == [.started(id)])
        for opcode in [
            HCIOpcode.leSetExtendedAdvertisingParameters, .leSetExtendedAdvertisingData, .leSetScanEnable,
        ] {
            run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        }
        run.perform(
            run.session.foreignCompletion(
                .leSetExtendedAdvertisingEnable, .commandDisallowed, at: run.now))
        #expect(run.session.nextDeadline == nil && run.session.status(of: id) == .on)
    }

    /// Row B25 of the kernel's facts: every `connect()` of any program disables all sets.
    @Test(.row("P29"), arguments: [true, false]) func aSetIsEnabledAgainAfterAnotherProgramHasDisabledIt(
        hasSets: Bool
    ) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let opcode: HCIOpcode = hasSets ? .leSetExtendedAdvertisingEnable : .leSetAdvertisingEnable
        for pause in [60, 120, 240] {
            run.controller.disableAll()
            run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
            #expect(run.events.last == .interrupted(id, .disturbed(by: opcode)))
            #expect(run.out == nil && run.session.nextDeadline == run.now + .milliseconds(pause))
            run.advance(by: .milliseconds(pause))
            let before = run.packets.count
            run.respondAll()
            #expect(run.packets.count == before && run.controller.onAir.count == 1)
            #expect(run.events.last == .resumed(id))
        }
        // After 10 s on air the pause is the shortest again.
        run.advance(by: .seconds(10))
        run.controller.disableAll()
        run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        #expect(run.session.nextDeadline == run.now + .milliseconds(60))
        #expect(run.session.counts.disturbances == 4)
    }

    @Test(.row("P29")) func theOneAdvertiserIsSetUpAgainAfterAnotherProgramHasUsedIt() throws {
        for opcode in [
            HCIOpcode.leSetAdvertisingParameters, .leSetAdvertisingData, .leSetScanResponseData,
        ] {
            let run = AdvertiseRun(hasSets: false, at: start)
            let id = run.started(try Self.plan())
            run.controller.sets[0] = .init(data: [9], isEnabled: true)
            run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
            #expect(run.events.last == .interrupted(id, .disturbed(by: opcode)))
            run.advance(by: .milliseconds(60))
            run.respondAll()
            #expect(run.controller.onAir == [0: [2, 1, 6]] && run.events.last == .resumed(id))
        }
        // The random address is the scanner's as well; a public one is not concerned.
        let run = AdvertiseRun(hasSets: false, at: start)
        let id = run.started(try Self.plan())
        run.perform(run.session.foreignCompletion(.leSetRandomAddress, .success, at: run.now))
        #expect(run.session.status(of: id) == .on)
    }

    /// Its random address, and what it sends afterwards, leave no other data in place of ours.
    @Test func whatAnotherProgramHasWrittenIsReplacedWhateverItSendsAfterwards() throws {
        let run = AdvertiseRun(hasSets: false, at: start)
        let id = run.start(try Self.plan(response: [2, 10, 4]))
        run.respond(while: { $0.dropFirst().first != 0x09 })
        #expect(run.out?.opcode == .leSetScanResponseData)
        run.controller.sets[0] = .init(data: [9], isEnabled: true)
        for opcode in [HCIOpcode.leSetAdvertisingData, .leSetAdvertisingEnable, .leSetRandomAddress] {
            run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        }
        run.respondAll()
        #expect(run.events == [.started(id)] && run.controller.onAir == [0: [2, 1, 6]])
    }

    /// The kernel disables all sets when it removes its last instance, and before it initiates.
    @Test(.row("P29"), arguments: [true, false]) func whatTheKernelDoesForThisProgramMakesNoPauseLonger(
        isResponseReadFirst: Bool
    ) throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let opcode = HCIOpcode.leSetExtendedAdvertisingEnable
        for _ in 0..<5 {
            run.session.ownCommands(areOut: true, at: run.now)
            run.controller.disableAll()
            if isResponseReadFirst { run.session.ownCommands(areOut: false, at: run.now) }
            run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
            run.session.ownCommands(areOut: false, at: run.now)
            #expect(run.events.last == .interrupted(id, .ownCommand(opcode)) && run.session.isOnAir)
            #expect(run.out == nil && run.deadline == run.now + .milliseconds(60))
            run.advance(by: .milliseconds(60))
            run.respondAll()
            #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
        }
        #expect(run.session.counts.disturbances == 0)
        // Nothing of ours is under way any more.
        run.advance(by: .milliseconds(1))
        run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        #expect(run.events.last == .interrupted(id, .disturbed(by: opcode)))
        #expect(run.deadline == run.now + .milliseconds(60) && run.session.counts.disturbances == 1)
    }

    @Test func aCommandThatNamesItsSetsConcernsThoseAlone() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 2, at: start)
        let first = run.started(try Self.plan([1, 1]))
        let second = run.started(try Self.plan([1, 2]))
        for opcode in [HCIOpcode.leSetExtendedAdvertisingEnable, .leRemoveAdvertisingSet] {
            run.perform(run.session.foreignCompletion(opcode, .success, about: [1], at: run.now))
        }
        #expect(run.events == [.started(first), .started(second)] && run.deadline == nil)
        run.controller.sets[0xE1]?.isEnabled = false
        run.perform(
            run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, about: [1, 0xE1], at: run.now))
        #expect(run.session.status(of: first) == .on && run.session.status(of: second) != .on)
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.session.status(of: second) == .on && run.controller.onAir.count == 2)
    }

    @Test func aResponseAfterItsTimeOutIsNoDisturbance() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let opcode = HCIOpcode.leSetExtendedAdvertisingEnable
        run.connect(0xE0)
        run.respond(.timeout, isExecuted: true)
        run.advance(by: .milliseconds(500))
        run.respondAll()
        #expect(run.events.last == .resumed(id))
        run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        #expect(run.events.last == .interrupted(id, .ownCommand(opcode)) && run.session.counts.disturbances == 0)
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.events.last == .resumed(id))
        // There is one response to each command.
        run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        #expect(run.events.last == .interrupted(id, .disturbed(by: opcode)) && run.session.counts.disturbances == 1)
    }

    /// The response and the event come by two sockets.
    @Test(arguments: [true, false]) func aCentralThatIsReportedBeforeTheResponseIsNoDisturbance(hasSets: Bool) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let handle: UInt8 = hasSets ? 0xE0 : 0
        for _ in 0..<5 {
            run.connect(handle)
            run.connect(handle)
            run.respond()
            #expect(run.events.last == .interrupted(id, .connected) && run.out != nil, "it is enabled again at once")
            run.controller.sets[handle]?.isEnabled = false
            run.respond()
            #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
        }
        #expect(run.session.counts.disturbances == 0 && run.session.counts.connections == 10)
    }

    @Test func pausesGrowAlsoWhereTheEndOfASetIsReportedBeforeTheResponse() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.end(0xE0, .advertisingTimeout)
        for pause in [500, 1_000, 2_000] {
            #expect(run.deadline == run.now + .milliseconds(pause))
            run.advance(by: .milliseconds(pause))
            run.end(0xE0, .advertisingTimeout)
            run.respond()
            #expect(run.out == nil && run.session.status(of: id) != .on)
        }
        #expect(run.session.counts.connections == 0 && run.session.counts.disturbances == 0)
    }

    @Test(.row("P29")) func aSetThatAnotherProgramHasRemovedIsSetUpAgain() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.controller.sets = [:]
        run.perform(run.session.foreignCompletion(.leClearAdvertisingSets, .success, at: run.now))
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.controller.onAir.isEmpty)
        run.advance(by: .milliseconds(120))
        run.respondAll()
        #expect(run.controller.onAir == [0xE0: [2, 1, 6]] && run.events.last == .resumed(id))
    }

    @Test(.row("P29")) func aDisturbanceWhileTheSetIsEnabledCounts() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.start(try Self.plan())
        run.respond(while: {
            $0 != LESetExtendedAdvertisingEnable(isEnabled: true, handles: [0xE0]).bytes
        })
        run.perform(
            run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: run.now))
        run.respond()
        #expect(
            run.events == [
                .started(id), .interrupted(id, .disturbed(by: .leSetExtendedAdvertisingEnable)),
            ])
        run.advance(by: .milliseconds(60))
        run.respond()
        #expect(run.events.last == .resumed(id))
    }

    @Test(.row("P11", "W40"), arguments: [HCIStatus.connectionLimitExceeded, .commandDisallowed])
    func withoutRoomForLinksASetWaitsForTheEndOfOne(refusal: HCIStatus) throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
        run.connect(0xE0)
        run.respond(.status(refusal))
        #expect(run.events.last == .interrupted(id, .noRoom(refusal)))
        #expect(run.session.status(of: id) == .paused(.noRoom(refusal)))
        var pauses: [Duration] = []
        for _ in 0..<8 {
            let due = try #require(run.deadline)
            pauses.append(due - run.now)
            run.advance(by: due - run.now)
            run.respond(while: {
                $0 != LESetExtendedAdvertisingEnable(isEnabled: true, handles: [0xE0]).bytes
            })
            run.respond(.status(refusal))
        }
        #expect(pauses.first == .milliseconds(500) && pauses.last == .seconds(30))
        run.perform(run.session.linkEnded(0x40, at: run.now))
        run.respondAll()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
    }

    /// A link that was up before the session began is not counted.
    @Test(.row("P11")) func theEndOfALinkMakesRoomAlsoWhereNoneIsKnown() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.controller.disableAll()
        run.perform(run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: run.now))
        run.advance(by: .milliseconds(60))
        run.respond(.status(.connectionLimitExceeded))
        let failure = HCICommandFailure(
            opcode: .leSetExtendedAdvertisingEnable, reason: .status(.connectionLimitExceeded))
        #expect(run.events.last == .interrupted(id, .failed(failure)) && run.out == nil)
        run.perform(run.session.linkEnded(0x40, at: run.now))
        run.respondAll()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
    }

    /// The controller would be sent the same command without end.
    @Test func aSetThatTheControllerEndsWithoutALinkIsEnabledAgainAfterPausesThatGrow() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let failure = HCICommandFailure(
            opcode: .leSetExtendedAdvertisingEnable, reason: .status(.advertisingTimeout))
        for pause in [500, 1_000, 2_000] {
            run.end(0xE0, .advertisingTimeout)
            #expect(run.events.last == .interrupted(id, .failed(failure)) && run.out == nil)
            #expect(run.deadline == run.now + .milliseconds(pause))
            run.advance(by: .milliseconds(pause))
            run.respond()
            #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
        }
        #expect(run.session.counts.connections == 0)
    }

    /// What else the controller can do may depend on that.
    @Test(.row("W66")) func aSetIsOnAirWhileNothingHasEndedOrPausedIt() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        var states: [[Bool]] = []
        func note() { states.append([run.session.isOnAir, run.session.isSurelyOnAir]) }
        note()
        let id = run.started(try Self.plan())
        note()
        // It is enabled again at once.
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
        run.connect(0xE0)
        note()
        run.respondAll()
        note()
        run.perform(run.session.pause(at: run.now))
        run.respondAll()
        note()
        run.perform(run.session.resume(at: run.now))
        run.respondAll()
        note()
        run.perform(run.session.adapterDown())
        note()
        run.perform(run.session.stop(id, at: run.now))
        note()
        let expected = [
            [false, false], [true, true], [true, false], [true, true], [false, false], [true, true], [false, false],
            [false, false],
        ]
        #expect(states == expected)
    }

    /// A controller may be busy for a moment longer than its link is there.
    @Test(.row("P11")) func afterTheEndOfALinkPausesAreShortAgain() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
        run.connect(0xE0)
        run.respond(.status(.commandDisallowed))
        for _ in 0..<8 {
            run.advance(by: try #require(run.deadline) - run.now)
            respondUpToEnable(run)
            run.respond(.status(.commandDisallowed))
        }
        run.perform(run.session.linkEnded(0x40, at: run.now))
        respondUpToEnable(run)
        run.respond(.status(.commandDisallowed))
        #expect(run.deadline == run.now + .milliseconds(500))
        run.advance(by: .milliseconds(500))
        run.respondAll()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
    }

    enum Interruption: CaseIterable {
        case connection
        case lostEvent
        case pause
        case disturbance
    }

    /// Failures before a long time on air make no later pause longer, whatever takes the set off air.
    @Test(arguments: Interruption.allCases)
    func afterALongTimeOnAirPausesAreShortAgain(interruption: Interruption) throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.connect(0xE0)
        run.respond(.timeout)
        for _ in 0..<3 {
            run.advance(by: try #require(run.deadline) - run.now)
            respondUpToEnable(run)
            run.respond(.timeout)
        }
        #expect(run.deadline == run.now + .seconds(4))
        run.advance(by: .seconds(4))
        run.respondAll()
        #expect(run.events.last == .resumed(id))
        run.advance(by: .seconds(10))
        switch interruption {
        case .connection: run.connect(0xE0)
        case .lostEvent:
            run.perform(run.session.received(try AdvertiseRun.link(isCentral: false), at: run.now))
            run.advance(by: .milliseconds(60))
        case .pause:
            run.perform(run.session.pause(at: run.now))
            run.respondAll()
            run.perform(run.session.resume(at: run.now))
        case .disturbance:
            run.perform(run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: run.now))
            #expect(run.deadline == run.now + .milliseconds(60))
            run.advance(by: .milliseconds(60))
        }
        respondUpToEnable(run)
        run.respond(.timeout)
        let pause = try #require(run.deadline) - run.now
        #expect(pause <= .seconds(1))
        run.advance(by: pause)
        run.respondAll()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
    }

    /// After each of them the set is on air again at once.
    @Test(arguments: [true, false]) func centralsAndOwnCommandsDoNotEndTheTimeOnAir(isCentral: Bool) throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let opcode = HCIOpcode.leSetExtendedAdvertisingEnable
        for pause in [60, 120] {
            run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
            #expect(run.deadline == run.now + .milliseconds(pause))
            run.advance(by: .milliseconds(pause))
            run.respondAll()
        }
        for _ in 0..<2 {
            run.advance(by: .seconds(6))
            if isCentral {
                run.connect(0xE0)
            } else {
                run.session.ownCommands(areOut: true, at: run.now)
                run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
                run.session.ownCommands(areOut: false, at: run.now)
                run.advance(by: .milliseconds(60))
            }
            run.respondAll()
            #expect(run.events.last == .resumed(id))
        }
        run.advance(by: .milliseconds(61))
        run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        #expect(run.events.last == .interrupted(id, .disturbed(by: opcode)))
        #expect(run.deadline == run.now + .milliseconds(60))
    }

    /// Confirms what comes before the command that puts the set on air.
    private func respondUpToEnable(_ run: AdvertiseRun) {
        run.respond(while: { $0 != LESetExtendedAdvertisingEnable(isEnabled: true, handles: [0xE0]).bytes })
    }

    @Test(.row("P29"), arguments: [true, false]) func advertisingContinuesAfterThePowerWasOff(hasSets: Bool) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.controller.sets = [:]
        run.perform(run.session.adapterDown())
        #expect(run.events.last == .interrupted(id, .adapterDown))
        #expect(run.session.nextDeadline == nil && run.out == nil)
        #expect(
            run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: run.now) == [])
        run.perform(run.session.adapterUp(at: run.now))
        run.respondAll()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
        #expect(run.session.adapterUp(at: run.now) == [])
    }

    /// A start that is under way fails when the adapter goes, at each of its commands.
    @Test func theAdapterMayGoAtEachStepOfAStart() throws {
        for step in 0..<7 {
            for isLost in [true, false] {
                let run = AdvertiseRun(hasSets: true, setLimit: 2, at: start)
                let id = run.start(try Self.plan(response: [2, 10, 4]))
                for _ in 0..<step { run.respond() }
                if isLost { run.respond(.adapterLost) } else { run.powerOff() }
                #expect(run.events == [.failed(id, .adapterDown)])
                #expect(run.out == nil && run.session.isResting && run.session.nextDeadline == nil)
                #expect(run.session.commandFinished(nil, at: run.now) == [])
            }
        }
    }

    // MARK: Pausing

    @Test(arguments: [true, false]) func pausesForAConnectAndResumes(hasSets: Bool) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.perform(run.session.pause(at: run.now))
        #expect(run.events == [.started(id)])
        run.respond()
        #expect(run.events == [.started(id), .interrupted(id, .requested), .paused])
        #expect(run.controller.onAir.isEmpty && run.session.nextDeadline == nil)
        // The kernel's own command is no disturbance now.
        let opcode: HCIOpcode = hasSets ? .leSetExtendedAdvertisingEnable : .leSetAdvertisingEnable
        run.perform(run.session.foreignCompletion(opcode, .success, at: run.now))
        #expect(run.out == nil && run.session.nextDeadline == nil)
        run.perform(run.session.resume(at: run.now))
        run.respond()
        #expect(run.events.last == .resumed(id) && run.controller.onAir.count == 1)
    }

    /// A pause at each step of a start is acknowledged once, with nothing on air; the start goes on afterwards.
    @Test func aPauseIsAcknowledgedOnceAtEachStep() throws {
        for step in 0..<8 {
            let run = AdvertiseRun(hasSets: true, setLimit: 2, at: start)
            let id = run.start(try Self.plan(response: [2, 10, 4]))
            for _ in 0..<step { run.respond() }
            run.perform(run.session.pause(at: run.now))
            run.respondAll()
            #expect(run.events.count { $0 == .paused } == 1 && run.controller.onAir.isEmpty)
            #expect(run.session.nextDeadline == nil)
            run.perform(run.session.resume(at: run.now))
            run.respondAll()
            #expect(run.events.count { $0 == .started(id) } == 1 && run.controller.onAir.count == 1)
        }
    }

    /// Some controllers do not advertise while they initiate.
    @Test func aStartThatIsRefusedDuringAConnectFollowsIt() throws {
        let run = AdvertiseRun(hasSets: false, at: start)
        run.session.ownCommands(areOut: true, at: run.now)
        let id = run.start(try Self.plan())
        for _ in 0..<5 {
            run.respond(while: { $0 != LESetAdvertisingEnable(isEnabled: true).bytes })
            run.respond(.status(.commandDisallowed))
            #expect(run.out == nil && run.events.isEmpty)
            run.advance(by: .seconds(10))
        }
        run.respond(while: { $0 != LESetAdvertisingEnable(isEnabled: true).bytes })
        run.respond(.status(.commandDisallowed))
        #expect(run.out == nil && run.events.isEmpty)
        run.session.ownCommands(areOut: false, at: run.now)
        run.perform(run.session.resume(at: run.now))
        run.respondAll()
        #expect(run.events == [.started(id)] && run.controller.onAir.count == 1)
    }

    @Test func aSetWhoseEndWasNotConfirmedDoesNotKeepAConnectWaiting() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        _ = run.started(try Self.plan())
        run.perform(run.session.pause(at: run.now))
        run.respond(.timeout)
        #expect(run.events.last == .paused)
        // It is disabled again after a pause.
        run.advance(by: .milliseconds(500))
        #expect(run.out?.opcode == .leSetExtendedAdvertisingEnable && run.out?.parameters.first == 0)
    }

    /// A set that waits after a disturbance may be on air, so that a connection attempt does not begin before its end.
    @Test func aSetThatWaitsIsDisabledForAConnect() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        _ = run.started(try Self.plan())
        run.perform(run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: run.now))
        #expect(run.out == nil)
        run.perform(run.session.pause(at: run.now))
        #expect(run.out?.bytes == LESetExtendedAdvertisingEnable(isEnabled: false, handles: [0xE0]).bytes)
        #expect(!run.events.contains(.paused))
        run.respond()
        #expect(run.events.last == .paused && run.controller.onAir.isEmpty)
    }

    // MARK: Stopping

    @Test(arguments: [true, false]) func aSetIsDisabledAndRemoved(hasSets: Bool) throws {
        let run = AdvertiseRun(hasSets: hasSets, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.perform(run.session.stop(id, at: run.now))
        // A second call is acknowledged by the same event.
        #expect(run.session.stop(id, at: run.now) == [])
        run.respondAll()
        #expect(run.events == [.started(id), .stopped(id, nil)])
        #expect(run.session.isResting && run.controller.onAir.isEmpty)
        #expect(!hasSets || run.controller.sets.isEmpty)
        #expect(run.session.stop(id, at: run.now) == [.notify(.stopped(id, nil))])
    }

    @Test func stopAtEachStepEndsTheStartToo() throws {
        for hasSets in [true, false] {
            for step in 0..<8 {
                let run = AdvertiseRun(hasSets: hasSets, setLimit: 2, at: start)
                let id = run.start(try Self.plan(response: [2, 10, 4]))
                for _ in 0..<step { run.respond() }
                let wasStarted = run.events == [.started(id)]
                run.perform(run.session.stop(id, at: run.now))
                run.respondAll()
                #expect(
                    run.events == [wasStarted ? .started(id) : .failed(id, .stopped), .stopped(id, nil)])
                #expect(run.controller.onAir.isEmpty && run.session.isResting)
                #expect(!hasSets || run.controller.sets.isEmpty)
            }
        }
    }

    @Test func anEndThatIsNotConfirmedIsReportedAndTriedUntilItIs() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        let lost = HCICommandFailure(opcode: .leSetExtendedAdvertisingEnable, reason: .timeout)
        run.perform(run.session.stop(id, at: run.now))
        run.respond(.timeout)
        #expect(run.events.last == .stopped(id, lost))
        for pause in [Duration.milliseconds(500), .seconds(1), .seconds(2)] {
            #expect(run.session.nextDeadline == run.now + pause)
            run.advance(by: pause)
            run.respond(.timeout)
        }
        run.advance(by: .seconds(4))
        run.respondAll()
        #expect(run.events.count == 2 && run.controller.sets.isEmpty && run.session.isResting)
    }

    /// Otherwise sets would be left at handles that the next program does not look at.
    @Test func aSetWhoseEndWasNotConfirmedMakesRoomForTheNextOne() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        run.controller.capacity = 1
        let first = run.started(try Self.plan([1, 1]))
        run.perform(run.session.stop(first, at: run.now))
        run.respond(.timeout)
        let second = run.start(try Self.plan([1, 2]))
        run.respondAll()
        #expect(run.events.last == .started(second) && run.controller.onAir == [0xE0: [1, 2]])
        #expect(run.session.usedHandles == [0xE0] && run.deadline == nil)
        #expect(run.session.stop(first, at: run.now) == [.notify(.stopped(first, nil))])
    }

    /// With one advertiser, a set that follows one whose end was not confirmed is not disabled in its place.
    @Test func theOneAdvertiserIsFreeAgainAtOnce() throws {
        let run = AdvertiseRun(hasSets: false, at: start)
        let first = run.started(try Self.plan())
        run.perform(run.session.stop(first, at: run.now))
        run.respond(.timeout)
        let second = run.start(try Self.plan([2, 1, 4]))
        run.respondAll()
        run.advance(by: .seconds(60))
        run.respondAll()
        #expect(run.events.last == .started(second) && run.controller.onAir == [0: [2, 1, 4]])
    }

    @Test func theOthersStayOnAir() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 3, at: start)
        let first = run.started(try Self.plan([1, 1]))
        let second = run.started(try Self.plan([1, 2], kind: .nonconnectable))
        let third = run.started(try Self.plan([1, 3]))
        #expect(run.controller.onAir == [0xE0: [1, 1], 0xE1: [1, 2], 0xE2: [1, 3]])
        run.perform(run.session.stop(second, at: run.now))
        run.respondAll()
        #expect(run.controller.onAir == [0xE0: [1, 1], 0xE2: [1, 3]])
        let fourth = run.started(try Self.plan([1, 4]))
        #expect(run.controller.onAir == [0xE0: [1, 1], 0xE1: [1, 4], 0xE2: [1, 3]])
        run.controller.disableAll()
        run.perform(
            run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, .success, at: run.now))
        run.advance(by: .milliseconds(60))
        run.respondAll()
        #expect(run.controller.onAir.count == 3)
        for id in [first, third, fourth] { #expect(run.session.status(of: id) == .on) }
    }

    @Test func aSetIsStoppedWhileTheAdapterIsDown() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        let id = run.started(try Self.plan())
        run.powerOff()
        run.perform(run.session.stop(id, at: run.now))
        #expect(run.events.last == .stopped(id, nil))
        run.powerOn()
        #expect(run.out == nil && run.session.isResting)
    }

    @Test func hostileResponsesAreTolerated() throws {
        let run = AdvertiseRun(hasSets: true, setLimit: 1, at: start)
        #expect(run.session.commandFinished(nil, at: start) == [])
        let id = run.started(try Self.plan())
        // Responses and events that nothing has led to.
        #expect(run.session.commandFinished(nil, at: start) == [])
        #expect(run.session.foreignCompletion(.leSetExtendedAdvertisingEnable, nil, at: start) == [])
        run.perform(run.session.received(try AdvertiseRun.terminated(0xEF), at: run.now))
        for _ in 0..<10 { run.perform(run.session.linkEnded(0x40, at: run.now)) }
        #expect(run.out == nil && run.session.status(of: id) == .on)
        // The same event again and again: one command is out at a time.
        for _ in 0..<100 {
            run.perform(run.session.received(try AdvertiseRun.terminated(0xE0), at: run.now))
        }
        run.respondAll(limit: 3)
        run.advance(by: .seconds(60))
        run.respondAll()
        #expect(run.session.status(of: id) == .on)
    }

    // MARK: Any order

    /// 2,000 orders of calls, events, responses and faults: one command is out at a time, each start and stop ends
    /// once, a pause is acknowledged once, and in the end what should be on air is, and nothing else.
    @Test func anyOrderEndsWell() throws {
        var random = SeededNumbers(seed: 11)
        var onAir = 0
        for round in 0..<2000 {
            let run = AdvertiseRun(
                hasSets: round % 2 == 0, setLimit: Int.random(in: 1...4, using: &random), at: start)
            if run.hasSets, round % 3 == 0 { run.controller.sets[0xE0] = .init(isEnabled: true) }
            var wanted: [AdvertiseSession.SetID] = []
            var stopped: Set<AdvertiseSession.SetID> = []
            var begun: Set<AdvertiseSession.SetID> = []
            var pauses = 0
            var isPaused = false
            wanted.append(run.start(try Self.plan([1, 0])))
            begun.formUnion(wanted)
            for _ in 0..<Int.random(in: 5...60, using: &random) {
                switch Int.random(in: 0..<20, using: &random) {
                case 0, 1:
                    guard run.isUp else { break }
                    let id = run.start(try Self.plan([1, UInt8(truncatingIfNeeded: begun.count)]))
                    wanted.append(id)
                    begun.insert(id)
                case 2:
                    guard let id = wanted.randomElement(using: &random) else { break }
                    run.perform(run.session.stop(id, at: run.now))
                    stopped.insert(id)
                case 3:
                    guard run.isUp else { break }
                    run.controller.disableAll()
                    run.perform(
                        run.session.foreignCompletion(
                            run.hasSets ? .leSetExtendedAdvertisingEnable : .leSetAdvertisingEnable, .success,
                            at: run.now))
                case 4:
                    guard run.isUp else { break }
                    run.controller.sets = run.hasSets ? [:] : [0: .init(data: [9])]
                    run.perform(
                        run.session.foreignCompletion(
                            run.hasSets ? .leClearAdvertisingSets : .leSetAdvertisingData, .success, at: run.now))
                case 5, 6:
                    guard let handle = run.controller.onAir.keys.sorted().randomElement(using: &random) else {
                        break
                    }
                    if run.hasSets || handle == 0 { run.connect(handle) }
                case 7:
                    run.perform(run.session.linkEnded(0x40, at: run.now))
                case 8:
                    run.isUp ? run.powerOff() : run.powerOn()
                case 9:
                    if isPaused {
                        run.perform(run.session.resume(at: run.now))
                    } else {
                        pauses += 1
                        run.perform(run.session.pause(at: run.now))
                    }
                    isPaused.toggle()
                case 10:
                    run.advance(by: .milliseconds(Int64.random(in: 1...2000, using: &random)))
                case 11:
                    run.respond(.timeout, isExecuted: Bool.random(using: &random))
                case 12:
                    // One advertiser refuses to be disabled only if it is off.
                    let isEnd = run.out?.bytes == LESetAdvertisingEnable(isEnabled: false).bytes
                    let statuses: [HCIStatus] =
                        [.connectionLimitExceeded, .unspecified] + (isEnd ? [] : [.commandDisallowed])
                    run.respond(.status(statuses.randomElement(using: &random) ?? .unspecified))
                default:
                    run.respond()
                }
                #expect(!run.hasBrokenTheRule)
            }
            if isPaused { run.perform(run.session.resume(at: run.now)) }
            if !run.isUp { run.powerOn() }
            run.settle()
            // Each ended once.
            for id in begun {
                let endings = run.events.count {
                    if case .failed(id, _) = $0 { true } else { $0 == .started(id) }
                }
                #expect(endings == 1, "round \(round)")
            }
            for id in stopped {
                #expect(
                    run.events.contains { if case .stopped(id, _) = $0 { true } else { false } },
                    "round \(round)")
            }
            #expect(run.events.count { $0 == .paused } == pauses, "round \(round)")
            let running = begun.filter { run.session.status(of: $0) == .on }
            let failed = begun.filter { id in
                run.events.contains { if case .failed(id, _) = $0 { true } else { false } }
            }
            #expect(running == begun.subtracting(stopped).subtracting(failed), "round \(round)")
            #expect(run.controller.onAir.count == running.count, "round \(round)")
            onAir += running.count
            // Everything is stopped: nothing is left.
            for id in running { run.perform(run.session.stop(id, at: run.now)) }
            run.settle()
            #expect(run.controller.onAir.isEmpty && run.session.isResting, "round \(round)")
        }
        #expect(onAir > 500)
    }
}
