internal import BLECore
internal import BLELinux

// The reason for leaving a loop is unknown: an iterator goes away in the same way after `break`, an error and a
// cancellation. So leaving the loop does not remove the scan from the state; only `ScanSequence.stop()` and
// `Central.forgetScan()` do.

/// One iterator's part in a scan of the restoration state.
final class LastingScan: Sendable {
    private let scan: PersistedScan
    private let keeper: StateKeeper
    private let hasEnded = Lock(false)

    init(_ scan: PersistedScan, _ keeper: StateKeeper) {
        self.scan = scan
        self.keeper = keeper
    }

    /// Reports to the keeper that this iterator has ended; the scan stays in the state.
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

/// The scans that the iterators of one sequence have started, so that the sequence can end them.
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
