// What is known of one peer's database on one link, and how far it can be relied on.
//
// Duties
// - Takes a cache from an earlier link, says whether the peer must be asked for its Database Hash, and adopts or drops
//   the cache by the answer. Before that, nothing of it can be seen.
// - Takes what discoveries find, of single services or of all, and knows what need not be looked for again.
// - Takes the peer's word that services changed: of what is known, the services in question are stale at once and are found
//   anew, they alone. However often a peer says so, that happens once in five seconds.
// - Is asked to forget everything where a peer's answer shows that what is known is wrong; also once in five seconds.
// - Says what is worth storing.
//
// Invariants
// - Something is covered only while `database` is there; what a user lists by hand is in it and not covered.
// - A change that is told while a discovery runs makes the range stale again behind that discovery: what it found there
//   may be older than the change. So does one that was told before it was known where the peer tells changes.
// - A discovery never takes away what another one, that goes further, has found meanwhile.
// - Where single services are known, there is nothing to find anew: those in the range are forgotten, and found when wanted.
//
// Spec: Core Vol 3 Part G, 2.5.2 and 7.1.

package struct DatabaseKnowledge: Sendable {
    /// The least time between two rediscoveries, and between two purges.
    package static let pause: Duration = .seconds(5)
    /// How many separate ranges of changed handles are kept apart.
    package static let rangeLimit = 16

    /// What came of reading the peer's Database Hash.
    package enum HashReading: Hashable, Sendable {
        case value([UInt8])
        /// The peer has none.
        case absent
        /// It was refused, or no answer came.
        case unreadable
    }

    /// What is to be found anew.
    package enum Rediscovery: Hashable, Sendable {
        case nothing
        /// These ranges, now; `rediscovered` for each, then `rediscoveryEnded`.
        case now([ClosedRange<AttributeHandle>], DiscoveryLevel)
        /// Something, but not before this moment.
        case at(BootInstant)
    }

    private enum Hash: Hashable, Sendable {
        case unknown, absent
        case value([UInt8])
        /// The peer sends one that is not that of its database.
        case refuted
    }

    /// What the peer offers, as far as `coverage` says; what `stale` has of it must not be used.
    package private(set) var database: GATTDatabase? {
        didSet {
            serviceChangedHandle = serviceChangedCharacteristic?.valueHandle
            isHashChecked = false
        }
    }
    /// Where the peer announces changes, if it does.
    package private(set) var serviceChangedHandle: AttributeHandle?
    package private(set) var coverage = DiscoveryCoverage.nothing
    /// The handles that may mean something else than `database` says.
    package private(set) var stale = HandleRanges()
    /// Whether the database was not found on this link.
    package private(set) var isFromCache = false
    /// Whether something was listed by hand, by a user who decides alone what the peer is asked for.
    package private(set) var hasListing = false

    private var unchecked: GATTCache?
    private var hash = Hash.unknown {
        didSet { isHashChecked = false }
    }
    /// Whether the hash is known to be that of `database`.
    private var isHashChecked = false
    private(set) var runningDiscoveries = 0
    private var isRediscovering = false
    private var changedMeanwhile = HandleRanges()
    /// What may have been announcements, by the handles that they came from.
    package internal(set) var unplaced: [AttributeHandle: HandleRanges] = [:]
    private var lastRediscovery: BootInstant?
    private var lastPurge: BootInstant?

    package init(cache: GATTCache? = nil, validation: CacheValidation = .required) {
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

extension DatabaseKnowledge {
    /// Whether a cache waits for the peer's Database Hash.
    package var awaitsHash: Bool { unchecked != nil }

    /// The peer's Database Hash has been asked for.
    package mutating func hashRead(_ reading: HashReading) {
        let expected = unchecked
        unchecked = nil
        switch reading {
        case .value(let value):
            // Of another length it is no hash, and says nothing.
            hash = value.count == GATTCache.hashLength ? .value(value) : .unknown
            if let expected, expected.databaseHash == value { adopt(expected) }
        case .absent, .unreadable:
            hash = reading == .absent ? .absent : .unknown
            // A cache with a hash is believed only when the hash was seen again. One without waits here only when the
            // user wants it believed.
            if let expected, expected.databaseHash == nil { adopt(expected) }
        }
    }

    /// Whether the peer's hash is the one that what is known had. After `databaseOutOfSync` this decides.
    package func isConfirmed(by reading: HashReading) -> Bool {
        if case .value(let value) = reading, case .value(value) = hash { true } else { false }
    }

    /// Whether the peer's hash is not known although it may have one.
    package var lacksHash: Bool {
        guard hash == .unknown, let database else { return false }
        // Where everything is known, so is whether it has one.
        return !coverage.includesAll(to: .structure) || !database.characteristics(.databaseHash).isEmpty
    }

    /// What was found completely on this link, with a hash that nobody has compared with it yet.
    package var uncheckedHash: GATTCache? {
        guard !isHashChecked, !isFromCache, coverage == .whole(.full), let cache, cache.databaseHash != nil else {
            return nil
        }
        return cache
    }

    /// The hash was compared with what was found.
    package mutating func hashChecked(agrees: Bool) {
        if !agrees { hash = .refuted }
        isHashChecked = true
    }

    /// Whether the peer's hash is not that of its database: nothing of it is to be kept beyond the link, because what was found need
    /// not be what the real peer has.
    package var isHashRefuted: Bool { hash == .refuted }

    /// The cache that waits for the peer's hash is not what its own hash says, and is dropped.
    package mutating func dropUnchecked() { unchecked = nil }

    /// What is worth storing; `nil` while nothing is known for certain.
    package var cache: GATTCache? {
        guard let database, coverage != .nothing, stale.isEmpty, !isRediscovering else { return nil }
        if case .value(let value) = hash {
            return GATTCache(database: database, coverage: coverage, databaseHash: value)
        }
        return GATTCache(database: database, coverage: coverage)
    }
}

// MARK: - Discoveries

extension DatabaseKnowledge {
    /// A discovery begins; its end is told by `found` or `discoveryFailed`.
    package mutating func discoveryBegan() {
        runningDiscoveries += 1
    }

    /// A discovery found nothing, and nothing is known more than before.
    package mutating func discoveryFailed() {
        discoveryEnded()
    }

    /// A discovery of `services`, or of everything, went as far as `level`.
    ///
    /// Another one may have gone further meanwhile: services of which more is known by now stay as they are, unless the
    /// peer was to be asked `afresh`.
    ///
    /// - Throws: `.databaseTooLarge`; nothing is known more than before.
    package mutating func found(
        _ part: GATTDatabase, services: [BluetoothUUID]?, level: DiscoveryLevel, afresh: Bool = false
    ) throws(GATTFailure) {
        defer { discoveryEnded() }
        unchecked = nil
        if services == nil, !afresh, case .whole(let reached) = coverage, reached > level { return }
        if let services, let database {
            let news = services.filter { service in
                guard !afresh, let reached = coverage.level(of: service) else { return true }
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

extension DatabaseKnowledge {
    /// The peer says that the services in `handles` are not what they were.
    ///
    /// - Returns: The handles whose meaning is unknown from now on; `nil` when nothing is known there.
    package mutating func serviceChanged(
        _ handles: ClosedRange<AttributeHandle>
    ) -> ClosedRange<AttributeHandle>? {
        if runningDiscoveries > 0 { changedMeanwhile.insert(handles, atMost: Self.rangeLimit) }
        return invalidate(handles)
    }

    private mutating func invalidate(_ handles: ClosedRange<AttributeHandle>) -> ClosedRange<AttributeHandle>? {
        guard let database else { return nil }
        if hash != .absent { hash = .unknown }
        let range = database.wholeServices(touching: handles)
        switch coverage {
        case .whole:
            stale.insert(range, atMost: Self.rangeLimit)
        case .services(let levels):
            // Removing cannot make it too large; and who is not there may be there now.
            let kept = (try? database.replacing(range: range, with: GATTDatabase())) ?? GATTDatabase()
            let there = levels.filter { level in
                database.services.contains { $0.uuid == level.key && !$0.handles.overlaps(range) }
                    && !database.services.contains { $0.uuid == level.key && $0.handles.overlaps(range) }
            }
            self.database = there.isEmpty ? nil : kept
            coverage = .services(there)
        }
        return range
    }

    /// What is to be found anew at `now`, and not before it is due.
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

    /// The rediscovery is over; what is stale still could not be found, and then nothing is known any more.
    package mutating func rediscoveryEnded(isComplete: Bool) {
        isRediscovering = false
        if !isComplete { forget() }
        discoveryEnded()
    }

    /// Forgets everything, because an answer of the peer contradicts it.
    ///
    /// - Returns: Whether it did; it does not twice within the pause.
    package mutating func purge(at now: BootInstant) -> Bool {
        if let last = lastPurge, now < last + Self.pause { return false }
        lastPurge = now
        forget()
        return true
    }

    private mutating func forget() {
        database = nil
        coverage = .nothing
        stale = HandleRanges()
        unchecked = nil
        isFromCache = false
        hasListing = false
        if hash != .absent { hash = .unknown }
    }
}
