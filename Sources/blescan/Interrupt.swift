import BLELinux
import Dispatch
import Glibc

/// ^C, SIGTERM and the end of the terminal as cancellation: the running task can switch the scan off and disconnect.
enum Interrupt {
    private struct State {
        var cancel: (@Sendable () -> Void)?
        var status: ExitStatus?
        var steps = Steps()
        /// What ^C is offered to first.
        var reaction: (@Sendable () -> Bool)?
    }

    /// The steps that have an adapter off for a moment, which an end of the program would leave off.
    struct Steps: Sendable {
        private var count = 0
        private var isEndWanted = false

        mutating func begin() { count += 1 }

        /// Returns whether the program has to end now, because it was to end in the last step.
        mutating func end() -> Bool {
            count -= 1
            return count == 0 && isEndWanted
        }

        /// The program is to end; returns whether it can end now.
        mutating func wantEnd() -> Bool {
            isEndWanted = true
            return count == 0
        }
    }

    private static let state = Lock(State())

    /// The exit status that a failure of the output has set, whatever else happens.
    static var status: ExitStatus? { state.withLock { $0.status } }

    /// Ends the program with `status`, because its results cannot be written any more.
    ///
    /// The running task is cancelled, as by ^C, so that no scan and no link stays behind; without one the program ends
    /// at once.
    static func end(_ status: ExitStatus) {
        let cancel = state.withLock { state in
            state.status = state.status ?? status
            return state.cancel
        }
        guard let cancel else {
            Console.progress.end()
            exit(status.rawValue)
        }
        cancel()
    }

    /// Offers each ^C to `reaction` first, which returns whether it has taken it; `nil` ends that.
    ///
    /// One that is not taken, and any other signal, cancels the running task.
    static func offer(to reaction: (@Sendable () -> Bool)?) { state.withLock { $0.reaction = reaction } }

    /// Begins a step that has an adapter off for a moment: a second signal waits for the end of all steps.
    static func beginStep() { state.withLock { $0.steps.begin() } }

    /// Ends a step; with the last one the program too, if a second signal has come meanwhile.
    static func endStep() {
        if state.withLock({ $0.steps.end() }) { exit(ExitStatus.interrupted.rawValue) }
    }

    /// Runs `body` in a task that the first ^C, SIGTERM or SIGHUP cancels; a second ^C or SIGTERM ends the program,
    /// during a step once that has ended (`beginStep`).
    ///
    /// A signal that comes before all are watched ends the program as it ends any other; `body` begins only after
    /// that, so there is no moment in which one is lost. Inside another call `body` is a part of its task.
    static func cancelling<Value: Sendable>(
        _ body: @Sendable @escaping () async throws -> Value
    ) async throws -> Value {
        if state.withLock({ $0.cancel != nil }) { return try await body() }
        // `nohup` has the end of the terminal ignored, and watching the signal would replace that.
        let numbers = [SIGINT, SIGTERM] + (EndSignals.isIgnored(SIGHUP) ? [] : [SIGHUP])
        let sources = numbers.map { DispatchSource.makeSignalSource(signal: $0, queue: .global()) }
        defer { for source in sources { source.cancel() } }
        let watched = DispatchGroup()
        for _ in sources { watched.enter() }
        let task = Task {
            await withCheckedContinuation { start in watched.notify(queue: .global()) { start.resume() } }
            return try await body()
        }
        state.withLock { $0.cancel = { task.cancel() } }
        defer { state.withLock { $0.cancel = nil } }
        for (number, source) in zip(numbers, sources) {
            source.setRegistrationHandler { watched.leave() }
            source.setEventHandler {
                if number == SIGINT, !task.isCancelled, let reaction = state.withLock({ $0.reaction }), reaction() {
                    return
                }
                // A write may wait for a terminal that takes nothing: the second signal does not wait. The end of the
                // terminal may be reported by the shell and by the kernel.
                if task.isCancelled, number != SIGHUP, state.withLock({ $0.steps.wantEnd() }) {
                    exit(ExitStatus.interrupted.rawValue)
                }
                task.cancel()
            }
            source.resume()
        }
        return try await task.value
    }
}
