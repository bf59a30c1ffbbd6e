internal import BLECore
internal import BLELinux
internal import Logging

// A peer may change its services while it is connected, and says so by an indication (Service Changed). What is known in
// the range is then stale: subscriptions in it end, and it alone is found anew.
//
// The peer must be asked to say so. That is done after the first request that the application sends when handles of the peer
// are known, so that it costs the application nothing. Where only single services were looked for, Generic Attribute is
// looked for then as well. One call asks at a time, the library's own or the application's; others wait for it and
// look again, so that nobody is told that changes are announced before the peer has agreed to do so.

extension Peripheral {
    /// Robust caching, and several values in one notification.
    ///
    /// Spec: Client Supported Features, Core Vol 3 Part G, 7.2.
    private static let clientFeatures: [UInt8] = [0x05]
    /// How many changes wait for an observer; which ones are lost does not matter, because it looks at the database.
    private static let waitingChanges = 16

    /// Returns the peer's changes of its services from now on, each after the rediscovery that it caused: `database`
    /// is up to date when a change is delivered, and the subscriptions in its range have ended.
    ///
    /// It takes a write if the peer was not configured to announce changes yet; and before that, if nothing is known
    /// of the peer, two or three requests to find the characteristic. Each call begins a sequence of its own, for one
    /// task. It ends with the link.
    ///
    /// - Throws: `BLEError` with `.notSupported` for a peer that announces no changes, `.timedOut`, `.disconnected`,
    ///   `.cancelled`, and the errors of a refused subscription.
    public func serviceChanges(timeout: Duration? = nil) async throws(BLEError) -> ServiceChangeSequence {
        let operation = "observe the services"
        try await recovering(within: timeout ?? Self.valueTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            try await observe(until: deadline, during: operation)
        }
        return announcedServiceChanges()
    }

    /// The changes that become known, without asking the peer to announce any.
    func announcedServiceChanges() -> ServiceChangeSequence {
        let buffer = StreamBuffer<ServiceChange>(of: name, capacity: Self.waitingChanges, policy: .dropOldest)
        if let end { buffer.finish(end.isIntended ? nil : endError(during: "observe the services")) }
        lastNumber &+= 1
        changeObservers[lastNumber] = buffer
        let lease = ServiceChangeLease(number: lastNumber, buffer: buffer, peripheral: self)
        return ServiceChangeSequence(lease: lease)
    }

    func removeChangeObserver(_ number: UInt64) {
        changeObservers[number] = nil
    }

    // MARK: Asking the peer to say so

    /// Something more is known of the peer.
    func knowledgeGrew() {
        isObservingDue =
            policy.observesServiceChanges && policy.validation != .skipped && observation.isWanting
            && (knowledge.serviceChangedHandle != nil || knowledge.lacksAnnouncer || observation == .lost)
        storeCache()
    }

    /// Called when a request of the application has been queued: what the library itself wants goes behind it.
    func observeBehind() {
        isObservingDue = false
        guard !isObservationUnderWay else { return }
        isObservationUnderWay = true
        // Not as part of the call that led here: it waits for leases like everybody else.
        CallScopes.$current.withValue([]) {
            _ = Task(executorPreference: loop) { await self.observeUnasked() }
        }
    }

    private func observeUnasked() async {
        defer { isObservationUnderWay = false }
        let operation = "observe the services"
        do throws(BLEError) {
            try await recovering(within: Self.backgroundTimeout, during: operation) {
                (deadline) async throws(BLEError) in
                try await observe(until: deadline, during: operation)
            }
        } catch {
            // It was not its turn; the next request brings it about again.
            if [.cancelled, .timedOut, .busy].contains(error.code) { return knowledgeGrew() }
            logger.debug(
                "changes of the services stay unannounced", metadata: ["peer": "\(name)", "reason": "\(error)"])
        }
    }

    private func observe(until deadline: BootInstant, during operation: String) async throws(BLEError) {
        if observation == .on { return }
        let reference = CharacteristicReference.uuid(ServiceChanged.uuid, service: .genericAttribute)
        let characteristic: GATTCharacteristic
        do {
            // With its configuration, which most often costs no request of its own there.
            characteristic = try await resolve(
                reference, reach: .subscribable, until: deadline, during: operation)
        } catch  where error.code == .attributeNotFound {
            if observation == .lost { observation = .off }
            throw BLEError(
                .notSupported, subject: name, during: operation,
                because: "the peer has no Service Changed characteristic, so its services should never change")
        }
        while observation.isAsking {
            try await waitForSettling(until: deadline, during: operation) { !observation.isAsking }
        }
        if observation == .on { return }
        observation = .asking(isInVain: false)
        isObservingDue = false
        var outcome = ServiceObservation.off
        defer {
            observation = observation == .asking(isInVain: true) ? .lost : outcome
            resumeSettling(true)
        }
        try await writeClientFeatures(until: deadline, during: operation)
        var descriptor = knowledge.database?.cccd(of: characteristic)
        if descriptor == nil {
            descriptor = try await findDescriptors(of: characteristic, until: deadline, during: operation)
                .first { $0.uuid == .clientCharacteristicConfiguration }
        }
        if knowledge.contradicts(characteristic) { throw changed(during: operation) }
        let result = await begin(
            SubscriptionHub.ownSubscriber, to: characteristic, by: descriptor, preferring: .indication,
            into: .stream(StreamBuffer(of: name, capacity: 1, policy: .dropOldest)), until: deadline)
        subscriptionHub.ownSubscriptionBegan()
        if case .failure(let failure) = result { throw BLEError(failure, subject: name, during: operation) }
        outcome = .on
    }

    /// Where a cache is in use, the peer is asked to refuse requests that rest on an old database (error 0x12).
    private func writeClientFeatures(until deadline: BootInstant, during operation: String) async throws(BLEError) {
        guard policy.isCaching, let features = knowledge.clientFeaturesCharacteristic else { return }
        let result = await runOperation(until: deadline) { client, id, deadline, now in
            let procedure = WriteRequest(
                handle: features.valueHandle, value: Self.clientFeatures, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
        }
        // A peer may do without, but what it says of the database must not be missed.
        guard case .failure(let failure) = result, failure.saysOutOfSync else { return }
        throw BLEError(failure, subject: name, during: operation)
    }

    /// A request that nobody repeats was refused because the database has changed: what is known must not stay.
    func resynchronizeLater() {
        Task(executorPreference: loop) {
            let deadline = self.loop.now() + Self.backgroundTimeout
            _ = try? await self.resynchronize(
                .outOfSync, for: .always, knowing: nil, of: "look at the services again", until: deadline)
        }
    }

    // MARK: What the peer says

    /// Obeys an announcement. It has been confirmed already.
    func serviceChanged(_ value: [UInt8]) {
        do throws(MalformedPacket) {
            let change = try ServiceChanged(value)
            tell(.info, "services changed", ["handles": "\(change.handles)"])
            obey(change.handles)
        } catch {
            tell(.warning, "a change of services makes no sense", ["reason": "\(error)"])
        }
    }

    private func obey(_ handles: ClosedRange<AttributeHandle>) {
        let known = knowledge.database?.services ?? []
        guard let range = knowledge.serviceChanged(handles) else { return }
        obeyedChanges &+= 1
        remember(known.filter { $0.handles.overlaps(range) })
        perform(client.servicesChanged(in: range, at: loop.now()))
        endSubscriptions(in: range)
        forgetServices()
        untoldChanges.insert(range, atMost: DatabaseKnowledge.rangeLimit)
        rediscover()
    }

    /// Keeps for observers what was there; many changes before the next look name a service once.
    private func remember(_ services: [GATTService]) {
        let known = Set(untoldServices)
        let room = max(0, GATTDatabase.attributeLimit - untoldServices.count)
        untoldServices += services.filter { !known.contains($0) }.prefix(room)
    }

    /// Forgets what was learnt of the services as they were, and is not part of the database.
    func forgetServices() {
        scheduler.forgetExhaustedRecoveries()
        extendedProperties = [:]
    }

    /// An indication that nobody asked for came from a handle of which nothing is known.
    func mayBeServiceChanged(_ value: [UInt8], from handle: AttributeHandle) {
        guard let change = try? ServiceChanged(value), knowledge.indicated(change.handles, at: handle) else { return }
        if policy.observesServiceChanges, observation.isWanting { observeBehind() }
    }

    /// Obeys the announcements that came before it was known what they were.
    func obeyMissedChanges() {
        for handles in knowledge.missedChanges() { obey(handles) }
    }

    /// Ends the subscriptions to values in `range`, without a word to the peer.
    func endSubscriptions(in range: ClosedRange<AttributeHandle>) {
        let error = changed(during: "go on with a subscription")
        if subscriptionHub.servicesChanged(in: range, endingWith: error) {
            observation = observation.isAsking ? .asking(isInVain: true) : .lost
        }
    }

    // MARK: Finding anew

    /// Finds anew what is stale, now or as soon as the last time is long enough ago.
    func rediscover() {
        guard end == nil else { return }
        switch knowledge.nextRediscovery(at: loop.now()) {
        case .nothing:
            if knowledge.isSettled { settled() }
        case .at(let moment):
            guard rediscoveryTimer == nil else { return }
            rediscoveryTimer = loop.schedule(at: moment) { [weak self] in
                self?.assumeIsolated { peripheral in
                    peripheral.rediscoveryTimer = nil
                    peripheral.rediscover()
                }
            }
        case .now(let ranges, let level):
            Task(executorPreference: loop) { await self.rediscover(ranges, level) }
        }
    }

    private func rediscover(_ ranges: [ClosedRange<AttributeHandle>], _ level: DiscoveryLevel) async {
        var isComplete = true
        let deadline = loop.now() + Self.discoveryTimeout
        // In front of what is found, so that it is never newer than that.
        let operation = "look at the services"
        if policy.isCaching,
            let reading = try? await databaseHash(until: deadline, isOfCall: false, during: operation)
        {
            knowledge.hashRead(reading)
        }
        for range in ranges where isComplete {
            let result = await runOperation(until: deadline, isOfCall: false) { client, id, deadline, now in
                let procedure = GATTDiscovery(level: level, in: range, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .database($0) }
            }
            guard case .success(.database(let part)) = result else {
                isComplete = false
                continue
            }
            do throws(GATTFailure) {
                try knowledge.rediscovered(range, with: part)
            } catch {
                isComplete = false
            }
        }
        knowledge.rediscoveryEnded(isComplete: isComplete)
        rediscover()
    }

    /// Nothing is stale any more.
    private func settled() {
        let changes = untoldChanges.ranges
        let services = untoldServices
        untoldChanges = HandleRanges()
        untoldServices = []
        knowledgeGrew()
        for range in changes { tellServiceChange(range, of: services) }
        resumeSettling(true)
        if !changes.isEmpty { observeAgain() }
    }

    /// Observes at once where the observation was lost: who waits for changes may ask for nothing behind which it could go.
    func observeAgain() {
        if observation == .lost, !changeObservers.isEmpty { observeBehind() }
    }

    /// Reports a change in `range` to observers; `former` are services as they were, there and elsewhere.
    func tellServiceChange(_ range: ClosedRange<AttributeHandle>, of former: [GATTService]) {
        guard !changeObservers.isEmpty else { return }
        let change = ServiceChange(
            handles: range, formerServices: former.filter { $0.handles.overlaps(range) },
            services: services.filter { $0.handles.overlaps(range) })
        for buffer in changeObservers.inOrder { buffer.yield(change) }
    }

    /// The link is gone: who waits is told.
    func stopSettling() {
        if let rediscoveryTimer { loop.cancel(rediscoveryTimer) }
        rediscoveryTimer = nil
        resumeSettling(false)
    }

    /// The link is gone: who observes is told.
    func endServiceChanges(_ failure: BLEError?) {
        for (_, buffer) in changeObservers.sorted(by: { $0.key < $1.key }) { buffer.finish(failure) }
        changeObservers = [:]
    }
}

extension OperationFailure {
    /// Whether the peer refused because this side does not know its services as they are.
    var saysOutOfSync: Bool {
        if case .gatt(.att(_, _, .databaseOutOfSync)) = self { true } else { false }
    }
}
