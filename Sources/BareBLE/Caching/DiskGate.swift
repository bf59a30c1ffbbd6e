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
        guard let place = enter() else { throw .noRoom }
        let work: @Sendable () -> Value = { withExtendedLifetime(place) { work() } }
        guard let deadline else { return try await loop.offload(work) }
        return try await loop.offload(until: deadline, work)
    }

    private func enter() -> Place? {
        working.withLock { working in
            guard working < limit else { return nil }
            working += 1
            return Place(gate: self)
        }
    }

    /// A slot for one operation, held by the caller and then by its thread.
    private final class Place: Sendable {
        private let gate: DiskGate

        init(gate: DiskGate) {
            self.gate = gate
        }

        deinit {
            gate.working.withLock { $0 -= 1 }
        }
    }
}
