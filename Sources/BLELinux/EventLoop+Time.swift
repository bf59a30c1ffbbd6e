// The time that a loop's timers follow. A loop of a test may have a time of its own, which stands as long as there is anything to
// do and leaps to the next deadline when there is not: hours pass in milliseconds, and the same test has the same order of
// events every time.
//
// Invariants of a time of its own
// - It begins at zero, and it moves only in `leap`: when no job is queued, no watched descriptor is ready and no work is under way
//   elsewhere. Two events with a deadline between them can therefore not change places.
// - That is exact only for what lives on the loop: whoever answers the code under test must be on it as well. Work on other threads
//   goes by `elsewhere(_:)`, so that no deadline passes meanwhile.
// - Without any timer the loop waits for real, for another thread or for a descriptor from outside.

package import BLECore
internal import CBluetooth
internal import Synchronization

extension EventLoop {
    /// Which time a loop's timers follow.
    package enum TimeSource: Hashable, Sendable {
        /// The machine's, since it was started.
        case boot
        /// The loop's own, which leaps over all waiting.
        case virtual
    }

    /// The time now on the clock that the timers follow.
    package func now() -> BootInstant {
        switch time {
        case .boot: BootInstant(nanoseconds: ble_boot_nanoseconds())
        case .virtual: BootInstant(nanoseconds: virtualTime.load(ordering: .relaxed))
        }
    }

    /// Calls `handler` once on the loop when `deadline` has come; never from within this call.
    package func schedule(at deadline: BootInstant, _ handler: @escaping Handler) -> TimerID {
        checkAccess()
        return timers.add(at: deadline, handler)
    }

    /// Takes back a timer; does nothing when it has fired or was cancelled.
    package func cancel(_ timer: TimerID) {
        checkAccess()
        timers.remove(timer)
    }

    /// How many timers wait.
    package var timerCount: Int { timers.count }
}

// MARK: - The machine's time

extension EventLoop {
    func armTimer() {
        guard time == .boot, let earliest = timers.earliest else { return }
        if let armedFor, armedFor <= earliest { return }
        armedFor = earliest
        _ = ble_timer_set(timerfd, earliest.nanoseconds)
    }

    func fireTimers() {
        _ = ble_drain(timerfd)
        armedFor = nil
        fireDue()
    }

    /// Calls the handlers of the timers whose time has come.
    private func fireDue() {
        let moment = now()
        // No more than there were: a handler that schedules for now must not keep the others waiting.
        for _ in 0..<timers.count {
            guard let handler = timers.takeDue(at: moment) else { return }
            handler()
        }
    }
}

// MARK: - A time of its own

/// Why work elsewhere has no result.
package enum WorkFailure: Error {
    /// No thread could be made for it, or as many as may be are at such work. It was not begun.
    case noRoom
    /// It was not done by the deadline; what it ends with is dropped.
    case late
    /// The task was cancelled; what it ends with is dropped, if it was begun.
    case cancelled
}

extension EventLoop {
    /// Does work on another thread that would block this one; a time of the loop's own stands until the caller goes on.
    package func elsewhere<Value: Sendable>(_ work: @Sendable @escaping () -> Value) async throws(WorkFailure) -> Value
    {
        hold()
        defer { release() }
        let result: Result<Value, WorkFailure> = await withCheckedContinuation { continuation in
            // Never on this thread instead: work that hangs would stop every link and every clock.
            let isBegun = ShortThread.begin { continuation.resume(returning: .success(work())) }
            if !isBegun { continuation.resume(returning: .failure(.noRoom)) }
        }
        return try result.get()
    }

    /// As `elsewhere`, but waits until `deadline` at most, and not in a cancelled task. To be called on the loop.
    package func elsewhere<Value: Sendable>(
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
                if !ShortThread.begin({ end(.success(work())) }) { end(.failure(.noRoom)) }
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
        return try result.get()
    }

    /// Keeps a time of the loop's own where it is, until `release` has been called as often.
    package func hold() {
        elsewhere.add(1, ordering: .relaxed)
    }

    /// Ends `hold`.
    package func release() {
        elsewhere.subtract(1, ordering: .releasing)
        if time == .virtual, !isOnThread { _ = ble_wake(wakefd) }
    }

    /// Moves a time of the loop's own on by `distance` at once, as a machine's does that was suspended: what is due by then is late.
    package func jump(by distance: Duration) {
        guard time == .virtual else { return }
        virtualTime.store((now() + distance).nanoseconds, ordering: .relaxed)
    }

    /// Whether time may leap to the next deadline; one at the end of all time stands for none.
    var mayLeap: Bool {
        guard time == .virtual, elsewhere.load(ordering: .acquiring) == 0, let earliest = timers.earliest else {
            return false
        }
        return earliest.nanoseconds < .max
    }

    /// There is nothing to do now: ends the loop if that was asked for, or goes on to the next deadline.
    func leap() {
        if ending.exchange(false, ordering: .acquiringAndReleasing) {
            timers = TimerList()
            stopping.store(true, ordering: .releasing)
            return
        }
        guard mayLeap, let earliest = timers.earliest else { return }
        wakeUps &+= 1
        virtualTime.store(max(earliest.nanoseconds, virtualTime.load(ordering: .relaxed)), ordering: .relaxed)
        fireDue()
    }
}
