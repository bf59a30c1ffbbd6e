import BLEProfiles
import BareBLE
import BareBLETestKit
import HeartRateSensing
import Testing

/// The sensor, with centrals in virtual time.
@Suite(.timeLimit(.minutes(10))) struct HeartRateSensorTests {
    private func run(
        _ body: @Sendable @escaping (VirtualTime, ServingBench, Peripheral) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let bench = ServingBench(time)
            let sensor = try await HeartRateSensor(
                bench.peripheral, of: SimulatedHeart(), clock: bench.central.clock)
            let running = time.task { try await sensor.run() }
            try await body(time, bench, try await bench.connect().client)
            running.cancel()
            _ = await running.result
            #expect(await bench.peripheral.centrals.isEmpty)
        }
    }

    @Test func aMeasurementComesEachSecond() async throws {
        try await run { time, bench, client in
            let begin = time.now
            var measurements: [HeartRateMeasurement] = []
            for try await measurement in try await client.subscribe(to: .heartRateMeasurement) {
                measurements.append(measurement)
                if measurements.count == 60 { break }
            }
            #expect((Duration.seconds(58)...(.seconds(62))).contains(begin.duration(to: time.now)))
            #expect(Set(measurements.map(\.beatsPerMinute)) == Set(60...80))
            #expect(measurements.allSatisfy { $0.hasSkinContact == true && $0.rrIntervals1024.count == 1 })
        }
    }

    @Test func theEnergyIsResetByTheControlPointAlone() async throws {
        try await run { time, bench, client in
            try await time.clock.sleep(for: .seconds(100))
            var values = try await client.subscribe(to: .heartRateMeasurement).makeAsyncIterator()
            let before = try await values.next()?.energyExpended ?? 0
            #expect(before >= 9)
            try await client.write(HeartRateControlPoint.resetEnergyExpended, to: .heartRateControlPoint)
            _ = try await values.next()
            #expect(try await values.next()?.energyExpended ?? .max <= 1)
            let error = await #expect(throws: BLEError.self) {
                try await client.write(HeartRateControlPoint(rawValue: 2), to: .heartRateControlPoint)
            }
            #expect(error?.attError?.rawValue == 0x80)
        }
    }

    @Test func theBatteryIsReadAndReportedWhenItChanges() async throws {
        try await run { time, bench, client in
            #expect(try await client.read(.batteryLevel) == BatteryLevel(percentage: 100))
            #expect(try await client.read(.bodySensorLocation) == .chest)
            var levels = try await client.subscribe(to: .batteryLevel).makeAsyncIterator()
            #expect(try await levels.next() == BatteryLevel(percentage: 99))
            #expect(try await levels.next() == BatteryLevel(percentage: 98))
            #expect(try await client.read(.batteryLevel) == BatteryLevel(percentage: 98))
        }
    }
}
