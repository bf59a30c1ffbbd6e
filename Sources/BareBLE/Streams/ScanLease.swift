internal import BLECore
internal import BLELinux

/// Keeps a scan going: `stop`, or its last owner going away, ends it.
final class ScanLease: Sendable {
    private let id: ScanID
    private let adapter: Adapter
    /// Ends the scan after its duration.
    private let timer: TimerID?
    /// Ends the stream that the scan feeds.
    private let finish: @Sendable () -> Void

    init(id: ScanID, adapter: Adapter, timer: TimerID?, finish: @escaping @Sendable () -> Void) {
        self.id = id
        self.adapter = adapter
        self.timer = timer
        self.finish = finish
    }

    /// Ends the scan; with the last one of the adapter, waits until the radio no longer scans.
    func stop() async {
        finish()
        await adapter.end(id, timer)
    }

    /// Asks the scan again who keeps a place in the adapter's table.
    func pinsChanged() {
        let adapter = adapter
        Task(executorPreference: adapter.loop) { await adapter.updatePins() }
    }

    deinit {
        finish()
        let (adapter, id, timer) = (adapter, id, timer)
        Task(executorPreference: adapter.loop) { await adapter.end(id, timer) }
    }
}

extension Adapter {
    fileprivate func end(_ id: ScanID, _ timer: TimerID?) async {
        if let timer { loop.cancel(timer) }
        await unsubscribe(id)
    }
}
