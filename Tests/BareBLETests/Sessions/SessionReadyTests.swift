import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// The work on a fresh link, and code that runs on ready ones.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct SessionReadyTests {
    private struct Refused: Error {}

    @Test func readyReturnsAfterOnReadyHasFinished() async throws {
        let bench = try SessionBench()
        let gate = SessionBench.Door()
        await gate.close()
        let order = Lock<[String]>([])
        let session = try await bench.session(
            Session.Options(reconnect: SessionBench.hasty),
            Session.Handlers(onReady: { device in
                try await gate.enter()
                _ = try await device.read(.batteryLevel)
                order.withLock { $0.append("onReady") }
            }))
        let reader = testTask {
            let device = try await session.ready()
            order.withLock { $0.append("reader") }
            return try await device.read(.batteryLevel).percentage
        }
        while await gate.knocks == 0, !Task.isCancelled { await Task.yield() }
        #expect(session.state == .preparing)
        await gate.open()
        #expect(try await reader.value == 87)
        #expect(order.withLock { $0 } == ["onReady", "reader"])
        await session.disconnect()
    }

    @Test func onReadyRunsOnEachLink() async throws {
        let bench = try SessionBench()
        let runs = Lock(0)
        let session = try await bench.session(
            Session.Options(reconnect: SessionBench.hasty),
            Session.Handlers(onReady: { _ in runs.withLock { $0 += 1 } }))
        for run in 1...3 {
            _ = try await session.ready()
            #expect(runs.withLock { $0 } == run)
            var events = session.events.makeAsyncIterator()
            _ = try await events.next()
            await bench.peripheral.disconnect()
            _ = try await events.words(upTo: "ready")
        }
        await session.disconnect()
    }

    @Test func aFailedHandshakeIsAFailedConnect() async throws {
        let bench = try SessionBench()
        let session = try await bench.session(
            Session.Options(reconnect: .backoff(initial: .zero, attempts: 2)),
            Session.Handlers(onReady: { _ in throw Refused() }))
        let waiter = testTask { try await session.ready() }
        await #expect(throws: error(.connectFailed)) { try await waiter.value }
        // The peer was called twice, and each link was ended.
        #expect(await bench.peripheral.connectionCount == 2)
        while await bench.peripheral.isConnected, !Task.isCancelled { await Task.yield() }
        await session.disconnect()
    }

    @Test func aHandshakeKeepsItsError() async throws {
        let bench = try SessionBench()
        let session = try await bench.session(
            Session.Options(reconnect: .never), Session.Handlers(onReady: { try await $0.write([1], to: 0x2A19) }))
        let failure = await #expect(throws: BLEError.self) { try await session.ready() }
        #expect(failure?.code == .refusedByPeer || failure?.code == .notSupported)
        await session.disconnect()
    }

    @Test func aHandshakeHasALimit() async throws {
        let bench = try SessionBench()
        let gate = SessionBench.Door()
        await gate.close()
        let session = try await bench.session(
            Session.Options(reconnect: .never, readyTimeout: .milliseconds(20)),
            Session.Handlers(onReady: { _ in try await gate.enter() }))
        await #expect(throws: error(.timedOut)) { try await session.ready() }
        while await bench.peripheral.isConnected, !Task.isCancelled { await Task.yield() }
        await session.disconnect()
    }

    @Test func aLinkLostInTheHandshakeReportsWhy() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let session = try await bench.session(
            Session.Options(reconnect: .never),
            Session.Handlers(onReady: { device in
                await bench.peripheral.disconnect()
                _ = try await device.read(.batteryLevel)
            }))
        // From the beginning: a listener that comes late hears only that the session gave up.
        var events = session.events.makeAsyncIterator()
        await bench.door.open()
        await #expect(throws: error(.disconnected)) { try await session.ready() }
        while let event = try await events.next() {
            guard case .disconnected(let loss) = event else { continue }
            #expect(loss.reason == .byPeer(nil) && loss.next == .never)
            break
        }
        await session.disconnect()
    }

    @Test func theEndOvertakesAHandshake() async throws {
        let bench = try SessionBench()
        let gate = SessionBench.Door()
        await gate.close()
        let session = try await bench.session(
            Session.Options(), Session.Handlers(onReady: { _ in try await gate.enter() }))
        while await gate.knocks == 0, !Task.isCancelled { await Task.yield() }
        await session.disconnect()
        #expect(session.state == .ended)
        while await bench.peripheral.isConnected, !Task.isCancelled { await Task.yield() }
    }

    @Test func runsOnALinkThatIsReady() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let level = try await session.withPeripheral { try await $0.read(.batteryLevel).percentage }
        #expect(level == 87)
        // The link stays.
        #expect(session.state == .ready)
        await #expect(throws: Refused.self) { try await session.withPeripheral { _ in throw Refused() } }
        #expect(await bench.peripheral.connectionCount == 1)
        await session.disconnect()
    }

    @Test func beginsAgainWhenItsLinkIsLost() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let runs = Lock(0)
        let work: @Sendable (Peripheral) async throws -> Int = { device in
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            if run < 3 { await bench.peripheral.disconnect() }
            _ = try await device.read(.batteryLevel)
            return run
        }
        #expect(try await session.withPeripheral(repeating: true, work) == 3)
        runs.withLock { $0 = 0 }
        await #expect(throws: error(.disconnected)) { try await session.withPeripheral(work) }
        await session.disconnect()
    }
}
