internal import BLECore
internal import BLELinux
internal import Logging

// Owns the known services of one peer: the machine that decides what is valid, the stored cache, and the tasks that
// wait for changes or observe them. What is known is asked of the machine itself, `state`.
//
// Duties
// - Resumes every call that waits for another call's discovery, for the end of a rediscovery, or for a disk, exactly
//   once.
// - Compares the peer's Database Hash with the discovered database, and stores what is worth storing.
// - Reports each change to observers once the services that replace it are known.
//
// Invariants
// - It sends no requests: the peripheral makes those that `DatabaseState` and `ServiceChangedObservation` require.
// - Each discovery that adds to the known database ends with `databaseDidChange`. What a user lists by hand does not:
//   such a user alone decides what is requested from the peer. Nor do the descriptors of one characteristic, which name
//   no announcer; they are stored.
// - Only the peripheral uses it, on its event loop. The peripheral keeps deadlines and the cancellation of waiting
//   tasks.

/// The known services of one peer.
final class PeerDatabase {
    private let policy: CachePolicy
    private let computeHash: (@Sendable (DatabaseHashMessage) -> [UInt8])?
    private let loop: EventLoop
    private let log: LinkLog
    /// What is known, and how far it can be relied on. Only this type changes it.
    private(set) var state: DatabaseState
    private var observation: ServiceChangedObservation
    /// The extended properties that were read. They are not part of the database.
    private var extendedProperties: [GATTCharacteristic: GATTDescriptor.ExtendedProperties] = [:]
    private let waiters: Waiters<Bool>
    /// Whether a call is rediscovering the services because the peer contradicts the known ones.
    private var isResynchronizing = false
    /// The number of such rediscoveries that have succeeded.
    private(set) var resynchronizationCount: UInt64 = 0
    private var rediscoveryTimer = DeadlineTimer()
    private var observers: [UInt64: StreamBuffer<Peripheral.ServiceChange>] = [:]
    private var lastObserver: UInt64 = 0
    /// Whether what the link began with was stored.
    private let isCacheStored: Bool
    private var storedCache: GATTCache?
    private let writer: CacheWriter?
    private let storageWaiters: Waiters<Void>
    private var wrongHashes = 0
    /// The bond with whose key the link was encrypted whenever something was found; `nil` if there is none.
    private var bond: BondID?
    /// Whether the link's last owner has passed on what it knew.
    private var isResumed = false

    init(
        _ policy: CachePolicy, computingHashBy computeHash: (@Sendable (DatabaseHashMessage) -> [UInt8])?,
        on loop: EventLoop, log: LinkLog
    ) {
        self.policy = policy
        self.computeHash = computeHash
        self.loop = loop
        self.log = log
        waiters = Waiters(on: loop)
        storageWaiters = Waiters(on: loop)
        state = DatabaseState(cache: policy.cache, validation: policy.validation)
        observation = ServiceChangedObservation(
            isWanted: policy.observesServiceChanges, asksAfterRequests: policy.validation != .skipped)
        let isStored = policy.isCacheStored
        isCacheStored = isStored
        storedCache = isStored ? policy.cache : nil
        bond = policy.bond
        writer = policy.store.map { CacheWriter(on: loop, isStored: isStored, $0) }
    }

    deinit {
        rediscoveryTimer.cancel(on: loop)
    }

    /// The number of calls and observers that wait.
    var outstanding: Int { waiters.count + observers.count }

    /// Writes the counters of this object into `statistics`.
    func count(in statistics: inout ATTStatistics) {
        statistics.wrongDatabaseHashes = wrongHashes
    }
}

// MARK: - The known database

extension PeerDatabase {
    /// The characteristic to which the client's features are written, if the database is cached.
    var clientFeatures: GATTCharacteristic? { policy.isCaching ? state.clientFeaturesCharacteristic : nil }

    /// Returns the one characteristic that `reference` means, if the known database is enough to decide.
    func known(_ reference: CharacteristicReference) -> GATTCharacteristic? {
        switch reference {
        case .handle(let handle): state.known(containing: handle)
        case .uuid(let uuid, let service, let index): state.known(uuid, in: service, index: index)
        case .characteristic(let characteristic): state.known(characteristic)
        }
    }

    func extendedProperties(of characteristic: GATTCharacteristic) -> GATTDescriptor.ExtendedProperties? {
        extendedProperties[characteristic]
    }

    func note(_ properties: GATTDescriptor.ExtendedProperties, of characteristic: GATTCharacteristic) {
        extendedProperties[characteristic] = properties
    }
}

// MARK: - Discoveries

extension PeerDatabase {
    /// Begins a discovery, and returns its number. `found` or `discoveryFailed` reports its end.
    func discoveryBegan(of services: [BluetoothUUID]?, level: DiscoveryLevel) -> UInt64 {
        state.discoveryBegan(of: services, level: level)
    }

    func discoveryFailed(_ discovery: UInt64) {
        state.ended(discovery)
        state.discoveryFailed()
    }

    /// - Throws: `.databaseTooLarge`; the known database is then unchanged.
    func found(
        _ part: GATTDatabase, by discovery: UInt64, of services: [BluetoothUUID]?, level: DiscoveryLevel,
        ignoringCache: Bool
    ) throws(GATTFailure) {
        state.ended(discovery)
        try state.found(part, services: services, level: level, ignoringCache: ignoringCache)
    }

    /// Adds the discovered descriptors of one characteristic.
    func found(_ descriptors: [GATTDescriptor], of characteristic: GATTCharacteristic) {
        state.found(descriptors, of: characteristic)
        storeCache()
    }

    /// Adds what a caller has listed by hand.
    func add(_ listing: (GATTDatabase) -> GATTDatabase) {
        state.add(listing)
    }

    /// Called when more of the database is known.
    func databaseDidChange() {
        observation.databaseDidChange(mayAnnounce: state.serviceChangedHandle != nil || state.lacksAnnouncer)
        storeCache()
    }
}

// MARK: - Waiting

extension PeerDatabase {
    /// Waits until everything is settled, a discovery ends, or the peer has been requested to announce changes. The
    /// caller then checks again. A value of `begin` ends the wait at once.
    func wait(
        until deadline: BootInstant?, isolation: isolated (any Actor)? = #isolation, _ begin: (UInt64) -> Bool?
    ) async -> WaitEnd<Bool> {
        await waiters.wait(until: deadline, isolation: isolation, begin)
    }

    /// Resumes all calls that wait; `false`: the awaited state will not come.
    func resumeWaiters(_ mayGoOn: Bool) {
        waiters.resumeAll(mayGoOn)
    }
}

// MARK: - Changes of the services

extension PeerDatabase {
    /// Handles the peer's announcement that the services in `handles` have changed.
    ///
    /// - Returns: The handles whose attributes are unknown from now on; `nil` if none were known there.
    func serviceChanged(_ handles: ClosedRange<AttributeHandle>) -> ClosedRange<AttributeHandle>? {
        guard let range = state.serviceChanged(handles) else { return nil }
        extendedProperties = [:]
        return range
    }

    /// Returns, once, the changes that the peer announced before the handle of its announcements was known.
    func missedChanges() -> [ClosedRange<AttributeHandle>] { state.missedChanges() }

    /// Returns what must be rediscovered at `now`.
    func nextRediscovery(at now: BootInstant) -> DatabaseState.Rediscovery { state.nextRediscovery(at: now) }

    /// Whether the hash is read before stale services are rediscovered, so that it is never newer than they are.
    var readsHashBeforeRediscovery: Bool { policy.isCaching }

    func rediscovered(_ range: ClosedRange<AttributeHandle>, with part: GATTDatabase) throws(GATTFailure) {
        try state.rediscovered(range, with: part)
    }

    func rediscoveryEnded(isComplete: Bool) {
        state.rediscoveryEnded(isComplete: isComplete)
    }

    /// Schedules the next check of the rediscovery.
    func armTimer(for moment: BootInstant, _ schedule: (BootInstant) -> TimerID) {
        rediscoveryTimer.arm(for: moment, on: loop, schedule)
    }

    func timerFired() {
        rediscoveryTimer.fired()
    }

    /// Reports the changes when nothing is stale any more.
    ///
    /// - Returns: Whether there were any.
    func settled() -> Bool {
        let changes = state.takeChanges()
        databaseDidChange()
        for change in changes { report(change) }
        resumeWaiters(true)
        return !changes.isEmpty
    }

    /// Reports that everything has changed; `former` are the services before the change.
    func reportChange(of former: [GATTService]) {
        report(state.change(in: 1...0xFFFF, of: former))
    }

    private func report(_ change: DatabaseState.Change) {
        guard !observers.isEmpty else { return }
        let change = Peripheral.ServiceChange(
            handles: change.handles, formerServices: change.formerServices, services: change.services)
        for buffer in observers.inOrder { buffer.yield(change) }
    }

    /// Adds an observer of changes, and returns its number.
    func addObserver(_ buffer: StreamBuffer<Peripheral.ServiceChange>) -> UInt64 {
        lastObserver &+= 1
        observers[lastObserver] = buffer
        return lastObserver
    }

    func removeObserver(_ number: UInt64) {
        observers[number] = nil
    }

    /// Ends the sequences of all observers: the link is lost.
    func endObservers(_ failure: BLEError?) {
        for buffer in observers.inOrder { buffer.finish(failure) }
        observers = [:]
    }

    /// Releases all calls that wait: the link is lost.
    func linkLost() {
        rediscoveryTimer.cancel(on: loop)
        resumeWaiters(false)
    }
}

// MARK: - Announcements of changes (Service Changed)

extension PeerDatabase {
    /// Whether the peer must be requested to announce changes after the next request.
    var isServiceChangedDue: Bool { observation.isDue }
    var isServiceChangedEnabled: Bool { observation.isOn }
    /// Whether a call is requesting the announcements.
    var isEnablingServiceChanged: Bool { observation.isAsking }
    /// Whether the announcements must be requested again for the observers, whose tasks may send no further request.
    var mustEnableServiceChangedAgain: Bool { observation.isLost && !observers.isEmpty }

    /// Returns whether the library's own call must be made now; `serviceChangedCallEnded` must follow.
    func beginServiceChangedCall() -> Bool { observation.begin() }

    func serviceChangedCallEnded() { observation.callEnded() }

    func serviceChangedIsAbsent() { observation.announcerIsAbsent() }

    /// Called when a call requests the announcements; `serviceChangedEnabled` reports its end.
    func enablingServiceChanged() { observation.askingBegan() }

    func serviceChangedEnabled(_ isEnabled: Bool) {
        observation.askingEnded(isOn: isEnabled)
        resumeWaiters(true)
    }

    /// Called when a change of the services has ended the subscription to announcements.
    func serviceChangedLost() { observation.subscriptionLost() }

    /// Whether the peer may announce changes at `handle`, as far as it is not known where it does. For a bonded client
    /// that is where it was on earlier links.
    ///
    /// Spec: Core Vol 3 Part G, 7.1.
    func mayAnnounce(at handle: AttributeHandle) -> Bool {
        guard state.serviceChangedHandle == nil else { return false }
        let earlier = policy.remembered?.cache?.database.characteristics(ServiceChanged.uuid).first
        return earlier.map { $0.valueHandle == handle } ?? true
    }

    /// Records an indication from an unknown handle, without a subscriber or with the library's own.
    ///
    /// - Parameter isValidated: Whether it has been decided which cache of an earlier link is used.
    /// - Returns: Whether the announcements must be requested at once.
    func indicated(_ change: ServiceChanged, at handle: AttributeHandle, isValidated: Bool) -> Bool {
        state.indicated(change.handles, at: handle, awaitsCache: !isValidated && trustedCache != nil)
            && observation.isWorthAsking
    }
}

// MARK: - Contradictions

extension PeerDatabase {
    /// Whether a call is rediscovering the services after a contradiction.
    var isBeingResynchronized: Bool { isResynchronizing }

    func resynchronizationBegan() { isResynchronizing = true }

    func resynchronized() { resynchronizationCount &+= 1 }

    func resynchronizationEnded() { isResynchronizing = false }

    /// Forgets everything, because a response of the peer contradicts it. Returns whether it did: not twice within a
    /// pause.
    func purge(at now: BootInstant) -> Bool {
        guard state.purge(at: now) else { return false }
        extendedProperties = [:]
        return true
    }
}

// MARK: - The cache

extension PeerDatabase {
    /// Whether the hash must be read before any other request: a cache waits for it, or one is to be stored, which must
    /// not be older than its hash.
    func mustReadHash() -> Bool {
        dropForgedCache()
        return state.awaitsHash || policy.store != nil && !state.isFromCache
    }

    func hashRead(_ reading: DatabaseState.HashReading) {
        state.hashRead(reading)
    }

    /// The cache for a caller to keep; `nil` also if the peer's hash is wrong.
    func checkedCache() -> GATTCache? {
        checkHash()
        return state.isHashRefuted ? nil : state.cache
    }

    /// The cache for the next link of a bonded peer; `nil` also if something was found before the bond was made, or may
    /// have been.
    func cacheToKeep(for bond: BondID) -> GATTCache? {
        self.bond == bond && !isFromGivenCache ? checkedCache() : nil
    }

    /// Whether some of the database is from a cache that the program gave.
    private var isFromGivenCache: Bool { policy.isCacheGiven && state.isFromCache }

    /// Returns what decides on the next link whether the cache is stored as that of a bond, if it is stored: a write
    /// may still run at the end of this one.
    func storage(for bond: BondID) -> @Sendable () -> Bool {
        guard policy.bond == bond else { return { false } }
        guard let writer else { return { true } }
        return { writer.isStored }
    }

    /// Whether any device that had the peer's address may have filled the cache of this link, which is encrypted with
    /// the key of `bond` now, and was not from its beginning.
    ///
    /// What the program gave is its own decision, also for the links of a bond; so is the cache of an adopted link.
    func mayBeForged(under bond: BondID) -> Bool { policy.bond != bond && !policy.isCacheGiven && !isResumed }

    /// A bond was made on this link, or replaced, or its key encrypts the link from now on.
    ///
    /// The cache of an earlier link is dropped, whatever its hash: any device may have filled it that had the peer's
    /// address, and a hash can be repeated. The next call discovers again, on the encrypted link.
    ///
    /// What was discovered on this link stays known until its end, because the device that has sent it is the one that
    /// has the key. But it came unencrypted, so that no later link begins with it. A call whose refusal has led to the
    /// pairing is repeated: where it names a UUID, that is looked up again; a characteristic or a handle that the
    /// program holds is used as it is, because nothing contradicts it on this link. So is a read that was under way. A
    /// call that cannot be repeated, and whose characteristic was looked up in the cache, fails with
    /// `.servicesChanged`.
    func bondMade(_ made: BondID) {
        if state.dropEarlier() {
            extendedProperties = [:]
            resumeWaiters(true)
        }
        bond = state.hasFindings ? nil : made
    }

    /// The database of a bonded peer that may be used without its hash, if the peer is known to announce changes.
    var trustedCache: GATTCache? { policy.mayTrust ? policy.remembered?.cache : nil }

    /// What is remembered of a bonded peer.
    var remembered: RememberedClient? { policy.remembered }

    /// Remembers a bonded peer for the next link.
    var remember: (@Sendable (RememberedClient, BondID) -> Void)? { policy.remember }

    /// Resumes with what the link's last owner knew.
    func resume(_ cache: GATTCache?, isServiceChangedEnabled: Bool) {
        isResumed = true
        state.restart(with: cache)
        storedCache = isCacheStored ? cache : nil
        if isServiceChangedEnabled { observation.resumed() }
    }

    /// Stores the cache, if it is to be stored and has not been stored yet.
    private func storeCache() {
        // The file of a bond is filled on encrypted links alone.
        if policy.bond != nil, isFromGivenCache { return }
        guard let writer, let cache = checkedCache(), cache != storedCache else { return }
        storedCache = cache
        writer.write(cache)
    }

    /// Waits until the cache has been stored, or the deadline has passed; also in a cancelled task.
    func finishStoring(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async {
        guard let storing = writer?.task else { return }
        let storageWaiters = storageWaiters
        _ = await storageWaiters.wait(until: deadline, interruption: .ignoresCancellation, isolation: isolation) {
            number in
            Task(executorPreference: loop) {
                await storing.value
                storageWaiters.resume(number, ())
            }
            return nil
        }
    }

    /// Whether `hash` is that of `database`; `nil` if nothing computes it. Peers differ in the order of the octets.
    private func agrees(_ hash: [UInt8], with database: GATTDatabase) -> Bool? {
        guard let computeHash else { return nil }
        var values: [AttributeHandle: [UInt8]] = [:]
        for descriptor in database.descriptors where descriptor.uuid == .extendedProperties {
            guard let owner = extendedProperties.first(where: { $0.key.handles.contains(descriptor.handle) }) else {
                continue
            }
            let bits = owner.value.rawValue
            values[descriptor.handle] = [UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)]
        }
        // Without an unread value the hash cannot be computed. A peer must not bypass the check in this way.
        guard let message = DatabaseHashMessage(database, extendedProperties: values) else { return false }
        let computed = computeHash(message)
        return hash == computed || hash == computed.reversed()
    }

    /// Compares the peer's hash with the discovered database: the services of a peer that copies another's hash must
    /// not be stored.
    private func checkHash() {
        guard let cache = state.uncheckedHash, let hash = cache.databaseHash,
            let agrees = agrees(hash, with: cache.database)
        else { return }
        state.hashChecked(agrees: agrees)
        if !agrees { countWrongHash("the database hash is not that of the database; nothing is kept") }
    }

    /// Drops a cache that does not match its own hash: an impostor or a person has written it.
    private func dropForgedCache() {
        guard state.awaitsHash, let cache = policy.cache, cache.coverage == .whole(.full),
            let hash = cache.databaseHash, agrees(hash, with: cache.database) == false
        else { return }
        state.dropUnchecked()
        countWrongHash("a cache does not match its Database Hash, and is not used")
    }

    private func countWrongHash(_ message: String) {
        wrongHashes += 1
        log.report(.warning, message)
    }
}
