import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// Calls that take their place in the queue before they are made. In virtual time.
@Suite(.timeLimit(.minutes(10))) struct EnqueueingTests {
    private static let control: CharacteristicReference = 0xFFF1

    private static let device = VirtualDevice(
        name: "Queue",
        services: [
            VirtualService(
                0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write]), VirtualCharacteristic(0xFFF2, .notify)])
        ])

    private func run(
        _ body: @concurrent @Sendable @escaping (Peripheral, VirtualPeripheral, VirtualTime) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.device, latency: .milliseconds(30), time: time)
            let device = try await Central(time: time).attach(
                descriptor: peripheral.connect(), ConnectOptions(mtu: 23))
            try await body(device, peripheral, time)
            await device.disconnect()
            await time.settle()
            #expect(time.loop.timerCount == 0)
            #expect(await device.outstanding == 0)
        }
    }

    /// The values that were written to handle 3, and what was read from there as 0xFF, in the order of the packets.
    private static func written(_ peripheral: VirtualPeripheral) async -> [UInt8] {
        await peripheral.transcript.steps.compactMap { step in
            guard case .sent(let pdu) = step.event else { return nil }
            if pdu.starts(with: [0x12, 3, 0]) { return pdu.last }
            return pdu == [0x0A, 3, 0] ? 0xFF : nil
        }
    }

    @Test func theOrderInTheProgramIsTheOrderOnTheLink() async throws {
        try await run { device, peripheral, _ in
            // The first one has to find its characteristic before; the others know the handle.
            var calls = [device.enqueue { try await $0.write([0], to: Self.control) }]
            for index in 1..<20 as Range<UInt8> {
                calls.append(device.enqueue { try await $0.write([index], to: .handle(3)) })
            }
            _ = try await device.read(.handle(3))
            calls.append(device.enqueue { try await $0.write([20], to: .handle(3)) })
            for call in calls { try await call.value }
            let written = await Self.written(peripheral)
            #expect(written.filter { $0 != 0xFF } == Array(0...20))
            // The read is after the twentieth, and runs concurrently with it.
            #expect(written.firstIndex(of: 0xFF) == 20)
        }
    }

    @Test func theEndOfTheLinkWaitsForThem() async throws {
        try await run { device, peripheral, _ in
            let before = device.enqueue { try await $0.write([1], to: Self.control) }
            let again = device.enqueue { try await $0.write([2], to: Self.control) }
            await device.disconnect(.afterPendingOperations)
            try await before.value
            try await again.value
            #expect(await Self.written(peripheral) == [1, 2])
            let late = device.enqueue { try await $0.write([3], to: Self.control) }
            let error = await Self.failure(late)
            #expect(error?.code == .disconnected)
        }
    }

    @Test func aFailureDoesNotStopTheNext() async throws {
        try await run { device, peripheral, _ in
            let bad = device.enqueue { try await $0.write([1], to: 0xABCD) }
            let good = device.enqueue { try await $0.write([2], to: Self.control) }
            #expect(await Self.failure(bad)?.code == .attributeNotFound)
            try await good.value
            #expect(await Self.written(peripheral) == [2])
        }
    }

    @Test func severalCallsBelongToOneTurn() async throws {
        try await run { device, peripheral, _ in
            let first = device.enqueue { device in
                try await device.write([1], to: Self.control)
                try await device.write([2], to: Self.control)
                return try await device.read(Self.control)
            }
            let second = device.enqueue { try await $0.write([3], to: Self.control) }
            let value = try await first.value
            try await second.value
            #expect(value == [2])
            #expect(await Self.written(peripheral) == [1, 2, 0xFF, 3])
        }
    }

    @Test func exclusiveAccessWaitsForThem() async throws {
        try await run { device, peripheral, _ in
            device.enqueue { try await $0.write([1], to: Self.control) }
            try await device.exclusively { device in
                try await device.write([2], to: Self.control)
                let inner = device.enqueue { try await $0.write([3], to: Self.control) }
                try await inner.value
            }
            #expect(await Self.written(peripheral) == [1, 2, 3])
        }
    }

    @Test func theyAreBounded() async throws {
        try await run { device, peripheral, _ in
            let calls = (0..<65).map { index in
                device.enqueue { try await $0.write([UInt8(index)], to: .handle(3)) }
            }
            let refused = calls.last
            if let refused { #expect(await Self.failure(refused)?.code == .queueFull) }
            for call in calls.dropLast() { try await call.value }
            #expect(await Self.written(peripheral).count == 64)
            try await device.enqueue { try await $0.write([1], to: .handle(3)) }.value
        }
    }

    @Test func theyAreCancelled() async throws {
        try await run { device, peripheral, time in
            let calls = (0..<3).map { index in
                device.enqueue { try await $0.write([UInt8(index)], to: .handle(3)) }
            }
            calls[1].cancel()
            #expect(await Self.failure(calls[1])?.code == .cancelled)
            await device.cancelAll()
            for call in calls { _ = await Self.failure(call) }
            #expect(await Self.failure(calls[2])?.code == .cancelled)
            #expect(await !Self.written(peripheral).contains(1))
            #expect(await !Self.written(peripheral).contains(2))
            try await device.enqueue { try await $0.write([9], to: .handle(3)) }.value
            #expect(await Self.written(peripheral).last == 9)
        }
    }

    @Test func theyEndWithTheLinkAndWithTime() async throws {
        try await run { device, peripheral, time in
            let holder = device.enqueue {
                try await $0.request([1], to: Self.control, replyOn: 0xFFF2, timeout: .seconds(9))
            }
            let late = device.enqueue(timeout: .seconds(2)) { try await $0.write([2], to: Self.control) }
            let next = device.enqueue { try await $0.write([3], to: Self.control) }
            #expect(await Self.failure(late)?.code == .timedOut)
            await peripheral.disconnect()
            #expect(await Self.failure(holder)?.code == .disconnected)
            #expect(await Self.failure(next)?.code == .disconnected)
        }
    }

    private static func failure<Value>(_ call: Peripheral.QueuedCall<Value>) async -> BLEError? {
        do {
            _ = try await call.value
            return nil
        } catch {
            return error as? BLEError
        }
    }
}
