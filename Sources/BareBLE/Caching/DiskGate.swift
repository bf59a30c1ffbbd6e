package import BLELinux

/// Limits the concurrent disk operations. A disk that hangs keeps a thread for each operation, but not more than the
/// limit.
package final class DiskGate: Sendable {
    private let limit: Int
    private let working = Lock(0)

    /// The default is far more than a working disk ever has at a time.
    package init(limit: Int = 64) {
        self.limit = limit
    }

    /// Does `work` on a thread of its own, and waits for it until `deadline`, if any. Call it on the loop.
    ///
    /// - Throws: `WorkFailure`; `.noRoom` at once if the limit is reached.
    package func run<Value: Sendable>(
        on loop: EventLoop, until deadline: BootInstant? = nil, _ work: @Sendable @escaping () -> Value
    ) async throws(WorkFailure) -> Value {
        guard let slot = enter() else { throw .noRoom }
        let work: @Sendable () -> Value = { withExtendedLifetime(slot) { work() } }
        guard let deadline else { return try await loop.offload(work) }
        return try await loop.offload(until: deadline, work)
    }

    /// Returns a slot for one operation, held by the caller and then by its thread; `nil` if there is none.
    private func enter() -> LifetimeToken? {
        let isFree = working.withLock { working in
            guard working < limit else { return false }
            working += 1
            return true
        }
        guard isFree else { return nil }
        return LifetimeToken { self.working.withLock { $0 -= 1 } }
    }
}
