internal import BLECore
internal import BLELinux

// The scans of one adapter, which share one radio.
//
// Duties: run one session by a plan that covers all scans, put reports together, resolve private addresses, keep the
// table of devices, hand each report to each scan's gate, find out which devices fell silent, and resume the tasks that
// wait for a scan to begin, to pause or to end.
//
// Invariants
// - Scans are kept in the order in which they began, which is the order in which they receive.
// - A scan receives notices only once it has begun (`starter` is `nil` then): what fails before fails the call that
//   begins it.
// - Silent devices are looked for once a second at least. A look that comes much later was slept over: by the machine,
//   whose clock goes on, or by the process. That time was no listening, whatever is noticed first afterwards.
// - The coordinator never acts on the radio: it returns actions, in order.

/// Runs the scans of an adapter.
final class ScanCoordinator {
    /// Why a scan could not begin.
    enum StartFailure {
        case refused(HCICommandFailure)
        /// Another program holds the scanner.
        case busy
    }

    enum Action {
        case send(HCICommandPacket)
        /// The session has reported this, for the log.
        case log(ScanSession.Event)
        /// A task resumes: its scan has begun, or the pause or the end that it waits for.
        case resume(UInt64)
        /// A scan could not begin.
        case fail(UInt64, StartFailure)
    }

    /// Counts what the buffers of scans have dropped, on any thread.
    let droppedEvents = DropCounter()
    private var session: ScanSession?
    private var listening = ListeningClock()
    private var subscriptions: [ScanSubscription] = []
    private var table = DeviceTable()
    private var assembler = ReportAssembler()
    private var resolver = AddressResolver()
    private var counts = AdapterStatistics()
    /// Whether a report with data has come since the central was made.
    private(set) var hasHeard = false
    private var isPausedForConnect = false
    private var pauseWaiter: UInt64?
    private var stopWaiters: [UInt64] = []
    /// When silent devices are looked for next.
    private var lossCheck: BootInstant?
    private var lastNumber: UInt64 = 0

    /// How often silent devices are looked for at least, while a scan asks for that.
    private static let lossPause: Duration = .seconds(1)
    /// How late such a look may be. Less than `SleepWatch.delay`: scans may ask for devices that are silent for a
    /// few seconds, and time that is left out for no sleep only delays a loss.
    private static let lossDelay: Duration = .seconds(2)
    /// For how long a device that no scan hears is remembered, unless it is connected.
    private static let memory: Duration = .seconds(300)

    /// What the session knows of the controller; `nil` before that was asked.
    var controller: ScanSession.Controller? { session?.controller }
    /// Whether the legacy commands are in use on a controller that lists the extended ones.
    var hasFallenBack: Bool { session?.hasFallenBack ?? false }
    var hasScans: Bool { !subscriptions.isEmpty }
    /// How many scans have begun and not ended.
    var runningScans: Int { subscriptions.reduce(0) { $0 + ($1.starter == nil ? 1 : 0) } }

    var nextDeadline: BootInstant? {
        guard let deadline = session?.nextDeadline else { return lossCheck }
        return lossCheck.map { min($0, deadline) } ?? deadline
    }

    /// The controller is known now.
    func use(_ controller: ScanSession.Controller, rearmsWhenSilent: Bool) {
        session = ScanSession(controller, rearmsWhenSilent: rearmsWhenSilent)
    }

    // MARK: Scans

    func add(at now: BootInstant, _ makeSubscription: (ScanID) -> ScanSubscription) -> ScanID {
        lastNumber &+= 1
        let id = ScanID(number: lastNumber)
        // What was heard long before this scan is not reported as if it were heard now.
        if subscriptions.isEmpty { _ = table.expire(olderThan: now + (.zero - Self.memory)) }
        subscriptions.append(makeSubscription(id))
        armLossCheck(at: now)
        return id
    }

    /// Sets the scan up, and resumes `starter` once it runs.
    func begin(_ id: ScanID, _ starter: UInt64, at now: BootInstant) -> [Action] {
        setStarter(of: id, starter)
        let actions = applyPlan(at: now)
        return isPausedForConnect || isScanning ? actions + started() : actions
    }

    /// The scan has begun, or the call that begins it has failed.
    func endBegin(_ id: ScanID) { setStarter(of: id, nil) }

    /// Removes a scan; `false` where it was removed before.
    func remove(_ id: ScanID, at now: BootInstant) -> Bool {
        guard let index = subscriptions.firstIndex(where: { $0.id == id }) else { return false }
        subscriptions.remove(at: index)
        armLossCheck(at: now)
        return true
    }

    func removeAll(at now: BootInstant) {
        subscriptions = []
        armLossCheck(at: now)
    }

    /// Re-arms the scan by a plan that covers all that are left.
    func applyPlan(at now: BootInstant) -> [Action] {
        guard let plan = ScanPlan(covering: subscriptions.map(\.gate.settings)) else { return [] }
        return step(now) { $0.start(plan, at: $1) }
    }

    func stop(at now: BootInstant) -> [Action] { step(now) { $0.stop(at: $1) } }

    /// Has a task wait for the end of scanning; `false` where the radio rests already.
    func awaitRest(_ waiter: UInt64) -> Bool {
        if isResting { return false }
        stopWaiters.append(waiter)
        return true
    }

    var isResting: Bool { session?.isResting ?? true }

    var isScanning: Bool { session?.isScanning ?? false }
    /// Whether the radio listens, for this program or for another one that has just changed the scan.
    var isListening: Bool { session?.isListening ?? false }

    private func setStarter(of id: ScanID, _ number: UInt64?) {
        guard let index = subscriptions.firstIndex(where: { $0.id == id }) else { return }
        subscriptions[index].starter = number
    }

    // MARK: Making way for a connection attempt

    /// From now on the scan makes way; `false` where none can run.
    func makeWay() -> Bool {
        isPausedForConnect = true
        return session != nil
    }

    func pause(_ waiter: UInt64, at now: BootInstant) -> [Action] {
        pauseWaiter = waiter
        return step(now) { $0.pause(at: $1) }
    }

    /// The task no longer waits for the pause.
    func endPauseWait() { pauseWaiter = nil }

    func resume(at now: BootInstant) -> [Action] {
        isPausedForConnect = false
        return step(now) { $0.resume(at: $1) }
    }

    /// The commands of a scan beside the kernel's connect, and the one that ends it.
    ///
    /// A kernel that believes in a discovery of another program, which may be long over, looks for no peer by itself,
    /// but takes the reports of any scan. A refusal means that it scans already.
    func commandsForKernelConnect() -> (begin: [HCICommandPacket], end: HCICommandPacket)? {
        guard let controller, let plan = ScanPlan(covering: [.passive]) else { return nil }
        return ([controller.parameters(for: plan), controller.scanOn(for: plan)], controller.scanOff)
    }

    // MARK: What happens

    func commandFinished(_ failure: HCICommandFailure?, at now: BootInstant) -> [Action] {
        step(now) { $0.commandFinished(failure, at: $1) }
    }

    func foreignCompletion(_ opcode: HCIOpcode, _ status: HCIStatus?, at now: BootInstant) -> [Action] {
        step(now) { $0.foreignCompletion(opcode, status, at: $1) }
    }

    func advertisingChanged(
        _ advertising: ScanSession.Advertising, isCertain: Bool, areOthersOnAir: Bool, at now: BootInstant
    ) -> [Action] {
        step(now) {
            $0.advertisingChanged(advertising, isCertain: isCertain, areOthersOnAir: areOthersOnAir, at: $1)
        }
    }

    /// Whether the controller may refuse a scan because it advertises.
    var isHinderedByAdvertising: Bool { session?.isHinderedByAdvertising ?? false }

    func linkEnded(at now: BootInstant) -> [Action] { step(now) { $0.linkEnded(at: $1) } }

    /// Begins the scan again, if one runs.
    func rearm(at now: BootInstant) -> [Action] { step(now) { session, _ in session.rearm() } }

    func adapterDown(at now: BootInstant) -> [Action] { step(now) { session, _ in session.adapterDown() } }

    func adapterUp(at now: BootInstant) -> [Action] { step(now) { $0.adapterUp(at: $1) } }

    /// - Parameter linked: the connected peers, which do not advertise and are not lost.
    func timePassed(_ now: BootInstant, linked: Set<PeerID>) -> [Action] {
        let actions = step(now) { $0.timePassed($1) }
        if let lossCheck, lossCheck <= now {
            self.lossCheck = nil
            reportLosses(at: now, linked: linked)
            armLossCheck(at: now)
        }
        return actions
    }

    private func step(_ now: BootInstant, _ body: (inout ScanSession, BootInstant) -> [ScanSession.Action]) -> [Action]
    {
        leaveOutSleep(at: now)
        guard var machine = session.take() else { return [] }
        let actions = body(&machine, now)
        listening.set(isListening: machine.isScanning, at: now)
        session = consume machine
        return actions.flatMap { action -> [Action] in
            switch action {
            case .send(let command): [.send(command)]
            case .notify(let event): [.log(event)] + handle(event)
            }
        }
    }

    private func handle(_ event: ScanSession.Event) -> [Action] {
        switch event {
        case .started:
            let isNews = subscriptions.contains { $0.starter == nil }
            let actions = started()
            if isNews { notify(.resumed) }
            return actions
        case .disturbed:
            counts.disturbances += 1
            notify(.disturbed)
            return []
        case .stalled(let count, let time):
            counts.stalls += 1
            notify(.stalled(count: count, after: time))
            return []
        case .unable(let failure, let pause):
            counts.failedStarts += 1
            notify(.retrying(failure, after: pause))
            return starters.map { .fail($0, .refused(failure)) }
        case .scanBusy(let pause):
            counts.failedStarts += 1
            if session?.isHinderedByAdvertising ?? false { counts.scansRefusedWhileAdvertising += 1 }
            notify(.retrying(nil, after: pause))
            return starters.map { .fail($0, .busy) }
        case .refused, .refusedWhileAdvertising: return []
        case .paused:
            return pauseWaiter.map { [.resume($0)] } ?? []
        case .ended:
            defer { stopWaiters = [] }
            return stopWaiters.map { .resume($0) }
        }
    }

    /// The tasks that wait for their scan to begin.
    var starters: [UInt64] { subscriptions.compactMap(\.starter) }

    private func started() -> [Action] { starters.map { .resume($0) } }

    /// Notifies every scan that has begun.
    func notify(_ notice: ScanNotice) {
        for subscription in subscriptions where subscription.starter == nil {
            subscription.receive(.notice(notice))
        }
    }

    // MARK: Reports

    /// A batch of reports was read.
    func received(_ batch: AdvertisingReport.Batch, at now: BootInstant) {
        leaveOutSleep(at: now)
        counts.reportLosses += batch.losses
        for report in batch.reports { received(report, at: now) }
    }

    private func received(_ fragment: AdvertisingReport, at now: BootInstant) {
        counts.reports &+= 1
        if !fragment.payload.isEmpty { hasHeard = true }
        session?.reportSeen(hasData: !fragment.payload.isEmpty, at: now)
        // Reports of another program's scan matter to no scan here.
        guard !subscriptions.isEmpty, let report = assembler.received(fragment, at: now) else { return }
        let identity = resolver.isEmpty ? nil : report.peer.flatMap { resolver.identity(ofReportFrom: $0, at: now) }
        guard let outcome = table.record(report, of: identity, at: now) else { return }
        let scanResult = table[outcome.place]
        let listened = listening.reading(at: now)
        // In place: a copy would copy everything that a scan remembers.
        for index in subscriptions.indices {
            for evicted in outcome.evicted { subscriptions[index].forget(evicted) }
            subscriptions[index].take(scanResult, outcome.change, at: now, listened: listened)
        }
    }

    /// What is known of a device, by its address on air or its identity: when a scan runs, or has run. While one runs
    /// nothing expires, so it may have been heard long ago.
    func scanResult(of peer: PeerID) -> ScanResult? { table.newest(of: peer) }

    /// As `scanResult(of:)`; `nil` for a device that has been silent for longer than it is remembered.
    ///
    /// - Parameter linked: the connected peers, which do not advertise and are remembered.
    func scanResult(of peer: PeerID, at now: BootInstant, linked: Set<PeerID>) -> ScanResult? {
        guard let found = table.newest(of: peer) else { return nil }
        if now - found.lastSeen <= Self.memory { return found }
        let linked = withIdentities(linked)
        let isLinked = [found.peer, found.identity].contains { device in device.map { linked.contains($0) } ?? false }
        return isLinked ? found : nil
    }

    func statistics(since moment: BootInstant) -> ScanStatistics {
        ScanStatistics(reports: counts.reports, devices: table.count(heardSince: moment))
    }

    /// Asks every scan again which devices keep a place in the table, beside the peers of links.
    func updatePins(_ peers: Set<PeerID>) {
        table.pin(subscriptions.reduce(into: withIdentities(peers)) { $0.formUnion($1.wanted) })
    }

    private func armLossCheck(at now: BootInstant) {
        guard let shortest = subscriptions.compactMap(\.lostAfter).min() else { return lossCheck = nil }
        guard lossCheck == nil else { return }
        lossCheck = now + min(Self.lossPause, max(.milliseconds(50), shortest / 4))
    }

    /// Leaves the time out in which the machine slept, if it did so since the last look.
    private func leaveOutSleep(at now: BootInstant) {
        guard let due = lossCheck, now - due > Self.lossDelay else { return }
        listening.leaveOut(from: due, to: now)
        lossCheck = now
    }

    private func reportLosses(at now: BootInstant, linked: Set<PeerID>) {
        let listened = listening.reading(at: now)
        let linked = withIdentities(linked)
        for index in subscriptions.indices {
            subscriptions[index].reportLosses(listened: listened, linked: linked) { table[$0] }
        }
    }

    // MARK: Identities

    /// Replaces the keys by which private addresses are resolved, by identity address.
    ///
    /// Devices whose identity can no longer be resolved are lost, and found again under the address that they use.
    func setIdentityKeys(_ keys: [PeerID: Secret128], _ hash: AddressResolver.Hash?) {
        resolver.setKeys(keys, hash)
        for gone in table.remove(identities: { !resolver.resolves($0) }) {
            for index in subscriptions.indices { subscriptions[index].forget(gone) }
        }
    }

    /// Returns the identity of the device that uses a private address; `nil` for every other address.
    func identity(of peer: PeerID) -> PeerID? { resolver.identity(of: peer) }

    /// Whether more than one bonded device could have made a private address.
    func isAmbiguous(_ address: PeerID) -> Bool { resolver.resolution(of: address) == .ambiguous }

    /// Returns the address that a device was heard with last, by its identity or by that address, however long ago;
    /// `nil` for one that the table does not have.
    func addressOnAir(of peer: PeerID) -> PeerID? { table.newest(of: peer)?.peer }

    /// Adds the identities of devices that were named by a private address.
    private func withIdentities(_ peers: Set<PeerID>) -> Set<PeerID> {
        if resolver.isEmpty { return peers }
        return peers.union(peers.compactMap { resolver.identity(of: $0) })
    }

    // MARK: Counting

    /// Adds what was counted here.
    func count(in statistics: inout AdapterStatistics) {
        statistics.reports = counts.reports
        statistics.droppedEvents = droppedEvents.count
        statistics.reportLosses = counts.reportLosses
        statistics.stalls = counts.stalls
        statistics.disturbances = counts.disturbances
        statistics.failedStarts = counts.failedStarts
        statistics.scansRefusedWhileAdvertising = counts.scansRefusedWhileAdvertising
        statistics.evictedAdvertisements = assembler.losses.evicted
        statistics.abandonedAdvertisements = assembler.losses.abandoned
        statistics.cutAdvertisements = assembler.losses.cut
        statistics.evictedDevices = table.evictions
        statistics.refusedDevices = table.refusals
        statistics.resolvedAddresses = resolver.counts.resolved
        statistics.ambiguousAddresses = resolver.counts.ambiguous
    }
}
