internal import BLECore
internal import BLELinux

// The reason for leaving a loop is unknown: an iterator goes away in the same way after `break`, an error and a
// cancellation. So leaving the loop does not remove the scan from the state; only `ScanSequence.stop()` and
// `Central.forgetScan()` do.

/// One iterator's part in a scan of the restoration state.
struct LastingScan: Sendable {
    private let scan: RestorationState.Scan
    private let keeper: StateKeeper
    private let token: LifetimeToken

    init(_ scan: RestorationState.Scan, _ keeper: StateKeeper) {
        self.scan = scan
        self.keeper = keeper
        token = LifetimeToken {
            Task.detached(executorPreference: keeper.loop) { await keeper.left(scan) }
        }
    }

    /// Reports to the keeper that this iterator has ended; the scan stays in the state.
    func end() async {
        if token.dismiss() { await keeper.left(scan) }
    }
}

/// The scans that the iterators of one sequence start or have started, so that the sequence can end them.
final class RunningScans: Sendable {
    private struct Running {
        weak var scan: ScanRun?
    }

    private let all = Lock<[Running]>([])

    /// Adds a scan, once, however often its start fails and is tried again.
    func add(_ scan: ScanRun) {
        all.withLock { all in
            all.removeAll { $0.scan == nil || $0.scan === scan }
            all.append(Running(scan: scan))
        }
    }

    /// Ends all of them, and waits until the radio no longer scans for them.
    func stop() async {
        let running = all.withLock { all in
            defer { all = [] }
            return all.map(\.scan)
        }
        for scan in running { await scan?.end() }
    }
}
