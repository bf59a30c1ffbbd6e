public import BLECore
internal import BLELinux
internal import Logging

// A peer may change its services while it is connected, and announces it by an indication (Service Changed). The known
// services in the range are then stale: subscriptions in it end, and only the range is rediscovered.
//
// The client must enable the indications. This is done after the application's first request once handles of the peer
// are known, so it delays no request of the application. If only single services were discovered, Generic Attribute is
// discovered then as well. One call enables the indications at a time, the library's own or the application's. Others
// wait for it and check again, so none reports the announcements as enabled before the peer has agreed.

extension Peripheral {
    /// A change of a peer's services, delivered after their new state is known.
    public struct ServiceChange: Hashable, Sendable {
        /// The affected handles, in whole services.
        public let handles: ClosedRange<AttributeHandle>
        /// The services that were known at these handles before: those removed, and those that may have changed. A
        /// service that is in `services` too is unchanged.
        public let formerServices: [GATTService]
        /// The services that are known at these handles now, ordered by handle. Where the program has discovered single
        /// services, those are found again when a call names them, and are not listed here.
        public let services: [GATTService]
    }
}

/// The former name of `Peripheral.ServiceChange`.
@available(*, deprecated, renamed: "Peripheral.ServiceChange")
public typealias ServiceChange = Peripheral.ServiceChange

/// The changes of one peer's services, in the order in which they became known.
///
/// The sequence has one buffer: use it from one task. At most 16 changes wait; beyond that the oldest is dropped,
/// which does no harm as long as the observer looks at the database and not at the number of changes. It ends when this
/// program ends the link, and throws `BLEError` with `.disconnected` when the link is lost; `.busy` while another task
/// waits for the next change.
public typealias ServiceChangeSequence = BLESequence<Peripheral.ServiceChange>

extension Peripheral {
    /// The client's features: robust caching, and several values in one notification.
    ///
    /// Spec: Client Supported Features, Core Vol 3 Part G, 7.2.
    private static let clientFeatures: [UInt8] = [0x05]
    /// The number of changes that wait for an observer. Which of them are dropped does not matter: an observer reads
    /// the database.
    private static let waitingChanges = 16

    /// Returns the peer's changes of its services from now on, each after the rediscovery that it caused: `database`
    /// is up to date when a change is delivered, and the subscriptions in its range have ended.
    ///
    /// It takes a write if the peer was not configured to announce changes yet; and before that, if nothing is known
    /// of the peer, two or three requests to find the characteristic. Each call begins a sequence of its own, for one
    /// task. It ends with the link.
    ///
    /// - Parameter timeout: The longest time for these requests; `nil` for 60 s.
    /// - Throws: `BLEError` with `.notSupported` for a peer that announces no changes, `.timedOut`, `.disconnected`,
    ///   `.cancelled`, and the errors of a refused subscription.
    public func serviceChanges(timeout: Duration? = nil) async throws(BLEError) -> ServiceChangeSequence {
        let context = context("observe the services", within: timeout ?? Self.valueTimeout)
        try await recovering(context) { () async throws(BLEError) in
            try await enableServiceChanged(in: context)
        }
        return announcedServiceChanges()
    }

    /// Returns the changes that become known, without a request for announcements.
    package func announcedServiceChanges() -> ServiceChangeSequence {
        let buffer = StreamBuffer<ServiceChange>(of: name, capacity: Self.waitingChanges, policy: .dropOldest)
        if let end { buffer.finish(end.isIntended ? nil : endError(during: "observe the services")) }
        let number = peerDatabase.addObserver(buffer)
        let token = LifetimeToken {
            buffer.finish()
            Task.detached(executorPreference: self.loop) { await self.removeChangeObserver(number) }
        }
        return ServiceChangeSequence(buffer, until: token)
    }

    private func removeChangeObserver(_ number: UInt64) {
        peerDatabase.removeObserver(number)
    }

    // MARK: Enabling the announcements

    /// Requests announcements of changes, after the request that has just been queued.
    func enableServiceChangedAfterCurrent() {
        guard peerDatabase.beginServiceChangedCall() else { return }
        // Not as part of the current call: this one waits for exclusive access like all others.
        CallScopes.$current.withValue([]) {
            _ = Task(executorPreference: loop) { await self.enableServiceChangedInBackground() }
        }
    }

    private func enableServiceChangedInBackground() async {
        defer { peerDatabase.serviceChangedCallEnded() }
        let context = context("observe the services", within: Self.backgroundTimeout)
        do throws(BLEError) {
            try await recovering(context) { () async throws(BLEError) in
                try await enableServiceChanged(in: context)
            }
        } catch {
            // Its turn did not come, or the services changed meanwhile; the next request tries again.
            if [.cancelled, .timedOut, .busy, .servicesChanged].contains(error.code) {
                return peerDatabase.databaseDidChange()
            }
            logger.debug(
                "changes of the services stay unannounced", metadata: ["peer": "\(name)", "reason": "\(error)"])
        }
    }

    private func enableServiceChanged(in context: CallContext) async throws(BLEError) {
        // A peer whose services change faster than they can be discovered must not keep a call pending forever.
        for _ in 0..<2 {
            if peerDatabase.isServiceChangedEnabled { return }
            let characteristic = try await serviceChangedCharacteristic(in: context)
            let changes = peerDatabase.state.changeCount
            while peerDatabase.isEnablingServiceChanged {
                try await awaitDatabase(in: context) { !peerDatabase.isEnablingServiceChanged }
            }
            if peerDatabase.isServiceChangedEnabled { return }
            if try await enableServiceChanged(characteristic, since: changes, in: context) { return }
        }
        throw changed(during: context.operation)
    }

    private func serviceChangedCharacteristic(in context: CallContext) async throws(BLEError) -> GATTCharacteristic {
        let reference = CharacteristicReference.uuid(ServiceChanged.uuid, service: .genericAttribute)
        do {
            // Discovers its configuration descriptor too, which usually saves a later request.
            return try await resolve(reference, reach: .subscribable, in: context)
        } catch  where error.code == .attributeNotFound {
            peerDatabase.serviceChangedIsAbsent()
            throw BLEError(
                .notSupported, subject: name, during: context.operation,
                because: "the peer has no Service Changed characteristic, so its services should never change")
        }
    }

    /// Enables the announcements by `characteristic`, known when there were `changes`.
    ///
    /// - Returns: `false` if it may have changed since, according to the peer; then it was not enabled.
    private func enableServiceChanged(
        _ characteristic: GATTCharacteristic, since changes: UInt64, in context: CallContext
    ) async throws(BLEError) -> Bool {
        peerDatabase.enablingServiceChanged()
        var isEnabled = false
        defer { peerDatabase.serviceChangedEnabled(isEnabled) }
        try await writeClientFeatures(in: context)
        guard peerDatabase.state.confirms(characteristic, since: changes) else { return false }
        var descriptor = peerDatabase.state.database?.cccd(of: characteristic)
        if descriptor == nil {
            do {
                descriptor = try await findDescriptors(of: characteristic, in: context)
                    .first { $0.uuid == .clientCharacteristicConfiguration }
            } catch  where error.code == .servicesChanged {
                return false
            }
        }
        // A call that the peer contradicts has discovered everything again.
        if peerDatabase.state.contradicts(characteristic) { return false }
        let result = await begin(
            SubscriptionHub.ownSubscriber, to: characteristic, by: descriptor, preferring: .indication,
            into: .stream(StreamBuffer(of: name, capacity: 1, policy: .dropOldest)), in: context)
        subscriptionHub.ownSubscriptionBegan()
        if case .failure(let failure) = result { throw BLEError(failure, subject: name, during: context.operation) }
        isEnabled = true
        return true
    }

    /// If a cache is in use, requests the peer to refuse requests that rely on an old database (error 0x12).
    private func writeClientFeatures(in context: CallContext) async throws(BLEError) {
        guard let features = peerDatabase.clientFeatures else { return }
        let result = await runOperation(until: context.deadline) { client, id, deadline, now in
            let procedure = WriteRequest(
                handle: features.valueHandle, value: Self.clientFeatures, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
        }
        // The peer need not support this, but its error code may report a change of the database.
        guard case .failure(let failure) = result, failure.reportsOutOfSync else { return }
        throw BLEError(failure, subject: name, during: context.operation)
    }

    /// Rediscovers after a refusal of a request that is not retried: the database has changed, so what is known must
    /// not stay.
    func resynchronizeLater() {
        Task(executorPreference: loop) {
            let context = self.context("look at the services again", within: Self.backgroundTimeout)
            _ = try? await self.resynchronize(.outOfSync, knowing: nil, in: context)
        }
    }

    // MARK: Announcements from the peer

    /// Handles an announcement, which has already been confirmed.
    func serviceChanged(_ value: [UInt8]) {
        do throws(MalformedPacket) {
            let change = try ServiceChanged(value)
            log.report(.info, "services changed", ["handles": "\(change.handles)"])
            obey(change.handles)
        } catch {
            log.report(.warning, "a change of services is malformed", ["reason": "\(error)"])
        }
    }

    private func obey(_ handles: ClosedRange<AttributeHandle>) {
        guard let range = peerDatabase.serviceChanged(handles) else { return }
        link.servicesChanged(in: range, happened)
        endSubscriptions(in: range)
        scheduler.servicesChanged()
        rediscover()
    }

    /// Handles an indication from an unknown handle, without a subscriber or with the library's own.
    func mayBeServiceChanged(_ value: [UInt8], from handle: AttributeHandle) {
        guard let change = try? ServiceChanged(value) else { return }
        // Nothing need be known of the services for that: what the peer may have reset is written again.
        if peerDatabase.mayAnnounce(at: handle) { kept.servicesChanged(in: change.handles) }
        guard peerDatabase.indicated(change, at: handle, isValidated: protection.isValidated) else { return }
        enableServiceChangedAfterCurrent()
    }

    /// Handles the announcements that arrived before their handle was known.
    func obeyMissedChanges() {
        for handles in peerDatabase.missedChanges() { obey(handles) }
    }

    /// Ends the subscriptions to values in `range`; nothing is written to the peer.
    func endSubscriptions(in range: ClosedRange<AttributeHandle>) {
        let error = changed(during: "continue a subscription")
        kept.servicesChanged(in: range)
        if subscriptionHub.servicesChanged(in: range, endingWith: error) { peerDatabase.serviceChangedLost() }
    }

    // MARK: Rediscovery

    /// Rediscovers what is stale, now or when the pause since the last time is over.
    func rediscover() {
        guard end == nil else { return }
        switch peerDatabase.nextRediscovery(at: loop.now()) {
        case .nothing:
            if peerDatabase.state.isSettled, peerDatabase.settled() { enableServiceChangedAgain() }
        case .at(let moment):
            peerDatabase.armTimer(for: moment) { moment in
                loop.schedule(at: moment) { [weak self] in
                    self?.assumeIsolated { peripheral in
                        peripheral.peerDatabase.timerFired()
                        peripheral.rediscover()
                    }
                }
            }
        case .now(let ranges, let level):
            Task(executorPreference: loop) { await self.rediscover(ranges, level) }
        }
    }

    private func rediscover(_ ranges: [ClosedRange<AttributeHandle>], _ level: DiscoveryLevel) async {
        var isComplete = true
        let context = context("look at the services", within: Self.discoveryTimeout)
        if peerDatabase.readsHashBeforeRediscovery,
            let reading = try? await databaseHash(in: context, isOfCall: false)
        {
            peerDatabase.hashRead(reading)
        }
        for range in ranges where isComplete {
            let result = await runOperation(until: context.deadline, isOfCall: false) { client, id, deadline, now in
                let procedure = GATTDiscovery(level: level, in: range, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .database($0) }
            }
            guard case .success(.database(let part)) = result else {
                isComplete = false
                continue
            }
            do throws(GATTFailure) {
                try peerDatabase.rediscovered(range, with: part)
            } catch {
                isComplete = false
            }
        }
        peerDatabase.rediscoveryEnded(isComplete: isComplete)
        rediscover()
    }

    /// Enables lost announcements again at once, if a task observes them.
    func enableServiceChangedAgain() {
        if peerDatabase.mustEnableServiceChangedAgain { enableServiceChangedAfterCurrent() }
    }

    // MARK: Waiting for other calls

    /// Returns when no known part is stale.
    func awaitRediscovery(in context: CallContext) async throws(BLEError) {
        while !peerDatabase.state.isSettled {
            rediscover()
            if peerDatabase.state.isSettled { return }
            try await awaitDatabase(in: context) { peerDatabase.state.isSettled }
        }
    }

    /// Waits until everything is settled, a discovery ends, or the peer has been requested to announce changes, unless
    /// the awaited state `isOver`.
    func awaitDatabase(
        in context: CallContext, unless isOver: () -> Bool
    ) async throws(BLEError) {
        let wait = await peerDatabase.wait(until: context.deadline) { _ in
            end != nil || scheduler.isClearing || isOver() ? isOver() : nil
        }
        if end != nil { throw endError(during: context.operation) }
        switch wait {
        case .resumed(true): return
        case .cancelled where isOver(): return
        case .resumed, .timedOut, .cancelled: break
        }
        throw BLEError(
            Task.isCancelled ? OperationFailure.cancelled : .timedOut, subject: name, during: context.operation)
    }
}

extension OperationFailure {
    /// Whether the peer refused because this client's database is out of sync.
    var reportsOutOfSync: Bool {
        if case .gatt(.att(_, _, .databaseOutOfSync)) = self { true } else { false }
    }
}
