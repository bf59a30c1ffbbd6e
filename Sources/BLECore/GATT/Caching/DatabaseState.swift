// The known part of a peer's database on one link, and how far it can be relied on.
//
// Duties
// - Takes a cache from an earlier link, decides whether the peer's Database Hash must be read, and adopts or drops the
//   cache by the result. Before that, nothing of it is visible.
// - Records what discoveries find, of single services or of all, and knows what need not be discovered again.
// - Returns the characteristic that a UUID or a handle means, if what is known is enough to decide.
// - Knows which discoveries run, so that calls that overlap share them.
// - Takes the peer's announcements of changed services: the affected ones become stale at once, and only they are
//   rediscovered. However often a peer announces changes, that happens once in five seconds.
// - Keeps what was there before, until the change can be reported.
// - Forgets everything if a response of the peer contradicts it; also once in five seconds.
// - Decides which calls may be retried after a change of the database, by their `RetryRule`.
// - Drops what is from an earlier link when a bond gives a reason to doubt it.
// - Decides what is worth storing.
//
// Invariants
// - Something is covered only while there is a `database`; what a user lists by hand is in it and not covered.
// - A change that is announced during a discovery makes the range stale again after that discovery: what it found
//   there may be older than the change. So does one announced before the handle of the announcements was known.
// - A discovery never removes what another one, at a higher level, has found meanwhile.
// - If only single services are known, nothing is rediscovered: those in the range are forgotten, and discovered when
//   needed.
//
// Spec: Core Vol 3 Part G, 2.5.2 and 7.1.

/// The known part of a peer's database, and the discoveries that are due or run.
package struct DatabaseState: ~Copyable, Sendable {
    /// The least time between two rediscoveries, and between two purges.
    package static let pause: Duration = .seconds(5)
    /// The maximum number of separate ranges of changed handles.
    package static let rangeLimit = 16

    /// The result of reading the peer's Database Hash.
    package enum HashReading: Hashable, Sendable {
        case value([UInt8])
        /// The peer has none.
        case absent
        /// It was refused, or there was no response.
        case unreadable
    }

    /// A rediscovery that is due.
    package enum Rediscovery: Hashable, Sendable {
        case nothing
        /// These ranges, now; `rediscovered` for each, then `rediscoveryEnded`.
        case now([ClosedRange<AttributeHandle>], DiscoveryLevel)
        /// Something, but not before this moment.
        case at(BootInstant)
    }

    /// The next step of a call that needs services.
    package enum DiscoveryStep: Hashable, Sendable {
        /// It continues: all of them are known.
        case proceed
        /// It waits until what is stale has been rediscovered.
        case awaitRediscovery
        /// It waits for the end of one of these discoveries.
        case awaitDiscovery(Set<UInt64>)
        /// It discovers these services, or all.
        case discover([BluetoothUUID]?)
    }

    /// A running discovery.
    private struct RunningDiscovery {
        /// The services that it searches for; `nil` for all.
        let services: [BluetoothUUID]?
        let level: DiscoveryLevel

        /// Whether it discovers services of the kind `uuid`, or all, to `level`.
        func finds(_ uuid: BluetoothUUID?, to level: DiscoveryLevel) -> Bool {
            guard self.level >= level, let services else { return self.level >= level }
            return uuid.map(services.contains) ?? false
        }
    }

    /// A change of the peer's services, as it can be reported.
    package struct Change: Hashable, Sendable {
        package var handles: ClosedRange<AttributeHandle>
        /// The services that were known there before.
        package var formerServices: [GATTService]
        /// The services that are known there now.
        package var services: [GATTService]
    }

    private enum Hash: Hashable, Sendable {
        case unknown, absent
        case value([UInt8])
        /// The peer's hash does not match its database.
        case refuted
    }

    /// The known database, as far as `coverage` indicates; its `stale` parts must not be used.
    package private(set) var database: GATTDatabase? {
        didSet {
            serviceChangedHandle = serviceChangedCharacteristic?.valueHandle
            isHashChecked = false
        }
    }
    /// The handle from which the peer announces changes, if it does.
    package private(set) var serviceChangedHandle: AttributeHandle?
    package private(set) var coverage = GATTDatabase.Coverage.nothing
    /// The handles whose attributes may differ from those in `database`.
    package private(set) var stale = HandleRanges()
    /// The handles that have been forgotten on this link after a change: a characteristic found there before must not
    /// be used until it is known again.
    private var forgotten = HandleRanges()
    /// A Boolean value that indicates whether the database was not found on this link.
    package private(set) var isFromCache = false
    /// A Boolean value that indicates whether a user, who alone decides what is requested from the peer, has listed
    /// something by hand.
    private var hasListing = false

    private var unchecked: GATTCache?
    private var hash = Hash.unknown {
        didSet { isHashChecked = false }
    }
    /// Whether the hash was verified to be that of `database`.
    private var isHashChecked = false
    private var runningDiscoveries = 0
    /// Discoveries of calls, which other calls may wait for.
    private var discoveries: [UInt64: RunningDiscovery] = [:]
    private var lastDiscovery: UInt64 = 0
    private var isRediscovering = false
    private var changedMeanwhile = HandleRanges()
    /// Possible announcements, by the handles from which they came.
    private var unplaced: [AttributeHandle: HandleRanges] = [:]
    /// Changes that have not been reported yet, and what was known there before.
    private var unreported = HandleRanges()
    private var formerServices: [GATTService] = []
    /// The number of times that something known became doubtful: the peer announced a change of known services, or
    /// what was found on an earlier link was dropped.
    package private(set) var changeCount: UInt64 = 0
    private var lastRediscovery: BootInstant?
    private var lastPurge: BootInstant?

    package init(cache: GATTCache? = nil, validation: GATTCache.Validation = .required) {
        guard let cache else { return }
        switch validation {
        case .skipped: adopt(cache)
        case .whenPossible: unchecked = cache
        case .required: unchecked = cache.databaseHash == nil ? nil : cache
        }
    }

    private mutating func adopt(_ cache: GATTCache) {
        guard cache.coverage != .nothing else { return }
        database = cache.database
        serviceChangedHandle = serviceChangedCharacteristic?.valueHandle
        coverage = cache.coverage
        if let value = cache.databaseHash { hash = .value(value) }
        isFromCache = true
    }
}

// MARK: - The cache

extension DatabaseState {
    /// A Boolean value that indicates whether a cache waits for the peer's Database Hash.
    package var awaitsHash: Bool { unchecked != nil }

    /// The peer's Database Hash has been read.
    package mutating func hashRead(_ reading: HashReading) {
        let expected = unchecked
        unchecked = nil
        switch reading {
        case .value(let value):
            // A value of another length is not a hash.
            hash = value.count == GATTCache.hashLength ? .value(value) : .unknown
            if let expected, expected.databaseHash == value {
                adopt(expected)
                // The hash is newer than what was announced before it.
                unplaced = [:]
            }
        case .absent, .unreadable:
            hash = reading == .absent ? .absent : .unknown
            // A cache with a hash is trusted only when the same hash was read again. One without waits here only if
            // the user wants it trusted.
            if let expected, expected.databaseHash == nil { adopt(expected) }
        }
    }

    /// Returns a Boolean value that indicates whether the peer's hash is the one of the known database. After
    /// `databaseOutOfSync` this decides.
    package func isConfirmed(by reading: HashReading) -> Bool {
        if case .value(let value) = reading, case .value(value) = hash { true } else { false }
    }

    /// A Boolean value that indicates whether the peer's hash is not known although it may have one.
    package var lacksHash: Bool {
        guard hash == .unknown, let database else { return false }
        // If everything is known, that includes whether it has a hash.
        return !coverage.includesAll(to: .structure) || !database.characteristics(.databaseHash).isEmpty
    }

    /// The database discovered completely on this link, with a hash that has not been verified yet.
    package var uncheckedHash: GATTCache? {
        guard !isHashChecked, !isFromCache, coverage == .whole(.full), let cache, cache.databaseHash != nil else {
            return nil
        }
        return cache
    }

    /// The hash was verified against the discovered database.
    package mutating func hashChecked(agrees: Bool) {
        if !agrees { hash = .refuted }
        isHashChecked = true
    }

    /// A Boolean value that indicates whether the peer's hash is not that of its database: nothing of it may be kept
    /// beyond the link, because the discovered database need not be the real peer's.
    package var isHashRefuted: Bool { hash == .refuted }

    /// Begins again with a cache that needs no validation. What may be announcements of changes since then is kept, for
    /// `missedChanges`.
    package mutating func restart(with cache: GATTCache?) {
        let announced = unplaced
        self = DatabaseState(cache: cache, validation: .skipped)
        unplaced = announced
    }

    /// Drops the cache that waits for the peer's hash, because its own hash does not match it.
    package mutating func dropUnchecked() { unchecked = nil }

    /// The cache to store; `nil` while nothing is known for certain.
    package var cache: GATTCache? {
        guard let database, coverage != .nothing, stale.isEmpty, !isRediscovering else { return nil }
        if case .value(let value) = hash {
            return GATTCache(database: database, coverage: coverage, databaseHash: value)
        }
        return GATTCache(database: database, coverage: coverage)
    }
}

// MARK: - Discoveries

extension DatabaseState {
    /// Returns whether services of the kind `uuid`, or all, have been discovered to `level`.
    private func isKnown(_ uuid: BluetoothUUID?, to level: DiscoveryLevel) -> Bool {
        if let uuid { coverage.includes(uuid, to: level) } else { coverage.includesAll(to: level) }
    }

    /// Returns the next step of a call that needs `services`, or all, to `level`.
    package func nextStep(toKnow services: [BluetoothUUID]?, to level: DiscoveryLevel) -> DiscoveryStep {
        let wanted: [BluetoothUUID?] = services?.map { Optional($0) } ?? [nil]
        let missing = wanted.filter { !isKnown($0, to: level) }
        if missing.isEmpty { return isSettled ? .proceed : .awaitRediscovery }
        let unsought = missing.filter { uuid in !discoveries.values.contains { $0.finds(uuid, to: level) } }
        if unsought.isEmpty {
            let running = discoveries.filter { discovery in missing.contains { discovery.value.finds($0, to: level) } }
            return .awaitDiscovery(Set(running.keys))
        }
        return .discover(services == nil ? nil : unsought.compactMap { $0 })
    }

    /// A discovery begins; `found` or `discoveryFailed` reports its end.
    package mutating func discoveryBegan(of services: [BluetoothUUID]?, level: DiscoveryLevel) -> UInt64 {
        discoveryBegan()
        lastDiscovery &+= 1
        discoveries[lastDiscovery] = RunningDiscovery(services: services, level: level)
        return lastDiscovery
    }

    /// Called when calls need no longer wait for a discovery.
    package mutating func ended(_ discovery: UInt64) {
        discoveries[discovery] = nil
    }

    /// Returns a Boolean value that indicates whether a discovery runs.
    package func isRunning(_ discovery: UInt64) -> Bool { discoveries[discovery] != nil }

    /// A discovery begins; `found` or `discoveryFailed` reports its end.
    package mutating func discoveryBegan() {
        runningDiscoveries += 1
    }

    /// A discovery found nothing; what is known is unchanged.
    package mutating func discoveryFailed() {
        discoveryEnded()
    }

    /// A discovery of `services`, or of everything, has reached `level`.
    ///
    /// Another one may have gone further meanwhile: services of which more is known by now are unchanged, unless the
    /// discovery was `ignoringCache`.
    ///
    /// - Throws: `.databaseTooLarge`; what is known is unchanged.
    package mutating func found(
        _ part: GATTDatabase, services: [BluetoothUUID]?, level: DiscoveryLevel, ignoringCache: Bool = false
    ) throws(GATTFailure) {
        defer { discoveryEnded() }
        unchecked = nil
        if services == nil, !ignoringCache, case .whole(let reached) = coverage, reached > level { return }
        if let services, let database {
            let news = services.filter { service in
                guard !ignoringCache, let reached = coverage.level(of: service) else { return true }
                return reached <= level
            }
            let found = news.count == services.count ? part : part.restricted(to: news)
            self.database = try database.merging(found, of: news)
            coverage = coverage.adding(news, to: level)
        } else {
            database = part
            stale = HandleRanges()
            isFromCache = false
            if services == nil { hasListing = false }
            coverage = coverage.adding(services, to: level)
        }
    }

    /// The descriptors of one characteristic were found.
    package mutating func found(_ descriptors: [GATTDescriptor], of characteristic: GATTCharacteristic) {
        database = database?.replacing(descriptorsOf: characteristic, with: descriptors)
    }

    /// Something was listed by hand: it can be used, and covers nothing.
    package mutating func add(_ listing: (GATTDatabase) -> GATTDatabase) {
        database = listing(database ?? GATTDatabase())
        hasListing = true
    }

    private mutating func discoveryEnded() {
        runningDiscoveries = max(0, runningDiscoveries - 1)
        let changed = changedMeanwhile
        if runningDiscoveries == 0 { changedMeanwhile = HandleRanges() }
        for range in changed.ranges { _ = invalidate(range) }
    }
}

// MARK: - Changes at the peer

extension DatabaseState {
    /// The peer announces that the services in `handles` have changed.
    ///
    /// - Returns: The handles whose attributes are unknown from now on; `nil` if none were known there.
    package mutating func serviceChanged(
        _ handles: ClosedRange<AttributeHandle>
    ) -> ClosedRange<AttributeHandle>? {
        if runningDiscoveries > 0 { changedMeanwhile.insert(handles, atMost: Self.rangeLimit) }
        let known = database?.services ?? []
        guard let range = invalidate(handles) else { return nil }
        changeCount &+= 1
        // Removing cannot make it too large; and a service that was missing may be there now.
        let kept = Set(formerServices)
        let room = max(0, GATTDatabase.attributeLimit - formerServices.count)
        formerServices += known.filter { $0.handles.overlaps(range) && !kept.contains($0) }.prefix(room)
        unreported.insert(range, atMost: Self.rangeLimit)
        return range
    }

    /// The changes that can be reported, once: nothing is stale any more.
    package mutating func takeChanges() -> [Change] {
        let former = formerServices
        defer {
            unreported = HandleRanges()
            formerServices = []
        }
        return unreported.ranges.map { change(in: $0, of: former) }
    }

    /// A change in `range`; `former` are services as they were, there and elsewhere.
    package func change(in range: ClosedRange<AttributeHandle>, of former: [GATTService]) -> Change {
        Change(
            handles: range, formerServices: former.filter { $0.handles.overlaps(range) },
            services: services.filter { $0.handles.overlaps(range) })
    }

    /// The known services, without those that have changed and were not rediscovered.
    package var services: [GATTService] {
        guard let database else { return [] }
        return database.services.filter { service in
            !stale.ranges.contains { $0.overlaps(service.handles) }
        }
    }

    private mutating func invalidate(_ handles: ClosedRange<AttributeHandle>) -> ClosedRange<AttributeHandle>? {
        guard let database else { return nil }
        if hash != .absent { hash = .unknown }
        let range = database.wholeServices(touching: handles)
        switch coverage {
        case .whole:
            stale.insert(range, atMost: Self.rangeLimit)
        case .services(let levels):
            // Removing cannot make it too large; and a service that is missing may be there now.
            let kept = (try? database.replacing(range: range, with: GATTDatabase())) ?? GATTDatabase()
            let there = levels.filter { level in
                database.services.contains { $0.uuid == level.key && !$0.handles.overlaps(range) }
                    && !database.services.contains { $0.uuid == level.key && $0.handles.overlaps(range) }
            }
            self.database = there.isEmpty ? nil : kept
            coverage = .services(there)
            forgotten.insert(range, atMost: Self.rangeLimit)
        }
        return range
    }

    /// Returns what is to be rediscovered at `now`, once it is due.
    package mutating func nextRediscovery(at now: BootInstant) -> Rediscovery {
        guard !stale.isEmpty, !isRediscovering, runningDiscoveries == 0, case .whole(let level) = coverage else {
            return .nothing
        }
        if let last = lastRediscovery, now < last + Self.pause { return .at(last + Self.pause) }
        lastRediscovery = now
        isRediscovering = true
        discoveryBegan()
        return .now(stale.ranges, level)
    }

    /// `part` is what the peer has in `range` now.
    ///
    /// - Throws: `.databaseTooLarge`.
    package mutating func rediscovered(
        _ range: ClosedRange<AttributeHandle>, with part: GATTDatabase
    ) throws(GATTFailure) {
        database = try database?.replacing(range: range, with: part)
        stale.remove(range)
    }

    /// The rediscovery has ended; if something stale could not be discovered, everything is forgotten.
    package mutating func rediscoveryEnded(isComplete: Bool) {
        isRediscovering = false
        if !isComplete { forget() }
        discoveryEnded()
    }

    /// Forgets everything, because a response of the peer contradicts it.
    ///
    /// - Returns: Whether it did; it does not twice within the pause.
    package mutating func purge(at now: BootInstant) -> Bool {
        if let last = lastPurge, now < last + Self.pause { return false }
        lastPurge = now
        forget()
        return true
    }

    private mutating func forget() {
        if database != nil { forgotten = HandleRanges(1...0xFFFF) }
        database = nil
        coverage = .nothing
        stale = HandleRanges()
        unchecked = nil
        isFromCache = false
        hasListing = false
        if hash != .absent { hash = .unknown }
    }
}

// MARK: - A bond

extension DatabaseState {
    /// A Boolean value that indicates whether attributes are known, or are being discovered.
    package var hasFindings: Bool { database != nil || runningDiscoveries > 0 }

    /// Drops what was found on an earlier link: a bond was made on this one.
    ///
    /// What a caller holds of it is not contradicted by that. What a call has looked up in it is no longer confirmed.
    /// The hash is the one that the peer reported on this link.
    ///
    /// - Returns: Whether there was anything.
    package mutating func dropEarlier() -> Bool {
        unchecked = nil
        guard isFromCache else { return false }
        changeCount &+= 1
        database = nil
        coverage = .nothing
        stale = HandleRanges()
        isFromCache = false
        hasListing = false
        return true
    }
}

// MARK: - Announcements from an unknown handle

// A peer that was requested on an earlier link to announce changes also announces them on the next one, perhaps before
// this side has discovered the handle. Such indications are kept until it is known.

extension DatabaseState {
    /// A Boolean value that indicates whether handles are known that a change would invalidate, while it is unknown
    /// where the peer announces changes, if it does.
    ///
    /// What a user lists by hand does not count: such a user alone decides what is requested from the peer.
    package var lacksAnnouncer: Bool {
        coverage != .nothing && !coverage.includes(.genericAttribute, to: .structure)
    }

    /// Records an indication with the form of an announcement from an unknown handle, if it can be one.
    /// `missedChanges` returns it once it is known to be one.
    ///
    /// - Parameter awaitsCache: Whether `restart` may follow with a cache from before the indication.
    /// - Returns: Whether a call should discover whether it is one, if none is discovering that yet.
    package mutating func indicated(
        _ handles: ClosedRange<AttributeHandle>, at handle: AttributeHandle, awaitsCache: Bool = false
    ) -> Bool {
        guard serviceChangedHandle == nil, database?.type(at: handle) == nil else { return false }
        let isWorthDiscovering = runningDiscoveries > 0 || lacksAnnouncer
        // If nothing is known of the peer, and no cache waits, nothing can be wrong.
        guard isWorthDiscovering || awaitsHash || awaitsCache else { return false }
        guard unplaced[handle] != nil || unplaced.count < Self.rangeLimit else { return false }
        unplaced[handle, default: HandleRanges()].insert(handles, atMost: Self.rangeLimit)
        return isWorthDiscovering
    }

    /// Returns, once, the changes that the peer announced before the handle of its announcements was known.
    package mutating func missedChanges() -> [ClosedRange<AttributeHandle>] {
        if let handle = serviceChangedHandle {
            defer { unplaced = [:] }
            return unplaced[handle]?.ranges ?? []
        }
        // Nothing is known that could be wrong, or the peer announces nothing.
        let isWithoutEffect = coverage == .nothing || coverage.includes(.genericAttribute, to: .structure)
        if runningDiscoveries == 0, isWithoutEffect { unplaced = [:] }
        return []
    }
}

// MARK: - Characteristics

extension DatabaseState {
    /// A Boolean value that indicates whether nothing known waits for its rediscovery.
    package var isSettled: Bool { stale.isEmpty }

    /// The characteristic that announces changes, if it can be subscribed to.
    package var serviceChangedCharacteristic: GATTCharacteristic? {
        database?.characteristics(ServiceChanged.uuid).first { $0.properties.canSubscribe }
    }

    /// The characteristic to which a client writes its features.
    package var clientFeaturesCharacteristic: GATTCharacteristic? {
        database?.characteristics(.clientSupportedFeatures).first { $0.properties.contains(.write) }
    }

    /// Returns a Boolean value that indicates whether `characteristic`, from an earlier state of the database, no
    /// longer exists or has changed.
    package func contradicts(_ characteristic: GATTCharacteristic) -> Bool {
        let handle = characteristic.valueHandle
        guard !stale.contains(handle), let database else { return !stale.isEmpty || forgotten.contains(handle) }
        guard let now = database.characteristic(valueHandle: handle) else {
            return coverage.includesAll(to: .structure) || forgotten.contains(handle)
                || database.type(at: handle) != nil
        }
        return now.uuid != characteristic.uuid || now.properties != characteristic.properties
    }

    /// Returns whether `characteristic`, from an earlier state of the database, is known to exist unchanged.
    package func confirms(_ characteristic: GATTCharacteristic) -> Bool {
        let handle = characteristic.valueHandle
        guard !stale.contains(handle), let now = database?.characteristic(valueHandle: handle) else { return false }
        return now.uuid == characteristic.uuid && now.properties == characteristic.properties
    }

    /// Returns whether `characteristic`, known when `changeCount` was `changes`, can be relied on: nothing has changed
    /// or been dropped since, or it is known to exist unchanged.
    package func confirms(_ characteristic: GATTCharacteristic, since changes: UInt64) -> Bool {
        changes == changeCount || confirms(characteristic)
    }
}

// MARK: - From references to characteristics

extension DatabaseState {
    /// Returns the one characteristic with this UUID, if what is known is enough to decide.
    ///
    /// - Parameters:
    ///   - service: The UUID of its service; `nil` for any.
    ///   - index: Its position among several, ordered by handle, from 0; `nil` if there must be only one.
    ///   - soFar: Whether the only known match is enough, although others may exist.
    package func known(
        _ uuid: BluetoothUUID, in service: BluetoothUUID? = nil, index: Int? = nil, soFar: Bool = false
    ) -> GATTCharacteristic? {
        guard let database else { return nil }
        // If not everything is known, the n-th known one need not be the n-th one, nor the only one. A caller that
        // lists by hand has chosen.
        if !isKnown(service, to: .structure) {
            guard index == nil, service != nil || soFar || hasListing else { return nil }
        }
        let matches = database.characteristics(uuid, in: service)
        guard index != nil || matches.count == 1 else { return nil }
        let position = index ?? 0
        guard matches.indices.contains(position) else { return nil }
        let found = matches[position]
        return stale.contains(found.valueHandle) ? nil : found
    }

    /// Returns the known characteristic that owns `handle`.
    package func known(containing handle: AttributeHandle) -> GATTCharacteristic? {
        guard let found = database?.characteristic(containing: handle) else { return nil }
        return stale.contains(found.valueHandle) ? nil : found
    }

    /// Returns `characteristic`, from an earlier state of the database, if its handle is still that of a value, and
    /// nothing contradicts it.
    package func known(_ characteristic: GATTCharacteristic) -> GATTCharacteristic? {
        let now = database?.characteristic(valueHandle: characteristic.valueHandle)
        return now == nil || contradicts(characteristic) ? nil : characteristic
    }
}

// MARK: - Retrying calls

/// The assumptions of a call that is retried after a change of the database.
package enum RetryRule: Hashable, Sendable {
    /// It looks everything up again.
    case always
    /// It has a handle from its caller, which must have the same meaning as before.
    case sameHandle(AttributeHandle)
    /// It has several handles from its caller, which must all have the same meaning as before.
    case sameHandles([AttributeHandle])
    /// It must not be retried: it could write to another attribute.
    case never
}

extension DatabaseState {
    /// Returns a Boolean value that indicates whether a call that relied on `old`, the database known before,
    /// may be retried.
    ///
    /// - Parameter types: The types that the peer has returned for the handles of `undecidedHandles(_:since:)`.
    package func allows(
        _ rule: RetryRule, since old: GATTDatabase, types: [AttributeHandle: BluetoothUUID] = [:]
    ) -> Bool {
        switch rule {
        case .always: true
        case .never: false
        case .sameHandle(let handle): isSame(handle, since: old, types)
        case .sameHandles(let handles): handles.allSatisfy { isSame($0, since: old, types) }
        }
    }

    /// Returns the handles of a call that relied on `old` whose types were known, and have not been discovered since.
    ///
    /// A discovery repeats what its coverage states. What was listed by hand is not part of that.
    package func undecidedHandles(_ rule: RetryRule, since old: GATTDatabase) -> [AttributeHandle] {
        let handles: [AttributeHandle]
        switch rule {
        case .always, .never: return []
        case .sameHandle(let handle): handles = [handle]
        case .sameHandles(let several): handles = several
        }
        if coverage.includesAll(to: .full) { return [] }
        return handles.filter { old.type(at: $0) != nil && database?.type(at: $0) == nil }
    }

    private func isSame(
        _ handle: AttributeHandle, since old: GATTDatabase, _ types: [AttributeHandle: BluetoothUUID]
    ) -> Bool {
        old.type(at: handle) == (database?.type(at: handle) ?? types[handle])
    }
}

extension BluetoothUUID {
    /// The service with the characteristics that describe a peer's database.
    package static let genericAttribute = BluetoothUUID(0x1801 as UInt16)
    /// The type of the hash over a peer's database.
    package static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
    /// The type of the value to which a client writes its features.
    package static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
}
