import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Ending a session, or only what is unfinished in it.
@Suite(.virtualTime, .timeLimit(.minutes(10))) struct SessionEndTests {
    /// Returns once the session is being ended: a task that waits for a link then fails at once, though the link stays
    /// until the call has ended.
    private func waitForRefusal(by session: Session) async {
        await #expect(throws: error(.disconnected)) {
            while true {
                _ = try await session.ready()
                // Optimised, a task that calls nothing but an actor of the loop would keep the loop to itself.
                await Task.yield()
            }
        }
    }

    @Test func theEndAfterTheQueueLetsCallsEnd() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready()
        let read = await bench.peripheral.leaveWithoutResponse { try await device.read(.handle(3)) }
        let end = testTask { await session.disconnect(.afterPendingOperations) }
        await waitForRefusal(by: session)
        #expect(await device.isConnected)
        #expect(session.state == .disconnecting)
        await bench.peripheral.send(raw: [0x0B, 0xEE])
        #expect(try await read.value == [0xEE])
        await end.value
        #expect(session.state == .ended)
        #expect(await device.disconnectReason == .requested)
    }

    @Test func aSecondEndDoesNotWait() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready()
        let read = await bench.peripheral.leaveWithoutResponse { try await device.read(.handle(3)) }
        let first = testTask { await session.disconnect(.afterPendingOperations) }
        await waitForRefusal(by: session)
        await session.disconnect()
        await #expect(throws: error(.disconnected)) { try await read.value }
        await first.value
        #expect(session.state == .ended)
    }

    @Test func aCancelledEndDoesNotWait() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready()
        let read = await bench.peripheral.leaveWithoutResponse { try await device.read(.handle(3)) }
        let end = testTask { await session.disconnect(.afterPendingOperations) }
        await waitForRefusal(by: session)
        end.cancel()
        await end.value
        await #expect(throws: error(.disconnected)) { try await read.value }
    }

    @Test(.row("C01")) func theEndMayComeFromWithin() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready()
        let value = try await device.exclusively { device in
            let value = try await device.read(.batteryLevel).percentage
            await session.disconnect(.afterPendingOperations)
            return value
        }
        #expect(value == 87)
        #expect(session.state == .ended)
    }

    @Test(.row("C01")) func theEndMayComeFromOnReady() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let held = Lock<Session?>(nil)
        let session = try await bench.session(
            Session.Options(), Session.Handlers(onReady: { _ in await held.withLock { $0 }?.disconnect() }))
        held.withLock { $0 = session }
        await bench.door.open()
        await #expect(throws: error(.disconnected)) { try await session.ready() }
        var events = session.events.makeAsyncIterator()
        #expect(try await events.words(upTo: "ended").last == "ended")
        held.withLock { $0 = nil }
    }

    @Test func cancellingAllKeepsTheLink() async throws {
        let bench = try SessionBench()
        let session = try await bench.session()
        let device = try await session.ready()
        await bench.peripheral.stopResponding()
        let count = await bench.peripheral.receivedCount
        let calls = (0..<3).map { _ in testTask { try await device.read(.handle(3)) } }
        while await bench.peripheral.receivedCount == count, !Task.isCancelled { await Task.yield() }
        await session.cancelAll()
        // Later ones are not affected; there may be some by now.
        for call in calls.prefix(1) {
            await #expect(throws: error(.cancelled)) { try await call.value }
        }
        #expect(session.state == .ready)
        #expect(await device.isConnected)
        await session.disconnect()
        for call in calls { _ = await call.result }
    }

    @Test func cancellingAllReleasesWaitingTasks() async throws {
        let bench = try SessionBench()
        await bench.door.close()
        let session = try await bench.session()
        let outcome = Lock<BLEError?>(nil)
        let waiter = testTask {
            do throws(BLEError) {
                _ = try await session.ready()
            } catch {
                outcome.withLock { $0 = error }
            }
        }
        // It may not have begun to wait yet.
        while outcome.withLock({ $0 }) == nil, !Task.isCancelled {
            await session.cancelAll()
            await Task.yield()
        }
        await waiter.value
        #expect(outcome.withLock { $0 } == error(.cancelled))
        // The connect continues.
        await bench.door.open()
        _ = try await session.ready()
        await session.disconnect()
    }
}
