internal import BLECore
internal import BLELinux

// The waits of a call for a decision that concerns that call alone: its turn, a security upgrade, a collected response,
// a subscription. The deciding owner keeps the continuation with the rest of the call. The peripheral keeps the
// deadline and the cancellation of the task. Whichever comes first resumes the continuation. Tasks that wait for the
// same event wait in `Waiters`.

/// The reason that a task stops waiting early.
enum WaitFailure: Sendable {
    case timedOut, cancelled

    var failure: OperationFailure {
        switch self {
        case .timedOut: .timedOut
        case .cancelled: .cancelled
        }
    }
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

extension Peripheral {
    /// Waits until the continuation passed to `begin` has been resumed. At the deadline or the cancellation of the
    /// task, `giveUp` must resume it unless that has been done.
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
            // It enters the actor after this task, which then already waits.
            Task(executorPreference: loop) { await self.stopWaiting(giveUp) }
        }
    }

    private func stopWaiting(_ giveUp: @Sendable (isolated Peripheral, WaitFailure) -> Void) {
        giveUp(self, .cancelled)
    }
}
