import BareBLE
import BareBLETestKit
import Foundation
import Testing

/// The way from the time of a value to the time of day, in Notifications.md.
@Suite struct TimeOfDaySampleTests {
    // in: Sources/BareBLE/BareBLE.docc/Notifications.md
    func date(of value: ReceivedValue, by clock: CentralClock) -> Date {
        Date(timeIntervalSinceNow: (value.time - clock.now) / .seconds(1))
    }
    // out

    @Test func aValueIsAsOldAsItsDate() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let device = try await central.attach(descriptor: VirtualPeripheral(.heartRate, time: time).connect())
            var beats = try await device.subscribe(to: 0x2A37).makeAsyncIterator()
            let next = try await beats.next()
            let beat = try #require(next)
            try await central.clock.sleep(for: .seconds(3600))
            let age: Double = (central.clock.now - beat.time) / .seconds(1)
            #expect(age >= 3600)
            let earliest = Date().timeIntervalSince1970 - age
            let moment = date(of: beat, by: central.clock).timeIntervalSince1970
            let latest = Date().timeIntervalSince1970 - age
            // The sums are rounded.
            #expect(earliest - 0.001 <= moment && moment <= latest + 0.001)
            await device.disconnect()
        }
    }
}
