import BLECore
import BLELinux
import Dispatch

/// The clock of a recording: it begins with the first report and runs at the requested speed.
///
/// It never goes back, and never beyond the report that is due next, nor beyond the newest one if none is: if reading
/// is slower than the requested speed, no device looks silent because of that. It skips long pauses, as when the
/// machine that recorded had its clock set.
final class ReplayPace: Sendable {
    private struct State {
        /// The first report, in the recording.
        var first: BootInstant?
        /// A moment in the recording, and its time here.
        var beginning: (recorded: BootInstant, here: BootInstant)?
        /// The time that was skipped.
        var skipped = Duration.zero
        /// The newest report that was delivered.
        var newest = BootInstant.zero
        /// The report that is not yet due.
        var next: BootInstant?
        var isOver = false
    }

    /// The longest pause without a report, in seconds.
    private static let longestPause = 10.0

    private let state = Lock(State())
    private let stopped = DispatchSemaphore(value: 0)
    private let speed: Double
    private let clock: @Sendable () -> BootInstant

    /// Creates a clock `speed` times as fast as `clock`.
    init(_ speed: Double, clock: @escaping @Sendable () -> BootInstant = { Terminal.now() }) {
        self.speed = speed
        self.clock = clock
    }

    /// Returns the recording's time; it stands still if nothing follows.
    func now() -> BootInstant {
        state.withLock { state in
            guard let beginning = state.beginning, let next = state.next, !state.isOver else { return state.newest }
            let passed = (clock() - beginning.here) * speed
            return max(state.newest, min(beginning.recorded + passed, next))
        }
    }

    /// The time of the recording that has passed, without what was skipped.
    var elapsed: Duration {
        let now = now()
        return state.withLock { state in state.first.map { now - $0 - state.skipped } ?? .zero }
    }

    /// Waits until a report is due, and returns its time; `nil` if the user has quit.
    func wait(until timestamp: Duration) -> BootInstant? {
        let recorded = BootInstant(nanoseconds: timestamp.saturatedNanoseconds)
        let (due, seconds) = state.withLock { state -> (BootInstant, Double) in
            let here = clock()
            if state.first == nil {
                state.first = recorded
                // Before 1970 if the clock was not set.
                state.newest = recorded
            }
            let beginning = state.beginning ?? (recorded, here)
            state.beginning = beginning
            // The clock of the machine that recorded may have been set back.
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

    /// The user has quit.
    func stop() {
        stopped.signal()
    }

    /// No more reports follow: the clock stands still at the last one.
    func end() {
        state.withLock { $0.isOver = true }
    }
}
