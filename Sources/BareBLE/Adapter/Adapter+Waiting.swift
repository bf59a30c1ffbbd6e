internal import BLECore
internal import BLELinux

// How a task of the adapter waits. Nothing else holds a continuation.
//
// Invariants
// - A task is in `WaitingTasks` exactly while it waits, and is resumed exactly once.
// - Owners know a task by its number alone. Numbers are never used again, so a late `wake` does no harm.

/// The tasks that wait.
struct WaitingTasks {
    private struct Entry {
        let continuation: CheckedContinuation<Adapter.Wake, Never>
        let timer: TimerID?
    }

    private var entries: [UInt64: Entry] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { entries.count }

    mutating func makeNumber() -> UInt64 {
        lastNumber &+= 1
        return lastNumber
    }

    func contains(_ number: UInt64) -> Bool { entries[number] != nil }

    mutating func insert(_ number: UInt64, _ continuation: CheckedContinuation<Adapter.Wake, Never>, _ timer: TimerID?)
    {
        entries[number] = Entry(continuation: continuation, timer: timer)
    }

    mutating func resume(_ number: UInt64, _ wake: Adapter.Wake, _ loop: EventLoop) {
        guard let entry = entries.removeValue(forKey: number) else { return }
        if let timer = entry.timer { loop.cancel(timer) }
        entry.continuation.resume(returning: wake)
    }
}

extension Adapter {
    /// Why a task goes on.
    enum Wake: Sendable {
        case resumed
        /// The command that it waits for has ended.
        case finished(Result<HCICommandComplete, HCICommandFailure>)
        /// The connection attempt that it waits for has ended.
        case initiated(Result<LEConnectionComplete, Initiator.Failure>)
        /// What it waits for cannot be.
        case failed(BLEError)
        case timedOut
        case cancelled
    }

    /// Waits until `wake` is called with the number that `begin` is given, until the deadline, or until the task is cancelled.
    func suspend(
        until deadline: BootInstant? = nil, _ begin: (UInt64) -> Void
    ) async -> (wake: Wake, number: UInt64) {
        let number = waiting.makeNumber()
        let wake = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume(returning: Wake.cancelled) }
                let timer = deadline.map { deadline in
                    loop.schedule(at: deadline) { [weak self] in
                        self?.assumeIsolated { $0.wake(number, .timedOut) }
                    }
                }
                waiting.insert(number, continuation, timer)
                begin(number)
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.cancelled(number) }
        }
        return (wake, number)
    }

    func wake(_ number: UInt64, _ wake: Wake = .resumed) { waiting.resume(number, wake, loop) }

    func wake(_ numbers: [UInt64]) {
        for number in numbers { wake(number) }
    }

    private func cancelled(_ number: UInt64) {
        // A pending connection attempt has to be cancelled first; its end wakes the task.
        guard number == connectWaiter else { return wake(number, .cancelled) }
        perform(initiator.cancel(at: loop.now()))
    }
}
