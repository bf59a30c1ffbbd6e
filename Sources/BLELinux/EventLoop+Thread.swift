internal import CBluetooth
internal import Glibc
internal import Synchronization

extension EventLoop {
    /// A piece of a task, and whether its task prefers the loop.
    struct Job {
        let job: UnownedJob
        let prefersLoop: Bool
    }

    /// What other threads reach.
    struct Inbox {
        var jobs: [Job] = []
        var woken = false
        var started = false
    }

    /// Serves the loop on a thread of its own from now on; does nothing when it is being served.
    package func start() {
        let first = inbox.withLock { inbox in
            if owner.load(ordering: .acquiring) != 0 || inbox.started { return false }
            inbox.started = true
            return true
        }
        if first { startThread() }
    }

    /// Makes `run` return, and the thread of `start` end, after the current turn.
    package func stop() {
        stopping.store(true, ordering: .releasing)
        _ = ble_wake(wakefd)
    }

    private func startThread() {
        var thread = pthread_t()
        let context = unsafe Unmanaged.passRetained(self)
        let result = unsafe pthread_create(&thread, nil, Self.threadBody, context.toOpaque())
        precondition(result == 0, "no thread for the event loop")
        pthread_detach(thread)
    }

    // A function, not a closure written where it is used: that would inherit the isolation of the place.
    private static let threadBody: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        guard let context = unsafe context else { return nil }
        let loop = unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue()
        var signals = sigset_t()
        unsafe sigfillset(&signals)
        // Signals belong to the program's own threads.
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        loop.run()
        loop.inbox.withLock { $0.started = false }
        return nil
    }
}
