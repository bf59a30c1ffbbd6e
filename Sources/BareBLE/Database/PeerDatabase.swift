internal import BLECore
internal import BLELinux
internal import Logging

// Owns what is known of the services of one peer: the machine that decides what is valid, the cache that is stored, and all that waits for
// or follows changes of it.
//
// Duties
// - Answers what a reference means by what is known, and says what a call must find out first.
// - Resumes every call that waits for another call's discovery, for the end of a rediscovery, or for a disk, exactly once.
// - Compares the peer's Database Hash with what was found, and stores what is worth it.
// - Reports each change to observers when what is there now is known.
//
// Invariants
// - It asks the peer nothing: the peripheral makes the requests that `DatabaseState` and `ServiceChangedObservation` call for.
// - Whatever adds to what is known ends with `databaseDidChange`.
// - Only the peripheral uses it, on its event loop. Deadlines and cancellation of waiting tasks are the peripheral's.

/// What is known of the services of one peer.
final class PeerDatabase {
    private let policy: CachePolicy
    private let computeHash: (@Sendable (DatabaseHashMessage) -> [UInt8])?
    private let loop: EventLoop
    private let log: LinkLog
    private var state: DatabaseState
    private var observation: ServiceChangedObservation
    /// What was read of the extended properties, which are no part of the database.
    private var extendedProperties: [GATTCharacteristic: CharacteristicExtendedProperties] = [:]
    private let waiters: Waiters<Bool>
    /// Whether a call finds out what became of the services because the peer contradicts what is known.
    private var isResynchronizing = false
    private var rediscoveryTimer = DeadlineTimer()
    private var observers: [UInt64: StreamBuffer<ServiceChange>] = [:]
    private var lastObserver: UInt64 = 0
    private var storedCache: GATTCache?
    private let writer: CacheWriter?
    private let storageWaiters: Waiters<Void>
    private var wrongHashes = 0

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
        storedCache = policy.cache
        writer = policy.store.map { CacheWriter(on: loop, $0) }
    }

    deinit {
        rediscoveryTimer.cancel(on: loop)
    }

    /// Calls and observers that wait for something.
    var outstanding: Int { waiters.count + observers.count }

    /// Adds what was counted here.
    func count(in statistics: inout ATTStatistics) {
        statistics.wrongDatabaseHashes = wrongHashes
    }
}

// MARK: - What is known

extension PeerDatabase {
    var database: GATTDatabase? { state.database }
    var services: [GATTService] { state.services }
    var coverage: DiscoveryCoverage { state.coverage }
    var isFromCache: Bool { state.isFromCache }
    /// Whether nothing that is known is stale.
    var isSettled: Bool { state.isSettled }
    /// Counts the changes of services on this link, for calls that were under way meanwhile.
    var changeCount: UInt64 { state.changeCount }
    /// Where the peer announces changes, if it does.
    var serviceChangedHandle: AttributeHandle? { state.serviceChangedHandle }
    /// Where the peer is told what this side can do, if what is known here is kept.
    var clientFeatures: GATTCharacteristic? { policy.isCaching ? state.clientFeaturesCharacteristic : nil }

    /// Whether `characteristic`, from an earlier look at the database, is not there any more, or not as it was.
    func contradicts(_ characteristic: GATTCharacteristic) -> Bool { state.contradicts(characteristic) }

    /// Whether `characteristic`, from an earlier look at the database, is known to be there as it was.
    func confirms(_ characteristic: GATTCharacteristic) -> Bool { state.confirms(characteristic) }

    /// Whether a call may be made again that relied on `old`, which was known before.
    func allows(_ repetition: Repetition, since old: GATTDatabase) -> Bool { state.allows(repetition, since: old) }

    /// The one characteristic that `reference` means by what is known, if that settles the question.
    ///
    /// - Parameter soFar: Whether the only one that is known is enough, although there may be others.
    func known(_ reference: CharacteristicReference, soFar: Bool = false) -> GATTCharacteristic? {
        guard let database = state.database else { return nil }
        // Where not everything is known, the n-th one that is known need not be the n-th one, nor the only one. Who lists
        // by hand has chosen.
        if case .uuid(_, let service, let index) = reference, !state.isKnown(service, to: .structure) {
            guard index == nil, service != nil || soFar || state.hasListing else { return nil }
        }
        if case .characteristic(let characteristic) = reference {
            return database.characteristic(valueHandle: characteristic.valueHandle) == nil
                || state.contradicts(characteristic) ? nil : characteristic
        }
        guard let found = try? database.resolve(reference, for: "", at: "") else { return nil }
        return state.stale.contains(found.valueHandle) ? nil : found
    }

    func extendedProperties(of characteristic: GATTCharacteristic) -> CharacteristicExtendedProperties? {
        extendedProperties[characteristic]
    }

    func note(_ properties: CharacteristicExtendedProperties, of characteristic: GATTCharacteristic) {
        extendedProperties[characteristic] = properties
    }
}

// MARK: - Discoveries

extension PeerDatabase {
    /// What a call does next that needs `services`, or all, to `level`.
    func nextStep(toKnow services: [BluetoothUUID]?, to level: DiscoveryLevel) -> DatabaseState.DiscoveryStep {
        state.nextStep(toKnow: services, to: level)
    }

    /// Begins a discovery; returns its number. Its end is reported by `found` or `discoveryFailed`.
    func discoveryBegan(of services: [BluetoothUUID]?, level: DiscoveryLevel) -> UInt64 {
        state.discoveryBegan(of: services, level: level)
    }

    func isRunning(_ discovery: UInt64) -> Bool { state.isRunning(discovery) }

    func discoveryFailed(_ discovery: UInt64) {
        state.ended(discovery)
        state.discoveryFailed()
    }

    /// - Throws: `.databaseTooLarge`; nothing more is known than before.
    func found(
        _ part: GATTDatabase, by discovery: UInt64, of services: [BluetoothUUID]?, level: DiscoveryLevel,
        ignoringCache: Bool
    ) throws(GATTFailure) {
        state.ended(discovery)
        try state.found(part, services: services, level: level, ignoringCache: ignoringCache)
    }

    /// The descriptors of one characteristic were found.
    func found(_ descriptors: [GATTDescriptor], of characteristic: GATTCharacteristic) {
        state.found(descriptors, of: characteristic)
        storeCache()
    }

    /// Adds what was listed by hand.
    func add(_ listing: (GATTDatabase) -> GATTDatabase) {
        state.add(listing)
    }

    /// More is known of the peer.
    func databaseDidChange() {
        observation.databaseDidChange(mayAnnounce: state.serviceChangedHandle != nil || state.lacksAnnouncer)
        storeCache()
    }
}

// MARK: - Waiting

extension PeerDatabase {
    /// Waits until everything is settled, a discovery ends, or the peer has been asked to announce changes: the caller looks again then.
    /// A value of `begin` ends the wait at once.
    func wait(
        until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation, _ begin: (UInt64) -> Bool?
    ) async -> WaitEnd<Bool> {
        await waiters.wait(until: deadline, isolation: isolation, begin)
    }

    /// Resumes all calls that wait; `false`: what they wait for will not come.
    func resumeWaiters(_ mayGoOn: Bool) {
        waiters.resumeAll(mayGoOn)
    }
}

// MARK: - Changes of the services

extension PeerDatabase {
    /// The peer says that the services in `handles` have changed.
    ///
    /// - Returns: The handles whose meaning is unknown from now on; `nil` when nothing is known there.
    func serviceChanged(_ handles: ClosedRange<AttributeHandle>) -> ClosedRange<AttributeHandle>? {
        guard let range = state.serviceChanged(handles) else { return nil }
        extendedProperties = [:]
        return range
    }

    /// The changes that the peer announced before it was known where it does, once.
    func missedChanges() -> [ClosedRange<AttributeHandle>] { state.missedChanges() }

    /// What is to be found again at `now`.
    func nextRediscovery(at now: BootInstant) -> DatabaseState.Rediscovery { state.nextRediscovery(at: now) }

    /// Whether the hash is to be read before what is stale is found again, so that it is never newer than that.
    var readsHashBeforeRediscovery: Bool { policy.isCaching }

    func rediscovered(_ range: ClosedRange<AttributeHandle>, with part: GATTDatabase) throws(GATTFailure) {
        try state.rediscovered(range, with: part)
    }

    func rediscoveryEnded(isComplete: Bool) {
        state.rediscoveryEnded(isComplete: isComplete)
    }

    /// Sees to it that the rediscovery is looked at again.
    func armTimer(for moment: BootInstant, _ schedule: (BootInstant) -> TimerID) {
        rediscoveryTimer.arm(for: moment, on: loop, schedule)
    }

    func timerFired() {
        rediscoveryTimer.fired()
    }

    /// Nothing is stale any more: reports what has changed.
    ///
    /// - Returns: Whether something had.
    func settled() -> Bool {
        let changes = state.takeChanges()
        databaseDidChange()
        for change in changes { report(change) }
        resumeWaiters(true)
        return !changes.isEmpty
    }

    /// Reports that everything has changed; `former` are the services as they were.
    func reportChange(of former: [GATTService]) {
        report(state.change(in: 1...0xFFFF, of: former))
    }

    private func report(_ change: DatabaseState.Change) {
        guard !observers.isEmpty else { return }
        let change = ServiceChange(
            handles: change.handles, formerServices: change.formerServices, services: change.services)
        for buffer in observers.inOrder { buffer.yield(change) }
    }

    /// Adds an observer of changes; returns its number.
    func addObserver(_ buffer: StreamBuffer<ServiceChange>) -> UInt64 {
        lastObserver &+= 1
        observers[lastObserver] = buffer
        return lastObserver
    }

    func removeObserver(_ number: UInt64) {
        observers[number] = nil
    }

    /// Ends what observers wait for: the link is gone.
    func endObservers(_ failure: BLEError?) {
        for buffer in observers.inOrder { buffer.finish(failure) }
        observers = [:]
    }

    /// Releases all calls that wait: the link is gone.
    func linkLost() {
        rediscoveryTimer.cancel(on: loop)
        resumeWaiters(false)
    }
}

// MARK: - Whether the peer announces changes

extension PeerDatabase {
    /// Whether the peer is to be asked after the next request.
    var isServiceChangedDue: Bool { observation.isDue }
    var isServiceChangedEnabled: Bool { observation.isOn }
    /// Whether a call is asking the peer.
    var isEnablingServiceChanged: Bool { observation.isAsking }
    /// Whether the peer must be asked again for the sake of those who observe: they may send nothing after which it could be asked.
    var mustEnableServiceChangedAgain: Bool { observation.isLost && !observers.isEmpty }

    /// Returns whether the library's own call must be made now; then `serviceChangedCallEnded`.
    func beginServiceChangedCall() -> Bool { observation.begin() }

    func serviceChangedCallEnded() { observation.callEnded() }

    func serviceChangedIsAbsent() { observation.announcerIsAbsent() }

    /// A call asks the peer; `serviceChangedEnabled` reports its end.
    func enablingServiceChanged() { observation.askingBegan() }

    func serviceChangedEnabled(_ isEnabled: Bool) {
        observation.askingEnded(isOn: isEnabled)
        resumeWaiters(true)
    }

    /// The subscription to announcements ended with the services.
    func serviceChangedLost() { observation.subscriptionLost() }

    /// An indication that nobody has subscribed to came from a handle of which nothing is known.
    ///
    /// - Returns: Whether the peer is to be asked at once.
    func indicated(_ change: ServiceChanged, at handle: AttributeHandle) -> Bool {
        state.indicated(change.handles, at: handle) && observation.isWorthAsking
    }
}

// MARK: - Contradictions

extension PeerDatabase {
    /// Whether a call finds out what became of the services.
    var isBeingResynchronized: Bool { isResynchronizing }

    func resynchronizationBegan() { isResynchronizing = true }

    func resynchronizationEnded() { isResynchronizing = false }

    /// Whether the peer's hash is the one that what is known had.
    func isConfirmed(by reading: DatabaseState.HashReading) -> Bool { state.isConfirmed(by: reading) }

    /// Forgets everything, because a response of the peer contradicts it; returns whether it did: not twice within a pause.
    func purge(at now: BootInstant) -> Bool {
        guard state.purge(at: now) else { return false }
        extendedProperties = [:]
        return true
    }
}

// MARK: - The cache

extension PeerDatabase {
    /// What is known, to be kept; `nil` while nothing is known for certain.
    var cache: GATTCache? { state.cache }

    /// Whether the peer's hash is not known although it may have one.
    var lacksHash: Bool { state.lacksHash }

    /// Whether the hash must be read before anything else: a cache waits for it, or one is to be stored, which is then never older
    /// than its hash.
    func mustReadHash() -> Bool {
        dropForgedCache()
        return state.awaitsHash || policy.store != nil && !state.isFromCache
    }

    func hashRead(_ reading: DatabaseState.HashReading) {
        state.hashRead(reading)
    }

    /// What is known, to be kept by the caller; `nil` also where the peer's hash is wrong.
    func checkedCache() -> GATTCache? {
        checkHash()
        return state.isHashRefuted ? nil : state.cache
    }

    /// Goes on with what the last owner of the link knew.
    func resume(_ cache: GATTCache?, isServiceChangedEnabled: Bool) {
        state = DatabaseState(cache: cache, validation: .skipped)
        if isServiceChangedEnabled { observation.resumed() }
    }

    /// Stores what is known, if it is to be stored and is not already.
    private func storeCache() {
        guard let writer, let cache = checkedCache(), cache != storedCache else { return }
        storedCache = cache
        writer.write(cache)
    }

    /// Waits until what is known has been stored, or the deadline has come; also in a cancelled task.
    func finishStoring(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async {
        guard let storing = writer?.task else { return }
        let storageWaiters = storageWaiters
        _ = await storageWaiters.wait(until: deadline, cancellation: .ignored, isolation: isolation) { number in
            Task(executorPreference: loop) {
                await storing.value
                storageWaiters.resume(number, ())
            }
            return nil
        }
    }

    /// Whether `hash` is that of `database`; `nil` when nobody computes it. Peers differ in the order of the octets.
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
        // A value that nobody has read leaves open what the hash should be. A peer must not get around the check by that.
        guard let message = DatabaseHashMessage(database, extendedProperties: values) else { return false }
        let computed = computeHash(message)
        return hash == computed || hash == computed.reversed()
    }

    /// Compares the peer's hash with what was discovered: who repeats another peer's hash must not have its own services kept.
    private func checkHash() {
        guard let cache = state.uncheckedHash, let hash = cache.databaseHash,
            let agrees = agrees(hash, with: cache.database)
        else { return }
        state.hashChecked(agrees: agrees)
        if !agrees { countWrongHash("the database hash is not that of the database; nothing is kept") }
    }

    /// Drops a cache that is not what its own hash says: it was made by an impostor, or by hand.
    private func dropForgedCache() {
        guard state.awaitsHash, let cache = policy.cache, cache.coverage == .whole(.full),
            let hash = cache.databaseHash, agrees(hash, with: cache.database) == false
        else { return }
        state.dropUnchecked()
        countWrongHash("a cache does not match its Database Hash, and is not used")
    }

    private func countWrongHash(_ message: String) {
        wrongHashes += 1
        log.tell(.warning, message)
    }
}
