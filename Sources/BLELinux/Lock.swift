internal import Glibc

/// A value that threads share, accessed by one of them at a time.
///
/// A pthread mutex, because the thread sanitizer reports false races for state under `Synchronization.Mutex`.
// Unchecked and safe: `value` is private and accessed in `withLock` alone, with the mutex held; it was passed as
// `sending`, so it is not shared outside. The mutex is allocated with the object, never moves, and is destroyed when
// no reference is left to lock it with. Locking it twice on one thread would hang: bodies are short, and call nothing
// that locks.
@safe package final class Lock<Value>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    package init(_ value: sending Value) {
        self.value = value
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Runs `body` with exclusive access to the value. It must neither block nor take the same lock again.
    package func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
