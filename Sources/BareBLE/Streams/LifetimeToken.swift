internal import BLELinux

/// Runs a closure once: at `end()`, or when its last reference is released.
///
/// It is what keeps a scan, a subscription, a listener or a slot for an operation: the owner holds the token, and the
/// closure releases what the token stands for, on any thread. Until then it keeps alive what it captures.
final class LifetimeToken: Sendable {
    typealias End = @Sendable () -> Void

    private let atEnd: Lock<End?>

    init(_ atEnd: @escaping End) {
        self.atEnd = Lock(atEnd)
    }

    /// Runs the closure, unless it has run.
    func end() {
        // Outside the lock: the closure may release other tokens.
        take()?()
    }

    /// Drops the closure, for a caller that does its work itself; returns whether it had not run.
    func dismiss() -> Bool { take() != nil }

    private func take() -> End? {
        atEnd.withLock { $0.take() }
    }

    deinit { end() }
}
