internal import BLECore
internal import BLELinux

// How a task waits on a link for what its owners decide. An owner keeps the continuation, and the peripheral the deadline and the
// cancellation of the task; whichever comes first resumes it.

/// Tasks that wait for the same thing, in the order in which they came. Each is resumed exactly once.
struct Waiters<Value: Sendable> {
    typealias Continuation = CheckedContinuation<Value, Never>

    private var continuations: [UInt64: Continuation] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { continuations.count }

    /// A number for the next task.
    mutating func nextNumber() -> UInt64 {
        lastNumber &+= 1
        return lastNumber
    }

    mutating func insert(_ number: UInt64, _ continuation: Continuation) {
        continuations[number] = continuation
    }

    /// Resumes one task, if it still waits.
    mutating func resume(_ number: UInt64, returning value: Value) {
        continuations.removeValue(forKey: number)?.resume(returning: value)
    }

    mutating func resumeAll(returning value: Value) {
        let waiting = continuations.inOrder
        continuations = [:]
        for continuation in waiting { continuation.resume(returning: value) }
    }
}

/// Why a task stops waiting before what it waits for has come.
enum WaitEnd: Sendable {
    case timedOut, cancelled

    var failure: OperationFailure {
        switch self {
        case .timedOut: .timedOut
        case .cancelled: .cancelled
        }
    }
}

/// The one timer of an owner of deadlines.
struct DeadlineTimer {
    private var timer: TimerID?

    /// Sees to it that `deadline` is looked at. A timer that is too early stays: most deadlines are met, and each would set and cancel one.
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

extension Peripheral {
    /// Waits until the continuation that `begin` is given has been resumed. `giveUp` must resume it, unless that has been done, when the
    /// deadline has come or the task is cancelled.
    func suspend<Value: Sendable>(
        until deadline: BootInstant?, giveUp: @escaping @Sendable (isolated Peripheral, WaitEnd) -> Void,
        _ begin: (CheckedContinuation<Value, Never>) -> Void
    ) async -> Value {
        let timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { giveUp($0, .timedOut) }
            }
        }
        defer { timer.map(loop.cancel) }
        return await withTaskCancellationHandler {
            // A closure that does not name this actor would run elsewhere.
            await withCheckedContinuation(isolation: self) { begin($0) }
        } onCancel: {
            // It enters the actor after this task, which has begun to wait by then.
            Task(executorPreference: loop) { await self.stopWaiting(giveUp) }
        }
    }

    private func stopWaiting(_ giveUp: @Sendable (isolated Peripheral, WaitEnd) -> Void) {
        giveUp(self, .cancelled)
    }
}
