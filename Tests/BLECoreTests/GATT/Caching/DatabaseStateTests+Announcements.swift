import BLECore
import Testing

// Announcements from a place that is not known yet.
extension DatabaseStateTests {
    private static let announcing = GATTDatabase(
        services: [GATTService(handles: 1...9, uuid: 0x1801), GATTService(handles: 11...20, uuid: 0x180F)],
        characteristics: [
            GATTCharacteristic(
                declarationHandle: 2, valueHandle: 3, endHandle: 4, properties: .indicate, uuid: 0x2A05)
        ])

    @Test func anAnnouncementDuringTheFirstDiscoveryIsReported() throws {
        var state = DatabaseState()
        var isKept = state.indicated(11...20, at: 3)
        #expect(!isKept, "nothing is known that could be wrong")
        state.discoveryBegan()
        isKept = state.indicated(11...12, at: 3)
        #expect(isKept)
        isKept = state.indicated(1...2, at: 99)
        #expect(isKept)
        var keptCount = 2
        for handle in 100..<200 as Range<AttributeHandle> where state.indicated(1...2, at: handle) { keptCount += 1 }
        #expect(keptCount == 16)
        try state.found(Self.announcing, services: nil, level: .full)
        var missed = state.missedChanges()
        #expect(missed == [11...12])
        missed = state.missedChanges()
        #expect(missed == [])
        isKept = state.indicated(1...2, at: 99)
        #expect(!isKept, "it is known where changes are announced")
    }

    @Test func anAnnouncementBesideALazyDiscoveryIsKeptUntilThePlaceIsFound() throws {
        var state = DatabaseState()
        state.discoveryBegan()
        try state.found(Self.announcing.restricted(to: [0x180F]), services: [0x180F], level: .structure)
        let isKept = state.indicated(11...20, at: 3)
        #expect(isKept)
        var missed = state.missedChanges()
        #expect(missed == [])
        state.discoveryBegan()
        try state.found(Self.announcing.restricted(to: [0x1801]), services: [0x1801], level: .structure)
        missed = state.missedChanges()
        #expect(missed == [11...20])
    }

    @Test func anAnnouncementBeforeACacheIsAdoptedIsReportedAfterwards() {
        let cache = GATTCache(database: Self.announcing, coverage: .whole(.full))
        var state = DatabaseState(cache: cache, validation: .whenPossible)
        let isWorthDiscovering = state.indicated(11...20, at: 3)
        #expect(!isWorthDiscovering, "the hash is read first")
        state.hashRead(.absent)
        let missed = state.missedChanges()
        #expect(missed == [11...20])
        let again = state.missedChanges()
        #expect(again == [])
    }

    @Test func anAnnouncementBeforeARestartIsReportedAfterIt() {
        let cache = GATTCache(database: Self.announcing, coverage: .whole(.full))
        var state = DatabaseState(cache: cache)
        let isWorthDiscovering = state.indicated(11...20, at: 3, awaitsCache: true)
        #expect(!isWorthDiscovering)
        state.restart(with: cache)
        #expect(state.database == Self.announcing)
        let missed = state.missedChanges()
        #expect(missed == [11...20])
    }

    @Test func whereNoCacheIsAdoptedTheAnnouncementsBeforeAreForgotten() throws {
        let cache = GATTCache(database: Self.announcing, coverage: .whole(.full))
        var state = DatabaseState(cache: cache)
        _ = state.indicated(11...20, at: 3, awaitsCache: true)
        var missed = state.missedChanges()
        #expect(missed == [])
        state.discoveryBegan()
        try state.found(Self.announcing, services: nil, level: .full)
        missed = state.missedChanges()
        #expect(missed == [])
    }

    @Test func aHashIsNewerThanWhatWasAnnouncedBeforeIt() {
        let hash = [UInt8](repeating: 1, count: GATTCache.hashLength)
        let cache = GATTCache(database: Self.announcing, coverage: .whole(.full), databaseHash: hash)
        var state = DatabaseState(cache: cache)
        _ = state.indicated(11...20, at: 3)
        state.hashRead(.value(hash))
        #expect(state.database == Self.announcing)
        let missed = state.missedChanges()
        #expect(missed == [])
    }

    @Test func aPeerThatAnnouncesNothingIsNotListenedTo() throws {
        var state = try known()
        let isKept = state.indicated(11...20, at: 99)
        #expect(!isKept)
        state.discoveryBegan()
        _ = state.indicated(11...20, at: 99)
        try state.found(Self.database(), services: nil, level: .full)
        var missed = state.missedChanges()
        #expect(missed == [])
        let later = GATTDatabase(
            services: [GATTService(handles: 90...100, uuid: 0x1801)],
            characteristics: [
                GATTCharacteristic(
                    declarationHandle: 98, valueHandle: 99, endHandle: 100, properties: .indicate, uuid: 0x2A05)
            ])
        state.discoveryBegan()
        try state.found(later, services: nil, level: .full, ignoringCache: true)
        missed = state.missedChanges()
        #expect(missed == [], "what came from there before is forgotten")
    }

    // MARK: Many of them

    @Test func manyRangesBecomeOne() throws {
        var state = DatabaseState()
        let services = (0..<40).map { GATTService(handles: ($0 * 10 + 1)...($0 * 10 + 5), uuid: 0x180F) }
        state.discoveryBegan()
        try state.found(GATTDatabase(services: services), services: nil, level: .full)
        for service in services { _ = state.serviceChanged(service.handles) }
        #expect(state.stale.ranges.count <= 16)
        for service in services { #expect(state.stale.contains(service.handles.lowerBound)) }
    }

    @Test func manyRangesBecomeOneWhileADiscoveryRuns() throws {
        var state = DatabaseState()
        let services = (0..<40).map { GATTService(handles: ($0 * 10 + 1)...($0 * 10 + 5), uuid: 0x180F) }
        state.discoveryBegan()
        for service in services { _ = state.serviceChanged(service.handles) }
        try state.found(GATTDatabase(services: services), services: nil, level: .full)
        for service in services { #expect(state.stale.contains(service.handles.lowerBound)) }
        var ranges = HandleRanges()
        for start in 0..<1_000 as Range<AttributeHandle> { ranges.insert(2 * start...2 * start, atMost: 16) }
        #expect(ranges.ranges.count <= 16)
        #expect(ranges.contains(0) && ranges.contains(1_998) && !ranges.contains(1_999))
    }
}
