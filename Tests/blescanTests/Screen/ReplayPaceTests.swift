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
        #expect(pace.wait(until: .seconds(50)) == Self.recorded(50))
        here.pass(.seconds(20))
        #expect(pace.now() == Self.recorded(50))
        #expect(pace.wait(until: .seconds(51)) == Self.recorded(51))
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
        #expect(pace.wait(until: .seconds(50)) == Self.recorded(50))
        async let next = withCheckedContinuation { ended in
            DispatchQueue(label: "reader").async { ended.resume(returning: pace.wait(until: .seconds(120))) }
        }
        // Before the reader waits, the clock of the recording stands, however much time passes.
        try await waited(for: "the reader waits") {
            here.pass(.milliseconds(1))
            return pace.now() > Self.recorded(50)
        }
        let reached = pace.now()
        here.pass(.seconds(2))
        #expect(pace.now() == reached + .seconds(20))
        here.pass(.seconds(1_000_000))
        #expect(pace.now() == Self.recorded(120))
        pace.stop()
        #expect(await next == nil)
    }

    @Test func theClockNeverGoesBack() {
        let here = Here()
        let pace = ReplayPace(1) { here.now() }
        #expect(pace.now() == .zero)
        #expect(pace.wait(until: .seconds(50)) == Self.recorded(50))
        #expect(pace.wait(until: .seconds(3)) == Self.recorded(50))
        #expect(pace.now() == Self.recorded(50))
    }

    /// As in a recording of a machine whose clock is set meanwhile.
    @Test func aLongPauseIsNotSatThrough() async throws {
        let here = Here()
        let pace = ReplayPace(2) { here.now() }
        #expect(pace.wait(until: .seconds(-62_000_000_000)) == BootInstant(nanoseconds: .min))
        async let next = withCheckedContinuation { ended in
            DispatchQueue(label: "reader").async { ended.resume(returning: pace.wait(until: .seconds(1_700_000_000))) }
        }
        try await waited(for: "the clock jumps") { pace.now() == Self.recorded(1_700_000_000 - 20) }
        here.pass(.seconds(4))
        #expect(pace.now() == Self.recorded(1_700_000_000 - 12))
        #expect(abs(pace.elapsed / .seconds(1) - 8) < 0.001)
        pace.stop()
        #expect(await next == nil)
    }
}
