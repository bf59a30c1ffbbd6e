import BLECore
import Testing

@testable import blescan

/// The trace of a device's strength, and the statistics of its interval.
@Suite struct SignalHistoryTests {
    private static func at(_ seconds: Double) -> BootInstant { BootInstant(nanoseconds: Int64(seconds * 1e9)) }

    /// A clock that was not set is before 1970.
    @Test(arguments: [0.0, 1000, -120, -7]) func eachStepHasItsStrongestReport(_ start: Double) {
        var history = SignalHistory()
        for (seconds, strength) in [(0.1, -70), (1.9, -60), (2.0, -80), (6.5, -50)] as [(Double, Int8)] {
            // The steps are those of the clock.
            history.record(strength, at: Self.at((start / 2).rounded(.down) * 2 + seconds))
        }
        let now = Self.at((start / 2).rounded(.down) * 2 + 8)
        #expect(history.strengths(of: 6, at: now) == [nil, -60, -80, nil, -50, nil])
        #expect(history.strengths(of: 2, at: now) == [-50, nil])
    }

    @Test func whatIsOlderThanTwoMinutesIsGone() {
        var history = SignalHistory()
        history.record(-40, at: Self.at(1))
        history.record(-50, at: Self.at(119))
        #expect(history.strengths(of: 60, at: Self.at(119)).first == -40)
        history.record(-60, at: Self.at(121))
        let strengths = history.strengths(of: 60, at: Self.at(121))
        #expect(strengths.suffix(2) == [-50, -60] && strengths.compactMap(\.self).count == 2)
        history.record(-70, at: Self.at(10_000))
        #expect(history.strengths(of: 60, at: Self.at(10_000)).compactMap(\.self) == [-70])
        #expect(history.strengths(of: 60, at: Self.at(20_000)).allSatisfy { $0 == nil })
    }

    @Test func aScanResponseIsNoAdvertisement() throws {
        var history = SignalHistory()
        for seconds in [0, 0.001, 1, 1.0015, 1.8, 3, 200, 201] { history.record(nil, at: Self.at(seconds)) }
        let gaps = try #require(history.gaps)
        #expect(gaps.least == .milliseconds(800) && gaps.most == .milliseconds(1200))
        #expect(gaps.mean == .seconds(1), "without the 197 s in which the device was away")
        #expect(history.strengths(of: 1, at: Self.at(201)) == [nil])
    }

    @Test func thePageOfADeviceShowsThem() {
        let air = Air(columns: 80, rows: 20)
        for strength in [-100, -90, -80, -60, -36, -20] as [Int8] {
            air.hear("C0:00:00:00:00:01", strength, Air.named("Near"))
            air.pass(.seconds(2))
        }
        air.press(.down, .enter)
        #expect(air.lines().contains { $0.hasPrefix("last 2min") && $0.hasSuffix(" ▁▂▃▅██") }, "\(air.lines())")
        #expect(air.lines().contains("every     2.0 s, 2.0 s on average, between 2.0 s and 2.0 s"), "\(air.lines())")
        air.screen.resize(columns: 40, rows: 20)
        #expect(air.lines().contains { $0.hasPrefix("last 1min") && $0.hasSuffix(" ▁▂▃▅██") })
    }
}
