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

package import BLECore
internal import CBluetooth
internal import Synchronization

extension EventLoop {
    /// The time that a loop's timers follow.
    package enum TimeSource: Hashable, Sendable {
        /// The machine's time since it was started.
        case boot
        /// Virtual time, which leaps over all waiting.
        case virtual
    }

    /// Returns the current time of the timers' clock.
    package func now() -> BootInstant {
        switch time {
        case .boot: BootInstant(nanoseconds: ble_boot_nanoseconds())
        case .virtual: BootInstant(nanoseconds: virtualTime.load(ordering: .relaxed))
        }
    }
}

// MARK: - Virtual time

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

extension EventLoop {
    /// Does blocking work on another thread; virtual time stands still until the caller resumes.
    package func offload<Value: Sendable>(_ work: @Sendable @escaping () -> Value) async throws(WorkFailure) -> Value {
        hold()
        defer { release() }
        let result: Result<Value, WorkFailure> = await withCheckedContinuation { continuation in
            let end = inOrder { continuation.resume(returning: $0) }
            // Never on this thread instead: work that hangs would stop every link and every clock.
            let isBegun = BlockingThread.begin { end(.success(work())) }
            if !isBegun { end(.failure(.noRoom)) }
        }
        return try result.get()
    }

    /// Returns a closure that passes a result of another thread on: in virtual time, when its turn has come.
    private func inOrder<Value: Sendable>(_ end: @escaping @Sendable (Value) -> Void) -> @Sendable (Value) -> Void {
        guard time == .virtual else { return end }
        let result = OffloadedResult()
        results.withLock { $0.append(result) }
        return { value in
            result.deliver.withLock { $0 = { end(value) } }
            _ = ble_wake(self.wakefd)
        }
    }

    /// Whether the work that began first has ended, and its result has not returned.
    var hasResult: Bool {
        time == .virtual && results.withLock { $0.first?.deliver.withLock { $0 != nil } ?? false }
    }

    /// Returns the result of the work that began first, if it has ended.
    func returnResult() -> Bool {
        guard hasResult else { return false }
        results.withLock { $0.removeFirst() }.deliver.withLock { $0.take() }?()
        return true
    }

    /// Does the same, but waits until `deadline` at most, and not in a cancelled task. Call it on the loop.
    package func offload<Value: Sendable>(
        until deadline: BootInstant, _ work: @Sendable @escaping () -> Value
    ) async throws(WorkFailure) -> Value {
        hold()
        defer { release() }
        let waiter = Lock<CheckedContinuation<Result<Value, WorkFailure>, Never>?>(nil)
        let end: @Sendable (Result<Value, WorkFailure>) -> Void = { result in
            waiter.withLock { $0.take() }?.resume(returning: result)
        }
        let timer = schedule(at: deadline) { end(.failure(.late)) }
        defer { cancel(timer) }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.withLock { $0 = continuation }
                if Task.isCancelled { return end(.failure(.cancelled)) }
                if !BlockingThread.begin({ end(.success(work())) }) { end(.failure(.noRoom)) }
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
        return try result.get()
    }

    /// Stops virtual time until `release` has been called as often.
    package func hold() {
        offloaded.add(1, ordering: .relaxed)
    }

    /// Ends `hold`.
    package func release() {
        offloaded.subtract(1, ordering: .releasing)
        if time == .virtual, !isOnThread { _ = ble_wake(wakefd) }
    }

    /// Advances virtual time by `distance` at once, like the clock of a machine that was suspended: what is due by
    /// then is late.
    package func jump(by distance: Duration) {
        guard time == .virtual else { return }
        virtualTime.store((now() + distance).nanoseconds, ordering: .relaxed)
    }

    /// Whether time may leap to the next deadline; one at the end of all time counts as none.
    var mayLeap: Bool {
        guard time == .virtual, offloaded.load(ordering: .acquiring) == 0, let earliest = earliestDeadline else {
            return false
        }
        return earliest.nanoseconds < .max
    }

    /// There is nothing to do now: ends the loop if requested, or advances to the next deadline.
    func leap() {
        if ending.exchange(false, ordering: .acquiringAndReleasing) {
            dropTimers()
            stopping.store(true, ordering: .releasing)
            return
        }
        guard mayLeap, let earliest = earliestDeadline else { return }
        wakeUps &+= 1
        virtualTime.store(max(earliest.nanoseconds, virtualTime.load(ordering: .relaxed)), ordering: .relaxed)
        fireDue()
    }
}
