internal import BLECore
package import BLELinux

// The one way in which a task of an actor waits, and the single timer of an owner of deadlines.
//
// Invariants
// - All state belongs to the event loop's thread. `wait` runs in the isolation of its caller, which is an actor of that
//   loop, also if the task does not prefer the loop.
// - Each waiter is resumed exactly once: with a value, at its deadline, or when its task is cancelled. It is in
//   `waiting` exactly until then, and its timer is set no longer.
// - Numbers are never used again, so a late `resume` does no harm. They are those of a machine, such as the tickets of
//   `OperationGate`, or those of this object, which grow in the order in which tasks begin to wait.

/// The end of a wait.
package enum WaitEnd<Value: Sendable>: Sendable {
    case resumed(Value)
    case timedOut
    case cancelled
}

/// The reason that a task stops waiting early.
package enum WaitFailure: Sendable {
    case timedOut, cancelled

    var failure: OperationFailure {
        switch self {
        case .timedOut: .timedOut
        case .cancelled: .cancelled
        }
    }
}

/// The effect of the deadline, and of the cancellation of the waiting task.
package enum WaitInterruption: Sendable {
    /// Both end the wait, the cancellation also in a task that was cancelled before.
    case ends
    /// The deadline ends the wait. The cancellation has no effect.
    case ignoresCancellation
    /// Both call this closure on the loop with the number of the waiter, which continues to wait: a decision about it
    /// may be under way. The owner must end the wait. A task that was cancelled before does not wait.
    case handled(@Sendable (UInt64, WaitFailure) -> Void)

    var ignoresCancellation: Bool {
        if case .ignoresCancellation = self { true } else { false }
    }
}

/// The tasks that wait for a value, in the order of their numbers.
// Unchecked: only the loop's thread touches `waiting` and `lastNumber`.
package final class Waiters<Value: Sendable>: @unchecked Sendable {
    package typealias Continuation = CheckedContinuation<WaitEnd<Value>, Never>

    private struct Waiter {
        let number: UInt64
        let continuation: Continuation
        let timer: TimerID?
    }

    private let loop: EventLoop
    /// Ordered by number. Mostly there are a few: a search costs less than hashing.
    private var waiting: [Waiter] = []
    private var lastNumber: UInt64 = 0

    package init(on loop: EventLoop) {
        self.loop = loop
    }

    /// The number of tasks that wait.
    var count: Int { waiting.count }

    package var isEmpty: Bool { waiting.isEmpty }

    /// Whether the task with this number still waits.
    func contains(_ number: UInt64) -> Bool { index(of: number) != nil }

    /// Waits until `resume` or `resumeAll` is called, until the deadline, or until the task is cancelled.
    ///
    /// - Parameters:
    ///   - given: The number of the waiter if a machine numbers all of them; `nil` for the next one.
    ///   - deadline: The time at which the wait ends; `nil` for no limit.
    ///   - interruption: The effect of the deadline and of the cancellation of the task.
    ///   - begin: Called with the waiter's number once it waits, in the same turn of the loop. A value that it returns
    ///     ends the wait at once. It must check whether there is still something to wait for: other jobs may have run
    ///     since the caller's own check.
    package func wait(
        as given: UInt64? = nil, until deadline: BootInstant? = nil, interruption: WaitInterruption = .ends,
        isolation: isolated (any Actor)? = #isolation, _ begin: (UInt64) -> Value?
    ) async -> WaitEnd<Value> {
        let number = given ?? nextNumber()
        if interruption.ignoresCancellation {
            return await withCheckedContinuation { add($0, as: number, until: deadline, interruption, begin) }
        }
        return await withTaskCancellationHandler {
            // A closure is isolated to the caller's actor only if it names that actor.
            _ = isolation
            return await withCheckedContinuation { add($0, as: number, until: deadline, interruption, begin) }
        } onCancel: {
            // It comes after this task, which then already waits.
            Task(executorPreference: loop) { self.interrupt(number, .cancelled, interruption) }
        }
    }

    /// Makes the task of a continuation wait, as `wait` does. It is for a caller that suspends its task itself and
    /// handles the cancellation, because another asynchronous function would cost too much.
    func add(
        _ continuation: Continuation, as number: UInt64, until deadline: BootInstant? = nil,
        _ interruption: WaitInterruption = .ends, _ begin: (UInt64) -> Value?
    ) {
        if Task.isCancelled, !interruption.ignoresCancellation { return continuation.resume(returning: .cancelled) }
        let timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in self?.interrupt(number, .timedOut, interruption) }
        }
        let waiter = Waiter(number: number, continuation: continuation, timer: timer)
        let index = firstIndex(from: number)
        // Nearly always it is the last one, for which this is cheaper.
        if index == waiting.count { waiting.append(waiter) } else { waiting.insert(waiter, at: index) }
        if let value = begin(number) { end(number, .resumed(value)) }
    }

    /// Resumes one waiter; does nothing if it no longer waits.
    package func resume(_ number: UInt64, _ value: Value) {
        end(number, .resumed(value))
    }

    /// Resumes all current waiters, in the order of their numbers.
    package func resumeAll(_ value: Value) {
        var ended: [Waiter] = []
        swap(&ended, &waiting)
        for waiter in ended { resume(waiter, .resumed(value)) }
    }

    private func nextNumber() -> UInt64 {
        lastNumber &+= 1
        return lastNumber
    }

    private func interrupt(_ number: UInt64, _ failure: WaitFailure, _ interruption: WaitInterruption) {
        switch (interruption, failure) {
        case (.handled(let body), _): body(number, failure)
        case (.ends, .timedOut), (.ignoresCancellation, .timedOut): end(number, .timedOut)
        case (.ends, .cancelled): end(number, .cancelled)
        case (.ignoresCancellation, .cancelled): break
        }
    }

    private func end(_ number: UInt64, _ end: WaitEnd<Value>) {
        if let index = index(of: number) { resume(waiting.remove(at: index), end) }
    }

    private func resume(_ waiter: Waiter, _ end: WaitEnd<Value>) {
        if let timer = waiter.timer { loop.cancel(timer) }
        waiter.continuation.resume(returning: end)
    }

    private func index(of number: UInt64) -> Int? {
        let index = firstIndex(from: number)
        return index < waiting.count && waiting[index].number == number ? index : nil
    }

    /// Returns the index of the first waiter with this number or a higher one.
    private func firstIndex(from number: UInt64) -> Int {
        var (lower, upper) = (0, waiting.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if waiting[middle].number < number { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }
}

extension Waiters<Void> {
    /// Resumes all current waiters, in the order of their numbers.
    func resumeAll() { resumeAll(()) }
}

/// The single timer of an owner of deadlines.
struct DeadlineTimer {
    private var timer: TimerID?

    /// Makes sure that `deadline` is checked. A timer that fires too early is kept: most operations end before their
    /// deadlines, and each would set and cancel a timer.
    mutating func arm(for deadline: BootInstant?, on loop: EventLoop, _ schedule: (BootInstant) -> TimerID) {
        guard let deadline else { return }
        if let timer {
            if timer.deadline <= deadline { return }
            loop.cancel(timer)
        }
        timer = schedule(deadline)
    }

    mutating func fired() {
        timer = nil
    }

    mutating func cancel(on loop: EventLoop) {
        if let timer { loop.cancel(timer) }
        timer = nil
    }
}
