internal import CBluetooth
internal import Glibc
internal import Synchronization

extension EventLoop {
    /// A piece of a task, and whether its task prefers the loop.
    struct Job {
        let job: UnownedJob
        let prefersLoop: Bool
    }

    /// The state that other threads access.
    struct Inbox {
        var jobs: [Job] = []
        var woken = false
        var started = false
        /// Called when the thread of `start` has ended.
        var ended: (@Sendable () -> Void)?
    }

    var isOnThread: Bool { owner.load(ordering: .relaxed) == ble_thread() }

    func checkAccess() {
        // Descriptors and timers belong to actors of the loop, whose code the runtime runs nowhere else.
        precondition(owner.load(ordering: .acquiring) == 0 || isOnThread, "not on the event loop")
    }

    /// Runs the loop on a thread of its own from now on; does nothing if a thread runs it already.
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

    /// Ends the thread of `start` as soon as there is nothing to do, and returns when it has ended.
    ///
    /// Timers are not waited for: they are dropped. Call it from another thread, once.
    package func end() async {
        await withCheckedContinuation { continuation in
            inbox.withLock { $0.ended = { continuation.resume() } }
            ending.store(true, ordering: .releasing)
            _ = ble_wake(wakefd)
        }
    }

    private func startThread() {
        var thread = pthread_t()
        // Balanced by the thread's body, which runs exactly once for each thread that was created.
        let context = unsafe Unmanaged.passRetained(self)
        let result = unsafe pthread_create(&thread, nil, Self.threadBody, context.toOpaque())
        // It fails only for lack of memory or of threads, when the program starts its first central.
        precondition(result == 0, "no thread for the event loop")
        pthread_detach(thread)
    }

    // A function, not a closure at the call: that would inherit the isolation of its context.
    private static let threadBody: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        // What `startThread` passed, retained there for this one use.
        guard let context = unsafe context else { return nil }
        var signals = sigset_t()
        unsafe sigfillset(&signals)
        // Signals belong to the program's own threads.
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        // The loop is released before its end is reported.
        let ended = unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().runToEnd()
        ended?()
        return nil
    }

    private func runToEnd() -> (@Sendable () -> Void)? {
        run()
        return inbox.withLock { inbox in
            inbox.started = false
            return inbox.ended.take()
        }
    }
}
