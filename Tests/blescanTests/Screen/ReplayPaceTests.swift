import BLECore
import BLELinux
import Dispatch
import Testing

@testable import blescan

/// The clock of a recording, with a clock that the tests advance.
@Suite struct ReplayPaceTests {
    /// The present time.
    private final class Here: Sendable {
        private let time = Lock(BootInstant(nanoseconds: 7_000_000_000_000))

        func pass(_ duration: Duration) { time.withLock { $0 = $0 + duration } }

        func now() -> BootInstant { time.withLock { $0 } }
    }

    private static func recorded(_ seconds: Int64) -> BootInstant { BootInstant(nanoseconds: seconds * 1_000_000_000) }

    /// Reading is slow: reports that were not read yet do not count as silence.
    @Test func theClockDoesNotRunAwayFromTheReader() {
        let here = Here()
        let pace = ReplayPace(100) { here.now() }
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        here.pass(.seconds(20))
        #expect(pace.now() == Self.recorded(50))
        #expect(pace.wait(until: .seconds(51)) == .due(Self.recorded(51)))
        here.pass(.seconds(20))
        #expect(pace.now() == Self.recorded(51))
        #expect(pace.elapsed == .seconds(1))
        pace.end()
        here.pass(.seconds(20))
        #expect(pace.now() == Self.recorded(51))
    }

    @Test func theClockGoesAsFarAsTheReportThatIsWaitedFor() async throws {
        let here = Here()
        let pace = ReplayPace(10) { here.now() }
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        async let next = withCheckedContinuation { ended in
            DispatchQueue(label: "reader").async { ended.resume(returning: pace.wait(until: .seconds(120))) }
        }
        // Before the reader waits, the clock of the recording stands, however much time passes.
        try await waited(for: "the reader waits") {
            here.pass(.microseconds(1))
            return pace.now() > Self.recorded(50)
        }
        let reached = pace.now()
        here.pass(.seconds(2))
        #expect(pace.now() == reached + .seconds(20))
        // Otherwise the reader might deliver the report.
        pace.stop()
        #expect(await next == .over)
        here.pass(.seconds(1_000_000))
        #expect(pace.now() == Self.recorded(120))
    }

    @Test func theClockNeverGoesBackByItself() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        #expect(pace.now() == .zero)
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        #expect(pace.wait(until: .seconds(3)) == .due(Self.recorded(50)))
        #expect(pace.now() == Self.recorded(50))
    }

    /// As in a recording of a machine whose clock is set meanwhile.
    @Test func aLongPauseIsNotSatThrough() async throws {
        let here = Here()
        let pace = ReplayPace(2) { here.now() }
        #expect(pace.wait(until: .seconds(-62_000_000_000)) == .due(BootInstant(nanoseconds: .min)))
        async let next = withCheckedContinuation { ended in
            DispatchQueue(label: "reader").async { ended.resume(returning: pace.wait(until: .seconds(1_700_000_000))) }
        }
        try await waited(for: "the clock jumps") { pace.now() == Self.recorded(1_700_000_000 - 20) }
        here.pass(.seconds(4))
        #expect(pace.now() == Self.recorded(1_700_000_000 - 12))
        #expect(abs(pace.elapsed / .seconds(1) - 8) < 0.001)
        pace.stop()
        #expect(await next == .over)
    }

    @Test func whatIsBeforeTheSoughtTimeIsDueAtOnce() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        pace.seek(by: .seconds(10))
        #expect(pace.wait(until: .seconds(58)) == .due(Self.recorded(58)))
        // From the time that is sought, not from the one that is reached.
        pace.seek(by: .seconds(10))
        #expect(pace.wait(until: .seconds(66)) == .due(Self.recorded(66)))
        var arrivals: [BootInstant] = []
        let turn = pace.wait(until: .seconds(74)) {
            arrivals.append(pace.now())
            here.pass(.seconds(4))
        }
        #expect(turn == .due(Self.recorded(74)))
        #expect(arrivals == [Self.recorded(70)])
        #expect(pace.elapsed == .seconds(24))
    }

    /// Meanwhile the clock stands, as the screen does.
    @Test func toGoBackTheRecordingIsReadAgain() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        pace.seek(by: .seconds(-10))
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        pace.seek(by: .seconds(20))
        for second in [58, 66] as [Int64] {
            #expect(pace.wait(until: .seconds(second)) == .due(Self.recorded(second)))
        }
        pace.seek(by: .seconds(-10))
        #expect(pace.wait(until: .seconds(74)) == .restart)
        let held = pace.now()
        pace.restart()
        for second in [50, 58] as [Int64] {
            #expect(pace.wait(until: .seconds(second)) == .due(Self.recorded(second)))
            #expect(pace.now() == held)
        }
        var arrivals: [BootInstant] = []
        let turn = pace.wait(until: .seconds(66)) {
            arrivals.append(pace.now())
            here.pass(.seconds(6))
        }
        #expect(turn == .due(Self.recorded(66)))
        #expect(arrivals == [Self.recorded(60)])
        #expect(pace.now() == Self.recorded(66))
    }

    @Test func theEndIsNoWayForwardAndOneBack() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        pace.seek(by: .seconds(10))
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        pace.seek(by: .seconds(60))
        #expect(pace.wait(until: .seconds(55)) == .due(Self.recorded(55)))
        pace.end()
        pace.seek(by: .seconds(10))
        #expect(pace.now() == Self.recorded(55))
        pace.seek(by: .seconds(-60))
        #expect(pace.waitAtEnd() == .restart)
        pace.restart()
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)), "the beginning is the earliest")
        var arrivals: [BootInstant] = []
        let turn = pace.wait(until: .seconds(55)) {
            arrivals.append(pace.now())
            pace.stop()
        }
        #expect(turn == .over && arrivals == [Self.recorded(50)])
        #expect(pace.waitAtEnd() == .over)
    }

    @Test func aSeekForwardFollowsOneBackAtTheEnd() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        pace.seek(by: .seconds(60))
        #expect(pace.wait(until: .seconds(55)) == .due(Self.recorded(55)))
        pace.end()
        pace.seek(by: .seconds(-4))
        pace.seek(by: .seconds(10))
        #expect(pace.waitAtEnd() == .restart)
        pace.restart()
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        var arrivals = 0
        let turn = pace.wait(until: .seconds(55)) {
            arrivals += 1
            pace.stop()
        }
        #expect(turn == .due(Self.recorded(55)) && arrivals == 0)
    }

    /// The screen has changed since the newest report: devices have faded.
    @Test func aTimeInThePauseIsReadAgainToo() {
        let here = Here()
        let pace = ReplayPace(20) { here.now() }
        #expect(pace.wait(until: .zero) == .due(Self.recorded(0)))
        pace.seek(by: .seconds(100))
        var arrivals = 0
        let turn = pace.wait(until: .seconds(200)) {
            arrivals += 1
            here.pass(.milliseconds(4500))
            if arrivals == 1 { pace.seek(by: .seconds(-10)) } else { pace.stop() }
        }
        #expect(turn == .restart && arrivals == 1)
        #expect(pace.now() == Self.recorded(190), "the clock stands, as the screen does")
    }

    /// A pause that is skipped is no obstacle on the way back.
    @Test func aLongPauseIsCrossedInOneStep() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        pace.seek(by: .seconds(10))
        #expect(pace.wait(until: .seconds(4000)) == .due(Self.recorded(4000)))
        pace.seek(by: .seconds(-10))
        #expect(pace.wait(until: .seconds(4001)) == .restart)
        pace.restart()
        #expect(pace.wait(until: .seconds(50)) == .due(Self.recorded(50)))
        pace.stop()
    }
}
