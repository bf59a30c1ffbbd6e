import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

@Suite("Virtual time", .timeLimit(.minutes(10)))
struct VirtualTimeTests {
    /// A device that responds late and sends a value once a second.
    private static let lamp = VirtualDevice(
        name: "Lamp",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.read, .write], value: [0x01]),
                    VirtualCharacteristic(
                        0xFFF2, .notify, plan: NotifyPlan([[0x05], [0x06]], every: .seconds(1))),
                ])
        ])

    @Test("An hour of notifications takes no hour, and each comes at its second")
    func anHour() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let peripheral = VirtualPeripheral(Self.lamp, time: time)
            let device = try await central.attach(descriptor: peripheral.connect())
            let start = time.now
            var count = 0
            for try await value in try await device.subscribe(to: 0xFFF2) {
                #expect(time.now - start == .seconds(count))
                #expect(value.bytes == [count.isMultiple(of: 2) ? 0x05 : 0x06])
                count += 1
                if count == 3600 { break }
            }
            await device.disconnect()
        }
    }

    @Test("A peer that does not respond is disconnected after exactly 30 s", .row("T06"))
    func transactionTimeout() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let peripheral = VirtualPeripheral(Self.lamp, latency: .milliseconds(50), time: time)
            let device = try await central.attach(descriptor: peripheral.connect())
            #expect(time.now == .zero + .milliseconds(50))
            await peripheral.stopResponding()
            await #expect(throws: BLEError.self) { try await device.read(.handle(0x0003), timeout: .seconds(60)) }
            #expect(time.now == .zero + .milliseconds(50) + .seconds(30))
            #expect(await device.disconnectReason == .attTimeout)
            #expect(time.loop.timerCount == 0)
        }
    }

    @Test("Sleeps end in the order of their deadlines, and equal ones in the order in which they began")
    func sleepsEndInTheOrderOfTheirDeadlines() async throws {
        await VirtualTime.run { time in
            let order = await withTaskGroup(of: Int.self) { group in
                for (number, seconds) in [30, 10, 20, 10].enumerated() {
                    group.addTask {
                        try? await time.clock.sleep(for: .seconds(seconds))
                        return number
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(order == [1, 3, 2, 0])
            #expect(time.now == .zero + .seconds(30))
        }
    }

    @Test("A sleeper that is cancelled wakes at once, and leaves no timer")
    func cancelledSleep() async throws {
        await VirtualTime.run { time in
            let sleeper = time.task { try await time.clock.sleep(for: .seconds(86_400)) }
            await time.settle()
            #expect(time.loop.timerCount == 1)
            sleeper.cancel()
            await #expect(throws: CancellationError.self) { try await sleeper.value }
            #expect(time.now < .zero + .seconds(1))
            #expect(time.loop.timerCount == 0)
            let early = time.task { try await time.clock.sleep(for: .seconds(1)) }
            early.cancel()
            await #expect(throws: CancellationError.self) { try await early.value }
        }
    }

    @Test("Time stands while work is done elsewhere")
    func timeStandsWhileWorkIsDoneElsewhere() async throws {
        try await VirtualTime.run { time in
            async let asleep: Void = time.clock.sleep(for: .seconds(1))
            // Long enough for the loop to find nothing to do.
            let value = await time.hold { await Task.detached { (0..<200_000).reduce(0, ^) }.value }
            #expect(time.now == .zero, "\(value)")
            #expect(try await time.loop.offload { 7 } == 7)
            try await asleep
            #expect(time.now == .zero + .seconds(1))
        }
    }

    @Test("A dialogue's waits cost nothing")
    func theWaitsOfADialogueCostNothing() async throws {
        let dialogue = try Dialogue(
            """
            < 0a 0300
            ! wait 20000 ms
            > 0b 0102
            """)
        try await VirtualTime.run { time in
            let peer = ScriptedPeripheral(dialogue, time: time)
            let device = try await Central(time: time).attach(descriptor: peer.connect(), ConnectOptions(mtu: 23))
            #expect(try await device.read(.handle(3), timeout: .seconds(25)) == [1, 2])
            #expect(time.now == .zero + .seconds(20))
            #expect(await peer.finish().isComplete)
        }
    }

    @Test("The same run has the same trace, with its times, each time")
    func sameTrace() async throws {
        let first = try await trace()
        #expect(first.count > 100)
        for _ in 0..<5 { #expect(try await trace() == first) }
    }

    private func trace() async throws -> [TracedPDU] {
        try await VirtualTime.run { time in
            let lines = Lock<[TracedPDU]>([])
            var configuration = Configuration()
            configuration.trace = { pdu in lines.withLock { $0.append(pdu) } }
            let central = Central(configuration, time: time)
            try await withThrowingTaskGroup { group in
                for number in 0..<4 {
                    let peripheral = VirtualPeripheral(
                        Self.lamp, latency: .milliseconds(10 + number % 2), time: time)
                    let device = try await central.attach(descriptor: peripheral.connect(), name: "\(number)")
                    group.addTask {
                        var count = 0
                        for try await _ in try await device.subscribe(to: 0xFFF2) {
                            try await device.write([UInt8(count)], to: 0xFFF1)
                            count += 1
                            if count == 10 { break }
                        }
                        await device.disconnect()
                    }
                }
                try await group.waitForAll()
            }
            return lines.withLock { $0 }
        }
    }

    @Test("Results of other threads return in the order in which the work began, whichever thread ends first")
    func resultsInOrder() async throws {
        let order = try await VirtualTime.run { time in
            let order = Lock<[Int]>([])
            let hasSecondEnded = Lock(false)
            let first = time.task {
                try await time.loop.offload {
                    while !hasSecondEnded.withLock({ $0 }) { _ = sched_yield() }
                }
                order.withLock { $0.append(1) }
            }
            let second = time.task {
                try await time.loop.offload { hasSecondEnded.withLock { $0 = true } }
                order.withLock { $0.append(2) }
            }
            try await first.value
            try await second.value
            return order.withLock { $0 }
        }
        #expect(order == [1, 2])
    }

    @Test("A task that never stops gets the result that it waits for")
    func resultsBesideWork() async {
        await VirtualTime.run { time in
            let hasEnded = Lock(false)
            time.task {
                try await time.loop.offload {}
                hasEnded.withLock { $0 = true }
            }
            while !hasEnded.withLock({ $0 }), !Task.isCancelled { await Task.yield() }
            #expect(hasEnded.withLock { $0 })
        }
    }

    @Test("Nothing is left of a run: the loop goes, with its thread and its descriptors")
    func leavesNothing() async throws {
        weak var loop: EventLoop?
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(Self.lamp, time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            time.task { try await time.clock.sleep(for: .seconds(1)) }
            _ = try await device.read(0xFFF1)
            await device.disconnect()
        }
        loop = try await VirtualTime.run { time in
            try await time.clock.sleep(for: .seconds(1))
            return time.loop
        }
        #expect(loop == nil)
    }
}
