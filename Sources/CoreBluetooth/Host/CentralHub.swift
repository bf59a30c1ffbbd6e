// What the central managers of a process share: the adapter's state, the scans, and the links.
//
// Duties
// - Take the managers' calls in the order in which they were made, on whatever threads: through one mailbox, which one
//   task on the loop empties.
// - Keep one `SharedLink` for each device that a manager wants to be connected to, however many managers want it.
// - Report the adapter's state to each manager, and when it can no longer be used, end scans and connections without
//   further callbacks.
//
// Invariants
// - All state belongs to the event loop of the central. Managers, peripherals and queues are only posted to.
// - A manager is referred to weakly; its entry goes with it.
// - What a manager has restored begins after it was notified that the adapter is on, however long that takes.

internal import BLELinux
internal import BareBLE
internal import Logging
internal import Synchronization

/// The adapter, the scans and the links of a process.
actor CentralHub {
    /// A central manager as the hub knows it.
    private struct Entry {
        let manager: WeakManager
        let callbacks: CallbackQueue
        /// Whether the manager has restored what it had, and is to be notified of the state.
        var isStarted = false
        /// Whether the manager was notified that the adapter is on.
        var wasOn = false
        var scan: Task<Void, Never>?
        /// The scan and the links to begin then.
        var early: (scan: ScanRequest?, links: [PeripheralLink]) = (nil, [])
        /// The devices whose connections are reported; `nil` if none are.
        var connectionEvents: ConnectionEventFilter?
    }

    nonisolated let central: Central
    nonisolated let loop: EventLoop
    private nonisolated let server: ServerHub
    /// The devices that are connected, for the calls that return them at once.
    nonisolated let connected = ConnectedPeers()
    /// What the controller is known to be able to do.
    nonisolated let features = KnownFeatures()
    private nonisolated let mailbox = Lock<[@Sendable (isolated CentralHub) -> Void]>([])

    private var managers: [ManagerID: Entry] = [:]
    private var links: [PeerID: SharedLink] = [:]
    /// The state that was reported last; `nil` until it is known.
    private(set) var state: CBManagerState?
    private var watch: Task<Void, Never>?
    /// The number of losses of the adapter that links have reported, and of ends of the last manager: a state that was
    /// read before one of them is not reported after it.
    private var losses = 0

    /// The event loop of the central: all of the actor's code runs there.
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the central, which holds its loop, so the reference stays good.
        unsafe central.unownedExecutor
    }

    init(_ central: Central, _ server: ServerHub) {
        self.central = central
        self.server = server
        loop = central.loop
    }

    // MARK: Calls

    /// Does something on the loop, after everything that was posted before.
    ///
    /// A caller may hold the lock of its own state, so that changes of it come here in their order: the mailbox's lock
    /// is the last one that is taken, and no work runs within the call.
    nonisolated func post(_ work: @escaping @Sendable (isolated CentralHub) -> Void) {
        let isFirst = mailbox.withLock { mailbox in
            mailbox.append(work)
            return mailbox.count == 1
        }
        if isFirst { Task(executorPreference: loop) { await self.emptyMailbox() } }
    }

    private func emptyMailbox() {
        let posted = mailbox.withLock { mailbox in
            var posted: [@Sendable (isolated CentralHub) -> Void] = []
            swap(&posted, &mailbox)
            return posted
        }
        for work in posted { work(self) }
    }

    // MARK: Managers

    /// Adds a manager, which the state is reported to from its start on.
    func add(_ manager: WeakManager, _ id: ManagerID, _ callbacks: CallbackQueue, powerOn: Bool) {
        managers[id] = Entry(manager: manager, callbacks: callbacks)
        if powerOn { Task(executorPreference: loop) { [central] in try? await central.ready(powerOn: true) } }
        guard watch == nil else { return }
        watch = Task(executorPreference: loop) { [weak self, central] in
            // For its first use with bonds, the adapter may have to be switched off and on. No program is to see that.
            if central.configuration.security != nil { try? await central.ready(timeout: .zero) }
            do throws(BLEError) {
                for try await state in central.adapterStates { await self?.watched(CBManagerState(state)) }
            } catch {
                // This task is the sequence's only consumer, and it has no other error.
            }
        }
    }

    /// Reports the state to a manager as soon as it is known.
    func start(_ id: ManagerID) {
        managers[id]?.isStarted = true
        if let state { report(state, to: id) }
    }

    /// Removes a manager: its scan and its connections end, without callbacks.
    func remove(_ id: ManagerID) {
        let entry = managers.removeValue(forKey: id)
        entry?.scan?.cancel()
        for link in entry?.early.links ?? [] { link.assumeIsolated { $0.abandon() } }
        for link in links.values { link.assumeIsolated { $0.leave(all: id) } }
        if managers.isEmpty {
            watch?.cancel()
            watch = nil
            state = nil
            losses += 1
        }
    }

    // MARK: The adapter

    /// The task that watches the adapter has read a state. One that arrives after the end of the watch is an old one.
    func watched(_ state: CBManagerState) {
        if !Task.isCancelled { adapterChanged(state) }
    }

    private func adapterChanged(_ state: CBManagerState) {
        // Without managers nothing watches the adapter, so that the next one would be notified of an old state.
        guard !managers.isEmpty, state != self.state else { return }
        self.state = state
        if state != .poweredOn { endEverything() }
        for id in managers.keys.sorted() { report(state, to: id) }
    }

    /// A link has ended because its adapter has: the adapter's state changes now, and not when it is next looked at.
    ///
    /// Of several links that report one loss, the first one counts. This ends the others, which report it no more.
    func adapterWasLost() async {
        let before = losses
        let now = CBManagerState(await central.adapterState)
        guard losses == before else { return }
        losses += 1
        if now == .poweredOn, state == .poweredOn { adapterChanged(.resetting) }
        adapterChanged(now)
    }

    /// Begins what a manager has restored.
    private func beginEarly(of id: ManagerID) {
        guard let early = managers[id]?.early else { return }
        managers[id]?.early = (nil, [])
        if let request = early.scan { scan(id, request) }
        for link in early.links { connect(link) }
    }

    private func endEverything() {
        for id in managers.keys {
            managers[id]?.scan?.cancel()
            managers[id]?.scan = nil
        }
        for link in links.values { link.assumeIsolated { $0.adapterLost() } }
    }

    private func report(_ state: CBManagerState, to id: ManagerID) {
        guard let entry = managers[id], entry.isStarted else { return }
        server.assumeIsolated { $0.adapterChanged(state, of: id) }
        entry.callbacks.post { [manager = entry.manager] in manager.object?.adapterChanged(state) }
        guard state == .poweredOn, !entry.wasOn else { return }
        managers[id]?.wasOn = true
        beginEarly(of: id)
    }

    // MARK: Scanning

    /// Starts a scan of a manager, instead of the one before.
    func scan(_ id: ManagerID, _ request: ScanRequest) {
        managers[id]?.scan?.cancel()
        guard let entry = managers[id] else { return }
        guard entry.wasOn else {
            managers[id]?.early.scan = request
            return
        }
        guard state == .poweredOn else { return }
        let (central, manager, callbacks) = (central, entry.manager, entry.callbacks)
        managers[id]?.scan = Task(executorPreference: loop) {
            var reported = ReportedDevices()
            var isFirst = true
            do throws(BLEError) {
                for try await event in central.scan(request.filter, request.settings) {
                    if isFirst { await self.noteFeatures() }
                    isFirst = false
                    switch event {
                    case .found(let result), .updated(let result):
                        guard let peer = result.identity ?? result.peer else { continue }
                        guard request.allowsDuplicates || reported.isNews(result, of: peer) else { continue }
                        await callbacks.awaitRoom()
                        callbacks.post { manager.central?.discovered(peer, result, in: request.number) }
                    case .dropped(let count):
                        manager.central?.host.logger.warning(
                            "advertisements were dropped: the delegate's queue is too slow",
                            metadata: ["count": "\(count)"])
                    case .lost, .paused, .resumed: break
                    }
                }
            } catch {
                callbacks.post { manager.central?.scanFailed(error, in: request.number) }
            }
        }
    }

    /// The controller has been asked what it can do.
    private func noteFeatures() {
        let adapter = central.assumeIsolated { $0.adapter }
        features.set(isExtended: adapter.assumeIsolated { $0.hasExtendedConnect })
    }

    /// Stops the scan of a manager.
    func stopScan(_ id: ManagerID) {
        managers[id]?.scan?.cancel()
        managers[id]?.scan = nil
        managers[id]?.early.scan = nil
    }

    // MARK: Links

    /// Connects a peripheral's link, now or when the device is in range.
    func connect(_ link: PeripheralLink) {
        if managers[link.manager]?.wasOn == false {
            managers[link.manager]?.early.links.append(link)
            return
        }
        guard state == .poweredOn, managers[link.manager] != nil else { return link.assumeIsolated { $0.abandon() } }
        sharedLink(to: link.peer).assumeIsolated { $0.join(link) }
    }

    /// Disconnects a peripheral's link, or cancels its attempt.
    func disconnect(_ link: PeripheralLink) {
        if forgetEarly(link) { return link.assumeIsolated { $0.end(nil) } }
        links[link.peer]?.assumeIsolated { $0.leave(link) }
    }

    /// Disconnects the link of a peripheral object that is gone.
    func drop(_ link: PeripheralLink) {
        if forgetEarly(link) { return }
        links[link.peer]?.assumeIsolated { $0.drop(link) }
    }

    private func forgetEarly(_ link: PeripheralLink) -> Bool {
        guard let index = managers[link.manager]?.early.links.firstIndex(where: { $0 === link }) else { return false }
        managers[link.manager]?.early.links.remove(at: index)
        return true
    }

    private func sharedLink(to peer: PeerID) -> SharedLink {
        if let link = links[peer] { return link }
        let link = SharedLink(peer, hub: self)
        links[peer] = link
        return link
    }

    /// A physical link had no users any more; it may have some by now.
    func finished(_ link: SharedLink) {
        if links[link.peer] === link, link.assumeIsolated({ $0.isIdle }) { links[link.peer] = nil }
    }

    // MARK: Connection events

    /// Reports the connections of certain devices to a manager from now on; `nil` for none.
    func setConnectionEvents(_ filter: ConnectionEventFilter?, of id: ManagerID) {
        managers[id]?.connectionEvents = filter
    }

    /// Reports a connection, or its end, to the managers that asked for it.
    func happened(_ event: CBConnectionEvent, to peer: PeerID, services: Set<BluetoothUUID>) {
        switch event {
        case .peerConnected:
            noteFeatures()
            connected.insert(peer, services: services)
        case .peerDisconnected: connected.remove(peer)
        }
        for id in managers.keys.sorted() {
            guard let entry = managers[id], entry.connectionEvents?.matches(peer, services) == true else { continue }
            entry.callbacks.post { [manager = entry.manager] in manager.central?.connectionEvent(event, peer) }
        }
    }
}

/// What a manager wants to hear.
struct ScanRequest: Sendable {
    /// The number of the scan among those of its manager: what an earlier one has heard is not reported in a later one.
    let number: UInt64
    let filter: ScanFilter
    let settings: ScanSettings
    let allowsDuplicates: Bool
}

/// The devices of which a scan has reported an advertisement, and those of which it has reported the scan response too.
private struct ReportedDevices {
    /// Beyond this number all are forgotten, and reported once more.
    private static let limit = 16_384
    private var hasScanResponse: [PeerID: Bool] = [:]

    /// Returns whether to report a result, as news; without duplicates a device is reported once, and once more when
    /// its scan response comes later.
    mutating func isNews(_ result: ScanResult, of peer: PeerID) -> Bool {
        let isComplete = result.scanResponse != nil
        guard let wasComplete = hasScanResponse[peer] else {
            if hasScanResponse.count >= Self.limit { hasScanResponse = [:] }
            hasScanResponse[peer] = isComplete
            return true
        }
        guard isComplete, !wasComplete else { return false }
        hasScanResponse[peer] = true
        return true
    }
}

/// The devices whose connections a manager wants to know about.
struct ConnectionEventFilter: Sendable {
    let services: [BluetoothUUID]?
    let peers: Set<PeerID>?

    func matches(_ peer: PeerID, _ offered: Set<BluetoothUUID>) -> Bool {
        if services == nil, peers == nil { return true }
        if let peers, peers.contains(peer) { return true }
        return services.map { !offered.isDisjoint(with: $0) } ?? false
    }
}

/// What the controller is known to be able to do.
final class KnownFeatures: Sendable {
    private let features = Lock(CBCentralManager.Feature())

    var value: CBCentralManager.Feature { features.withLock { $0 } }

    func set(isExtended: Bool) { features.withLock { $0 = isExtended ? .extendedScanAndConnect : [] } }
}

extension CBManagerState {
    init(_ state: AdapterState) {
        switch state {
        case .unsupported, .absent: self = .unsupported
        case .unauthorized: self = .unauthorized
        case .poweredOff: self = .poweredOff
        case .poweredOn: self = .poweredOn
        }
    }
}

/// The number of a manager, in the order in which they were made.
struct ManagerID: Hashable, Comparable, Sendable {
    private static let last = Atomic<UInt64>(0)
    private let number: UInt64

    static func next() -> ManagerID { ManagerID(number: last.add(1, ordering: .relaxed).newValue) }

    static func < (left: ManagerID, right: ManagerID) -> Bool { left.number < right.number }
}

/// A reference to a manager that does not keep it.
// Unchecked: weak references are loaded atomically, and this one is never assigned again.
final class WeakManager: @unchecked Sendable {
    private(set) weak var object: CBManager?

    init(_ object: CBManager) {
        self.object = object
    }

    var central: CBCentralManager? { object as? CBCentralManager }
}
