import BLECore
import TestSupport
import Testing

@Suite struct DatabaseStateTests {
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

    func known() throws -> DatabaseState {
        var state = DatabaseState()
        state.discoveryBegan()
        try state.found(Self.database(), services: nil, level: .subscribable)
        return state
    }

    func at(_ seconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: seconds * 1_000_000_000)
    }

    // MARK: References

    @Test func aUUIDMeansTheOnlyMatchOrTheOneWithItsIndex() throws {
        let state = try known()
        let cases: [(service: BluetoothUUID?, index: Int?, handle: AttributeHandle?)] = [
            (nil, nil, nil), (nil, 0, 3), (nil, 1, 13), (nil, 2, 23), (nil, 3, nil), (nil, -1, nil),
            (0x180F, nil, 13), (0x180F, 0, 13), (0x180F, 1, nil), (0x2222, nil, nil),
        ]
        for (service, index, handle) in cases {
            let found = state.known(0x2A19, in: service, index: index)
            #expect(found?.valueHandle == handle, "\(String(describing: service)) \(String(describing: index))")
        }
    }

    @Test func ofPartOfTheServicesOnlyAReferenceWithinItIsDecided() throws {
        var state = DatabaseState()
        state.discoveryBegan()
        try state.found(Self.database([0x180F]), services: [0x180F], level: .subscribable)
        let anywhere = state.known(0x2A19)
        #expect(anywhere == nil)
        let first = state.known(0x2A19, index: 0, soFar: true)
        #expect(first == nil)
        let soFar = state.known(0x2A19, soFar: true)
        #expect(soFar?.valueHandle == 3)
        let inService = state.known(0x2A19, in: 0x180F)
        #expect(inService?.valueHandle == 3)
    }

    @Test func noReferenceMeansWhatIsStale() throws {
        var state = try known()
        let before = state.known(0x2A19, in: 0x180F)
        let characteristic = try #require(before)
        _ = state.serviceChanged(11...20)
        let byUUID = state.known(0x2A19, in: 0x180F)
        #expect(byUUID == nil)
        let byHandle = state.known(containing: 13)
        #expect(byHandle == nil)
        let asFound = state.known(characteristic)
        #expect(asFound == nil)
        let other = state.known(containing: 3)
        #expect(other?.valueHandle == 3)
    }

    // MARK: The cache

    @Test(arguments: [
        (GATTCache.Validation.required, DatabaseState.HashReading.value(hash), true),
        (.required, .value(other), false), (.required, .value([1]), false), (.required, .value([]), false),
        (.required, .absent, false), (.required, .unreadable, false), (.whenPossible, .value(hash), true),
        (.whenPossible, .value(other), false), (.whenPossible, .absent, false), (.whenPossible, .unreadable, false),
    ])
    func adoptsByTheHash(
        validation: GATTCache.Validation, reading: DatabaseState.HashReading, isAdopted: Bool
    ) {
        var state = DatabaseState(cache: Self.cache(), validation: validation)
        #expect(state.awaitsHash == true)
        #expect(state.database == nil)
        #expect(state.cache == nil)
        state.hashRead(reading)
        #expect(state.awaitsHash == false)
        #expect(state.database == (isAdopted ? Self.database() : nil))
        #expect(state.isFromCache == isAdopted)
        #expect(state.coverage.includesAll(to: .full) == isAdopted)
    }

    /// A bond was made on the link.
    @Test(.row("G26")) func whatIsFromAnEarlierLinkCanBeDropped() throws {
        var state = DatabaseState(cache: Self.cache())
        state.hashRead(.value(Self.hash))
        let held = try #require(Self.database().characteristics.first)
        #expect(state.hasFindings == true)
        let changes = state.changeCount
        let isDropped = state.dropEarlier()
        #expect(isDropped)
        // What a call that is under way has looked up before must not be relied on.
        #expect(state.confirms(held, since: changes) == false)
        #expect(state.database == nil)
        #expect(state.coverage == .nothing)
        #expect(state.hasFindings == false)
        #expect(state.contradicts(held) == false)
        state.discoveryBegan()
        #expect(state.hasFindings == true)
        try state.found(Self.database([0x1800]), services: nil, level: .full)
        #expect(state.cache?.databaseHash == Self.hash, "the hash was read on this link")
        // What was found on the link stays.
        let changesSince = state.changeCount
        let isDroppedAgain = state.dropEarlier()
        #expect(!isDroppedAgain)
        #expect(state.changeCount == changesSince)
        #expect(state.database == Self.database([0x1800]))
        // One that waits for the hash is never adopted.
        var waiting = DatabaseState(cache: Self.cache())
        _ = waiting.dropEarlier()
        waiting.hashRead(.value(Self.hash))
        #expect(waiting.database == nil)
    }

    @Test func aCacheWithoutHashIsUsedOnlyOnDemand() {
        for (reading, isAdopted) in [
            (DatabaseState.HashReading.absent, true), (.unreadable, true), (.value(Self.hash), false),
        ] {
            var trusting = DatabaseState(cache: Self.cache(hash: nil), validation: .whenPossible)
            #expect(trusting.awaitsHash == true)
            trusting.hashRead(reading)
            #expect(trusting.isFromCache == isAdopted, "\(reading)")
            #expect(trusting.cache?.databaseHash == nil, "never stored with a hash that was not seen")
        }
        let strict = DatabaseState(cache: Self.cache(hash: nil), validation: .required)
        #expect(strict.database == nil)
        #expect(strict.awaitsHash == false)
        #expect(DatabaseState(cache: Self.cache(), validation: .skipped).database == Self.database())
        let nothing = GATTCache(database: GATTDatabase(), coverage: .nothing)
        #expect(DatabaseState(cache: nothing, validation: .skipped).database == nil)
    }

    /// The hash that was read first belongs to what is discovered after it, or to something older: never to something
    /// newer.
    @Test func storesTheHashThatWasReadFirst() throws {
        var state = DatabaseState(cache: Self.cache())
        state.hashRead(.value(Self.other))
        state.discoveryBegan()
        try state.found(Self.database(), services: nil, level: .full)
        #expect(
            state.cache
                == GATTCache(
                    database: Self.database(), coverage: .whole(.full), databaseHash: Self.other))
        _ = state.serviceChanged(1...0xFFFF)
        #expect(state.cache == nil)
    }

    // MARK: Discoveries

    @Test func rememberWhatWasLookedFor() throws {
        var state = DatabaseState()
        let part = Self.database().restricted(to: [0x180F])
        state.discoveryBegan()
        try state.found(part, services: [0x180F, 0x1812], level: .structure)
        #expect(state.coverage.includes(0x180F, to: .structure))
        #expect(!state.coverage.includes(0x180F, to: .subscribable))
        #expect(state.coverage.includes(0x1812, to: .structure), "absent, and known to be")
        #expect(!state.coverage.includes(0x180A, to: .structure))
        state.discoveryBegan()
        try state.found(Self.database().restricted(to: [0x180A]), services: [0x180A], level: .full)
        #expect(state.database?.services.map(\.uuid) == [0x180F, 0x180A])
        #expect(!state.coverage.includesAll(to: .structure))
        state.discoveryBegan()
        try state.found(Self.database(), services: nil, level: .subscribable)
        #expect(state.coverage == .whole(.subscribable))
        #expect(state.coverage.includes(0x1812, to: .subscribable))
    }

    @Test func aSearchThatGoesLessFarTakesNothingAway() throws {
        let configuration = GATTDescriptor(handle: 15, uuid: 0x2902)
        let full = GATTDatabase(
            services: Self.database().services, characteristics: Self.database().characteristics,
            descriptors: [configuration])
        var state = DatabaseState()
        // Two searches at once: the one that goes further ends first.
        state.discoveryBegan()
        state.discoveryBegan()
        try state.found(full, services: nil, level: .full)
        try state.found(Self.database().restricted(to: [0x180F]), services: [0x180F], level: .structure)
        #expect(state.database == full)
        #expect(state.coverage == .whole(.full))
        // The same, of everything; unless it was meant to be fresh.
        state.discoveryBegan()
        try state.found(Self.database(), services: nil, level: .structure)
        #expect(state.database == full)
        #expect(state.coverage == .whole(.full))
        state.discoveryBegan()
        try state.found(Self.database(), services: nil, level: .structure, ignoringCache: true)
        #expect(state.coverage == .whole(.structure))
        // The same, of single services, one of them new.
        state = DatabaseState()
        state.discoveryBegan()
        try state.found(full.restricted(to: [0x180F]), services: [0x180F], level: .full)
        state.discoveryBegan()
        let both: [BluetoothUUID] = [0x180F, 0x180A]
        try state.found(Self.database().restricted(to: both), services: both, level: .structure)
        #expect(state.database == full.restricted(to: both))
        #expect(state.coverage == .services([0x180F: .full, 0x180A: .structure]))
    }

    @Test func aFreshSearchThatGoesLessFarCoversLess() throws {
        let configuration = GATTDescriptor(handle: 15, uuid: 0x2902)
        let full = GATTDatabase(services: Self.database().services, descriptors: [configuration])
        let part = GATTDatabase(services: Self.database().services).restricted(to: [0x180F])
        var state = DatabaseState()
        state.discoveryBegan()
        try state.found(full, services: nil, level: .full)
        state.discoveryBegan()
        try state.found(part, services: [0x180F], level: .structure, ignoringCache: true)
        #expect(state.database?.descriptors == [])
        #expect(state.coverage == .whole(.structure))
        #expect(state.cache?.coverage == .whole(.structure))
        state.discoveryBegan()
        try state.found(GATTDatabase(), services: [], level: .structure, ignoringCache: true)
        #expect(state.coverage == .whole(.structure), "who asks for nothing learns nothing")
    }

    // MARK: Changes

    @Test func changesMakeWholeServicesStale() throws {
        var state = try known()
        #expect(state.serviceChanged(15...16) == 11...20)
        #expect(state.isSettled == false)
        #expect(state.nextRediscovery(at: at(0)) == .now([11...20], .subscribable))
        #expect(state.nextRediscovery(at: at(0)) == .nothing, "it runs")
        try state.rediscovered(11...20, with: GATTDatabase())
        state.rediscoveryEnded(isComplete: true)
        #expect(state.isSettled == true)
        #expect(state.database?.services.map(\.uuid) == [0x1800, 0x180A])
    }

    @Test(.row("G19")) func rediscoversOnceInFiveSeconds() throws {
        var state = try known()
        _ = state.serviceChanged(1...2)
        #expect(state.nextRediscovery(at: at(100)) == .now([1...10], .subscribable))
        try state.rediscovered(1...10, with: Self.database())
        state.rediscoveryEnded(isComplete: true)
        for _ in 0..<1_000 { _ = state.serviceChanged(1...0xFFFF) }
        #expect(state.nextRediscovery(at: at(101)) == .at(at(105)))
        #expect(state.nextRediscovery(at: at(105)) == .now([1...0xFFFF], .subscribable))
    }

    @Test func aChangeDuringRediscoveryIsNotLost() throws {
        var state = try known()
        _ = state.serviceChanged(11...20)
        #expect(state.nextRediscovery(at: at(0)) == .now([11...20], .subscribable))
        _ = state.serviceChanged(15...15)
        try state.rediscovered(11...20, with: Self.database())
        state.rediscoveryEnded(isComplete: true)
        #expect(state.isSettled == false)
        #expect(state.nextRediscovery(at: at(1)) == .at(at(5)))
    }

    @Test(.row("G20")) func aChangeDuringTheFirstDiscoveryIsLookedAfterAtOnce() throws {
        var state = DatabaseState()
        state.discoveryBegan()
        #expect(state.serviceChanged(21...30) == nil)
        try state.found(Self.database(), services: nil, level: .full)
        #expect(state.nextRediscovery(at: at(0)) == .now([21...30], .full))
    }

    @Test func aChangeIsStaleAfterTheFirstOfTwoDiscoveries() throws {
        var state = DatabaseState()
        state.discoveryBegan()
        state.discoveryBegan()
        #expect(state.serviceChanged(21...30) == nil)
        try state.found(Self.database(), services: nil, level: .full)
        #expect(state.isSettled == false)
        #expect(state.nextRediscovery(at: at(0)) == .nothing, "the other one still runs")
        try state.found(Self.database(), services: nil, level: .full)
        #expect(state.nextRediscovery(at: at(0)) == .now([21...30], .full))
    }

    @Test func afterAFailedRediscoveryNothingIsKnown() throws {
        var state = try known()
        _ = state.serviceChanged(11...20)
        _ = state.nextRediscovery(at: at(0))
        state.rediscoveryEnded(isComplete: false)
        #expect(state.database == nil)
        #expect(state.coverage == .nothing)
        #expect(state.isSettled == true)
    }

    @Test func singleServicesAreForgotten() throws {
        var state = DatabaseState()
        let both: [BluetoothUUID] = [0x180F, 0x180A]
        state.discoveryBegan()
        try state.found(Self.database().restricted(to: both), services: both + [0x1812], level: .structure)
        #expect(state.serviceChanged(12...12) == 11...20)
        #expect(state.nextRediscovery(at: at(0)) == .nothing)
        #expect(state.database?.services.map(\.uuid) == [0x180A])
        #expect(state.coverage == .services([0x180A: .structure]), "what was absent may be there now")
        _ = state.serviceChanged(1...0xFFFF)
        #expect(state.database == nil)
        #expect(state.coverage == .nothing)
    }

    // MARK: Contradictions

    @Test(.row("G21")) func purgesOnceInFiveSeconds() throws {
        var state = DatabaseState(cache: Self.cache(), validation: .skipped)
        #expect(state.isConfirmed(by: .value(Self.hash)) == true)
        #expect(state.isConfirmed(by: .value(Self.other)) == false)
        #expect(state.isConfirmed(by: .absent) == false)
        let isPurged = state.purge(at: at(10))
        #expect(isPurged)
        #expect(state.database == nil)
        #expect(state.isConfirmed(by: .value(Self.hash)) == false)
        state.discoveryBegan()
        try state.found(Self.database(), services: nil, level: .full)
        #expect(state.isFromCache == false)
        let isPurgedAgain = state.purge(at: at(14))
        #expect(!isPurgedAgain)
        #expect(state.database != nil)
        let isPurgedLater = state.purge(at: at(15))
        #expect(isPurgedLater)
    }

    @Test(.row("G23")) func distinguishesAnOldCharacteristicFromANewOne() throws {
        var state = try known()
        let old = try #require(state.database?.characteristic(valueHandle: 13))
        #expect(state.contradicts(old) == false)
        _ = state.serviceChanged(11...20)
        #expect(state.contradicts(old) == true)
        _ = state.nextRediscovery(at: at(0))
        var changed = old
        changed.uuid = 0x2A1B
        let service = GATTService(handles: 11...20, uuid: 0x1810)
        try state.rediscovered(11...20, with: GATTDatabase(services: [service], characteristics: [changed]))
        state.rediscoveryEnded(isComplete: true)
        #expect(state.contradicts(old) == true)
        #expect(state.contradicts(changed) == false)
    }
}
