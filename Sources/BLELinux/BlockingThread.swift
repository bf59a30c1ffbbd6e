internal import CBluetooth
internal import Glibc

/// A thread for one piece of work that blocks.
///
/// Not the runtime's pool: its manager wakes up once a second from its first use on, for as long as the process lives.
package enum BlockingThread {
    private final class Work: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Runs `work` on a thread that ends with it; returns `false`, and does nothing, if no thread can be created.
    package static func begin(_ work: @escaping @Sendable () -> Void) -> Bool {
        var signals = sigset_t()
        var signalsBefore = sigset_t()
        unsafe sigfillset(&signals)
        // Signals belong to the program's own threads; the new one has them blocked from its beginning on.
        unsafe pthread_sigmask(SIG_BLOCK, &signals, &signalsBefore)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &signalsBefore, nil) }
        var thread = pthread_t()
        // Balanced by the thread's body, which runs exactly once for each thread that was created.
        let context = unsafe Unmanaged.passRetained(Work(work))
        guard unsafe pthread_create(&thread, nil, body, context.toOpaque()) == 0 else {
            unsafe context.release()
            return false
        }
        pthread_detach(thread)
        return true
    }

    // A function, not a closure at the call: that would inherit the isolation of its context.
    private static let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        // What `begin` passed, retained there for this one use.
        guard let context = unsafe context else { return nil }
        unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
        return nil
    }
}
