import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Logging
import TestSupport
import Testing

/// Links that a session is given, and that it gives up.
@Suite(.timeLimit(.minutes(10))) struct SessionLinkTests {
    private let limit = Duration.seconds(60)

    @Test func beginsWithALinkThatIsUp() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: belt))
            let central = Central(radio: radio)
            let device = try await central.connect(peer)
            let readied = Lock(0)
            let session = try await central.session(adopting: device) { _ in readied.withLock { $0 += 1 } }
            #expect(try await session.ready(within: limit) === device)
            #expect(await belt.connectionCount == 1)
            await #expect(throws: error(.busy)) { try await central.session(adopting: device) }
            #expect(await device.isConnected)
            await radio.disconnect(belt)
            _ = await device.disconnected()
            #expect(try await session.ready(within: limit) !== device)
            #expect(await belt.connectionCount == 2 && readied.withLock(\.self) == 2)
            await session.disconnect()
            await #expect(throws: error(.disconnected)) { try await central.session(adopting: device) }
        }
    }

    @Test func aLinkWithoutAnAddressIsNoBeginning() async throws {
        let peripheral = VirtualPeripheral(.heartRate)
        let central = Central()
        let device = try await central.attach(descriptor: peripheral.connect())
        await #expect(throws: error(.invalidArgument)) { try await central.session(adopting: device) }
        #expect(await device.isConnected)
        await device.disconnect()
    }

    @Test func releasesItsLinkAndContinuesOnceItIsReturned() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(RestorationBench.sensor)
            let peer = try #require(await radio.id(of: belt))
            let central = Central(radio: radio)
            let session = try await central.session(with: peer)
            let device = try await session.ready(within: limit)
            var values = await session.subscribe(to: 0xFFF2).makeAsyncIterator()
            guard case .began? = try await values.next() else { throw error(.cancelled) }
            let lent = try await session.releaseLink()
            #expect(lent === device && session.state == .paused)
            #expect(await !belt.isSubscribed(to: 0xFFF2))
            guard case .interrupted(let interruption)? = try await values.next() else { throw error(.cancelled) }
            #expect(interruption.reason == "this program has taken the link")
            _ = try await lent.read(0xFFF1)
            await #expect(throws: error(.disconnected)) { try await session.releaseLink() }
            // A task that waits meanwhile continues to wait.
            let waiter = time.task { try await session.ready() }
            await time.settle()
            try await session.returnLink(lent)
            #expect(try await waiter.value === lent)
            guard case .began? = try await values.next() else { throw error(.cancelled) }
            #expect(await belt.connectionCount == 1)
            await #expect(throws: error(.invalidArgument)) { try await session.returnLink(lent) }
            await session.disconnect()
        }
    }

    /// A link may be up for months.
    @Test func aLinkThatIsReturnedAgainAndAgainKeepsNothingOfThat() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: belt))
            let central = Central(radio: radio)
            let session = try await central.session(with: peer)
            let device = try await session.ready(within: limit)
            let before = await device.endHandlerCount
            for _ in 1...3 {
                let lent = try await session.releaseLink()
                try await session.returnLink(lent)
                #expect(try await session.ready(within: limit) === device)
            }
            #expect(await device.endHandlerCount == before)
            await session.disconnect()
        }
    }

    /// A firmware update restarts the peer, and connects to it by itself.
    @Test func aPausedSessionLeavesThePeerToOthers() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: belt))
            let central = Central(radio: radio)
            let session = try await central.session(with: peer)
            _ = try await session.ready(within: limit)
            let lent = try await session.releaseLink()
            await radio.disconnect(belt)
            _ = await lent.disconnected()
            try await time.clock.sleep(for: .seconds(120))
            #expect(session.state == .paused)
            #expect(await belt.connectionCount == 1)
            let own = try await central.connect(peer)
            await own.disconnect()
            // One that is over is replaced.
            try await session.returnLink(own)
            #expect(try await session.ready(within: limit) !== own)
            #expect(await belt.connectionCount == 3)
            await session.disconnect()
            #expect(session.state == .ended)
        }
    }

    @Test(.virtualTime) func reportThatTheyAreDisconnecting() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready()
        let read = await bench.peripheral.leaveWithoutResponse { try await device.read(.handle(3)) }
        #expect(await !device.isDisconnecting)
        #expect(!session.isDisconnecting)
        let end = testTask { await session.disconnect(.afterPendingOperations) }
        while await !device.isDisconnecting, !Task.isCancelled { await Task.yield() }
        #expect(session.isDisconnecting)
        #expect(await device.isConnected)
        await bench.peripheral.send(raw: [0x0B, 0xEE])
        _ = try await read.value
        await end.value
        #expect(await !device.isDisconnecting)
        #expect(!session.isDisconnecting && session.state == .ended)
    }

    @Test(.virtualTime) func theReconnectHandlerIsReplaced() async throws {
        let bench = try SessionBench()
        let session = try await bench.session(Session.Options(reconnect: .never))
        let asked = Lock<[DisconnectReason?]>([])
        await session.setReconnectHandler(includingExpectedEnds: true) { loss, _ in
            asked.withLock { $0.append(loss.reason) }
            return .milliseconds(1)
        }
        let device = try await session.ready()
        await bench.peripheral.disconnect()
        _ = await device.disconnected()
        _ = try await session.ready()
        #expect(asked.withLock(\.self) == [.byPeer(nil)])
        await session.disconnect()
        #expect(asked.withLock(\.self) == [.byPeer(nil), .requested])
        #expect(session.state == .ended)
    }

    @Test(.virtualTime) func withoutAHandlerThePolicyDecidesAgain() async throws {
        let bench = try SessionBench()
        let session = try await bench.session(
            Session.Options(), Session.Handlers(reconnect: { _, _ in .milliseconds(1) }))
        let device = try await session.ready()
        await session.setReconnectHandler(nil)
        await bench.peripheral.disconnect()
        _ = await device.disconnected()
        await #expect(throws: error(.disconnected)) { try await session.ready() }
        await session.disconnect()
    }

    @Test func theLogHasTheReasonInOneLine() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let belt = await radio.add(.heartRate)
            let peer = try #require(await radio.id(of: belt))
            let log = KeptLog(from: .info, detail: "reason")
            var configuration = Configuration()
            configuration.logger = log.logger
            let central = Central(configuration, radio: radio)
            let session = try await central.session(with: peer, Session.Options(reconnect: .backoff(attempts: 2)))
            let device = try await session.ready(within: limit)
            await radio.disconnect(belt)
            _ = await device.disconnected()
            _ = try await session.ready(within: limit)
            let lines = log.all.filter { $0.contains("link") }
            #expect(
                lines == [
                    "a link is ready: first connect", "a link was lost: the peer ended the link",
                    "a link is ready: the peer ended the link",
                ])
            await radio.move(belt, to: .outOfRange)
            await #expect(throws: BLEError.self) {
                while true {
                    let device = try await session.ready()
                    _ = await device.disconnected()
                }
            }
            #expect(log.all.contains { $0.hasPrefix("a session gave up: ") && !$0.hasSuffix(": ") })
            await session.disconnect()
        }
    }

    @Test(.virtualTime, .row("C07")) func notificationsContinueOverLinks() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        var all = await session.notifications().makeAsyncIterator()
        var level = await session.subscribe(to: 0x2A19).makeAsyncIterator()
        for round in 1...2 as ClosedRange<UInt8> {
            guard case .began? = try await all.next(), case .began? = try await level.next() else {
                throw error(.cancelled)
            }
            try await bench.peripheral.notify(0x2A19, [round])
            guard case .value(let value)? = try await all.next() else { throw error(.cancelled) }
            #expect(value.bytes == [round])
            guard case .value? = try await level.next() else { throw error(.cancelled) }
            await bench.peripheral.disconnect()
            guard case .interrupted? = try await all.next(), case .interrupted? = try await level.next() else {
                throw error(.cancelled)
            }
        }
        await session.disconnect()
    }

    @Test(.row("C08")) func valuesComeBackWithTheirService() async throws {
        try await VirtualTime.run { time in
            let without = VirtualDevice(name: "Changing", services: [.genericAttribute(databaseHash: nil)])
            var with = without
            with.services.append(VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, .notify)]))
            let radio = VirtualRadio(time: time)
            let peripheral = await radio.add(with)
            let peer = try #require(await radio.id(of: peripheral))
            let session = try await Central(radio: radio).session(with: peer)
            let device = try await session.ready()
            try await device.discover(level: .full)
            _ = try await device.serviceChanges()
            var events = session.events.makeAsyncIterator()
            var values = await session.subscribe(to: 0xFFF1).makeAsyncIterator()
            for _ in 1...2 {
                guard case .began? = try await values.next() else { throw error(.cancelled) }
                await peripheral.changeServices(to: without)
                guard case .interrupted(let error)? = try await values.next() else {
                    throw BareBLETests.error(.cancelled)
                }
                #expect(error.code == .servicesChanged)
                _ = try await events.words(upTo: "servicesChanged")
                await peripheral.changeServices(to: with)
                _ = try await events.words(upTo: "servicesChanged")
            }
            guard case .began? = try await values.next() else { throw error(.cancelled) }
            try await peripheral.notify(0xFFF1, [7])
            guard case .value(let value)? = try await values.next() else { throw error(.cancelled) }
            #expect(value.bytes == [7])
            await session.disconnect()
        }
    }
}
