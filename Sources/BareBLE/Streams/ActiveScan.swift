internal import BLECore
internal import BLELinux

/// A scan that runs until `stop()`, or until its last copy is released.
struct ActiveScan: Sendable {
    private let id: ScanID
    private let adapter: Adapter
    /// Ends the scan after its duration.
    private let timer: TimerID?
    /// Ends the stream that the scan feeds.
    private let finish: @Sendable () -> Void
    private let token: LifetimeToken

    init(id: ScanID, adapter: Adapter, timer: TimerID?, finish: @escaping @Sendable () -> Void) {
        self.id = id
        self.adapter = adapter
        self.timer = timer
        self.finish = finish
        token = LifetimeToken {
            finish()
            Task.detached(executorPreference: adapter.loop) { await adapter.end(id, timer) }
        }
    }

    /// Ends the scan; if it is the adapter's last one, waits until the radio no longer scans.
    func stop() async {
        _ = token.dismiss()
        finish()
        await adapter.end(id, timer)
    }

    /// Makes the scan ask again which devices keep an entry in the adapter's table.
    func pinsChanged() {
        let adapter = adapter
        Task(executorPreference: adapter.loop) { await adapter.updatePins() }
    }
}

extension Adapter {
    fileprivate func end(_ id: ScanID, _ timer: TimerID?) async {
        if let timer { loop.cancel(timer) }
        await unsubscribe(id)
    }
}
