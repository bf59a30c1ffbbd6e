internal import BLECore
internal import BLELinux

// How a call waits on a link for what an owner decides for that call alone: its turn, a security upgrade, a collected response, a
// subscription. The owner keeps the continuation with the rest of the call, and the peripheral the deadline and the cancellation of the
// task; whichever comes first resumes it. Tasks that wait for the same thing wait in `Waiters`.

/// Why a task stops waiting before what it waits for has come.
enum WaitFailure: Sendable {
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
        until deadline: BootInstant?, giveUp: @escaping @Sendable (isolated Peripheral, WaitFailure) -> Void,
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

    private func stopWaiting(_ giveUp: @Sendable (isolated Peripheral, WaitFailure) -> Void) {
        giveUp(self, .cancelled)
    }
}
