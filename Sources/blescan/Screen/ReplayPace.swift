// The clock of a recording, which the reader of the file and the screen share.
//
// Duties
// - Lets the reader wait until each report is due, and returns the time of the recording to the screen.
// - Skips long pauses, as when the machine that recorded had its clock set.
// - Moves to the time that the user seeks: reports before it are due at once, and if it has passed, the reader begins
//   again.
//
// Invariants
// - The clock never goes beyond the report that is due next, nor beyond the newest one if none is: if reading is slower
//   than the requested speed, no device looks silent because of that.
// - It goes back only when the user seeks, and then from the moment at which the recording, read again, has got there.
//   Until then it stands (`held`).
// - Once the user has quit, each wait returns `.over`.
// - Only the reader calls `wait`, `waitAtEnd`, `end` and `restart`. Any thread may call the rest.

import BLECore
import BLELinux
import Dispatch

/// The clock of a recording: it begins with the first report and runs at the requested speed.
final class ReplayPace: Sendable {
    /// The next step of the reader.
    enum Turn: Hashable, Sendable {
        /// The report is due, at this time of the recording.
        case due(BootInstant)
        /// The user has sought a time that has passed: the recording is to be read again.
        case restart
        /// The user has quit.
        case over
    }

    /// A moment in the recording.
    private struct Moment {
        /// The time on the clock of the machine that recorded.
        var recorded = BootInstant.zero
        /// The time since the first report, with long pauses shortened.
        var played = Duration.zero
    }

    private enum Step {
        case turn(Turn)
        /// The time that was sought is reached.
        case arrived
        /// Seconds to wait.
        case pause(Double)
    }

    private struct State {
        /// A moment of the played time, and its time here.
        var beginning: (played: Duration, here: BootInstant)?
        /// The newest report that was delivered.
        var newest: Moment?
        /// The report that is not yet due.
        var next: Moment?
        /// The moment that the user has sought: reports are due at once until then.
        var sought: Duration?
        /// The moment that is shown while the recording is read again.
        var held: Moment?
        var isRestarting = false
        var isOver = false
        var isStopped = false

        /// The turn that ends the reading.
        var interruption: Turn? { isStopped ? .over : isRestarting ? .restart : nil }

        /// Delivers the next report.
        mutating func deliver(_ report: Moment) -> Step {
            (newest, next) = (report, nil)
            return .turn(.due(report.recorded))
        }
    }

    /// The longest pause without a report, in seconds.
    private static let longestPause = 10.0
    /// The shortest wait, in seconds: reports that are due meanwhile are delivered together after it, as nobody sees on
    /// a screen. A wait for each of a thousand reports a second would take most of the time that the table needs.
    private static let shortestWait = 0.01

    private let state = Lock(State())
    private let woken = DispatchSemaphore(value: 0)
    private let speed: Double
    private let clock: @Sendable () -> BootInstant

    /// Creates a clock `speed` times as fast as `clock`.
    init(_ speed: Double, clock: @escaping @Sendable () -> BootInstant = { Terminal.now() }) {
        self.speed = speed
        self.clock = clock
    }

    /// Returns the recording's time; it stands still if nothing follows.
    func now() -> BootInstant {
        state.withLock { moment($0).recorded }
    }

    /// The time of the recording that has passed, without what was skipped.
    var elapsed: Duration {
        state.withLock { moment($0).played }
    }

    /// Waits until a report is due.
    ///
    /// - Parameters:
    ///   - timestamp: The recorded time of the report.
    ///   - arrived: Called before the wait for the first report after the time that the user has sought.
    func wait(until timestamp: Duration, arrived: () -> Void = {}) -> Turn {
        announce(BootInstant(nanoseconds: timestamp.saturatedNanoseconds))
        while true {
            switch state.withLock({ step(&$0) }) {
            case .turn(let turn): return turn
            case .arrived: arrived()
            case .pause(let seconds): _ = woken.wait(timeout: .now() + seconds)
            }
        }
    }

    /// No more reports follow: the clock stands still at the last one.
    func end() {
        state.withLock { state in
            state.isOver = true
            if !state.isRestarting { (state.sought, state.held) = (nil, nil) }
        }
    }

    /// Waits, at the end of the recording, until the user seeks back or quits.
    func waitAtEnd() -> Turn {
        while true {
            if let turn = interruption { return turn }
            woken.wait()
        }
    }

    /// The turn that ends the reading at once: the user has sought back, or has quit; `nil` otherwise.
    var interruption: Turn? { state.withLock { $0.interruption } }

    /// The reader begins again with the first report.
    func restart() {
        state.withLock { state in
            (state.newest, state.next) = (nil, nil)
            (state.isRestarting, state.isOver) = (false, false)
        }
    }

    /// The user wants to go this far forward, or back.
    func seek(by step: Duration) {
        state.withLock { state in
            guard state.beginning != nil else { return }
            // What is shown has passed that time too; what is read again is not shown.
            let reached = state.held == nil ? moment(state).played : state.newest?.played ?? .zero
            let sought = max(.zero, (state.sought ?? moment(state).played) + step)
            if sought < reached {
                state.held = state.held ?? moment(state)
                state.isRestarting = true
            } else if state.isOver, !state.isRestarting {
                return
            }
            state.sought = sought
        }
        woken.signal()
    }

    /// The user has quit.
    func stop() {
        state.withLock { $0.isStopped = true }
        woken.signal()
    }

    /// A report is the next one.
    private func announce(_ recorded: BootInstant) {
        state.withLock { state in
            // The clock of the machine that recorded may have been set back.
            let due = state.newest.map { max(recorded, $0.recorded) } ?? recorded
            let pause = state.newest.map { due - $0.recorded } ?? .zero
            let played = (state.newest?.played ?? .zero) + min(pause, Duration.seconds(Self.longestPause) * speed)
            state.next = Moment(recorded: due, played: played)
            if state.beginning == nil { state.beginning = (.zero, clock()) }
        }
    }

    private func step(_ state: inout State) -> Step {
        if let turn = state.interruption { return .turn(turn) }
        guard let next = state.next, let beginning = state.beginning else { return .turn(.over) }
        if let sought = state.sought {
            if next.played <= sought { return state.deliver(next) }
            state.beginning = (sought, clock())
            (state.sought, state.held) = (nil, nil)
            return .arrived
        }
        let pause = (next.played - beginning.played - passed(since: beginning.here)) / speed / .seconds(1)
        return pause > 0 ? .pause(min(max(pause, Self.shortestWait), Self.longestPause)) : state.deliver(next)
    }

    private func passed(since beginning: BootInstant) -> Duration { (clock() - beginning) * speed }

    private func moment(_ state: State) -> Moment {
        if let held = state.held { return held }
        guard let newest = state.newest else { return state.next ?? Moment() }
        guard let beginning = state.beginning, let next = state.next, !state.isOver else { return newest }
        let played = min(max(beginning.played + passed(since: beginning.here), newest.played), next.played)
        return Moment(recorded: max(newest.recorded, next.recorded + (played - next.played)), played: played)
    }
}
