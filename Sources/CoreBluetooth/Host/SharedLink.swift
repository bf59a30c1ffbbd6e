// The physical link to one device, for all managers that want it.
//
// Duties
// - Connect while the link has users, disconnect when the last one has left, and connect again if others have joined.
// - Notify each peripheral's link once of the outcome: connected, failed, or disconnected with a reason.
// - After a lost link, repeat attempts that fail for a passing reason, after increasing pauses, for the users that
//   reconnect.
//
// Invariants
// - A peripheral's link is in `users` from `join` until it is notified of its end, or leaves. In `leaving` are
//   those that have left, and are notified when the link is down or the attempt is over.
// - One task runs the link, from the first user until there are no users, and nobody who has left is to be notified.

internal import BLELinux
internal import BareBLE

/// The physical link to one device.
actor SharedLink {
    private static let longestPause: Duration = .seconds(30)
    /// The failures that come and go: at the edge of the range, and with what others do with the adapter.
    private static let passingCodes: Set<BLEError.Code> = [.busy, .connectFailed, .disconnected, .timedOut]

    nonisolated let peer: PeerID
    private nonisolated let hub: CentralHub
    private nonisolated let loop: EventLoop

    private var users: [PeripheralLink] = []
    private var leaving: [PeripheralLink] = []
    private var attempt: Task<Result<Peripheral, BLEError>, Never>?
    /// The times at which the users want the attempt to begin, and the wait for the first of them.
    private var starts: [ObjectIdentifier: BootInstant] = [:]
    private var delay: Task<Void?, Never>?
    private var connection: Peripheral?
    private var isRunning = false
    /// The wait for the next attempt, after attempts that have failed, and their number.
    private var pause: Task<Void?, Never>?
    private var failures = 0
    /// Whether this program ends the link or the attempt, so that users who join wait for the next one.
    private var isEnding = false
    /// Whether the adapter's loss is known for this link or attempt, so that its end is not reported as another one.
    private var isLost = false

    /// The event loop of the hub: all of the actor's code runs there.
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the hub, so the reference stays good.
        unsafe hub.unownedExecutor
    }

    init(_ peer: PeerID, hub: CentralHub) {
        self.peer = peer
        self.hub = hub
        loop = hub.loop
    }

    // MARK: Users

    /// Whether the link has no users, and its task has ended.
    var isIdle: Bool { !isRunning }

    /// Adds a user, which is notified at once if the link is up.
    func join(_ link: PeripheralLink) {
        users.append(link)
        if let connection, !isEnding { admit(link, to: connection) }
        pause?.cancel()
        wantStart(for: link)
        delay?.cancel()
        guard !isRunning else { return }
        isRunning = true
        Task(executorPreference: loop) { await self.run() }
    }

    /// Removes a user, which is notified when that is done.
    func leave(_ link: PeripheralLink) {
        guard remove(link) else { return }
        if users.isEmpty {
            leaving.append(link)
            end()
        } else {
            // The link stays up for the others.
            link.assumeIsolated { $0.end(nil) }
        }
    }

    /// Removes a user whose peripheral object is gone, so that there is no delegate to notify.
    func drop(_ link: PeripheralLink) {
        guard remove(link) else { return }
        link.assumeIsolated { $0.abandon() }
        if users.isEmpty { end() }
    }

    /// Removes the users of a manager that is gone.
    func leave(all manager: ManagerID) {
        for link in users where link.manager == manager { drop(link) }
    }

    /// The adapter is gone: the manager reports its state, and no callbacks of the links.
    func adapterLost() {
        for link in users + leaving { link.assumeIsolated { $0.abandon() } }
        users = []
        leaving = []
        isLost = true
        end()
    }

    private func remove(_ link: PeripheralLink) -> Bool {
        guard let index = users.firstIndex(where: { $0 === link }) else { return false }
        users.remove(at: index)
        starts[ObjectIdentifier(link)] = nil
        delay?.cancel()
        return true
    }

    private func wantStart(for link: PeripheralLink) {
        starts[ObjectIdentifier(link)] = hub.central.clock.now + link.options.startDelay
    }

    private func end() {
        isEnding = true
        attempt?.cancel()
        delay?.cancel()
        pause?.cancel()
        guard let connection else { return }
        Task(executorPreference: loop) { await connection.disconnect() }
    }

    // MARK: Running

    private func run() async {
        while !users.isEmpty || !leaving.isEmpty {
            dismissLeaving()
            guard !users.isEmpty else { continue }
            isEnding = false
            isLost = false
            switch await connect() {
            case .success(let peripheral): await use(peripheral)
            case .failure(let error): await failed(error)
            }
        }
        isRunning = false
        await hub.finished(self)
    }

    private func dismissLeaving() {
        for link in leaving { link.assumeIsolated { $0.end(nil) } }
        leaving = []
    }

    private func connect() async -> Result<Peripheral, BLEError> {
        let (central, peer) = (hub.central, peer)
        starts = [:]
        for link in users { wantStart(for: link) }
        let attempt = Task(executorPreference: loop) { () async -> Result<Peripheral, BLEError> in
            await self.awaitStart()
            do throws(BLEError) {
                return .success(try await central.connect(peer, ConnectOptions(timeout: nil)))
            } catch {
                return .failure(error)
            }
        }
        self.attempt = attempt
        defer { self.attempt = nil }
        return await attempt.value
    }

    /// Waits until a user wants the attempt to begin, or it is cancelled. Users may join and leave meanwhile.
    private func awaitStart() async {
        let clock = hub.central.clock
        while let start = starts.values.min(), start > clock.now, !isEnding {
            let delay = Task(executorPreference: loop) { try? await clock.sleep(until: start) }
            self.delay = delay
            _ = await delay.value
        }
        delay = nil
    }

    private func failed(_ error: BLEError) async {
        guard ![.adapterDown, .noAdapter, .blocked].contains(error.code) else { return await reportLoss() }
        // An attempt that was ended for want of users may have found new ones meanwhile, and may fail all the same.
        guard error.code != .cancelled, !isEnding else { return }
        let patient =
            Self.passingCodes.contains(error.code) ? users.filter { $0.assumeIsolated { $0.isReconnecting } } : []
        let failed = users.filter { user in !patient.contains { $0 === user } }
        users = patient
        report(error.connectionError, isOfThisMachine: error.isOfThisMachine, to: failed)
        if !patient.isEmpty { await awaitNextAttempt() }
    }

    /// Waits, longer after each failure, until it is over or a user joins.
    private func awaitNextAttempt() async {
        let (clock, delay) = (hub.central.clock, min(Self.longestPause, .seconds(1 << min(failures, 5))))
        failures += 1
        let pause = Task(executorPreference: loop) { try? await clock.sleep(for: delay) }
        self.pause = pause
        _ = await pause.value
        self.pause = nil
    }

    private func use(_ peripheral: Peripheral) async {
        // Users that left while the connection was established are notified before the others.
        dismissLeaving()
        guard !users.isEmpty else { return await peripheral.disconnect() }
        isEnding = false
        isLost = false
        failures = 0
        connection = peripheral
        let advertised = await hub.central.scanResult(of: peer)?.serviceUUIDs ?? []
        await hub.happened(.peerConnected, to: peer, services: Set(advertised))
        for link in users { admit(link, to: peripheral) }
        let reason = await peripheral.disconnected() ?? .requested
        // Users that join from now on wait for the next link.
        connection = nil
        let lost = users
        let error = await Self.error(for: reason, of: peripheral)
        await hub.happened(.peerDisconnected, to: peer, services: Set(advertised))
        if reason == .adapterLost { return await reportLoss() }
        // So do those that have joined since this program began to end the link.
        guard !isEnding else { return }
        // Some may have left meanwhile, and were notified of that.
        let notified = lost.filter { user in users.contains { $0 === user } }
        users.removeAll { user in !user.options.reconnects && notified.contains { $0 === user } }
        report(error, to: notified)
    }

    /// The error for the end of a link. The kernel ends the link to a device that has not paired in time, which looks
    /// like an end by this side.
    private static func error(for reason: DisconnectReason, of peripheral: Peripheral) async -> CBError? {
        guard case .other(.localHostTerminated?, _) = reason, let failure = await peripheral.pairingFailure(),
            failure.isEncryptionTimeout
        else { return reason.translated }
        return failure.connectionError
    }

    /// A link that ends with its adapter is not reported. Users that join from now on want one after its return.
    private func reportLoss() async {
        guard !isLost else { return }
        adapterLost()
        await hub.adapterWasLost()
    }

    private func report(_ error: CBError, isOfThisMachine: Bool, to failed: [PeripheralLink]) {
        for link in failed { link.assumeIsolated { $0.failed(error, isOfThisMachine: isOfThisMachine) } }
    }

    /// None of the links waits for the queue of another one.
    private func report(_ error: CBError?, to lost: [PeripheralLink]) {
        for link in lost { link.assumeIsolated { $0.lost(error) } }
    }

    private func admit(_ link: PeripheralLink, to peripheral: Peripheral) {
        let mtu = peripheral.assumeIsolated { $0.mtu }
        link.assumeIsolated { $0.begin(peripheral, mtu: mtu) }
    }
}
