import BLECore
import BLELinux
import Dispatch

/// The clock of a recording: it begins with the first report and goes at the speed that is wanted.
///
/// It never goes back, and never beyond the report that is waited for, nor beyond the newest one while none is: where reading is
/// slower than the speed that is wanted, nobody is silent only because of that. Where nothing comes for long, as when the machine that
/// recorded had its clock set, it jumps.
final class ReplayPace: Sendable {
    private struct State {
        /// The first report, in the recording.
        var first: BootInstant?
        /// A moment in the recording, and when it is here.
        var beginning: (recorded: BootInstant, here: BootInstant)?
        /// What was jumped over.
        var skipped = Duration.zero
        /// The newest report that was handed over.
        var newest = BootInstant.zero
        /// The report that is not yet due.
        var next: BootInstant?
        var isOver = false
    }

    /// How long nobody has to watch nothing happen, in seconds.
    private static let longestPause = 10.0

    private let state = Lock(State())
    private let stopped = DispatchSemaphore(value: 0)
    private let speed: Double
    private let clock: @Sendable () -> BootInstant

    /// A clock `speed` times as fast as `clock`.
    init(_ speed: Double, clock: @escaping @Sendable () -> BootInstant = { Terminal.now() }) {
        self.speed = speed
        self.clock = clock
    }

    /// The recording's time; it stands still where there is nothing to come.
    func now() -> BootInstant {
        state.withLock { state in
            guard let beginning = state.beginning, let next = state.next, !state.isOver else { return state.newest }
            let passed = (clock() - beginning.here) * speed
            return max(state.newest, min(beginning.recorded + passed, next))
        }
    }

    /// How much of the recording's time has passed, without what was jumped over.
    var elapsed: Duration {
        let now = now()
        return state.withLock { state in state.first.map { now - $0 - state.skipped } ?? .zero }
    }

    /// Waits until a report is due, and answers its time; `nil` when nobody wants to see it any more.
    func wait(until timestamp: Duration) -> BootInstant? {
        let recorded = BootInstant(nanoseconds: timestamp.saturatedNanoseconds)
        let (due, seconds) = state.withLock { state -> (BootInstant, Double) in
            let here = clock()
            if state.first == nil {
                state.first = recorded
                // Before 1970 where nobody had set the clock.
                state.newest = recorded
            }
            let beginning = state.beginning ?? (recorded, here)
            state.beginning = beginning
            // The clock of the machine that recorded may have been put back.
            let due = max(recorded, state.newest)
            state.next = due
            let passed = (here - beginning.here) * speed
            let pause = max((due - beginning.recorded - passed) / speed / .seconds(1), 0)
            guard pause > Self.longestPause else { return (due, pause) }
            state.skipped += .seconds(pause - Self.longestPause) * speed
            state.beginning = (due, here + .seconds(Self.longestPause))
            return (due, Self.longestPause)
        }
        guard stopped.wait(timeout: .now() + seconds) == .timedOut else {
            stopped.signal()
            return nil
        }
        state.withLock { state in
            state.newest = due
            state.next = nil
        }
        return due
    }

    /// Nobody wants to see more.
    func stop() {
        stopped.signal()
    }

    /// Nothing comes any more: the clock stands still at the last report.
    func end() {
        state.withLock { $0.isOver = true }
    }
}
