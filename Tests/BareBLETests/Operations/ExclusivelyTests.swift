import BareBLE
import BareBLETestKit
import Testing

/// Exclusive access to a link. What other callers do meanwhile is done in detached tasks: a plain task would belong to
/// the holder.
@Suite(.timeLimit(.minutes(10))) struct ExclusivelyTests {
    private let central = Central()

    /// Reads that reached the peer, by their handles.
    private func reads(_ peripheral: VirtualPeripheral) async -> [UInt8] {
        await peripheral.transcript.steps.compactMap { step in
            if case .sent(let pdu) = step.event, pdu.first == 0x0A, pdu.count == 3 { pdu[1] } else { nil }
        }
    }

    private func wait(for count: Int, toWaitOn device: Peripheral) async {
        while await device.waitingCallCount < count, !Task.isCancelled { await Task.yield() }
    }

    /// The runtime resumes those who waited on several threads, and so in any order; none of that may reach the peer.
    @Test func othersWaitAndContinueInTheirOrder() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let handles = 5..<45 as Range<UInt8>
        let others = try await device.exclusively { device in
            var others: [Task<[UInt8]?, Never>] = []
            for (index, handle) in handles.enumerated() {
                let handle = AttributeHandle(handle)
                // Most of these handles do not exist, which does not matter here.
                others.append(Task.detached { try? await device.read(.handle(handle)) })
                await wait(for: index + 1, toWaitOn: device)
            }
            for _ in 0..<3 { _ = try await device.read(.handle(2)) }
            return others
        }
        for other in others { _ = await other.value }
        #expect(await reads(peripheral) == [2, 2, 2] + handles)
    }

    @Test func itWaitsForTheCallsBeforeIt() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        await peripheral.stopResponding()
        let before = await peripheral.receivedCount
        let first = Task { try await device.read(.handle(8)) }
        while await peripheral.receivedCount == before, !Task.isCancelled { await Task.yield() }
        let access = Task { try await device.exclusively { try await $0.read(.handle(2)) } }
        await wait(for: 1, toWaitOn: device)
        let later = Task { try await device.read(.handle(5)) }
        await wait(for: 2, toWaitOn: device)
        #expect(await reads(peripheral) == [8])
        await peripheral.resumeResponding()
        await peripheral.send(raw: [0x0B, 0x40])
        #expect(try await first.value == [0x40])
        _ = try await access.value
        _ = try? await later.value
        #expect(await reads(peripheral) == [8, 2, 5])
    }

    @Test func itNestsAndChildTasksBelongToIt() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        let values = try await device.exclusively { device in
            async let child = device.read(.handle(8))
            let inner = try await device.exclusively { try await $0.read(.handle(8)) }
            return try await [child, inner, Task { try await device.read(.handle(8)) }.value]
        }
        #expect(values == [[64], [64], [64]])
        #expect(try await device.read(.handle(8)) == [64])
    }

    @Test func othersFailAtOnceWhereExclusiveAccessMakesThemFail() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        try await device.exclusively(others: .fail) { device in
            await #expect(throws: error(.busy)) {
                _ = try await Task.detached { try await device.read(.handle(8)) }.value
            }
            await #expect(throws: error(.busy)) {
                try await Task.detached { try await device.exclusively { _ in } }.value
            }
            _ = try await device.read(.handle(8))
        }
        _ = try await device.read(.handle(8))
    }

    private struct Mishap: Error {}

    @Test func itIsReleasedWhenTheBodyThrows() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        await #expect(throws: Mishap.self) { try await device.exclusively { _ in throw Mishap() } }
        #expect(try await device.read(.handle(8)) == [64])
    }

    @Test func aCancelledWaiterNeverGetsIt() async throws {
        let device = try await central.attach(to: VirtualPeripheral(.battery))
        try await device.exclusively { device in
            let waiter = Task.detached { try await device.exclusively { _ in Issue.record("it ran") } }
            await wait(for: 1, toWaitOn: device)
            waiter.cancel()
            await #expect(throws: error(.cancelled)) { try await waiter.value }
        }
        #expect(try await device.read(.handle(8)) == [64])
    }

    @Test func aWaitingCallsDeadlineRunsOn() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        try await device.exclusively { device in
            await #expect(throws: error(.timedOut)) {
                _ = try await Task.detached { try await device.read(.handle(8), timeout: .milliseconds(20)) }.value
            }
            await #expect(throws: error(.timedOut)) {
                try await Task.detached { try await device.exclusively(timeout: .milliseconds(20)) { _ in } }.value
            }
        }
        #expect(await reads(peripheral) == [])
        #expect(await device.isConnected)
    }

    @Test func theEndOfTheLinkReleasesAllWaitingTasks() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        try await device.exclusively { device in
            let call = Task.detached { try await device.read(.handle(8)) }
            let access = Task.detached { try await device.exclusively { _ in Issue.record("it ran") } }
            await wait(for: 2, toWaitOn: device)
            await peripheral.disconnect()
            await #expect(throws: error(.disconnected)) { _ = try await call.value }
            await #expect(throws: error(.disconnected)) { try await access.value }
            await #expect(throws: error(.disconnected)) {
                try await device.read(.handle(8))
            }
        }
        await #expect(throws: error(.disconnected)) {
            try await device.exclusively { _ in }
        }
    }

    /// The values keep coming, and the peer is asked to stop, while another task has exclusive access.
    @Test func subscriptionsDoNotWaitForIt() async throws {
        let peripheral = VirtualPeripheral(.battery)
        let device = try await central.attach(to: peripheral)
        let values = try await device.subscribe(to: 0x2A19)
        try await device.exclusively { _ in
            try await peripheral.notify(0x2A19, [7])
            try await Task.detached {
                var iterator = values.makeAsyncIterator()
                #expect(try await iterator.next()?.bytes == [7])
                try await values.unsubscribe()
            }.value
            #expect(await !peripheral.isSubscribed(to: 0x2A19))
            let late = Task.detached { try await device.subscribe(to: 0x2A19) }
            await wait(for: 1, toWaitOn: device)
            late.cancel()
            await #expect(throws: error(.cancelled)) { _ = try await late.value }
        }
    }

    /// The hook is called for a call that is inside; its own calls must not wait for the exclusive access that waits
    /// for that call.
    @Test func theSecurityHookMayCallWhileExclusiveAccessIsAwaited() async throws {
        let locked = VirtualDevice(
            name: "Locked",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, .read, onRead: .refuse(.insufficientEncryption)),
                        VirtualCharacteristic(0xFFF3, .read, value: [3]),
                    ])
            ])
        let (linked, input) = AsyncStream.makeStream(of: Peripheral.self)
        var configuration = Configuration()
        configuration.raiseSecurity = { _ in
            var iterator = linked.makeAsyncIterator()
            guard let device = await iterator.next() else { return false }
            let access = Task.detached { try await device.exclusively { try await $0.read(.handle(5)) } }
            await self.wait(for: 1, toWaitOn: device)
            let value = try? await device.read(.handle(5))
            access.cancel()
            return value == [3]
        }
        let device = try await Central(configuration).attach(to: VirtualPeripheral(locked))
        input.yield(device)
        let error = await #expect(throws: BLEError.self) { try await device.read(.handle(3)) }
        #expect(error?.code == .insufficientSecurity)
        #expect(try await device.read(.handle(5)) == [3])
    }
}
