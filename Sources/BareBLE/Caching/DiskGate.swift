package import BLELinux

/// How much work may be at a disk at a time. One that hangs keeps a thread for each piece of work: it gets so many, and no more.
package final class DiskGate: Sendable {
    private let limit: Int
    private let working = Lock(0)

    /// Far more than a disk that answers ever has at a time.
    package init(limit: Int = 64) {
        self.limit = limit
    }

    /// Does `work` on a thread of its own, and waits for it until `deadline` where there is one. To be called on the loop.
    ///
    /// - Throws: `WorkFailure`; `.noRoom` at once where the disk has as much to do as it may have.
    package func run<Value: Sendable>(
        on loop: EventLoop, until deadline: BootInstant? = nil, _ work: @Sendable @escaping () -> Value
    ) async throws(WorkFailure) -> Value {
        guard let place = enter() else { throw .noRoom }
        let work: @Sendable () -> Value = { withExtendedLifetime(place) { work() } }
        guard let deadline else { return try await loop.elsewhere(work) }
        return try await loop.elsewhere(until: deadline, work)
    }

    private func enter() -> Place? {
        working.withLock { working in
            guard working < limit else { return nil }
            working += 1
            return Place(gate: self)
        }
    }

    /// Room for one piece of work, as long as somebody has it: the caller, then its thread.
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
