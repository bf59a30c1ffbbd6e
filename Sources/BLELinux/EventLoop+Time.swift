// The time of a loop's timers. A loop of a test may have virtual time, which stands still as long as there is anything
// to do and leaps to the next deadline when there is not: hours pass in milliseconds, and the same test has the same
// order of events every time.
//
// Invariants of virtual time
// - It begins at zero, and it moves only in `leap`: when no job is queued, no watched descriptor is ready and no work
//   is under way on other threads. Two events with a deadline between them can therefore not change their order.
// - That is exact only for what runs on the loop: a peer of the code under test must run on it as well. Work on other
//   threads goes through `offload(_:)`, so that no deadline passes meanwhile. Its results return in the order
//   in which the work began, each when nothing else is left to do, and not when its thread happens to end. A task that
//   queues a job in each turn does not delay them.
// - Without any timer the loop waits in real time, for another thread or for a descriptor from outside.

extension EventLoop {
    /// The time that a loop's timers follow.
    package enum TimeSource: Hashable, Sendable {
        /// The machine's time since it was started.
        case boot
        /// Virtual time, which leaps over all waiting.
        case virtual
    }
}

/// The result of work on another thread, once there is one.
final class OffloadedResult: Sendable {
    let deliver = Lock<(@Sendable () -> Void)?>(nil)
}

/// The reason that work on another thread has no result.
package enum WorkFailure: Error {
    /// No thread could be created for it, or the limit of such work was reached. It was not started.
    case noRoom
    /// It was not finished by the deadline; its result is dropped.
    case late
    /// The task was cancelled; the result is dropped, if the work was started.
    case cancelled
}
