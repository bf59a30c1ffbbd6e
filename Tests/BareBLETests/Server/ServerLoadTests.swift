import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// The peripheral role with many links, and with centrals that do not read.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct ServerLoadTests {
    @Test func tenThousandUpdatesArriveInOrderThoughTheAirIsHeld() async throws {
        try await ServerBench.run { bench in
            try await bench.local.publish(bench.sensor)
            let central = try await bench.raw()
            await central.configure(bench.handle(0xFFF1), 1)
            let header = [0x1B] + (await bench.handle(0xFFF1)).bytes
            let updates = bench.time.task {
                var outcomes: Set<LocalPeripheral.UpdateOutcome> = []
                for number in 0..<10_000 {
                    let value = UInt16(number).bytes
                    outcomes.formUnion(try await bench.local.update(value, of: 0xFFF1).outcomes.values)
                }
                return outcomes
            }
            var (next, holds) = (0, 0)
            while next < 10_000 {
                // The central reads nothing until the socket is full, and the update waits.
                await bench.time.settle()
                let packets = central.takeAll()
                for packet in packets {
                    #expect(packet == header + UInt16(next).bytes)
                    next += 1
                }
                guard !packets.isEmpty else { break }
                if next < 10_000 { holds += 1 }
            }
            #expect(next == 10_000 && holds >= 2)
            #expect(try await updates.value == [.notified])
            #expect(await bench.local.outstanding == 0)
        }
    }

    @Test func sixtyFourIdleSubscribersCauseNoWakeUp() async throws {
        try await ServerBench.run(maximumCentrals: 64) { bench in
            try await bench.local.publish(bench.sensor)
            let handle = await bench.handle(0xFFF1)
            var centrals: [RawCentral] = []
            for _ in 0..<64 {
                let central = try await bench.raw()
                await central.configure(handle, 1)
                centrals.append(central)
            }
            #expect(try await bench.local.update([1], of: 0xFFF1).sentCount == 64)
            let before = bench.time.loop.wakeUps
            try await bench.time.clock.sleep(for: .seconds(3_600))
            // The one that ends the sleep.
            #expect(bench.time.loop.wakeUps - before == 1)
            for central in centrals { #expect(await central.receive() == [0x1B] + handle.bytes + [1]) }
            #expect(await bench.local.centrals.count == 64)
        }
    }
}
