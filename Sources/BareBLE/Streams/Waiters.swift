internal import BLECore
internal import BLELinux

// The tasks of an actor that wait for the same kind of event. Calls on a link that wait for a decision about them alone
// keep their continuation with the rest of the call (`Peripheral+Suspending.swift`).
//
// Invariants
// - All state belongs to the event loop's thread. `wait` runs in the isolation of its caller, which is an actor of that
//   loop, also if the task does not prefer the loop.
// - Each waiter is resumed exactly once: with a value, at its deadline, or when its task is cancelled. It is in
//   `waiting` exactly until then, and its timer is set no longer.
// - Numbers are never used again, so a late `resume` does no harm. They grow in the order in which tasks begin to wait.

/// The end of a wait.
enum WaitEnd<Value: Sendable>: Sendable {
    case resumed(Value)
    case timedOut
    case cancelled
}

/// The effect of the cancellation of a waiting task.
enum WaitCancellation: Sendable {
    /// It ends the wait, also of a task that was cancelled before.
    case ends
    /// It has no effect.
    case ignored
    /// It calls this closure on the loop with the number of the waiter, which continues to wait. A task that was
    /// cancelled before does not wait.
    case handled(@Sendable (UInt64) -> Void)
}

/// The tasks that wait for a value, in the order in which they began to wait.
// Unchecked: only the loop's thread touches `waiting` and `lastNumber`.
final class Waiters<Value: Sendable>: @unchecked Sendable {
    private struct Waiter {
        let continuation: CheckedContinuation<WaitEnd<Value>, Never>
        let timer: TimerID?
    }

    private let loop: EventLoop
    private var waiting: [UInt64: Waiter] = [:]
    private var lastNumber: UInt64 = 0

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// The number of tasks that wait.
    var count: Int { waiting.count }

    var isEmpty: Bool { waiting.isEmpty }

    /// Whether the task with this number still waits.
    func contains(_ number: UInt64) -> Bool { waiting[number] != nil }

    /// Waits until `resume` or `resumeAll` is called, until the deadline, or until the task is cancelled.
    ///
    /// - Parameters:
    ///   - deadline: The time at which the wait ends; `nil` for no limit.
    ///   - cancellation: The effect of the cancellation of the task.
    ///   - begin: Called with the waiter's number once it waits, in the same turn of the loop. A value that it returns
    ///     ends the wait at once. It must check whether there is still something to wait for: other jobs may have run
    ///     since the caller's own check.
    func wait(
        until deadline: BootInstant? = nil, cancellation: WaitCancellation = .ends,
        isolation: isolated (any Actor)? = #isolation, _ begin: (UInt64) -> Value?
    ) async -> WaitEnd<Value> {
        lastNumber &+= 1
        let number = lastNumber
        if case .ignored = cancellation {
            return await withCheckedContinuation { add($0, number, until: deadline, begin) }
        }
        return await withTaskCancellationHandler {
            // A closure is isolated to the caller's actor only if it names that actor.
            _ = isolation
            return await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume(returning: .cancelled) }
                add(continuation, number, until: deadline, begin)
            }
        } onCancel: {
            Task(executorPreference: loop) {
                if case .handled(let body) = cancellation { body(number) } else { self.end(number, .cancelled) }
            }
        }
    }

    /// Resumes one waiter; does nothing if it no longer waits.
    func resume(_ number: UInt64, _ value: Value) {
        end(number, .resumed(value))
    }

    /// Resumes all current waiters, in their order.
    func resumeAll(_ value: Value) {
        var ended: [UInt64: Waiter] = [:]
        swap(&ended, &waiting)
        for waiter in ended.inOrder { resume(waiter, .resumed(value)) }
    }

    private func add(
        _ continuation: CheckedContinuation<WaitEnd<Value>, Never>, _ number: UInt64, until deadline: BootInstant?,
        _ begin: (UInt64) -> Value?
    ) {
        let timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in self?.end(number, .timedOut) }
        }
        waiting[number] = Waiter(continuation: continuation, timer: timer)
        if let value = begin(number) { end(number, .resumed(value)) }
    }

    private func end(_ number: UInt64, _ end: WaitEnd<Value>) {
        if let waiter = waiting.removeValue(forKey: number) { resume(waiter, end) }
    }

    private func resume(_ waiter: Waiter, _ end: WaitEnd<Value>) {
        if let timer = waiter.timer { loop.cancel(timer) }
        waiter.continuation.resume(returning: end)
    }
}

extension Waiters<Void> {
    /// Resumes all current waiters, in their order.
    func resumeAll() { resumeAll(()) }
}
