import BLECore
import BLELinux
import BareBLETestKit
import TestSupport
import Testing

@testable import BareBLE

/// Advertisements that the kernel's management interface keeps on air.
@Suite(.timeLimit(.minutes(5))) struct ManagedAdvertisingTests {
    private static func managed(_ name: String = "Bench") -> Advertisement {
        var advertisement = Advertisement([.flags([.generalDiscoverable, .classicNotSupported]), .localName(name)])
        advertisement.backEnd = .management
        return advertisement
    }

    /// Sends packets as another program does, which then ends.
    private static func send(_ packets: [[UInt8]], _ radio: VirtualRadio, _ time: VirtualTime) async throws {
        var socket = LinkSocket(adopting: try await radio.openManagement().get())
        for packet in packets {
            let outcome = socket.send(packet)
            #expect(outcome == .sent)
        }
        await time.settle()
        while socket.receivePacket() != nil {}
    }

    /// Adds an instance as another program does, which is then killed.
    private static func leave(_ number: UInt8, _ radio: VirtualRadio, _ time: VirtualTime) async throws {
        let parameters: [UInt8] = [number, 1, 0x40, 0, 0, 0, 0, 0, 0, 0xA0, 0, 0, 0, 0xA0, 0, 0, 0, 0x7F]
        try await send(
            [[0x54, 0, 0, 0, 18, 0] + parameters, [0x55, 0, 0, 0, 6, 0, number, 3, 0, 2, 1, 6]], radio, time)
    }

    @Test func theKernelAdvertisesUntilItIsStopped() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            let heard = try #require(await radio.advertisements().first)
            #expect(heard.set == 4 && heard.isConnectable && !heard.isExtended)
            #expect(heard.interval == .milliseconds(100) && heard.data.localName?.text == "Bench")
            #expect(await lease.state == .on)
            await lease.stop()
            #expect(await radio.advertisements().isEmpty)
            #expect(await radio.instances().isEmpty)
            #expect(await lease.state == .stopped)
            let second = try await local.advertise(Self.managed())
            await local.stop()
            #expect(await radio.instances().isEmpty)
            #expect(await second.state == .stopped)
        }
    }

    @Test(arguments: [Advertisement.BackEnd.controller, .management])
    func everyStopOfAnAdvertisementReturnsWhenItIsOffAir(_ backEnd: Advertisement.BackEnd) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            var advertisement = Self.managed()
            advertisement.backEnd = backEnd
            let lease = try await local.advertise(advertisement)
            let left = await withTaskGroup(of: Int.self, returning: [Int].self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        await lease.stop()
                        return await radio.advertisements().count
                    }
                }
                var counts: [Int] = []
                for await count in group { counts.append(count) }
                return counts
            }
            #expect(left == [0, 0, 0])
            await lease.stop()
            #expect(await lease.state == .stopped)
            await local.stop()
        }
    }

    @Test func theOtherBackEndSendsNothingToTheManagementInterface() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            var advertisement = Advertisement([.localName("Bench")])
            for backEnd in [Advertisement.BackEnd.automatic, .controller] {
                advertisement.backEnd = backEnd
                let lease = try await local.advertise(advertisement)
                #expect(await radio.advertisements().map(\.set) == [0xE0])
                await lease.stop()
            }
            #expect(await radio.managementCommands == 0)
            await local.stop()
        }
    }

    @Test func itNeedsOneCapabilityAndNamesIt() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPermissions(.commands)
            let denied = LocalPeripheral(on: Central(radio: radio))
            let error = await #expect(throws: BLEError.self) { _ = try await denied.advertise(Self.managed()) }
            #expect(error?.code == .notPermitted && error?.hint?.contains("cap_net_admin") == true)
            await denied.stop()
            await radio.setPermissions(.administration)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            #expect(await radio.advertisements().count == 1)
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            #expect(await radio.advertisements().count == 1, "its connection is noticed without CAP_NET_RAW")
            await lease.stop()
            await local.stop()
        }
    }

    @Test(.row("P29"), arguments: [true, false]) func centralsConnectOneAfterTheOther(hasSets: Bool) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(hasSets ? .bluetooth5 : .bluetooth4)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            for count in 1...3 {
                let phone = await radio.addCentral()
                try await phone.connect()
                await time.settle()
                #expect(await local.centrals.count == count)
                #expect(await radio.advertisements().count == 1)
                #expect(await lease.state == .on)
            }
            await lease.stop()
            await local.stop()
        }
    }

    /// What takes the instance off air, or removes it.
    enum Disturbance: CaseIterable, Sendable {
        case otherProgram, allOfThem, ownConnect, reset, powerCycle, unplugging
    }

    @Test(.row("P29"), arguments: Disturbance.allCases) func itIsOnAirAgain(after disturbance: Disturbance) async throws
    {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            let lease = try await local.advertise(Self.managed())
            var states = lease.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            let disturbing = time.task { try await Self.disturb(radio, central, time, by: disturbance) }
            guard case .paused? = try await states.next() else {
                Issue.record("it was not taken off air")
                return
            }
            while let state = try await states.next(), state != .on {}
            let name = try await disturbing.value
            try await time.clock.sleep(for: .seconds(5))
            #expect(await lease.state == .on)
            #expect(await radio.advertisements(of: name).count == 1)
            #expect(await radio.instances(name) == [4])
            await lease.stop()
            #expect(await radio.instances(name).isEmpty)
            await local.stop()
        }
    }

    /// - Returns: The adapter's name at the end.
    private static func disturb(
        _ radio: VirtualRadio, _ central: Central, _ time: VirtualTime, by disturbance: Disturbance
    ) async throws -> String {
        switch disturbance {
        case .otherProgram: try await send([[0x3F, 0, 0, 0, 1, 0, 4]], radio, time)
        case .allOfThem: try await send([[0x3F, 0, 0, 0, 1, 0, 0]], radio, time)
        case .ownConnect:
            let id = try #require(await radio.id(of: await radio.add(.heartRate)))
            let belt = try await central.connect(id)
            await belt.disconnect()
        case .reset: await radio.reset()
        case .powerCycle:
            await radio.powerOff()
            try await time.clock.sleep(for: .seconds(5))
            await radio.powerOn()
        case .unplugging:
            await radio.unplug()
            try await time.clock.sleep(for: .seconds(5))
            await radio.plugIn(as: "hci3", isUp: true)
            return "hci3"
        }
        return "hci0"
    }

    @Test func whatIsStoppedWhileTheAdapterIsOffDoesNotComeBack() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            await radio.powerOff()
            try await time.clock.sleep(for: .seconds(5))
            #expect(await lease.state == .paused("the adapter is off"))
            await lease.stop()
            #expect(await radio.instances().isEmpty)
            await radio.powerOn()
            try await time.clock.sleep(for: .seconds(5))
            #expect(await radio.advertisements().isEmpty)
            await local.stop()
        }
    }

    /// As scans, it has two seconds in twelve. Otherwise no central would find it while a device is away.
    @Test(arguments: [Advertisement.BackEnd.controller, .management])
    func anAdvertisementIsOnAirBetweenTheTurnsOfAConnectThatWaits(_ backEnd: Advertisement.BackEnd) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            var advertisement = Self.managed()
            advertisement.backEnd = backEnd
            let lease = try await local.advertise(advertisement)
            var states = lease.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0009), type: .random)
            let connecting = time.task { _ = try await central.connect(absent, ConnectOptions(timeout: nil)) }
            let paused = Advertisement.State.paused("this program is connecting to a peer")
            #expect(try await states.next() == paused)
            for _ in 0..<2 {
                #expect(try await states.next() == .on)
                let begin = time.now
                #expect(try await states.next() == paused)
                #expect(time.now - begin >= .milliseconds(1_900))
            }
            connecting.cancel()
            await #expect(throws: (any Error).self) { try await connecting.value }
            await lease.stop()
            await local.stop()
        }
    }

    /// Otherwise each of the connects would have its pause in the turn of the other.
    @Test(arguments: [Advertisement.BackEnd.controller, .management])
    func anAdvertisementIsOnAirBetweenTheTurnsOfSeveralConnects(_ backEnd: Advertisement.BackEnd) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            var advertisement = Self.managed()
            advertisement.backEnd = backEnd
            let lease = try await local.advertise(advertisement)
            let connects = [UInt64(0xC000_0000_0009), 0xC000_0000_000A].map { address in
                let absent = PeerID(address: BluetoothAddress(rawValue: address), type: .random)
                return time.task { _ = try await central.connect(absent, ConnectOptions(timeout: nil)) }
            }
            // Four pauses of 2 s, after the first turn of each.
            var samplesOnAir = 0
            for _ in 0..<120 {
                try await time.clock.sleep(for: .milliseconds(500))
                if await lease.state == .on { samplesOnAir += 1 }
            }
            #expect(samplesOnAir >= 8)
            for connecting in connects {
                connecting.cancel()
                await #expect(throws: (any Error).self) { try await connecting.value }
            }
            await lease.stop()
            await local.stop()
        }
    }

    /// The kernel disables all sets when it removes its last instance, for example.
    @Test func whatTheKernelDoesForAnInstanceOfThisProgramIsNoDisturbance() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise([.localName("Set")])
            var states = lease.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            // The commands for this one name its set alone.
            let instance = try await local.advertise(Self.managed())
            await instance.stop()
            // Add Extended Advertising Data has no response.
            await radio.ignoreManagementPacket(
                [0x55, 0, 0, 0, 13, 0, 4, 10, 0, 2, 1, 6, 6, 9] + Array("Bench".utf8))
            let begin = time.now
            let adding = time.task { try await local.advertise(Self.managed()) }
            try await time.clock.sleep(for: .seconds(1))
            let disable = HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: false, handles: []))
            await radio.foreign(disable)
            let reason = "the kernel has taken it off air for a command of this program"
            #expect(try await states.next() == .paused(reason))
            #expect(try await states.next() == .on)
            // The command has timed out after 6 s, and the start waits for 500 ms before it sends another one.
            try await time.clock.sleep(for: .milliseconds(6_250) - (time.now - begin))
            await radio.foreign(disable)
            #expect(try await states.next() == .paused("another program has taken it off air"))
            #expect(try await states.next() == .on)
            adding.cancel()
            await #expect(throws: error(.cancelled)) { _ = try await adding.value }
            await radio.ignoreManagementPacket(nil)
            try await time.clock.sleep(for: .seconds(10))
            await lease.stop()
            #expect(try await states.next() == .stopped)
            await local.stop()
        }
    }

    @Test func aControllerWithOneAdvertiserHasSeveralInstancesAndOneBackEnd() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(.bluetooth4)
            let local = LocalPeripheral(on: Central(radio: radio))
            let raw = try await local.advertise([.localName("Raw")])
            await #expect(throws: error(.busy)) { _ = try await local.advertise(Self.managed()) }
            await raw.stop()
            var leases: [Advertisement.Lease] = []
            for number in 1...5 { leases.append(try await local.advertise(Self.managed("Bench \(number)"))) }
            #expect(await radio.instances().sorted() == [1, 2, 3, 4, 5])
            await #expect(throws: error(.busy)) { _ = try await local.advertise(Self.managed()) }
            await #expect(throws: error(.busy)) { _ = try await local.advertise([.localName("Raw")]) }
            for lease in leases { await lease.stop() }
            #expect(await radio.advertisements().isEmpty)
            let again = try await local.advertise([.localName("Raw")])
            await again.stop()
            await local.stop()
        }
    }

    @Test func whatCannotBeAdvertisedIsATypedError() async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(.bluetooth4)
            let local = LocalPeripheral(on: Central(radio: radio))
            await #expect(throws: error(.invalidArgument)) {
                _ = try await local.advertise(Self.managed(String(repeating: "n", count: 60)))
            }
            var extended = Advertisement([.localName("Far")], kind: .nonconnectable, usesExtendedPDUs: true)
            extended.backEnd = .management
            let far = extended
            await #expect(throws: error(.notSupported)) { _ = try await local.advertise(far) }
            await radio.powerOff()
            await #expect(throws: error(.adapterDown)) { _ = try await local.advertise(Self.managed()) }
            await local.stop()
        }
    }

    /// On an adapter without BR/EDR the kernel adds Flags to data that have none. Old ones do not check that they fit.
    @Test func dataWithoutFlagsLeaveRoomForThem() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            func beacon(_ count: Int, _ backEnd: Advertisement.BackEnd, _ more: AdvertisementData.Element...)
                -> Advertisement
            {
                var advertisement = Advertisement(
                    AdvertisementData(more + [.localName(String(repeating: "n", count: count))]), kind: .nonconnectable)
                advertisement.backEnd = backEnd
                return advertisement
            }
            let long = beacon(27, .management)
            await #expect(throws: error(.invalidArgument)) { _ = try await local.advertise(long) }
            for fitting in [
                beacon(26, .management), beacon(26, .management, .flags(.classicNotSupported)), beacon(29, .controller),
            ] {
                let lease = try await local.advertise(fitting)
                await lease.stop()
            }
            await local.stop()
        }
    }

    @Test func aRefusalBesideLinksIsBusy() {
        for status: ManagementStatus in [.rejected, .invalidParameters, .busy, .noResources] {
            let failure = InstanceSession.StartFailure.command(
                ManagementCommandFailure(code: .addExtendedAdvertisingParameters, reason: .status(status)))
            let beside = BLEError(failure, adapter: "hci0", links: 2, during: "advertise")
            #expect(beside.code == .busy && beside.reason.contains("with 2 links up"))
            let alone = BLEError(failure, adapter: "hci0", links: 0, during: "advertise")
            #expect((alone.code == .busy) == (status == .noResources))
        }
    }

    @Test(.row("P33"), arguments: [false, true]) func whatAKilledProgramHasLeftIsRemovedUnlessBluetoothdRuns(
        runsBluetoothd: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.runBluetoothd(runsBluetoothd)
            for number in [1, 3] as [UInt8] { try await Self.leave(number, radio, time) }
            #expect(await radio.instances() == [1, 3])
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            #expect(await radio.instances() == (runsBluetoothd ? [1, 3, 4] : [1, 4]))
            await lease.stop()
            await local.stop()
        }
    }

    @Test func aStartThatIsCancelledLeavesNothing() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            // Add Extended Advertising Data has no response.
            await radio.ignoreManagementPacket(
                [0x55, 0, 0, 0, 13, 0, 4, 10, 0, 2, 1, 6, 6, 9] + Array("Bench".utf8))
            let local = LocalPeripheral(on: Central(radio: radio))
            let advertising = time.task { try await local.advertise(Self.managed()) }
            try await time.clock.sleep(for: .seconds(1))
            #expect(await radio.instances() == [4])
            advertising.cancel()
            await #expect(throws: error(.cancelled)) { _ = try await advertising.value }
            await radio.ignoreManagementPacket(nil)
            try await time.clock.sleep(for: .seconds(10))
            #expect(await radio.instances().isEmpty)
            #expect(await radio.advertisements().isEmpty)
            await local.stop()
        }
    }

    @Test func aSilentKernelIsATimeout() async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.ignoreManagementPacket([0x3D, 0, 0, 0, 0, 0])
            let local = LocalPeripheral(on: Central(radio: radio))
            await #expect(throws: error(.timedOut)) { _ = try await local.advertise(Self.managed()) }
            await local.stop()
        }
    }

    @Test func aLostSocketThatCannotBeOpenedIsTriedAgain() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            await radio.refuseManagement(true)
            await radio.closeManagement()
            try await time.clock.sleep(for: .seconds(5))
            await radio.refuseManagement(false)
            try await time.clock.sleep(for: .seconds(60))
            // What other programs do is noticed again.
            try await Self.send([[0x3F, 0, 0, 0, 1, 0, 4]], radio, time)
            try await time.clock.sleep(for: .seconds(5))
            #expect(await radio.instances() == [4])
            #expect(await lease.state == .on)
            await lease.stop()
            await local.stop()
        }
    }

    @Test func aLostSocketIsOpenedAgainAndTheInstanceStays() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let local = LocalPeripheral(on: Central(radio: radio))
            let lease = try await local.advertise(Self.managed())
            await radio.closeManagement()
            try await time.clock.sleep(for: .seconds(2))
            #expect(await radio.instances() == [4])
            #expect(await radio.advertisements().count == 1)
            #expect(await lease.state == .on)
            await lease.stop()
            #expect(await radio.instances().isEmpty)
            await local.stop()
        }
    }
}
