package import BLECore
internal import BLELinux
internal import Logging

extension Adapter {
    /// How often silent devices are looked for at least, while somebody wants to know.
    private static let lossPause: Duration = .seconds(1)
    /// For how long the table remembers a device that nobody listens for.
    private static let memory: Duration = .seconds(300)

    /// Begins a scan, beside those that run already.
    ///
    /// `receive` is called on the event loop, for each device that passes the settings' filter and rule for repetitions,
    /// from before this call returns until `unsubscribe`; it must return quickly.
    ///
    /// - Parameters:
    ///   - lostAfter: After how much time of listening a silent device is told as lost; `nil` for never.
    ///   - excluded: Who is left out, at any moment.
    ///   - pinned: Who keeps a place in the table; call `updatePins` when it changes.
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, `.busy` when another program holds the scanner, and
    ///   the codes of `prepare`, also where the adapter goes while the scan is being set up. Later trouble does not end the scan: it is
    ///   told as a notice.
    package func subscribe(
        _ settings: ScanSettings, lostAfter: Duration? = nil, excluded: ExcludedPeers? = nil,
        pinned: @escaping @Sendable () -> Set<PeerID> = { [] },
        _ receive: @escaping @Sendable (ScanDelivery) -> Void
    ) async throws(BLEError) -> ScanID {
        try await prepare(during: "scan")
        guard mayCommand else { throw notPermittedError(during: "scan") }
        lastNumber &+= 1
        let id = ScanID(number: lastNumber)
        // What was said long before this scan is not told as if it had been said now.
        if subscriptions.isEmpty { _ = table.expire(olderThan: loop.now() + (.zero - Self.memory)) }
        subscriptions.append(
            ScanSubscription(
                id: id, gate: ScanGate(settings), lostAfter: lostAfter, excluded: excluded, pinned: pinned,
                receive: receive))
        updatePins()
        watchPresence()
        watchLosses()
        let (wake, number) = await suspend { number in
            setStarter(of: id, number)
            applyPlan()
            if isPausedForConnect || session?.isScanning ?? false { started() }
        }
        let failure = startFailures.removeValue(forKey: number)
        setStarter(of: id, nil)
        if wake == .resumed, failure == nil { return id }
        await unsubscribe(id)
        throw failure ?? cancelledError(during: "scan")
    }

    /// Ends a scan; with the last one, waits until the radio no longer scans.
    package func unsubscribe(_ id: ScanID) async {
        guard let index = subscriptions.firstIndex(where: { $0.id == id }) else { return }
        subscriptions.remove(at: index)
        updatePins()
        watchPresence()
        watchLosses()
        guard subscriptions.isEmpty else { return applyPlan() }
        await stopScanning()
    }

    /// Ends every scan, and waits until the radio no longer scans: soon nobody drives the loop any more.
    package func unsubscribeAll() async {
        subscriptions = []
        updatePins()
        watchPresence()
        watchLosses()
        await stopScanning()
    }

    private func setStarter(of id: ScanID, _ number: UInt64?) {
        guard let index = subscriptions.firstIndex(where: { $0.id == id }) else { return }
        subscriptions[index].starter = number
    }

    private func stopScanning() async {
        performSession { $0.stop(at: $1) }
        // In a task of its own, because a cancelled one does not wait: while the scan is being set up, the command that ends it
        // is not out yet, and the process may be gone before it is.
        await Task(executorPreference: loop) { await self.comeToRest() }.value
    }

    private func comeToRest() async {
        guard !(session?.isResting ?? true) else { return }
        _ = await suspend(until: loop.now() + .seconds(3)) { stopWaiters.append($0) }
    }

    /// How many scans have begun and not ended.
    package var runningScans: Int { subscriptions.reduce(0) { $0 + ($1.starter == nil ? 1 : 0) } }

    /// What is known of a device: when somebody scans, or has scanned.
    package func sighting(of peer: PeerID) -> Sighting? { table.newest(of: peer) }

    /// What was heard in all, and how many advertisers since a moment.
    func scanStatistics(since moment: BootInstant) -> ScanStatistics {
        ScanStatistics(reports: statistics.reports, devices: table.count(heardSince: moment))
    }

    /// Asks every scan again who keeps a place in the table. So does who is connected: it does not advertise meanwhile, and
    /// what it is like is wanted for calling it again.
    package func updatePins() {
        table.pinned = subscriptions.reduce(into: Set(linkedPeers.values)) { $0.formUnion($1.wanted) }
    }

    private func applyPlan() {
        guard let plan = ScanPlan(covering: subscriptions.map(\.gate.settings)) else { return }
        performSession { $0.start(plan, at: $1) }
    }

    // MARK: What the session tells

    func scanEvent(_ event: ScanSession.Event) {
        logger.debug("scan", metadata: ["adapter": "\(name)", "event": "\(event)"])
        count(event)
        switch event {
        case .started:
            let isNews = subscriptions.contains { $0.starter == nil }
            started()
            if isNews { tellAll(.resumed) }
        case .disturbed:
            tellAll(.disturbed)
        case .stalled(let count):
            tellAll(.stalled(count: count))
        case .unable(let failure, let pause):
            failStarters(BLEError(failure, subject: name, during: "scan"))
            tellAll(.retrying(failure, after: pause))
        case .scanBusy(let pause):
            failStarters(busyScannerError())
            tellAll(.retrying(nil, after: pause))
        case .paused:
            if let waiter = pauseWaiter { wake(waiter) }
        case .ended:
            let waiters = stopWaiters
            stopWaiters = []
            for waiter in waiters { wake(waiter) }
        }
    }

    private func count(_ event: ScanSession.Event) {
        switch event {
        case .disturbed: counted.disturbances += 1
        case .stalled: counted.stalls += 1
        case .unable, .scanBusy: counted.failedStarts += 1
        case .started, .paused, .ended: return
        }
        tellTroubles()
    }

    /// Tells every scan that has begun.
    func tellAll(_ notice: ScanNotice) {
        for subscription in subscriptions where subscription.starter == nil {
            subscription.receive(.notice(notice))
        }
    }

    private func started() {
        for subscription in subscriptions { if let starter = subscription.starter { wake(starter) } }
    }

    /// Fails every scan that has not begun yet.
    func failStarters(_ error: BLEError) {
        for subscription in subscriptions {
            guard let starter = subscription.starter, sleepers[starter] != nil else { continue }
            startFailures[starter] = error
            wake(starter)
        }
    }

    // MARK: Reports

    func received(_ fragment: AdvertisingReport, at now: BootInstant) {
        counted.reports &+= 1
        session?.reportSeen(hasData: !fragment.data.isEmpty, at: now)
        // Reports of another program's scan are no concern of anybody here.
        guard !subscriptions.isEmpty, let report = assembler.received(fragment, at: now) else { return }
        guard let outcome = table.record(report, at: now) else { return }
        let sighting = table[outcome.place]
        let listened = listening.reading(at: now)
        // In place: a copy would have everything copied that a scan remembers.
        for index in subscriptions.indices {
            for evicted in outcome.evicted { subscriptions[index].forget(evicted) }
            subscriptions[index].take(sighting, outcome.change, at: now, listened: listened)
        }
    }

    private func watchLosses() {
        guard let shortest = subscriptions.compactMap(\.lostAfter).min() else {
            if let lossTimer { loop.cancel(lossTimer) }
            lossTimer = nil
            return
        }
        guard lossTimer == nil else { return }
        let pause = min(Self.lossPause, max(.milliseconds(50), shortest / 4))
        lossTimer = loop.schedule(at: loop.now() + pause) { [weak self] in
            self?.assumeIsolated { adapter in
                adapter.lossTimer = nil
                adapter.tellLosses()
                adapter.watchLosses()
            }
        }
    }

    private func tellLosses() {
        let listened = listening.reading(at: loop.now())
        let linked = Set(linkedPeers.values)
        for index in subscriptions.indices {
            subscriptions[index].tellLosses(listened: listened, linked: linked) { table[$0] }
        }
    }
}
