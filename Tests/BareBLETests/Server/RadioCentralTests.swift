import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

/// Centrals on a virtual radio that are hostile, broken or unlucky.
@Suite(.timeLimit(.minutes(5))) struct RadioCentralTests {
    /// Whatever the peripheral waits for while it begins, nothing is left on the air or at the adapter: the controller
    /// is slow to respond to LE Read Local Supported Features, or LE Set Extended Advertising Parameters.
    @Test(arguments: [UInt16(0x2003), 0x2036]) func whatIsStoppedWhileItBeginsStaysStopped(slow opcode: UInt16)
        async throws
    {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var personality = VirtualPersonality.bluetooth5
            personality.responses[opcode] = .late(.milliseconds(500))
            await radio.setPersonality(personality)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: .fixed([1]))]))
            let advertising = time.task { try await local.advertise([.localName("Late")]) }
            try await time.clock.sleep(for: .milliseconds(100))
            await local.stop()
            await #expect(throws: error(.invalidArgument)) { _ = try await advertising.value }
            try await time.clock.sleep(for: .seconds(1))
            let phone = await radio.addCentral()
            await #expect(throws: VirtualCentralError.self) { try await phone.connect() }
            #expect(await local.centrals.isEmpty)
        }
    }

    @Test(.row("P29")) func theStatesOfAnAdvertisementAreReported() async throws {
        try await RadioBench.run { bench in
            var states = bench.advertising.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            // Without a handle it is for all sets.
            let disable = LESetExtendedAdvertisingEnable(isEnabled: false, handles: [])
            await bench.radio.foreign(HCICommandPacket(disable))
            #expect(try await states.next() == .paused("another program has taken it off air"))
            #expect(try await states.next() == .on)
            _ = try await bench.connect()
            #expect(try await states.next() == .paused("a central has just connected"))
            #expect(try await states.next() == .on)
            await bench.advertising.stop()
            var later = bench.advertising.states.makeAsyncIterator()
            #expect(try await states.next() == .stopped)
            #expect(try await later.next() == .stopped)
            #expect(try await states.next() == nil)
            #expect(try await later.next() == nil)
        }
    }

    /// What takes an advertisement off air.
    enum Disturbance: CaseIterable, Sendable {
        case central, ownConnect, kernelConnect, otherProgram, reset, powerCycle

        /// The time from its end to the advertisement. An adapter that is off is looked at every two seconds.
        var limit: Duration { self == .powerCycle ? .milliseconds(2_100) : .milliseconds(100) }
    }

    @Test(.row("P29"), arguments: Disturbance.allCases) func itIsOnAirAgainSoon(
        after disturbance: Disturbance
    ) async throws {
        try await RadioBench.run { bench in
            var states = bench.advertising.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            let disturbing = bench.time.task { try await Self.disturb(bench, by: disturbance) }
            guard case .paused? = try await states.next() else {
                Issue.record("it was not taken off air")
                return
            }
            let interruption = bench.time.now
            while let state = try await states.next(), state != .on {}
            let back = bench.time.now
            let end = max(interruption, try await disturbing.value)
            #expect(back <= end + disturbance.limit)
            #expect(await bench.radio.advertisements().count == 1)
        }
    }

    /// - Returns: The time of its end.
    private static func disturb(_ bench: RadioBench, by disturbance: Disturbance) async throws -> BootInstant {
        switch disturbance {
        case .central:
            _ = try await bench.connect()
        case .ownConnect:
            return try await connectAsCentral(bench, bench.central)
        case .kernelConnect:
            // Another program, without the capability for commands.
            let other = Central(radio: bench.radio)
            await bench.radio.setPermissions([])
            try await other.ready()
            await bench.radio.setPermissions([.commands, .administration])
            return try await connectAsCentral(bench, other)
        case .otherProgram:
            let disable = LESetExtendedAdvertisingEnable(isEnabled: false, handles: [])
            await bench.radio.foreign(HCICommandPacket(disable))
        case .reset:
            await bench.radio.reset()
        case .powerCycle:
            await bench.radio.powerOff()
            try await bench.sleep(.seconds(5))
            await bench.radio.powerOn()
        }
        return bench.time.now
    }

    /// The kernel disables all sets before it initiates, those too that begin after the connect.
    @Test func whatTheKernelDoesForAConnectOfThisProgramIsNoDisturbance() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let local = LocalPeripheral(on: central)
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0009), type: .random)
            let connecting = time.task { _ = try await central.connect(absent, ConnectOptions(timeout: nil)) }
            try await time.clock.sleep(for: .seconds(1))
            let lease = try await local.advertise([.localName("Late")])
            var states = lease.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            let disable = HCICommandPacket(LESetExtendedAdvertisingEnable(isEnabled: false, handles: []))
            await radio.foreign(disable)
            let reason = "the kernel has taken it off air for a command of this program"
            #expect(try await states.next() == .paused(reason))
            #expect(try await states.next() == .on)
            connecting.cancel()
            await #expect(throws: (any Error).self) { try await connecting.value }
            try await time.clock.sleep(for: .seconds(1))
            await radio.foreign(disable)
            #expect(try await states.next() == .paused("another program has taken it off air"))
            #expect(try await states.next() == .on)
            await lease.stop()
            await local.stop()
        }
    }

    /// The kernel drops events of links where reports come faster than they are read.
    @Test func itIsOnAirAgainAfterACentralWhoseEventsWereDropped() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var personality = VirtualPersonality.bluetooth5
            // Each event that is no response.
            personality.losesEvery = 1
            await radio.setPersonality(personality)
            let local = LocalPeripheral(on: Central(radio: radio))
            try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: .fixed([1]))]))
            let lease = try await local.advertise([.localName("Bench")])
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            #expect(await local.centrals.count == 1)
            try await time.clock.sleep(for: .milliseconds(100))
            #expect(await radio.advertisements().count == 1)
            await phone.disconnect()
            await lease.stop()
            await local.stop()
        }
    }

    /// How an adapter goes down while an advertisement is on air.
    enum Outage: CaseIterable, Sendable {
        case off, blocked, unplugged
    }

    /// The kernel announces that the adapter is on again, so that nothing waits for the next look at it.
    @Test(.row("P29"), arguments: Outage.allCases) func itIsOnAirAgainAtOnceWhereTheKernelAnnouncesPower(
        after outage: Outage
    ) async throws {
        try await RadioBench.run(announcesChanges: true) { bench in
            var states = bench.advertising.states.makeAsyncIterator()
            #expect(try await states.next() == .on)
            switch outage {
            case .off: await bench.radio.powerOff()
            case .blocked:
                await bench.radio.block()
                await bench.radio.powerOff()
            case .unplugged: await bench.radio.unplug()
            }
            await bench.time.settle()
            guard case .paused? = try await states.next() else {
                Issue.record("it was not taken off air")
                return
            }
            // In between two looks at the adapter.
            try await bench.sleep(.milliseconds(4_900))
            #expect(await bench.radio.advertisements().isEmpty)
            switch outage {
            case .off: await bench.radio.powerOn()
            case .blocked:
                await bench.radio.block(false)
                await bench.radio.powerOn()
            case .unplugged: await bench.radio.plugIn(isUp: true)
            }
            let power = bench.time.now
            while let state = try await states.next(), state != .on {}
            #expect(bench.time.now <= power + .milliseconds(100))
            #expect(await bench.radio.advertisements().count == 1)
        }
    }

    private static func connectAsCentral(_ bench: RadioBench, _ central: Central) async throws -> BootInstant {
        let id = try #require(await bench.radio.id(of: await bench.radio.add(.heartRate)))
        let belt = try await central.connect(id)
        let end = bench.time.now
        await belt.disconnect()
        return end
    }

    @Test func servingNeedsNoCapabilityAndAdvertisingNamesTheOneThatItNeeds() async throws {
        try await RadioBench.run { bench in
            await bench.radio.setPermissions([])
            let local = LocalPeripheral(on: Central(radio: bench.radio))
            try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: .fixed([1]))]))
            let error = await #expect(throws: BLEError.self) { _ = try await local.advertise([.localName("Other")]) }
            #expect(error?.code == .notPermitted && error?.hint?.contains("cap_net_raw") == true)
            try await local.acceptCentrals()
            // The bench's own advertisement is heard, and its links go to the program that has begun last.
            await bench.radio.setPermissions([.commands, .administration])
            let phone = try await bench.connect()
            #expect(try await phone.read(0xFFF1) == [1])
            #expect(await bench.local.centrals.isEmpty)
            await local.stop()
        }
    }

    @Test func nothingIsOnAirAfterStop() async throws {
        try await RadioBench.run { bench in
            let beacon = Advertisement([.localName("Beacon")], kind: .nonconnectable)
            let second = try await bench.local.advertise(beacon)
            #expect(await bench.radio.advertisements().count == 2)
            await bench.local.stop()
            #expect(await bench.radio.advertisements().isEmpty)
            #expect(await bench.advertising.state == .stopped)
            #expect(await second.state == .stopped)
        }
    }

    /// Each disconnect waits 2 s for the response.
    @Test func theEndOfAllLinksWaitsOnceForASilentController() async throws {
        try await RadioBench.run { bench in
            for _ in 0..<5 { _ = try await bench.connect() }
            #expect(await bench.local.centrals.count == 5)
            await bench.advertising.stop()
            await bench.radio.silence(true)
            let begin = bench.loop.now()
            await bench.local.stop()
            #expect(bench.loop.now() - begin < .seconds(4))
            #expect(await bench.local.centrals.isEmpty)
            await bench.radio.silence(false)
        }
    }

    /// Links go to the program that has begun to listen last.
    @Test func whatIsSuspendedWhileItBeginsAcceptsNoLinks() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var personality = VirtualPersonality.bluetooth5
            // LE Read Local Supported Features.
            personality.responses[0x2003] = .late(.milliseconds(500))
            await radio.setPersonality(personality)
            let other = LocalPeripheral(on: Central(radio: radio))
            let advertising = try await other.advertise([.localName("Other")])
            let nobody = ServiceEnvironment(variables: ["NOTIFY_SOCKET": "/nobody"], processID: 1)
            let store = DescriptorStore(try #require(ServiceNotifier(nobody)))
            let local = LocalPeripheral(on: Central(radio: radio))
            let accepting = time.task { try await local.acceptCentrals() }
            try await time.clock.sleep(for: .milliseconds(100))
            #expect(await local.suspend(handingOverTo: store).isEmpty)
            await #expect(throws: error(.invalidArgument)) { try await accepting.value }
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            #expect(await other.centrals.count == 1)
            await advertising.stop()
            await other.stop()
        }
    }

    @Test func listeningThatFailsAdvisesAboutTheController() async {
        await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio) { system in
                system.listen = { _ throws(SystemCallError) in throw SystemCallError(call: "bind", errno: EIO) }
            }
            let local = LocalPeripheral(on: central)
            let error = await #expect(throws: BLEError.self) { try await local.acceptCentrals() }
            #expect(error?.code == .system && error?.errorNumber == EIO)
            #expect(error?.hint?.contains("controller") == true)
            expectNoFile(error?.hint)
            await local.stop()
        }
    }

    @Test func aTaskThatWasCancelledBeforeDoesNotAdvertise() async throws {
        try await RadioBench.run { bench in
            let second = bench.time.task {
                try? await bench.sleep(.seconds(60))
                return try await bench.local.advertise([.localName("Second")])
            }
            await bench.time.settle()
            second.cancel()
            await #expect(throws: error(.cancelled)) { _ = try await second.value }
            #expect(await bench.radio.advertisements().count == 1)
        }
    }

    @Test func aBurstOfCentralsDoesNotExceedTheirNumber() async throws {
        try await ServerBench.run(maximumCentrals: 2) { bench in
            let sockets = try (0..<6).map { _ in try LinkSocket.pair() }
            try await bench.local.attach(all: sockets.map { $0.0 })
            await bench.time.settle()
            #expect(await bench.local.centrals.count == 2)
            for (_, theirs) in sockets { _ = LinkSocket(adopting: theirs) }
        }
    }

    @Test(.row("P08")) func aSilentCentralStaysAndGivesWayToANewcomer() async throws {
        try await RadioBench.run(maximumCentrals: 2) { bench in
            let silent = try await bench.connect()
            let active = try await bench.connect()
            try await bench.sleep(.seconds(86_400))
            #expect(await bench.local.centrals.count == 2, "the protocol has no limit for silence")
            _ = try await active.read(0xFFF1)
            let newcomer = try await bench.connect()
            #expect(await silent.disconnected() == .remoteUserTerminated)
            #expect(try await active.read(0xFFF1) == [])
            #expect(try await newcomer.read(0xFFF1) == [])
        }
    }

    @Test(.row("P09")) func connectingAndLeavingOverAndOverLeavesNothing() async throws {
        try await RadioBench.run { bench in
            let central = await bench.radio.addCentral()
            var watched: Int?
            for round in 0..<1_000 {
                try await central.connect()
                #expect(try await central.read(0xFFF1) == [])
                if round % 3 == 0 { try await central.subscribe(to: 0xFFF1) }
                await central.disconnect()
                try await bench.sleep(.milliseconds(10))
                if round == 10 { watched = bench.loop.watchedCount }
            }
            try await bench.sleep(.seconds(1))
            #expect(bench.loop.watchedCount == watched)
            #expect(await bench.local.centrals.isEmpty)
            #expect(await bench.local.outstanding == 0)
            #expect(await bench.radio.advertisements().count == 1, "it is on air again after each")
        }
    }

    @Test(.row("P11", "W66")) func withoutRoomForALinkAdvertisingWaitsForOneToEnd() async throws {
        try await RadioBench.run { bench in
            await bench.radio.limitLinks(to: 2)
            let first = try await bench.connect()
            _ = try await bench.connect()
            try await bench.sleep(.seconds(2))
            #expect(await bench.radio.advertisements().isEmpty)
            #expect(await bench.advertising.state == .paused("the controller has no room for another link"))
            await first.disconnect()
            try await bench.sleep(.milliseconds(100))
            #expect(await bench.advertising.state == .on)
            #expect(await bench.radio.advertisements().count == 1)
            _ = try await bench.connect()
        }
    }

    @Test(.row("P12")) func aSubscriberThatVanishesEndsItsSubscriptionOnce() async throws {
        try await RadioBench.run { bench in
            let (vanishing, other) = (try await bench.connect(), try await bench.connect())
            try await vanishing.subscribe(to: 0xFFF1)
            try await other.subscribe(to: 0xFFF1)
            var events = bench.local.events.makeAsyncIterator()
            await bench.radio.move(vanishing, to: .outOfRange)
            let start = bench.time.now
            var sent = 0
            // Values for it go to the kernel's queue; those for the other one do not wait for that.
            while bench.time.now - start < .seconds(6) {
                let result = try await bench.local.update([1], of: 0xFFF1, whenFull: .fail)
                #expect(result.outcomes.values.contains(.notified))
                sent += 1
                try await bench.sleep(.milliseconds(100))
            }
            #expect(await other.unreadValues.count == sent)
            guard case .unsubscribed? = try await events.next(),
                case .disconnected(_, .supervisionTimeout)? = try await events.next()
            else {
                Issue.record("not unsubscribed first, and then disconnected")
                return
            }
            #expect(await bench.local.centrals.count == 1)
        }
    }

    @Test(.row("P13")) func aSubscriberThatReadsNothingDelaysNoOther() async throws {
        try await RadioBench.run { bench in
            let (stuck, other) = (try await bench.connect(), try await bench.connect())
            try await stuck.subscribe(to: 0xFFF1)
            try await other.subscribe(to: 0xFFF1)
            await stuck.pause()
            var outcomes: Set<LocalPeripheral.UpdateOutcome> = []
            for number in 0..<2_000 {
                let value = [UInt8(truncatingIfNeeded: number)]
                let result = try await bench.local.update(value, of: 0xFFF1, whenFull: .fail)
                outcomes.formUnion(result.outcomes.values)
                // The other one reads.
                if number % 50 == 0 { await bench.time.settle() }
                #expect(result.outcomes.values.contains(.notified))
            }
            #expect(outcomes == [.notified, .full])
            await bench.time.settle()
            #expect(await other.unreadValues.count == 2_000)
            await stuck.resume()
            await bench.time.settle()
            #expect(await stuck.unreadValues.count < 2_000)
            #expect(try await bench.local.tryUpdate([7], of: 0xFFF1), "there is room again")
        }
    }

    @Test(.row("P14")) func aConfigurationThatIsWrittenOverAndOverIsReportedInOrder() async throws {
        try await RadioBench.run { bench in
            let central = try await bench.connect()
            let configuration = try await central.characteristic(0xFFF1).value + 1
            var events = bench.local.events.makeAsyncIterator()
            for number in UInt8(0)..<201 {
                try await central.write([number & 1 ^ 1, 0], at: configuration)
                // The same once more is no change.
                try await central.write([number & 1 ^ 1, 0], at: configuration)
            }
            for number in 0..<201 {
                switch try await events.next() {
                case .subscribed?: #expect(number % 2 == 0)
                case .unsubscribed?: #expect(number % 2 == 1)
                default: Issue.record("another event")
                }
            }
            #expect(await bench.local.centrals.first?.subscriptions.map(\.uuid) == [0xFFF1])
            // Beyond what waits for a consumer the oldest events are dropped, and the last one is the state.
            for _ in 0..<200 {
                try await central.write([0, 0], at: configuration)
                try await central.write([1, 0], at: configuration)
            }
            guard case .dropped? = try await events.next() else {
                Issue.record("the loss is not reported")
                return
            }
        }
    }

    /// The kernel has one channel of a link for both roles: that of the socket that was accepted.
    @Test func aConnectToACentralUsesTheLinkThatTheCentralHasMade() async throws {
        try await RadioBench.run { bench in
            let phone = try await bench.connect()
            let peer = try #require(await phone.peer)
            let device = try await bench.central.connect(peer)
            // The central serves nothing, and says so.
            let error = await #expect(throws: BLEError.self) { _ = try await device.read(.handle(3)) }
            #expect(error?.attError == .requestNotSupported)
            #expect(try await phone.read(0xFFF1) == [])
            #expect(await bench.local.centrals.count == 1)
            await device.disconnect()
            #expect(await phone.disconnected() == .remoteUserTerminated)
            await bench.time.settle()
            #expect(await bench.local.centrals.isEmpty)
        }
    }

    @Test func indicationsInsteadOfNotificationsAreTheSameSubscription() async throws {
        try await RadioBench.run { bench in
            let service = LocalService(0xFFE0, [LocalCharacteristic(0xFFE1, [.notify, .indicate])])
            try await bench.local.publish(service)
            let central = try await bench.connect()
            var events = bench.local.events.makeAsyncIterator()
            for bits: UInt16 in [1, 2, 1, 2, 0, 0, 2] { try await central.configure(bits, of: 0xFFE1) }
            await central.disconnect()
            var kinds: [String] = []
            while kinds.last != "disconnected", let event = try await events.next() {
                switch event {
                case .subscribed: kinds.append("subscribed")
                case .unsubscribed: kinds.append("unsubscribed")
                case .disconnected: kinds.append("disconnected")
                default: kinds.append("other")
                }
            }
            #expect(kinds == ["subscribed", "unsubscribed", "subscribed", "unsubscribed", "disconnected"])
        }
    }

    @Test(.row("P16")) func anUnbondedCentralThatChangesItsAddressLeavesNothing() async throws {
        try await RadioBench.run { bench in
            let central = await bench.radio.addCentral()
            for number in UInt64(0)..<200 {
                let address = BluetoothAddress(rawValue: 0x4000_0000_0000 + number)
                await bench.radio.changeAddress(of: central, to: PeerID(address: address, type: .random))
                try await central.connect()
                await bench.time.settle()
                #expect(await bench.local.centrals.map(\.peer) == [PeerID(address: address, type: .random)])
                #expect(await bench.local.centrals.first?.subscriptions.isEmpty == true)
                try await central.subscribe(to: 0xFFF1)
                await central.disconnect()
                try await bench.sleep(.milliseconds(20))
            }
            #expect(await bench.local.centrals.isEmpty)
        }
    }

    @Test(.row("P19")) func aSignedWriteIsNotExecuted() async throws {
        try await RadioBench.run { bench in
            let central = try await bench.connect()
            let handle = try await central.characteristic(0xFFF3).value
            let signature = [UInt8](repeating: 1, count: 12)
            for _ in 0..<3 { await central.send(raw: [0xD2] + handle.bytes + [5] + signature) }
            #expect(try await central.read(0xFFF3) == [])
            #expect(await central.unexpectedResponseCount == 0)
        }
    }

    @Test(.row("P28")) func aCentralThatComesBackBeforeItsOldLinkHasEndedHasOneLink() async throws {
        try await RadioBench.run { bench in
            let central = try await bench.connect()
            try await central.subscribe(to: 0xFFF1)
            var events = bench.local.events.makeAsyncIterator()
            let old = try #require(await bench.local.centrals.first)
            await bench.radio.reset(central)
            try await central.connect()
            try await central.subscribe(to: 0xFFF1)
            var kinds: [String] = []
            while kinds.count < 4, let event = try await events.next() {
                switch event {
                case .unsubscribed(let who, _) where who.id == old.id: kinds.append("unsubscribed")
                case .disconnected(let who, let reason) where who.id == old.id:
                    #expect(reason == .other(.connectionAlreadyExists, errorNumber: nil))
                    kinds.append("disconnected")
                case .connected(let who) where who.id != old.id: kinds.append("connected")
                case .subscribed(let who, _, _) where who.id != old.id: kinds.append("subscribed")
                default: Issue.record("\(event)")
                }
            }
            #expect(kinds == ["unsubscribed", "disconnected", "connected", "subscribed"])
            try await bench.sleep(.seconds(10))
            #expect(await bench.local.centrals.count == 1)
            try await bench.local.update([3], of: 0xFFF1)
            #expect(try await central.nextValue().bytes == [3])
        }
    }

    @Test(.row("P26")) func absurdConnectionParametersDoNotEndTheLinkAndOthersMayBeRequested() async throws {
        try await RadioBench.run { bench in
            let central = try await bench.connect()
            let id = try #require(await bench.local.centrals.first).id
            let shortest = Duration.microseconds(7_500)
            let absurd = try ConnectionParameters(
                interval: shortest...shortest, latency: 499, supervisionTimeout: .seconds(32))
            for _ in 0..<3 {
                await bench.radio.changeParameters(of: central, to: absurd)
                await bench.time.settle()
                #expect(try await bench.local.connectionParameters(of: id) == absurd)
                #expect(try await central.read(0xFFF1) == [])
                let changed = try await bench.local.requestConnectionParameters(.lowPower, of: id)
                #expect(changed.latency == 2 && changed.supervisionTimeout == .seconds(6))
                #expect(try await bench.local.connectionParameters(of: id) == changed)
            }
            #expect(await bench.local.centrals.map(\.id) == [id])
        }
    }

    @Test(.row("P35")) func anEmptyPacketIsNotTheEndOfTheLink() async throws {
        try await RadioBench.run { bench in
            let central = try await bench.connect()
            for _ in 0..<5 { await central.send(raw: []) }
            #expect(try await central.read(0xFFF1) == [])
        }
    }

    @Test(.row("P07")) func aSecondRequestBeforeTheResponseEndsTheLink() async throws {
        try await RadioBench.run { bench in
            let (central, other) = (try await bench.connect(), try await bench.connect())
            let handle = try await central.characteristic(0xFFF4).value
            await central.send(raw: [0x0A] + handle.bytes)
            await central.send(raw: [0x0A] + handle.bytes)
            #expect(await central.disconnected() == .remoteUserTerminated)
            #expect(try await other.read(0xFFF1) == [])
            #expect(await bench.local.centrals.count == 1)
        }
    }
}

/// A local peripheral that advertises on a virtual radio, in virtual time.
///
/// 0xFFF1 notifies, 0xFFF2 indicates, 0xFFF3 takes signed writes, 0xFFF4 is read by a handler that takes a second.
struct RadioBench: Sendable {
    let time: VirtualTime
    let radio: VirtualRadio
    let central: Central
    let local: LocalPeripheral
    let advertising: Advertisement.Lease

    static func run(
        maximumCentrals: Int = 16, announcesChanges: Bool = false,
        _ body: @Sendable @escaping (RadioBench) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            if announcesChanges { await radio.announceChanges() }
            var settings = LocalPeripheral.Settings(name: "Bench")
            settings.maximumCentrals = maximumCentrals
            let central = Central(radio: radio)
            let local = LocalPeripheral(settings, on: central)
            let slow = LocalValue.handled { _ in
                try await central.clock.sleep(for: .seconds(1))
                return [4]
            }
            try await local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(0xFFF1, [.read, .notify]), LocalCharacteristic(0xFFF2, [.read, .indicate]),
                        LocalCharacteristic(0xFFF3, [.read, .authenticatedSignedWrites]),
                        LocalCharacteristic(0xFFF4, .read, value: slow),
                    ]))
            let advertising = try await local.advertise([.localName("Bench")])
            let bench = RadioBench(
                time: time, radio: radio, central: central, local: local, advertising: advertising)
            try await body(bench)
            await advertising.stop()
            await local.stop()
        }
    }

    /// Connects a new central.
    func connect() async throws -> VirtualCentral {
        let central = await radio.addCentral()
        try await central.connect()
        // The library has accepted it.
        await time.settle()
        return central
    }

    func sleep(_ duration: Duration) async throws {
        try await time.clock.sleep(for: duration)
    }

    var loop: EventLoop { time.loop }
}

extension LocalPeripheral {
    /// Attaches links without a pause in between.
    fileprivate func attach(all descriptors: [Int32]) throws {
        for descriptor in descriptors { try attach(descriptor: descriptor) }
    }
}
