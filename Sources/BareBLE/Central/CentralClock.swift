public import BLECore
package import BLELinux

/// The clock of a central: it has boot-time semantics and runs on the central's event loop, without another thread.
///
/// A daemon that waits on `central.clock` keeps time with its links: a deadline that passed while the machine slept is
/// due when it wakes, and in a test with virtual time the wait is over as soon as nothing else is left to do.
///
///     try await central.clock.sleep(for: .seconds(60))
public struct CentralClock: Clock {
    private let sleepers: Sleepers

    package init(loop: EventLoop) {
        sleepers = Sleepers(loop: loop)
    }

    /// The current time on the clock of all the central's timers.
    public var now: BootInstant { sleepers.loop.now() }

    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Waits until `deadline`; returns at once if it has passed. The tolerance is ignored.
    ///
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: BootInstant, tolerance: Duration? = nil) async throws {
        try Task.checkCancellation()
        if await !sleepers.sleep(until: deadline) { throw CancellationError() }
    }
}

extension BootInstant: InstantProtocol {}

extension Central {
    /// The clock of the central's timers, to wait on: in a test with virtual time it is virtual as well.
    public nonisolated var clock: CentralClock { CentralClock(loop: loop) }
}

/// The tasks that wait for a moment, on the loop.
private actor Sleepers {
    nonisolated let loop: EventLoop
    private let waiters: Waiters<Void>

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    init(loop: EventLoop) {
        self.loop = loop
        waiters = Waiters(on: loop)
    }

    /// Returns `true` if the moment came, and `false` if the task was cancelled first.
    func sleep(until deadline: BootInstant) async -> Bool {
        let end = await waiters.wait(until: deadline) { _ in deadline <= loop.now() ? () : nil }
        if case .cancelled = end { return false }
        return true
    }
}
