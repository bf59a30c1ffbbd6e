import AdvertisementLogging
import BareBLE
import BareBLETestKit
import Testing

/// The logger of advertisements, in virtual time.
@Suite(.timeLimit(.minutes(10))) struct AdvertisementLoggerTests {
    @Test func itGoesOnWithAControllerThatGoesDeaf() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(.raspberryPiGoneDeaf)
            await radio.add(.heartRate)
            var configuration = Configuration()
            configuration.recovery = .power
            let central = Central(configuration, radio: radio)
            let lines = Lines()
            let running = time.task { try await AdvertisementLogger(central) { lines.write($0) }.run() }
            var events = central.recoveryEvents.makeAsyncIterator()
            var taken: RecoveryPolicy.Step?
            while taken == nil, let event = try await events.next() {
                if case .recovered(let step, _) = event { taken = step }
            }
            #expect(taken == .power)
            try await time.clock.sleep(for: .seconds(61))
            running.cancel()
            _ = await running.result
            #expect(lines.all.count >= 2)
            #expect(lines.all.allSatisfy { $0.hasSuffix(" Virtual HRM") })
        }
    }
}
