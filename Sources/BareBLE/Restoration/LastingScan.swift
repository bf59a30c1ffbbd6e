internal import BLECore
internal import BLELinux

// Why a loop was left cannot be told: an iterator goes away in the same way after `break`, an error and a cancellation. So
// leaving it is no reason to forget what it was for; only `ScanSequence.stop()` and `Central.forgetScan()` are.

/// One iterator's part in a scan that is wanted at the next start.
final class LastingScan: Sendable {
    private let scan: WantedScan
    private let keeper: StateKeeper
    private let hasEnded = Lock(false)

    init(_ scan: WantedScan, _ keeper: StateKeeper) {
        self.scan = scan
        self.keeper = keeper
    }

    /// Has the keeper know that this iterator has ended; what is wanted stays so.
    func end() async {
        if isFirstEnd() { await keeper.left(scan) }
    }

    private func isFirstEnd() -> Bool {
        hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
    }

    deinit {
        guard isFirstEnd() else { return }
        let (scan, keeper) = (scan, keeper)
        Task.detached(executorPreference: keeper.loop) { await keeper.left(scan) }
    }
}

/// The scans that the iterators of one sequence have begun, so that the sequence can end them.
final class RunningScans: Sendable {
    private struct Running {
        weak var lease: ScanLease?
        weak var mark: LastingScan?
    }

    private let all = Lock<[Running]>([])

    func add(_ lease: ScanLease, _ mark: LastingScan?) {
        all.withLock { all in
            all.removeAll { $0.lease == nil }
            all.append(Running(lease: lease, mark: mark))
        }
    }

    /// Ends all of them, and waits until the radio no longer scans for them.
    func stop() async {
        let running = all.withLock { all in
            defer { all = [] }
            return all.map { ($0.lease, $0.mark) }
        }
        for (lease, mark) in running {
            await lease?.stop()
            await mark?.end()
        }
    }
}
