import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Cancelling everything, and disconnecting after the pending operations.
@Suite(.timeLimit(.minutes(10))) struct CancelAllTests {
    private let central = Central()

    private func code(_ call: () async throws -> Void) async -> BLEError.Code? {
        do {
            try await call()
            return nil
        } catch {
            return (error as? BLEError)?.code
        }
    }

    @Test(.row("C03")) func everyCallFailsOnceAndTheLinkStays() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        await peripheral.stopResponding()
        let before = await peripheral.receivedCount
        let first = Task { await code { _ = try await device.read(.handle(5)) } }
        while await peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await device.read(.handle(3)) },
            { try await device.write([1], to: .handle(3)) },
            { try await device.writeReliably([([1], .handle(3)), ([2], .handle(5))]) },
            { try await device.writeReliably([([1], .handle(3)), ([2], .handle(5))]) },
            { _ = try await device.discover(level: .full, ignoringCache: true) },
            { _ = try await device.readAll([3, 5], lengths: [1]) },
        ]
        let codes = await withTaskGroup(of: BLEError.Code?.self) { group in
            for call in calls { group.addTask { await code(call) } }
            while await device.unfinishedCount < calls.count + 1, !Task.isCancelled { await Task.yield() }
            await device.cancelAll()
            return await group.reduce(into: [BLEError.Code?]()) { $0.append($1) }
        }
        #expect(await first.value == .cancelled)
        #expect(codes == calls.map { _ in .cancelled })
        #expect(await device.isConnected)
        // Only the one that was under way had been sent; its late response is discarded.
        #expect(await peripheral.receivedCount == before + 1)
        await peripheral.resumeResponding()
        let next = Task { try await device.read(.handle(8)) }
        await peripheral.send(raw: [0x0B, 0xEE])
        #expect(try await next.value == [64])
        try await peripheral.notify(0x2A19, [9])
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next()?.bytes == [9])
    }

    @Test func exclusiveAccessStaysAndTheTasksThatWaitForItFail() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        try await device.exclusively { device in
            await peripheral.stopResponding()
            let before = await peripheral.receivedCount
            async let own = code { _ = try await device.read(.handle(3)) }
            let others = Task.detached { await code { _ = try await device.read(.handle(5)) } }
            while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
            // A request that the peripheral handles only when it responds again would get two responses.
            while await peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
            await device.cancelAll()
            #expect(await own == .cancelled)
            #expect(await others.value == .cancelled)
            await peripheral.resumeResponding()
            await peripheral.send(raw: [0x0B, 0xEE])
            let value = try await device.read(.handle(8))
            #expect(value == [64])
        }
    }

    @Test func aSubscriptionThatIsBeingMadeIsGivenUp() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        try await device.discover()
        await peripheral.stopResponding()
        let before = await peripheral.receivedCount
        let subscribing = Task { await code { _ = try await device.subscribe(to: 0x2A19) } }
        while await peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
        await device.cancelAll()
        #expect(await subscribing.value == .cancelled)
        await peripheral.resumeResponding()
        await peripheral.send(raw: [0x13])
        _ = try await device.read(.handle(3))
        _ = try await device.subscribe(to: 0x2A19)
    }

    @Test func nothingToCancelIsFine() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        await device.cancelAll()
        #expect(try await device.read(.handle(8)) == [64])
        await device.disconnect()
        await device.cancelAll()
    }

    // MARK: The end after the pending operations

    @Test func whatWasCalledBeforeEndsFirst() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let call = await peripheral.leaveWithoutResponse { try await device.read(.handle(3)) }
        let end = Task { await device.disconnect(.afterPendingOperations) }
        while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
        #expect(await code { _ = try await device.read(.handle(3)) } == .disconnecting)
        #expect(await code { try await device.exclusively { _ in } } == .disconnecting)
        #expect(await device.isConnected)
        await peripheral.send(raw: [0x0B, 0x07])
        #expect(try await call.value == [7])
        await end.value
        #expect(await device.disconnectReason == .requested)
        #expect(await code { _ = try await device.read(.handle(3)) } == .disconnected)
    }

    @Test func itWaitsForTheEndOfExclusiveAccess() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        let end = try await device.exclusively { device in
            let end = Task.detached { await device.disconnect(.afterPendingOperations) }
            while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
            let value = try await device.read(.handle(8))
            #expect(value == [64])
            return end
        }
        await end.value
        #expect(await !device.isConnected)
    }

    /// The second caller waits for the same calls, and cuts none of them off.
    @Test(.row("C02")) func twoMayWaitForTheEnd() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let call = await peripheral.leaveWithoutResponse { try await device.read(.handle(3)) }
        let first = Task { await device.disconnect(.afterPendingOperations) }
        while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
        let waitingCount = await device.outstanding
        let second = Task { await device.disconnect(.afterPendingOperations) }
        while await device.outstanding == waitingCount, !Task.isCancelled { await Task.yield() }
        await peripheral.send(raw: [0x0B, 0x07])
        #expect(try await call.value == [7])
        await first.value
        await second.value
        #expect(await device.disconnectReason == .requested)
    }

    @Test func itWaitsForExclusiveAccessThatKeepsCallsOut() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        let end = try await device.exclusively(others: .fail) { device in
            let end = Task.detached { await device.disconnect(.afterPendingOperations) }
            while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
            let value = try await device.read(.handle(8))
            #expect(value == [64])
            return end
        }
        await end.value
        #expect(await device.disconnectReason == .requested)
    }

    @Test(.row("C01")) func theTaskWithExclusiveAccessMayEndTheLink() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        try await device.exclusively { device in
            let other = Task.detached { await code { _ = try await device.read(.handle(3)) } }
            while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
            await device.disconnect(.afterPendingOperations)
            #expect(await other.value == .disconnected)
        }
        #expect(await device.disconnectReason == .requested)
    }

    @Test func aCancelledWaitEndsTheLinkAtOnce() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let call = await peripheral.leaveWithoutResponse { await code { _ = try await device.read(.handle(3)) } }
        let end = Task { await device.disconnect(.afterPendingOperations) }
        while await device.waitingCallCount < 1, !Task.isCancelled { await Task.yield() }
        end.cancel()
        await end.value
        #expect(try await call.value == .disconnected)
    }

    @Test func withNothingUnderWayItIsOverAtOnce() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        await device.disconnect(.afterPendingOperations)
        #expect(await device.disconnectReason == .requested)
        await device.disconnect(.afterPendingOperations)
    }
}
