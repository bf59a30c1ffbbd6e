public import BLECore
internal import BLELinux

extension Central {
    /// Keeps a list of the devices that match: who is here now, and how near.
    ///
    /// The monitor scans from this call on, beside other scans, until `stop()` or until the last reference to it goes away. It
    /// takes every report, so no rule for repetitions applies to it.
    ///
    /// - Parameters:
    ///   - filter: Which devices are looked at.
    ///   - settings: How the radio listens.
    ///   - lostAfter: After how much time of silence a device has left, reported up to a second later. A device that this adapter is
    ///     connected to is here; its silence counts from the end of the link.
    ///   - proximity: Which strengths are near.
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, `.noAdapter`, `.adapterDown`, `.blocked`, `.busy` when
    ///   another program holds the scanner, `.unsupported`, `.timedOut` when the controller does not answer, `.cancelled`.
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
        let board = DeviceBoard(proximity, of: configuration.adapter.description)
        let everything = settings.matching(filter).duplicates(.all).rssiDelta(nil)
        let lease = try await beginScan(everything, lostAfter: lostAfter, duration: duration) {
            board.pinned
        } _: {
            board.receive($0)
        } finish: {
            board.finish()
        }
        return DeviceMonitor(board, lease)
    }
}

/// A list of devices that is kept current, by a scan that runs as long as the monitor lives.
///
/// `devices` is the list at any moment, and `changes` waits for news of it. Nothing is lost to a consumer that is slow: what
/// it has not taken yet is summed up. A device that falls silent leaves the list, unless it is pinned: then it stays, as absent,
/// and keeps its place whatever crowd is on air. While the adapter is away nobody leaves.
public final class DeviceMonitor: Sendable {
    private let board: DeviceBoard
    private let lease: ScanLease

    fileprivate init(_ board: DeviceBoard, _ lease: ScanLease) {
        self.board = board
        self.lease = lease
    }

    /// Everybody in the list now, in the order in which they came; the last state when the monitor has stopped.
    public var devices: [MonitoredDevice] { board.state.withLock { $0.list.devices } }

    /// How many of them there are, without a copy of the list.
    var count: Int { board.state.withLock { $0.list.count } }

    /// A device of the list; where it advertises several sets, the one heard last.
    public func device(_ peer: PeerID) -> MonitoredDevice? { board.state.withLock { $0.list.device(peer) } }

    /// Whether the list is being kept current: not while the adapter is down or away, and not after `stop()`.
    public var isListening: Bool { board.state.withLock { $0.isListening } }

    /// Keeps a device in the list, as absent when it is silent.
    public func pin(_ peer: PeerID) {
        board.state.withLock { $0.list.pin(peer) }
        lease.pinsChanged()
    }

    /// Keeps a device in the list no longer than it is here.
    public func unpin(_ peer: PeerID) {
        board.state.withLock { $0.list.unpin(peer) }
        board.tellNews()
        lease.pinsChanged()
    }

    /// How the list changes: first everybody who is here, then each difference to what was told before.
    ///
    /// One task may iterate at a time; the next one goes on where it has stopped. It ends with `stop()`.
    public var changes: Changes { Changes(monitor: self) }

    /// Ends the scan and `changes`; waits until the radio no longer scans, if no other scan wants it to.
    public func stop() async { await lease.stop() }

    /// Differences of a monitor's list.
    public struct Changes: AsyncSequence, Sendable {
        /// What the sequence consists of.
        public typealias Element = DeviceListChange
        /// What it can end with.
        public typealias Failure = BLEError

        let monitor: DeviceMonitor

        /// Goes on with what has not been told yet.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(monitor: monitor) }

        /// Walks over the differences.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let monitor: DeviceMonitor

            /// All that has changed since the last call; `nil` when the monitor has stopped or the task is cancelled.
            ///
            /// - Throws: `BLEError` with `.busy` when another task waits already.
            public mutating func next(
                isolation actor: isolated (any Actor)? = #isolation
            ) async throws(BLEError) -> DeviceListChange? {
                while true {
                    if let change = monitor.board.takeChange() { return change }
                    if try await monitor.board.signal.nextBatch().isEmpty { return nil }
                }
            }
        }
    }
}

/// What a scan writes on and a monitor's owner reads from.
private final class DeviceBoard: Sendable {
    struct State {
        var list: DeviceList
        var isListening = true
    }

    let state: Lock<State>
    /// Wakes who waits; one waiting signal is enough, because the list sums up by itself.
    let signal: StreamBuffer<Void>

    init(_ proximity: Proximity.Settings, of adapter: String) {
        signal = StreamBuffer(of: adapter, capacity: 1, policy: .dropOldest)
        state = Lock(State(list: DeviceList(proximity)))
    }

    var pinned: Set<PeerID> { state.withLock { $0.list.pinned } }

    func receive(_ delivery: ScanDelivery) {
        state.withLock { state in
            switch delivery {
            case .found(let sighting), .updated(let sighting): state.list.heard(sighting)
            case .lost(let sighting): state.list.lost(sighting)
            case .notice(.adapterLost): state.isListening = false
            case .notice(.adapterBack): state.isListening = true
            case .notice: return
            }
        }
        tellNews()
    }

    func tellNews() {
        if state.withLock({ $0.list.hasNews }) { signal.yield(()) }
    }

    func takeChange() -> DeviceListChange? { state.withLock { $0.list.takeChange() } }

    func finish() {
        state.withLock { $0.isListening = false }
        signal.finish()
    }
}
