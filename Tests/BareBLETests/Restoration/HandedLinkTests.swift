import BareBLE
import BareBLETestKit
import Testing

/// Restarts in which the radio links stay up. The service manager has a thread of its own; whatever it does, a daemon
/// that waits for it has no deadline under way.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct HandedLinkTests {
    private let limit = Duration.seconds(20)

    /// The objects that a running daemon holds.
    private struct Daemon {
        let central: Central
        let session: Session
        let values: SessionValueSequence<ReceivedValue>
    }

    private func begin(_ bench: RestorationBench, _ peer: PeerID) async throws -> Daemon {
        let central = bench.fresh()
        _ = try await central.restore(from: bench.environment)
        let session = try await central.session(with: peer, Session.Options(connect: ConnectOptions(mtu: 99)))
        let subscription = await session.subscribe(to: 0xFFF2)
        var values = subscription.makeAsyncIterator()
        guard case .began = try await values.next() else { throw error(.system) }
        // What the link makes by itself when it is new is over then, and the next run has no request to make.
        try await #require(VirtualTimeTrait.time).clock.sleep(for: .seconds(1))
        try await central.saveState()
        return Daemon(central: central, session: session, values: subscription)
    }

    /// No new connection, no request, and what the peer has sent between two runs is not lost.
    private func check(
        _ restoration: Restoration, _ peer: PeerID, _ sensor: VirtualPeripheral, requests: Int
    ) async throws {
        let restored = try #require(restoration.peer(peer))
        guard case .adopted(let session) = restored.outcome else {
            Issue.record("\(restored.outcome)")
            return
        }
        #expect(restored.lostLink == nil && restoration.links.isEmpty && restoration.lostLinks.isEmpty)
        let device = try await session.ready(within: limit)
        #expect(await device.mtu == 99)
        try await sensor.notify(0xFFF2, [3])
        var values = try #require(restored.subscriptions.first).adopt(as: UInt8.self).makeAsyncIterator()
        #expect(try await values.values(3) == [1, 2, 3])
        #expect(await sensor.requestCount == requests)
        #expect(await sensor.connectionCount == 1)
        // A link that is lost later is made again, as any other.
        await sensor.disconnect()
        try await waited { await sensor.connectionCount == 2 }
        #expect(try await session.ready(within: limit) !== device)
    }

    /// Waits for a moment that comes soon.
    private func waited(_ condition: () async throws -> Bool) async throws {
        let clock = try #require(VirtualTimeTrait.time).clock
        while try await !condition() { try await clock.sleep(for: .milliseconds(1)) }
    }

    @Test func theServiceManagerKeepsThem() async throws {
        let bench = try RestorationBench(VirtualTimeTrait.time)
        let (sensor, peer) = try await bench.add(RestorationBench.sensor)
        let manager = try VirtualServiceManager()
        let notifier = try #require(ServiceNotifier(manager.environment()))
        let daemon = try await begin(bench, peer)
        let (first, session) = (daemon.central, daemon.session)
        await first.suspend(handingOverTo: DescriptorStore(notifier))
        withExtendedLifetime(daemon.values) {}
        #expect(session.state == .ended)
        #expect(await first.session(of: peer) == nil)
        #expect(await first.stateStatus == nil)
        #expect(await manager.storedNames.count == 2)
        #expect(await sensor.isConnected)
        for value in [1, 2] as [UInt8] { try await sensor.notify(0xFFF2, [value]) }
        let requests = await sensor.requestCount
        let second = bench.fresh()
        let restoration = try await second.restore(
            from: ServiceEnvironment(
                descriptors: await manager.takeStored(), variables: manager.environment().variables))
        // Its copies would keep the link up after its end.
        await manager.wait { $0.contains("FDSTOREREMOVE=1") }
        try await check(restoration, peer, sensor, requests: requests)
        await second.suspend()
    }

    @Test func theExecutedProgramGetsThem() async throws {
        let bench = try RestorationBench(VirtualTimeTrait.time)
        let (sensor, peer) = try await bench.add(RestorationBench.sensor)
        let (_, unlinked) = try await bench.add(RestorationBench.sensor)
        let daemon = try await begin(bench, peer)
        let (first, session) = (daemon.central, daemon.session)
        let without = try await first.session(with: unlinked, Session.Options(reconnect: .never))
        _ = try await without.ready(within: limit)
        let links = await first.suspend(keepingLinks: true)
        withExtendedLifetime(daemon.values) {}
        #expect(session.state == .ended)
        #expect(links.map(\.peer) == [peer, unlinked])
        for value in [1, 2] as [UInt8] { try await sensor.notify(0xFFF2, [value]) }
        let requests = await sensor.requestCount
        let second = bench.fresh()
        let restoration = try await second.restore(links, from: bench.environment)
        #expect(restoration.peers.count == 2)
        try await check(restoration, peer, sensor, requests: requests)
        await second.suspend()
    }

    /// A link that cannot be resumed is reported, or discovered, and the session connects.
    @Test(arguments: [false, true]) func aLinkThatIsOverIsMadeAgain(isGivenAway: Bool) async throws {
        let bench = try RestorationBench(VirtualTimeTrait.time)
        let (sensor, peer) = try await bench.add(RestorationBench.sensor)
        let daemon = try await begin(bench, peer)
        let (first, session) = (daemon.central, daemon.session)
        let links = await first.suspend(keepingLinks: true)
        withExtendedLifetime(daemon.values) {}
        #expect(session.state == .ended)
        let link = try #require(links.first)
        let other = isGivenAway ? try DetachedLink(bytes: link.bytes, descriptor: try #require(link.release())) : nil
        await sensor.disconnect()
        let second = bench.fresh()
        let restoration = try await second.restore([link], from: bench.environment)
        let restored = try #require(restoration.peer(peer))
        #expect(restored.lostLink?.code == (isGivenAway ? .invalidArgument : .disconnected))
        let next = try #require(restored.session)
        var values = try #require(restored.subscriptions.first).adopt(as: UInt8.self).makeAsyncIterator()
        try await waited { await sensor.isSubscribed(to: 0xFFF2) }
        try await sensor.notify(0xFFF2, [5])
        #expect(try await values.values(1) == [5])
        #expect(next.state == .ready)
        #expect(await sensor.connectionCount == 2)
        await second.suspend()
        _ = other
    }

    /// Without a state they are all there is.
    @Test func linksThatAreInNoStateAreReturnedToTheCaller() async throws {
        let bench = try RestorationBench(VirtualTimeTrait.time)
        let (sensor, peer) = try await bench.add(RestorationBench.sensor)
        let link = try await Central(radio: bench.radio).connect(peer).detach()
        let central = Central(radio: bench.radio)
        let restoration = try await central.restore([link, link], from: bench.environment)
        #expect(restoration.peers.isEmpty)
        #expect(restoration.links.map(\.id) == [peer])
        #expect(restoration.lostLinks.values.map(\.code) == [.invalidArgument])
        #expect(try await restoration.links.first?.read(0xFFF1) == [0])
        #expect(await sensor.connectionCount == 1)
        await restoration.links.first?.disconnect()
    }

    @Test func aSessionThatIsNotReadyHasNoLinkToHandOver() async throws {
        let bench = try RestorationBench(VirtualTimeTrait.time)
        let (sensor, peer) = try await bench.add(RestorationBench.sensor)
        await bench.radio.move(sensor, to: .outOfRange)
        let central = Central(radio: bench.radio)
        let session = try await central.session(with: peer)
        await #expect(throws: error(.disconnected)) { try await session.detach() }
        await bench.radio.move(sensor, to: .near)
        let device = try await session.ready(within: limit)
        let link = try await session.detach()
        #expect(session.state == .ended)
        #expect(await device.disconnected() == .detached)
        await #expect(throws: error(.disconnected)) { try await session.detach() }
        #expect(await sensor.isConnected)
        await central.suspend()
        _ = link
    }
}
