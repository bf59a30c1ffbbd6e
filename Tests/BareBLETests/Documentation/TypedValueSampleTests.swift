import BareBLE
import BareBLETestKit
import Testing

/// The samples of TypedValues.md on the keys of the usual services.
@Suite struct TypedValueSampleTests {
    private func typed(_ device: Peripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/TypedValues.md
        let level = try await device.read(.batteryLevel)
        print(level.percentage)

        for try await beat in try await device.subscribe(to: .heartRateMeasurement) {
            let milliseconds = beat.rrIntervals.map { Int($0 / .milliseconds(1)) }
            print(beat.beatsPerMinute, "bpm, RR", milliseconds, "ms")
        }
        // out
    }

    private func timed(_ device: Peripheral, _ central: Central) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Notifications.md
        let start = central.clock.now
        var beats = try await device.subscribe(to: .heartRateMeasurement).makeAsyncIterator()
        while let beat = try await beats.next() {
            guard let time = beats.last?.time else { continue }
            print("after", time - start, beat.beatsPerMinute)
        }
        // out
    }

    /// The virtual belt sends 72 bpm with an interval of 853/1024 s first, and one value a second.
    @Test func theVirtualBeltSendsItsIntervals() async throws {
        try await VirtualTime.run { time in
            let central = Central(time: time)
            let device = try await central.attach(descriptor: VirtualPeripheral(.heartRate, time: time).connect())
            var beats = try await device.subscribe(to: .heartRateMeasurement).makeAsyncIterator()
            let beat = try await beats.next()
            let milliseconds = beat?.rrIntervals.map { Int($0 / .milliseconds(1)) }
            #expect(beat?.beatsPerMinute == 72 && milliseconds == [833])
            let first = try #require(beats.last?.time)
            _ = try await beats.next()
            let second = try #require(beats.last?.time)
            #expect(second - first == .seconds(1))
            await device.disconnect()
        }
    }
}
