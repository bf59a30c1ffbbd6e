internal import BLECore
internal import BLELinux

/// Keeps a scan running: `stop`, or the end of its last reference, ends it.
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

    /// Ends the scan; if it is the adapter's last one, waits until the radio no longer scans.
    func stop() async {
        finish()
        await adapter.end(id, timer)
    }

    /// Makes the scan ask again which devices keep an entry in the adapter's table.
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
