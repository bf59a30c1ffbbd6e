import BLECore
import Testing

// Announcements from a place that is not known yet.
extension DatabaseKnowledgeTests {
    private static let announcing = GATTDatabase(
        services: [GATTService(handles: 1...9, uuid: 0x1801), GATTService(handles: 11...20, uuid: 0x180F)],
        characteristics: [
            GATTCharacteristic(
                declarationHandle: 2, valueHandle: 3, endHandle: 4, properties: .indicate, uuid: 0x2A05)
        ])

    @Test func anAnnouncementDuringTheFirstDiscoveryIsTold() throws {
        var knowledge = DatabaseKnowledge()
        var isKept = knowledge.indicated(11...20, at: 3)
        #expect(!isKept, "nothing is known that could be wrong")
        knowledge.discoveryBegan()
        isKept = knowledge.indicated(11...12, at: 3)
        #expect(isKept)
        isKept = knowledge.indicated(1...2, at: 99)
        #expect(isKept)
        for handle in 100..<200 as Range<AttributeHandle> { _ = knowledge.indicated(1...2, at: handle) }
        #expect(knowledge.unplaced.count <= 16)
        try knowledge.found(Self.announcing, services: nil, level: .full)
        var missed = knowledge.missedChanges()
        #expect(missed == [11...12])
        missed = knowledge.missedChanges()
        #expect(missed == [])
        isKept = knowledge.indicated(1...2, at: 99)
        #expect(!isKept, "it is known where changes are announced")
    }

    @Test func anAnnouncementBesideALazyDiscoveryIsKeptUntilThePlaceIsFound() throws {
        var knowledge = DatabaseKnowledge()
        knowledge.discoveryBegan()
        try knowledge.found(Self.announcing.restricted(to: [0x180F]), services: [0x180F], level: .structure)
        let isKept = knowledge.indicated(11...20, at: 3)
        #expect(isKept)
        var missed = knowledge.missedChanges()
        #expect(missed == [])
        knowledge.discoveryBegan()
        try knowledge.found(Self.announcing.restricted(to: [0x1801]), services: [0x1801], level: .structure)
        missed = knowledge.missedChanges()
        #expect(missed == [11...20])
    }

    @Test func aPeerThatAnnouncesNothingIsNotListenedTo() throws {
        var knowledge = try known()
        let isKept = knowledge.indicated(11...20, at: 99)
        #expect(!isKept)
        knowledge.discoveryBegan()
        _ = knowledge.indicated(11...20, at: 99)
        try knowledge.found(Self.database(), services: nil, level: .full)
        #expect(knowledge.missedChanges() == [])
        #expect(knowledge.unplaced.isEmpty)
    }

    // MARK: Many of them

    @Test func manyRangesBecomeOne() throws {
        var knowledge = DatabaseKnowledge()
        let services = (0..<40).map { GATTService(handles: ($0 * 10 + 1)...($0 * 10 + 5), uuid: 0x180F) }
        knowledge.discoveryBegan()
        try knowledge.found(GATTDatabase(services: services), services: nil, level: .full)
        for service in services { _ = knowledge.serviceChanged(service.handles) }
        #expect(knowledge.stale.ranges.count <= 16)
        for service in services { #expect(knowledge.stale.contains(service.handles.lowerBound)) }
    }

    @Test func manyRangesBecomeOneWhileADiscoveryRuns() throws {
        var knowledge = DatabaseKnowledge()
        let services = (0..<40).map { GATTService(handles: ($0 * 10 + 1)...($0 * 10 + 5), uuid: 0x180F) }
        knowledge.discoveryBegan()
        for service in services { _ = knowledge.serviceChanged(service.handles) }
        try knowledge.found(GATTDatabase(services: services), services: nil, level: .full)
        for service in services { #expect(knowledge.stale.contains(service.handles.lowerBound)) }
        var ranges = HandleRanges()
        for start in 0..<1_000 as Range<AttributeHandle> { ranges.insert(2 * start...2 * start, atMost: 16) }
        #expect(ranges.ranges.count <= 16)
        #expect(ranges.contains(0) && ranges.contains(1_998) && !ranges.contains(1_999))
    }
}
