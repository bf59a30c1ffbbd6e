import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Sessions on an adapter with a stand-in controller: one session a peer, and an adapter that goes and comes.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct SessionAdapterTests {
    private let address = BluetoothAddress(rawValue: 0xC000_0000_0007)
    private var peer: PeerID { PeerID(address: address, type: .random) }
    /// No MTU exchange: the far end of a stand-in link says nothing.
    private let options = Session.Options(
        connect: ConnectOptions(mtu: 23),
        reconnect: .backoff(initial: .seconds(1), jitter: 0, attempts: 2))

    private func reachable(_ bench: AdapterBench) async {
        let address = address
        await bench.controller.set { $0.peers = [address: 0x40] }
    }

    /// Ends the links as an adapter that goes away does.
    private func pull(_ bench: AdapterBench) async {
        bench.kernel.withLock {
            $0.controllers = []
            $0.farEnds = []
        }
        await bench.controller.unplug()
    }

    private func plug(_ bench: AdapterBench, index: UInt16, isUp: Bool = true) async throws {
        let descriptors = try await bench.controller.plugIn()
        bench.kernel.withLock {
            $0.descriptors = [descriptors]
            $0.controllers = [
                ControllerInfo(
                    index: index, name: "hci\(index)", address: StandInController.ownAddress, isUp: isUp)
            ]
        }
    }

    @Test func aPeerHasOneSession() async throws {
        let bench = try await AdapterBench()
        let central = Central(adapter: bench.adapter)
        await reachable(bench)
        let session = try await central.session(with: peer, options)
        let device = try await session.ready()
        #expect(device.id == peer)
        await #expect(throws: error(.busy)) { try await central.session(with: peer, options) }
        await #expect(throws: error(.busy)) { try await central.connect(peer) }
        #expect(await central.session(of: peer) === session)
        await session.disconnect()
        #expect(await central.session(of: peer) == nil)
        let next = try await central.session(with: peer, options)
        _ = try await next.ready()
        await next.disconnect()
    }

    @Test(.row("O03", "W59")) func resumesOnAnAdapterThatComesBackUnderAnotherIndex() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let central = Central(adapter: bench.adapter)
            await reachable(bench)
            let session = try await central.session(with: peer, options)
            var events = session.events.makeAsyncIterator()
            _ = try await events.words(upTo: "ready")
            await pull(bench)
            // The link ends, and the next connect finds no adapter: no attempt is used up by that, however long it
            // takes.
            let lost = try await events.words(upTo: "disconnected noAdapter")
            #expect(lost == ["disconnected disconnected", "connecting 2", "disconnected noAdapter"])
            guard case .waiting(let loss) = session.state else { throw error(.cancelled) }
            #expect(loss.next == .whenAdapterReturns)
            try await time.clock.sleep(for: .seconds(3600))
            try await plug(bench, index: 3)
            #expect(try await events.words(upTo: "ready") == ["connecting 2", "connected", "ready"])
            #expect(await central.adapterName == "hci3")
            await session.disconnect()
        }
    }

    @Test(.row("O04")) func waitsForAnAdapterThatIsOff() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let central = Central(adapter: bench.adapter)
            await reachable(bench)
            bench.kernel.withLock { $0.controllers[0] = $0.controllers[0].switched(on: false) }
            let session = try await central.session(with: peer, options)
            var events = session.events.makeAsyncIterator()
            #expect(
                try await events.words(upTo: "disconnected adapterDown").last == "disconnected adapterDown")
            try await time.clock.sleep(for: .seconds(60))
            bench.kernel.withLock { $0.controllers[0] = $0.controllers[0].switched(on: true) }
            #expect(try await events.words(upTo: "ready") == ["connecting 1", "connected", "ready"])
            await session.disconnect()
        }
    }

    @Test func theEndOvertakesTheWaitForAnAdapter() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock { $0.controllers = [] }
        let session = try await Central(adapter: bench.adapter).session(with: peer, options)
        var events = session.events.makeAsyncIterator()
        _ = try await events.words(upTo: "disconnected noAdapter")
        await session.disconnect()
        #expect(session.state == .ended)
        // Nothing looks at the adapter any more.
        #expect(await bench.adapter.isWatched == false)
    }

    @Test func aSessionThatDoesNotReconnectDoesNotWaitForAnAdapter() async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock { $0.controllers = [] }
        let session = try await Central(adapter: bench.adapter).session(
            with: peer, Session.Options(reconnect: .never))
        await #expect(throws: error(.noAdapter)) { try await session.ready() }
        await session.disconnect()
    }

    @Test func disconnectCancelsAConnectionAttempt() async throws {
        let bench = try await AdapterBench()
        let session = try await Central(adapter: bench.adapter).session(with: peer, options)
        await bench.controller.commandsArrived(4)
        await session.disconnect()
        #expect(await bench.sent.suffix(2) == [.leCreateConnection, .leCreateConnectionCancel])
    }

    // MARK: Waiting for a peer forever

    @Test func aConnectWithoutALimitContinuesUntilThePeerIsThere() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let central = Central(adapter: bench.adapter)
            let task = time.task {
                try await central.connect(peer, ConnectOptions(timeout: nil, mtu: 23))
            }
            try await time.clock.sleep(for: .seconds(3600))
            // It is called again and again, so that others have their turns.
            #expect(await bench.sent.count { $0 == .leCreateConnection } > 300)
            await reachable(bench)
            let device = try await task.value
            #expect(device.id == peer)
            await device.disconnect()
        }
    }

    @Test(.row("O14")) func othersHaveTheirTurnsMeanwhile() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let central = Central(adapter: bench.adapter)
            await reachable(bench)
            let nobody = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0099), type: .random)
            let task = time.task {
                try await central.connect(nobody, ConnectOptions(timeout: nil, mtu: 23))
            }
            try await time.clock.sleep(for: .seconds(1))
            let device = try await central.connect(peer, ConnectOptions(timeout: .seconds(15), mtu: 23))
            await device.disconnect()
            task.cancel()
            await #expect(throws: error(.cancelled)) { try await task.value }
            #expect(await bench.sent.last == .leCreateConnectionCancel)
        }
    }

    @Test func scansListenBetweenTheTurns() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let deliveries = Deliveries()
            let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
            let task = time.task {
                let link = try await bench.adapter.connect(peer, parameters: nil, timeout: nil)
                return link.handle
            }
            try await time.clock.sleep(for: .seconds(11))
            #expect(await bench.controller.isScanning)
            try await time.clock.sleep(for: .seconds(5))
            #expect(await !bench.controller.isScanning)
            task.cancel()
            await #expect(throws: error(.cancelled)) { try await task.value }
            await bench.adapter.unsubscribe(scan)
        }
    }

    @Test(.row("H13")) func aControllerThatIsSilentIsNotWaitedFor() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            await bench.controller.set { $0.ignored = [.leReadLocalFeatures] }
            await #expect(throws: error(.timedOut)) {
                let link = try await bench.adapter.connect(peer, parameters: nil, timeout: nil)
                return link.handle
            }
        }
    }

    @Test func withoutCapabilitiesTheKernelIsAskedAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            // What the kernel says when its own time has run out looks like the end of a socket that connects.
            bench.kernel.withLock {
                $0.capabilities = 0
                $0.holdsLinks = true
            }
            let task = time.task {
                let link = try await bench.adapter.connect(peer, parameters: nil, timeout: nil)
                return link.handle
            }
            try await time.clock.sleep(for: .seconds(95))
            #expect(bench.kernel.withLock { $0.connects } == 10)
            bench.kernel.withLock { $0.holdsLinks = false }
            _ = try await task.value
        }
    }

    // MARK: How the adapter is

    @Test func howTheAdapterIs() async throws {
        try await VirtualTime.run { time in
            let bench = try await AdapterBench(loop: time.loop)
            let central = Central(adapter: bench.adapter)
            #expect(await central.adapterState == .poweredOn)
            var states = central.adapterStates.makeAsyncIterator()
            #expect(try await states.next() == .poweredOn)
            bench.kernel.withLock { $0.controllers[0] = $0.controllers[0].switched(on: false) }
            #expect(try await states.next() == .poweredOff)
            await pull(bench)
            #expect(try await states.next() == .absent)
            #expect(await central.adapterState == .absent)
            try await plug(bench, index: 1, isUp: false)
            #expect(try await states.next() == .poweredOff)
            bench.kernel.withLock { $0.controllers[0] = $0.controllers[0].switched(on: true) }
            #expect(try await states.next() == .poweredOn)
        }
    }

    /// Nothing announces what happens between the last look and the opening of the kernel's announcements.
    @Test func aChangeAheadOfTheFirstAnnouncementIsSeen() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.announceChanges()
            let central = Central(radio: radio) { system in
                let (open, powerDown) = (system.openDeviceEvents, system.powerDown)
                system.openDeviceEvents = { () throws(SystemCallError) in
                    try? powerDown(0)
                    return try open()
                }
            }
            var states = central.adapterStates.makeAsyncIterator()
            let first = try await states.next()
            #expect(first == .poweredOn)
            #expect(try await states.next() == .poweredOff)
        }
    }

    /// Only a lack of permission or of support lasts: EMFILE passes, EPERM and EAFNOSUPPORT do not.
    @Test(arguments: [(Int32(24), 2), (1, 1), (97, 1)])
    func announcementsThatCannotBeOpenedOnceAreOpenedAtALaterLook(errno: Int32, expected: Int) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.announceChanges()
            let attempts = Lock(0)
            let central = Central(radio: radio) { system in
                let open = system.openDeviceEvents
                system.openDeviceEvents = { () throws(SystemCallError) in
                    let number = attempts.withLock { count -> Int in
                        count += 1
                        return count
                    }
                    if number == 1 { throw SystemCallError(call: "socket", errno: errno) }
                    return try open()
                }
            }
            var states = central.adapterStates.makeAsyncIterator()
            #expect(try await states.next() == .poweredOn)
            try await time.clock.sleep(for: .seconds(60))
            #expect(attempts.withLock(\.self) == expected)
            await radio.powerOff()
            #expect(try await states.next() == .poweredOff)
        }
    }

    /// The kernel announces each change once, and the look that follows may fail for want of a descriptor.
    @Test(.row("O12"), arguments: [true, false])
    func aLookThatFailsAfterAnAnnouncementIsRepeated(isPulledOut: Bool) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.announceChanges()
            let belt = await radio.add(.heartRate)
            let failure = Lock<SystemCallError?>(nil)
            let central = Central(radio: radio) { system in
                let (list, info) = (system.list, system.info)
                system.list = { () throws(SystemCallError) in
                    if let failure = failure.withLock({ $0 }) { throw failure }
                    return try list()
                }
                system.info = { index throws(SystemCallError) in
                    if let failure = failure.withLock({ $0 }) { throw failure }
                    return try info(index)
                }
            }
            let session = try await central.session(with: try #require(await radio.id(of: belt)))
            _ = try await session.ready()
            if isPulledOut { await radio.unplug() } else { await radio.powerOff() }
            try await time.clock.sleep(for: .seconds(60))
            guard case .waiting(let loss) = session.state, loss.next == .whenAdapterReturns else {
                Issue.record("the session does not wait for the adapter: \(session.state)")
                return
            }
            // EMFILE.
            failure.withLock { $0 = SystemCallError(call: "socket", errno: 24) }
            if isPulledOut { await radio.plugIn(isUp: true) } else { await radio.powerOn() }
            try await time.clock.sleep(for: .seconds(10))
            failure.withLock { $0 = nil }
            _ = try await session.ready(within: .seconds(60))
            await session.disconnect()
        }
    }

    // MARK: An adapter that comes back off

    /// Begins a session on an adapter that was switched on, pulls that out, and plugs it in again while it does not
    /// respond to the kernel.
    private func sessionOnSilentReturn(
        _ radio: VirtualRadio, _ central: Central, _ time: VirtualTime, failures: Int
    ) async throws -> Session {
        let belt = await radio.add(.heartRate)
        try await central.ready(powerOn: true)
        let session = try await central.session(with: try #require(await radio.id(of: belt)))
        _ = try await session.ready()
        await radio.unplug()
        try await time.clock.sleep(for: .seconds(60))
        await radio.failPowerUps(failures)
        await radio.plugIn()
        return session
    }

    @Test func anAdapterThatComesBackAndDoesNotRespondIsSwitchedOnLater() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let session = try await sessionOnSilentReturn(radio, central, time, failures: 4)
            _ = try await session.ready(within: .seconds(120))
            await session.disconnect()
        }
    }

    @Test func anAdapterThatWasSwitchedOnMeanwhileIsNotSwitchedOnAgain() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let session = try await sessionOnSilentReturn(radio, central, time, failures: .max)
            try await time.clock.sleep(for: .seconds(10))
            #expect(await central.adapterState == .poweredOff)
            await radio.powerOn()
            _ = try await session.ready(within: .seconds(60))
            await radio.failPowerUps(0)
            await radio.powerOff()
            try await time.clock.sleep(for: .seconds(3600))
            #expect(await central.adapterState == .poweredOff)
            await session.disconnect()
        }
    }

    @Test func anAdapterThatIsWantedAsItIsIsNotSwitchedOnLater() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let central = Central(radio: radio)
            let session = try await sessionOnSilentReturn(radio, central, time, failures: .max)
            try await time.clock.sleep(for: .seconds(10))
            let refusal = await #expect(throws: BLEError.self) { try await central.ready(powerOn: false) }
            #expect(refusal?.code == .adapterDown)
            await radio.failPowerUps(0)
            try await time.clock.sleep(for: .seconds(3600))
            #expect(await central.adapterState == .poweredOff)
            await session.disconnect()
        }
    }

    @Test func anAdapterWithoutObserversIsNotWatched() async throws {
        let bench = try await AdapterBench()
        var states: AdapterStateSequence.AsyncIterator? = Central(adapter: bench.adapter).adapterStates
            .makeAsyncIterator()
        #expect(try await states?.next() == .poweredOn)
        #expect(await bench.adapter.isWatched)
        states = nil
        await bench.until { await !bench.adapter.isWatched }
    }

    @Test(.row("O30"), arguments: [(Int32(97), AdapterState.unsupported), (1, .unauthorized), (19, .absent)])
    func whyThereIsNoAdapter(_ errno: Int32, _ state: AdapterState) async throws {
        let bench = try await AdapterBench()
        bench.kernel.withLock { $0.listError = errno }
        #expect(await Central(adapter: bench.adapter).adapterState == state)
    }
}

extension ControllerInfo {
    fileprivate func switched(on isUp: Bool) -> ControllerInfo {
        ControllerInfo(index: index, name: name, address: address, isUp: isUp)
    }
}
