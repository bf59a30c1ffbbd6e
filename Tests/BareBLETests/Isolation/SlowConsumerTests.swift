import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Slow consumers: memory stays bounded, every loss is reported, nothing else waits.
@Suite("Slow consumers", .timeLimit(.minutes(10)))
struct SlowConsumerTests {
    @Test("a consumer that sleeps for an hour finds the newest, and the number of dropped ones", .row("H18"))
    func aScanIsNotLookedAtForAnHour() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let beacon = await radio.add(.battery)
            let central = Central(radio: radio)
            let all = Lock(0)
            let witness = time.task {
                for try await event in central.scan(.any, .passive) {
                    if case .dropped = event { Issue.record("the witness lost something") }
                    all.withLock { $0 += 1 }
                }
            }
            var events = central.scan(.any, .passive, capacity: 16).makeAsyncIterator()
            guard case .found? = try await events.next() else { throw CancellationError() }
            for second in 0..<3_600 as Range<UInt16> {
                let data = [3, 0xFF, UInt8(truncatingIfNeeded: second), UInt8(truncatingIfNeeded: second >> 8)]
                await radio.advertise(beacon, VirtualAdvertisement(data))
                try await time.clock.sleep(for: .seconds(1))
            }
            let total = all.withLock(\.self)
            #expect(total == 3_601)
            #expect(try await events.next() == .dropped(total - 17))
            var newest: ScanResult?
            for _ in 0..<16 {
                guard case .updated(let scanResult)? = try await events.next() else { throw CancellationError() }
                newest = scanResult
            }
            #expect(newest?.advertisement?.data.suffix(2) == [0x0F, 0x0E])
            await events.stop()
            witness.cancel()
            _ = await witness.result
        }
    }

    @Test("requests continue beside 10,000 notifications a second that no consumer keeps pace with", .row("T17"))
    func requestsContinueBesideAFlood() async throws {
        try await VirtualTime.run { time in
            let peripheral = VirtualPeripheral(
                VirtualDevice(
                    name: "Sender",
                    services: [
                        VirtualService(
                            0xFFF0,
                            [VirtualCharacteristic(0xFFF1, .notify), VirtualCharacteristic(0xFFF2, .read, value: [9])])
                    ]),
                latency: .milliseconds(30), time: time)
            let device = try await Central(time: time).attach(descriptor: peripheral.connect())
            let values = try await device.subscribe(to: 0xFFF1)
            let sent = 20_000
            let flood = time.task {
                for _ in 0..<sent / 100 {
                    for _ in 0..<100 { await peripheral.send(raw: [0x1B, 3, 0, 1]) }
                    try await time.clock.sleep(for: .milliseconds(10))
                }
            }
            let slow = time.task {
                var (taken, dropped) = (0, 0)
                for try await value in values {
                    taken += 1
                    dropped += value.droppedBefore
                    if taken + dropped == sent { break }
                    if taken % 8 == 0 { try await time.clock.sleep(for: .milliseconds(10)) }
                }
                return (taken, dropped)
            }
            for _ in 0..<60 {
                let start = time.now
                #expect(try await device.read(0xFFF2) == [9])
                #expect(time.now - start == .milliseconds(30))
            }
            try await flood.value
            let (taken, dropped) = try await slow.value
            #expect(taken + dropped == sent)
            #expect(dropped > sent / 2 && dropped == values.droppedInTotal)
            #expect(await device.statistics.notifications == sent)
            await device.disconnect()
        }
    }
}
