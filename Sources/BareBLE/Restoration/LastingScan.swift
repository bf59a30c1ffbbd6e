internal import BLECore
internal import BLELinux

/// A scan that is wanted at the next start, until whoever iterates leaves it by his own decision.
final class LastingScan: Sendable {
    private let scan: WantedScan
    private let keeper: StateKeeper

    init(_ scan: WantedScan, _ keeper: StateKeeper) {
        self.scan = scan
        self.keeper = keeper
    }

    deinit {
        // A task is cancelled because the program ends.
        let (scan, keeper, isEnd) = (scan, keeper, !Task.isCancelled)
        Task.detached(executorPreference: keeper.loop) { await keeper.left(scan, isEnd: isEnd) }
    }
}
