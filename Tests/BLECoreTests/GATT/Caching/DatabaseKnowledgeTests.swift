import BLECore
import Testing

@Suite struct DatabaseKnowledgeTests {
    static let hash = [UInt8](0..<16)
    static let other = [UInt8](1..<17)

    static func database(_ uuids: [BluetoothUUID] = [0x1800, 0x180F, 0x180A]) -> GATTDatabase {
        var services: [GATTService] = []
        var characteristics: [GATTCharacteristic] = []
        for (index, uuid) in uuids.enumerated() {
            let start = AttributeHandle(10 * index + 1)
            services.append(GATTService(handles: start...(start + 9), uuid: uuid))
            characteristics.append(
                GATTCharacteristic(
                    declarationHandle: start + 1, valueHandle: start + 2, endHandle: start + 2, properties: .read,
                    uuid: 0x2A19))
        }
        return GATTDatabase(services: services, characteristics: characteristics)
    }

    static func cache(hash: [UInt8]? = hash) -> GATTCache {
        GATTCache(database: database(), coverage: .whole(.full), databaseHash: hash)
    }

    func known() throws -> DatabaseKnowledge {
        var knowledge = DatabaseKnowledge()
        knowledge.discoveryBegan()
        try knowledge.found(Self.database(), services: nil, level: .subscribable)
        return knowledge
    }

    func at(_ seconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: seconds * 1_000_000_000)
    }

    // MARK: The cache

    @Test(arguments: [
        (CacheValidation.required, DatabaseKnowledge.HashReading.value(hash), true),
        (.required, .value(other), false), (.required, .value([1]), false), (.required, .value([]), false),
        (.required, .absent, false), (.required, .unreadable, false), (.whenPossible, .value(hash), true),
        (.whenPossible, .value(other), false), (.whenPossible, .absent, false), (.whenPossible, .unreadable, false),
    ])
    func adoptsByTheHash(
        validation: CacheValidation, reading: DatabaseKnowledge.HashReading, isAdopted: Bool
    ) {
        var knowledge = DatabaseKnowledge(cache: Self.cache(), validation: validation)
        #expect(knowledge.awaitsHash)
        #expect(knowledge.database == nil)
        #expect(knowledge.cache == nil)
        knowledge.hashRead(reading)
        #expect(!knowledge.awaitsHash)
        #expect(knowledge.database == (isAdopted ? Self.database() : nil))
        #expect(knowledge.isFromCache == isAdopted)
        #expect(knowledge.coverage.includesAll(to: .full) == isAdopted)
    }

    @Test func aCacheWithoutHashIsUsedOnlyOnDemand() {
        for (reading, isAdopted) in [
            (DatabaseKnowledge.HashReading.absent, true), (.unreadable, true), (.value(Self.hash), false),
        ] {
            var trusting = DatabaseKnowledge(cache: Self.cache(hash: nil), validation: .whenPossible)
            #expect(trusting.awaitsHash)
            trusting.hashRead(reading)
            #expect(trusting.isFromCache == isAdopted, "\(reading)")
            #expect(trusting.cache?.databaseHash == nil, "never stored with a hash that was not seen")
        }
        let strict = DatabaseKnowledge(cache: Self.cache(hash: nil), validation: .required)
        #expect(strict.database == nil)
        #expect(!strict.awaitsHash)
        #expect(DatabaseKnowledge(cache: Self.cache(), validation: .skipped).database == Self.database())
        let nothing = GATTCache(database: GATTDatabase(), coverage: .nothing)
        #expect(DatabaseKnowledge(cache: nothing, validation: .skipped).database == nil)
    }

    /// The hash that was read first belongs to what is discovered behind it, or to something older: never to something newer.
    @Test func storesTheHashThatWasReadFirst() throws {
        var knowledge = DatabaseKnowledge(cache: Self.cache())
        knowledge.hashRead(.value(Self.other))
        knowledge.discoveryBegan()
        try knowledge.found(Self.database(), services: nil, level: .full)
        #expect(
            knowledge.cache
                == GATTCache(
                    database: Self.database(), coverage: .whole(.full), databaseHash: Self.other))
        _ = knowledge.serviceChanged(1...0xFFFF)
        #expect(knowledge.cache == nil)
    }

    // MARK: Discoveries

    @Test func rememberWhatWasLookedFor() throws {
        var knowledge = DatabaseKnowledge()
        let part = Self.database().restricted(to: [0x180F])
        knowledge.discoveryBegan()
        try knowledge.found(part, services: [0x180F, 0x1812], level: .structure)
        #expect(knowledge.coverage.includes(0x180F, to: .structure))
        #expect(!knowledge.coverage.includes(0x180F, to: .subscribable))
        #expect(knowledge.coverage.includes(0x1812, to: .structure), "absent, and known to be")
        #expect(!knowledge.coverage.includes(0x180A, to: .structure))
        knowledge.discoveryBegan()
        try knowledge.found(Self.database().restricted(to: [0x180A]), services: [0x180A], level: .full)
        #expect(knowledge.database?.services.map(\.uuid) == [0x180F, 0x180A])
        #expect(!knowledge.coverage.includesAll(to: .structure))
        knowledge.discoveryBegan()
        try knowledge.found(Self.database(), services: nil, level: .subscribable)
        #expect(knowledge.coverage == .whole(.subscribable))
        #expect(knowledge.coverage.includes(0x1812, to: .subscribable))
    }

    @Test func aSearchThatGoesLessFarTakesNothingAway() throws {
        let configuration = GATTDescriptor(handle: 15, uuid: 0x2902)
        let full = GATTDatabase(
            services: Self.database().services, characteristics: Self.database().characteristics,
            descriptors: [configuration])
        var knowledge = DatabaseKnowledge()
        // Two searches at once: the one that goes further ends first.
        knowledge.discoveryBegan()
        knowledge.discoveryBegan()
        try knowledge.found(full, services: nil, level: .full)
        try knowledge.found(Self.database().restricted(to: [0x180F]), services: [0x180F], level: .structure)
        #expect(knowledge.database == full)
        #expect(knowledge.coverage == .whole(.full))
        // The same, of everything; unless it was meant to be fresh.
        knowledge.discoveryBegan()
        try knowledge.found(Self.database(), services: nil, level: .structure)
        #expect(knowledge.database == full)
        #expect(knowledge.coverage == .whole(.full))
        var fresh = knowledge
        fresh.discoveryBegan()
        try fresh.found(Self.database(), services: nil, level: .structure, afresh: true)
        #expect(fresh.coverage == .whole(.structure))
        // The same, of single services, one of them new.
        knowledge = DatabaseKnowledge()
        knowledge.discoveryBegan()
        try knowledge.found(full.restricted(to: [0x180F]), services: [0x180F], level: .full)
        knowledge.discoveryBegan()
        let both: [BluetoothUUID] = [0x180F, 0x180A]
        try knowledge.found(Self.database().restricted(to: both), services: both, level: .structure)
        #expect(knowledge.database == full.restricted(to: both))
        #expect(knowledge.coverage == .services([0x180F: .full, 0x180A: .structure]))
    }

    @Test func aFreshSearchThatGoesLessFarCoversLess() throws {
        let configuration = GATTDescriptor(handle: 15, uuid: 0x2902)
        let full = GATTDatabase(services: Self.database().services, descriptors: [configuration])
        let part = GATTDatabase(services: Self.database().services).restricted(to: [0x180F])
        var knowledge = DatabaseKnowledge()
        knowledge.discoveryBegan()
        try knowledge.found(full, services: nil, level: .full)
        knowledge.discoveryBegan()
        try knowledge.found(part, services: [0x180F], level: .structure, afresh: true)
        #expect(knowledge.database?.descriptors == [])
        #expect(knowledge.coverage == .whole(.structure))
        #expect(knowledge.cache?.coverage == .whole(.structure))
        knowledge.discoveryBegan()
        try knowledge.found(GATTDatabase(), services: [], level: .structure, afresh: true)
        #expect(knowledge.coverage == .whole(.structure), "who asks for nothing learns nothing")
    }

    // MARK: Changes

    @Test func changesMakeWholeServicesStale() throws {
        var knowledge = try known()
        #expect(knowledge.serviceChanged(15...16) == 11...20)
        #expect(!knowledge.isSettled)
        #expect(knowledge.nextRediscovery(at: at(0)) == .now([11...20], .subscribable))
        #expect(knowledge.nextRediscovery(at: at(0)) == .nothing, "it runs")
        try knowledge.rediscovered(11...20, with: GATTDatabase())
        knowledge.rediscoveryEnded(isComplete: true)
        #expect(knowledge.isSettled)
        #expect(knowledge.database?.services.map(\.uuid) == [0x1800, 0x180A])
    }

    // Row G19.
    @Test func rediscoversOnceInFiveSeconds() throws {
        var knowledge = try known()
        _ = knowledge.serviceChanged(1...2)
        #expect(knowledge.nextRediscovery(at: at(100)) == .now([1...10], .subscribable))
        try knowledge.rediscovered(1...10, with: Self.database())
        knowledge.rediscoveryEnded(isComplete: true)
        for _ in 0..<1_000 { _ = knowledge.serviceChanged(1...0xFFFF) }
        #expect(knowledge.nextRediscovery(at: at(101)) == .at(at(105)))
        #expect(knowledge.nextRediscovery(at: at(105)) == .now([1...0xFFFF], .subscribable))
    }

    @Test func aChangeDuringRediscoveryIsNotLost() throws {
        var knowledge = try known()
        _ = knowledge.serviceChanged(11...20)
        #expect(knowledge.nextRediscovery(at: at(0)) == .now([11...20], .subscribable))
        _ = knowledge.serviceChanged(15...15)
        try knowledge.rediscovered(11...20, with: Self.database())
        knowledge.rediscoveryEnded(isComplete: true)
        #expect(!knowledge.isSettled)
        #expect(knowledge.nextRediscovery(at: at(1)) == .at(at(5)))
    }

    // Row G20.
    @Test func aChangeDuringTheFirstDiscoveryIsLookedAfterAtOnce() throws {
        var knowledge = DatabaseKnowledge()
        knowledge.discoveryBegan()
        #expect(knowledge.serviceChanged(21...30) == nil)
        try knowledge.found(Self.database(), services: nil, level: .full)
        #expect(knowledge.nextRediscovery(at: at(0)) == .now([21...30], .full))
    }

    @Test func aChangeIsStaleBehindTheFirstOfTwoDiscoveries() throws {
        var knowledge = DatabaseKnowledge()
        knowledge.discoveryBegan()
        knowledge.discoveryBegan()
        #expect(knowledge.serviceChanged(21...30) == nil)
        try knowledge.found(Self.database(), services: nil, level: .full)
        #expect(!knowledge.isSettled)
        #expect(knowledge.nextRediscovery(at: at(0)) == .nothing, "the other one still runs")
        try knowledge.found(Self.database(), services: nil, level: .full)
        #expect(knowledge.nextRediscovery(at: at(0)) == .now([21...30], .full))
    }

    @Test func afterAFailedRediscoveryNothingIsKnown() throws {
        var knowledge = try known()
        _ = knowledge.serviceChanged(11...20)
        _ = knowledge.nextRediscovery(at: at(0))
        knowledge.rediscoveryEnded(isComplete: false)
        #expect(knowledge.database == nil)
        #expect(knowledge.coverage == .nothing)
        #expect(knowledge.isSettled)
    }

    @Test func singleServicesAreForgotten() throws {
        var knowledge = DatabaseKnowledge()
        let both: [BluetoothUUID] = [0x180F, 0x180A]
        knowledge.discoveryBegan()
        try knowledge.found(Self.database().restricted(to: both), services: both + [0x1812], level: .structure)
        #expect(knowledge.serviceChanged(12...12) == 11...20)
        #expect(knowledge.nextRediscovery(at: at(0)) == .nothing)
        #expect(knowledge.database?.services.map(\.uuid) == [0x180A])
        #expect(knowledge.coverage == .services([0x180A: .structure]), "what was absent may be there now")
        _ = knowledge.serviceChanged(1...0xFFFF)
        #expect(knowledge.database == nil)
        #expect(knowledge.coverage == .nothing)
    }

    // MARK: Contradictions

    // Row G21.
    @Test func purgesOnceInFiveSeconds() throws {
        var knowledge = DatabaseKnowledge(cache: Self.cache(), validation: .skipped)
        #expect(knowledge.isConfirmed(by: .value(Self.hash)))
        #expect(!knowledge.isConfirmed(by: .value(Self.other)))
        #expect(!knowledge.isConfirmed(by: .absent))
        let isPurged = knowledge.purge(at: at(10))
        #expect(isPurged)
        #expect(knowledge.database == nil)
        #expect(!knowledge.isConfirmed(by: .value(Self.hash)))
        knowledge.discoveryBegan()
        try knowledge.found(Self.database(), services: nil, level: .full)
        #expect(!knowledge.isFromCache)
        let isPurgedAgain = knowledge.purge(at: at(14))
        #expect(!isPurgedAgain)
        #expect(knowledge.database != nil)
        let isPurgedLater = knowledge.purge(at: at(15))
        #expect(isPurgedLater)
    }

    // Row G23.
    @Test func tellsAnOldCharacteristicFromANewOne() throws {
        var knowledge = try known()
        let old = try #require(knowledge.database?.characteristic(valueHandle: 13))
        #expect(!knowledge.contradicts(old))
        _ = knowledge.serviceChanged(11...20)
        #expect(knowledge.contradicts(old))
        _ = knowledge.nextRediscovery(at: at(0))
        var changed = old
        changed.uuid = 0x2A1B
        let service = GATTService(handles: 11...20, uuid: 0x1810)
        try knowledge.rediscovered(11...20, with: GATTDatabase(services: [service], characteristics: [changed]))
        knowledge.rediscoveryEnded(isComplete: true)
        #expect(knowledge.contradicts(old))
        #expect(!knowledge.contradicts(changed))
    }
}
