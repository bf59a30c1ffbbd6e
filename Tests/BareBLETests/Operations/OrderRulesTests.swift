import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// The rules of order, under random interleavings in virtual time.
///
/// What is random, all from the seed: how late the peer responds; what each of five tasks calls (reads, writes,
/// commands, exclusive accesses with calls in them, nested ones too) and how long it waits in between; which calls are
/// cancelled, or have little time; when values come; when everything is cancelled; and when the link is lost. Each call
/// has an attribute of its own, so it is known on the wire, and a late response cannot pass for another one's.
@Suite(.serialized, .timeLimit(.minutes(10))) struct OrderRulesTests {
    private static let callLimit = 300
    private static let ticks = CharacteristicReference.uuid(0xFEED, service: 0xFFF1)

    private static let device = VirtualDevice(
        name: "Cabinet",
        services: [
            VirtualService(
                0xFFF0,
                (0..<callLimit).map { number in
                    VirtualCharacteristic(
                        BluetoothUUID(UInt16(0xE000 + number)), [.read, .write, .writeWithoutResponse],
                        value: OrderBook.value(number))
                }),
            VirtualService(0xFFF1, [VirtualCharacteristic(0xFEED, .notify)]),
        ])

    /// One run's parts.
    private struct Run: Sendable {
        let time: VirtualTime
        let device: Peripheral
        let book: OrderBook

        /// Makes one call, and writes down how it ends.
        func call(_ numbers: inout SeededNumbers, task: Int, access: Int?) async {
            let number = book.nextNumber()
            let kind = Int.random(in: 0..<3, using: &numbers)
            let timeLimit: Duration? =
                Int.random(in: 0..<5, using: &numbers) == 0
                ? .milliseconds(Int.random(in: 1..<80, using: &numbers)) : nil
            let life: Duration? =
                Int.random(in: 0..<5, using: &numbers) == 0
                ? .milliseconds(Int.random(in: 0..<80, using: &numbers)) : nil
            guard let life else { return await perform(number, kind, timeLimit, task, access) }
            let call = time.task { await perform(number, kind, timeLimit, task, access) }
            try? await time.clock.sleep(for: life)
            call.cancel()
            try? await call.value
        }

        private func perform(_ number: Int, _ kind: Int, _ timeLimit: Duration?, _ task: Int, _ access: Int?) async {
            let reference = CharacteristicReference.handle(OrderBook.handle(number))
            let value = OrderBook.value(number)
            book.note(.began(call: number, task: task, access: access))
            do throws(BLEError) {
                switch kind {
                case 0: book.note(.responded(call: number, with: try await device.read(reference, timeout: timeLimit)))
                case 1:
                    try await device.write(value, to: reference, timeout: timeLimit)
                    book.note(.responded(call: number, with: []))
                default:
                    try await device.write(value, to: reference, .withoutResponse, timeout: timeLimit)
                    book.note(.responded(call: number, with: []))
                }
            } catch {
                book.note(.failed(call: number, error.code))
            }
        }

        /// Has the link alone for some calls.
        func access(_ numbers: inout SeededNumbers, task: Int, depth: Int = 0) async {
            let count = Int.random(in: 1..<4, using: &numbers)
            let isNested = depth == 0 && Int.random(in: 0..<3, using: &numbers) == 0
            let timeLimit: Duration? = Bool.random(using: &numbers) ? nil : .milliseconds(100)
            var own = numbers
            do {
                own = try await device.exclusively(timeout: timeLimit) { [own] _ in
                    var own = own
                    let access = book.nextNumber()
                    book.note(.accessBegan(access))
                    for _ in 0..<count { await call(&own, task: task, access: access) }
                    if isNested { await self.access(&own, task: task, depth: 1) }
                    book.note(.accessEnded(access))
                    return own
                }
            } catch {
                // Its turn did not come.
            }
            numbers = own
        }

        /// Takes values and looks at their order until the stream ends.
        func listen(_ values: ValueSequence) async -> [String] {
            var complaints: [String] = []
            var last = -1
            do throws(BLEError) {
                for try await value in values {
                    let number = Int(value.bytes[0]) | Int(value.bytes[1]) << 8
                    if number != last + 1 + value.droppedBefore { complaints.append("value \(number) after \(last)") }
                    last = number
                }
            } catch {
                if error.code != .disconnected { complaints.append("the stream ended with \(error)") }
            }
            book.note(.streamEnded)
            if last < 0 { complaints.append("no value came") }
            return complaints
        }
    }

    @Test(arguments: 0..<16 as Range<UInt64>) func callsAndValuesKeepTheirOrder(seed: UInt64) async throws {
        let book = OrderBook()
        let complaints = try await VirtualTime.run { time in
            var numbers = SeededNumbers(seed: seed)
            var configuration = Configuration()
            configuration.trace = { book.traced($0, below: Self.callLimit) }
            let latency = Duration.milliseconds(Int.random(in: 1..<30, using: &numbers))
            let peripheral = VirtualPeripheral(Self.device, latency: latency, time: time)
            let device = try await Central(configuration, time: time).attach(descriptor: peripheral.connect())
            let values = [try await device.subscribe(to: Self.ticks), try await device.subscribe(to: Self.ticks)]
            let run = Run(time: time, device: device, book: book)
            let lifetime = Duration.milliseconds(Int.random(in: 200..<1200, using: &numbers))
            let clearing = Duration.milliseconds(Int.random(in: 50..<1500, using: &numbers))
            return try await withThrowingTaskGroup(of: [String].self) { group in
                group.addTask {
                    _ = await device.disconnected()
                    book.note(.disconnectTold)
                    return []
                }
                for values in values { group.addTask { await run.listen(values) } }
                for task in 0..<5 {
                    group.addTask {
                        var own = SeededNumbers(seed: seed &* 64 &+ UInt64(task))
                        for _ in 0..<7 {
                            if Int.random(in: 0..<6, using: &own) == 0 {
                                await run.access(&own, task: task)
                            } else {
                                await run.call(&own, task: task, access: nil)
                            }
                            try await time.clock.sleep(for: .milliseconds(Int.random(in: 0..<40, using: &own)))
                        }
                        return []
                    }
                }
                group.addTask {
                    try await time.clock.sleep(for: clearing)
                    book.note(.aboutToCancel)
                    // Whatever is on its way into the link has come there.
                    await time.settle()
                    await device.cancelAll()
                    book.note(.everythingCancelled)
                    return []
                }
                group.addTask {
                    var own = SeededNumbers(seed: ~seed)
                    for number in 0..<2_000 where await peripheral.isConnected {
                        try await peripheral.notify(
                            0xFEED, [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)])
                        if Bool.random(using: &own) {
                            try await time.clock.sleep(for: .milliseconds(Int.random(in: 1..<20, using: &own)))
                        }
                    }
                    return []
                }
                group.addTask {
                    try await time.clock.sleep(for: lifetime)
                    await peripheral.disconnect()
                    return []
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
        }
        let found = complaints + book.complaints()
        #expect(found == [], "seed \(seed)")
        let counts = book.counts()
        #expect(counts.responded + counts.failed >= 30, "seed \(seed): \(counts)")
    }
}
