package import BLECore
internal import BLELinux
internal import Logging

extension Adapter {
    /// How often silent devices are looked for.
    private static let lossPause: Duration = .seconds(1)

    /// Begins a scan, beside those that run already.
    ///
    /// `receive` is called on the event loop, for each device that passes the settings' filter and rule for repetitions,
    /// from before this call returns until `unsubscribe`; it must return quickly.
    ///
    /// - Parameter lostAfter: After how long a silent device is told as lost; `nil` for never.
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, `.busy` when another program holds the scanner, and
    ///   the codes of `prepare`. Later trouble does not end the scan: it is told as a notice.
    package func subscribe(
        _ settings: ScanSettings, lostAfter: Duration? = nil, _ receive: @escaping @Sendable (ScanDelivery) -> Void
    ) async throws(BLEError) -> ScanID {
        try await prepare(during: "scan")
        guard mayCommand else { throw notPermittedError(during: "scan") }
        lastNumber &+= 1
        let id = ScanID(number: lastNumber)
        subscriptions[id] = ScanSubscription(gate: ScanGate(settings), lostAfter: lostAfter, receive: receive)
        watchPresence()
        watchLosses()
        let (wake, number) = await suspend { number in
            subscriptions[id]?.starter = number
            applyPlan()
            if isPausedForConnect || session?.isScanning ?? false { started() }
        }
        let failure = startFailures.removeValue(forKey: number)
        subscriptions[id]?.starter = nil
        if wake == .resumed, failure == nil { return id }
        await unsubscribe(id)
        throw failure ?? cancelledError(during: "scan")
    }

    /// Ends a scan; with the last one, waits until the radio no longer scans.
    package func unsubscribe(_ id: ScanID) async {
        guard subscriptions.removeValue(forKey: id) != nil else { return }
        watchPresence()
        watchLosses()
        guard subscriptions.isEmpty else { return applyPlan() }
        // The command is out before anything waits, so a cancelled task ends the scan as well.
        performSession { $0.stop(at: $1) }
        guard !(session?.isResting ?? true) else { return }
        _ = await suspend(until: loop.now() + .seconds(3)) { stopWaiters.append($0) }
    }

    /// What is known of a device: when somebody scans, or has scanned.
    package func sighting(of peer: PeerID) -> Sighting? { table.newest(of: peer) }

    private func applyPlan() {
        guard let plan = ScanPlan(covering: subscriptions.values.map(\.gate.settings)) else { return }
        performSession { $0.start(plan, at: $1) }
    }

    // MARK: What the session tells

    func scanEvent(_ event: ScanSession.Event) {
        logger.debug("scan", metadata: ["adapter": "\(name)", "event": "\(event)"])
        switch event {
        case .started:
            let isNews = subscriptions.values.contains { $0.starter == nil }
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

    /// Tells every scan that has begun.
    func tellAll(_ notice: ScanNotice) {
        for subscription in subscriptions.values where subscription.starter == nil {
            subscription.receive(.notice(notice))
        }
    }

    private func started() {
        for subscription in subscriptions.values { if let starter = subscription.starter { wake(starter) } }
    }

    private func failStarters(_ error: BLEError) {
        for subscription in subscriptions.values {
            guard let starter = subscription.starter, sleepers[starter] != nil else { continue }
            startFailures[starter] = error
            wake(starter)
        }
    }

    // MARK: Reports

    func received(_ fragment: AdvertisingReport, at now: BootInstant) {
        statistics.reports &+= 1
        session?.reportSeen(hasData: !fragment.data.isEmpty, at: now)
        // Reports of another program's scan are no concern of anybody here.
        guard !subscriptions.isEmpty, let report = assembler.received(fragment, at: now) else { return }
        guard let outcome = table.record(report, at: now) else { return }
        let sighting = table[outcome.place]
        for id in subscriptions.keys {
            if let evicted = outcome.evicted, subscriptions[id]?.gate.forget(evicted.id) == true {
                subscriptions[id]?.receive(.lost(evicted))
            }
            switch subscriptions[id]?.gate.admit(sighting, outcome.change, at: now) {
            case .found?: subscriptions[id]?.receive(.found(sighting))
            case .updated?: subscriptions[id]?.receive(.updated(sighting))
            case nil: continue
            }
        }
    }

    private func watchLosses() {
        let isNeeded = subscriptions.values.contains { $0.lostAfter != nil }
        guard isNeeded else {
            if let lossTimer { loop.cancel(lossTimer) }
            lossTimer = nil
            return
        }
        guard lossTimer == nil else { return }
        lossTimer = loop.schedule(at: loop.now() + Self.lossPause) { [weak self] in
            self?.assumeIsolated { adapter in
                adapter.lossTimer = nil
                adapter.tellLosses()
                adapter.watchLosses()
            }
        }
    }

    private func tellLosses() {
        // Silence while nobody listens says nothing about the devices.
        guard session?.isScanning ?? false else { return }
        let now = loop.now()
        for id in subscriptions.keys {
            guard let patience = subscriptions[id]?.lostAfter else { continue }
            for lost in subscriptions[id]?.gate.lost(silentSince: now + (.zero - patience)) ?? [] {
                guard let sighting = table[lost] else { continue }
                subscriptions[id]?.receive(.lost(sighting))
            }
        }
    }
}
