public import BLECore
internal import BLELinux

extension Central {
    /// Returns a monitor that keeps a list of the matching devices, with their presence and proximity.
    ///
    /// The monitor scans from this call on, beside other scans, until `stop()` or until the last reference to it goes
    /// away. It uses every report, so no rule for repetitions applies to it.
    ///
    /// - Parameters:
    ///   - filter: The devices to consider.
    ///   - settings: How the radio listens.
    ///   - lostAfter: The time of silence after which a device counts as gone, reported up to a second later. A device
    ///     that this adapter is connected to counts as present; its silence counts from the end of the link.
    ///   - proximity: The signal strengths that count as near.
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, `.noAdapter`, `.adapterDown`, `.blocked`,
    ///   `.busy` if another program is scanning, `.unsupported`, `.timedOut` if the controller does not respond,
    ///   `.cancelled`.
    public func monitor(
        _ filter: ScanFilter = .any, _ settings: ScanSettings = .balanced, lostAfter: Duration = .seconds(15),
        proximity: Proximity.Settings = Proximity.Settings()
    ) async throws(BLEError) -> DeviceMonitor {
        try await monitor(filter, settings, lostAfter: lostAfter, duration: nil, proximity)
    }

    func monitor(
        _ filter: ScanFilter, _ settings: ScanSettings, lostAfter: Duration?, duration: Duration?,
        _ proximity: Proximity.Settings = Proximity.Settings()
    ) async throws(BLEError) -> DeviceMonitor {
        let broadcaster = DeviceBroadcaster(proximity, of: configuration.adapter.description)
        let everything = settings.matching(filter).duplicates(.all).rssiDelta(nil)
        let scan = try await beginScan(everything, lostAfter: lostAfter, duration: duration) {
            broadcaster.pinned
        } _: {
            broadcaster.receive($0)
        } finish: {
            broadcaster.finish()
        }
        return DeviceMonitor(broadcaster, scan)
    }
}

/// A list of devices that is kept current, by a scan that runs as long as the monitor lives.
///
/// `devices` is the list at any moment, and `changes` waits for changes to it. A slow consumer loses nothing: the
/// changes that it has not consumed are merged. A device that falls silent leaves the list, unless it is pinned: then
/// it stays, as absent, and keeps its entry however many devices are on air. While the adapter is away no device
/// leaves.
public final class DeviceMonitor: Sendable {
    private let broadcaster: DeviceBroadcaster
    private let scan: ActiveScan

    fileprivate init(_ broadcaster: DeviceBroadcaster, _ scan: ActiveScan) {
        self.broadcaster = broadcaster
        self.scan = scan
    }

    /// All devices in the list, in the order in which they came; the last state after the monitor has stopped.
    public var devices: [MonitoredDevice] { broadcaster.state.withLock { $0.list.devices } }

    /// The number of devices, without a copy of the list.
    var count: Int { broadcaster.state.withLock { $0.list.count } }

    /// Returns a device of the list, by its address or its identity; for a device with several advertising sets, the
    /// one heard last.
    public func device(_ peer: PeerID) -> MonitoredDevice? { broadcaster.state.withLock { $0.list.device(peer) } }

    /// A Boolean value that indicates whether the list is being kept current; `false` while the adapter is down or
    /// away, and after `stop()`.
    public var isListening: Bool { broadcaster.state.withLock { $0.isListening } }

    /// Keeps a device in the list, as absent while it is silent. One that has a `MonitoredDevice.identity` is pinned by
    /// that, because its address changes.
    public func pin(_ peer: PeerID) {
        broadcaster.state.withLock { $0.list.pin(peer) }
        scan.pinsChanged()
    }

    /// Removes the pin of a device, which leaves the list once it is absent.
    public func unpin(_ peer: PeerID) {
        broadcaster.state.withLock { $0.list.unpin(peer) }
        broadcaster.notifyChanges()
        scan.pinsChanged()
    }

    /// The changes of the list: first all devices that are present, then each difference from what was delivered
    /// before.
    ///
    /// One task may iterate at a time; the next one resumes where it has stopped. The sequence ends with `stop()`.
    public var changes: DeviceListChangeSequence {
        BLESequence { [self] in
            BLESequence<DeviceListChange>.AsyncIterator { () async throws(BLEError) in
                while true {
                    if let change = self.broadcaster.takeChange() { return [StreamEntry(change)] }
                    if try await self.broadcaster.signal.nextBatch().isEmpty { return [] }
                }
            }
        }
    }

    /// Ends the scan and `changes`; returns when the radio no longer scans, unless another scan needs it to.
    public func stop() async { await scan.stop() }

    /// The former name of `DeviceListChangeSequence`.
    @available(*, deprecated, renamed: "DeviceListChangeSequence")
    public typealias Changes = DeviceListChangeSequence
}

/// The changes of a monitor's list: each element is all changes since the one before.
///
/// The sequence ends after `DeviceMonitor.stop()`. `next()` throws `BLEError` with `.busy` if another task is already
/// waiting.
public typealias DeviceListChangeSequence = BLESequence<DeviceListChange>

/// The state that a scan writes and a monitor's owner reads.
private final class DeviceBroadcaster: Sendable {
    struct State {
        var list: DeviceList
        var isListening = true
    }

    let state: Lock<State>
    /// Wakes the waiting task; one pending signal is enough, because the list merges its changes itself.
    let signal: StreamBuffer<Void>

    init(_ proximity: Proximity.Settings, of adapter: String) {
        signal = StreamBuffer(of: adapter, capacity: 1, policy: .dropOldest)
        state = Lock(State(list: DeviceList(proximity)))
    }

    var pinned: Set<PeerID> { state.withLock { $0.list.pinned } }

    func receive(_ delivery: ScanDelivery) {
        state.withLock { state in
            switch delivery {
            case .found(let scanResult), .updated(let scanResult): state.list.heard(scanResult)
            case .lost(let scanResult): state.list.lost(scanResult)
            case .notice(.adapterLost): state.isListening = false
            case .notice(.adapterBack): state.isListening = true
            case .notice: return
            }
        }
        notifyChanges()
    }

    func notifyChanges() {
        if state.withLock({ $0.list.hasNews }) { signal.yield(()) }
    }

    func takeChange() -> DeviceListChange? { state.withLock { $0.list.takeChange() } }

    func finish() {
        state.withLock { $0.isListening = false }
        signal.finish()
    }
}
