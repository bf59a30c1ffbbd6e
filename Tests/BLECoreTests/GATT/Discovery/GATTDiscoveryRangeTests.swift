import BLECore
import TestSupport
import Testing

/// A part of the handles is looked at again, and takes the place of what was known there.
@Suite struct GATTDiscoveryRangeTests {
    /// Whatever the service: looking at it again and putting it in its place changes nothing.
    @Test(arguments: 0..<400 as Range<UInt64>)
    func findsAServiceAgain(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: ~seed)
        let level = DiscoveryLevel.allCases[Int(seed % 3)]
        var server = TestAttributeServer(RandomDatabase(seed: seed).database, mtu: 247)
        let whole = try server.run(GATTDiscovery(level: level, mtu: 247)).get()
        let first = try #require(whole.services.randomElement(using: &numbers)).handles
        let second = try #require(whole.services.randomElement(using: &numbers)).handles
        let touched = min(first.lowerBound, second.lowerBound)...max(first.lowerBound, second.lowerBound)
        let range = whole.wholeServices(touching: touched)
        let part = try server.run(GATTDiscovery(level: level, in: range, mtu: 247)).get()
        let merged = try whole.replacing(range: range, with: part)
        #expect(merged.services == whole.services)
        #expect(merged.characteristics == whole.characteristics)
        if level == .subscribable {
            // Which other descriptors turn up on the way depends on what is asked.
            let configurations = whole.descriptors.filter { $0.uuid == .clientCharacteristicConfiguration }
            let found = merged.descriptors.filter { $0.uuid == .clientCharacteristicConfiguration }
            #expect(found.map(\.handle) == configurations.map(\.handle))
        } else {
            // Whether a type was concluded depends on what was asked before, too.
            #expect(merged.descriptors.map(\.handle) == whole.descriptors.map(\.handle))
            #expect(merged.descriptors.map(\.uuid) == whole.descriptors.map(\.uuid))
        }
    }

    private func battery(at start: Int, with characteristics: Int, end: AttributeHandle) -> ModelDatabase {
        var database = ModelDatabase()
        database.appendGenericServices()
        database.skip(start - database.next)
        database.service(0x180F)
        for number in 0..<characteristics {
            database.characteristic(BluetoothUUID(UInt16(0x2A19 + number)), [.read, .notify])
            database.cccd()
        }
        database.endService()
        database.skip(Int(end) + 1 - database.next)
        database.service(0x180A)
        database.characteristic(0x2A29, .read)
        database.endService()
        return database
    }

    @Test func findsWhatGrew() throws {
        let (old, new) = (battery(at: 20, with: 1, end: 39), battery(at: 20, with: 3, end: 39))
        var server = TestAttributeServer(old, mtu: 247)
        let before = try server.run(GATTDiscovery(mtu: 247)).get()
        var changed = TestAttributeServer(new, mtu: 247)
        let part = try changed.run(GATTDiscovery(in: 20...39, mtu: 247)).get()
        #expect(part.services.map(\.handles) == [20...29])
        let after = try before.replacing(range: before.wholeServices(touching: 20...39), with: part)
        let expected = try changed.run(GATTDiscovery(mtu: 247)).get()
        #expect(after == expected)
        // Nothing outside of the range was asked about.
        for case .readByGroupTypeRequest(let request) in changed.requests.prefix(2) {
            #expect(request.startHandle >= 20 && request.endHandle <= 39)
        }
    }

    @Test func findsThatAServiceIsGone() throws {
        var server = TestAttributeServer(battery(at: 20, with: 1, end: 39), mtu: 247)
        let before = try server.run(GATTDiscovery(mtu: 247)).get()
        var empty = TestAttributeServer(ModelDatabase(), mtu: 247)
        let part = try empty.run(GATTDiscovery(in: 20...30, mtu: 247)).get()
        let after = try before.replacing(range: 20...30, with: part)
        #expect(after.services.map(\.uuid) == [0x1800, 0x1801, 0x180A])
        #expect(after.characteristics(0x2A19).isEmpty)
        #expect(after.descriptors.count == before.descriptors.count - 1)
        #expect(empty.requests.count == 2)
    }

    /// A peer that gives the service more than the range that it named is cut off, and what follows is kept.
    @Test func staysInItsRange() throws {
        var script = try ScriptedResponses(["11 06 1400 ffff 0f18", "09 07 1500 02 1600 192a", "01 08 1700 0a"])
        let part = try script.run(GATTDiscovery(level: .structure, in: 20...39, mtu: 23)).get()
        #expect(part.services.map(\.handles) == [20...39])
        #expect(part.quirks == [.serviceEndClamped(20)])
        #expect(script.requestTexts[0] == "101400270000 28".filter { $0 != " " })
    }

    @Test func aMergedDatabaseStaysBounded() throws {
        let descriptors = (1...4_000).map { GATTDescriptor(handle: AttributeHandle($0), uuid: 0x2901) }
        let old = GATTDatabase(descriptors: descriptors)
        let part = GATTDatabase(
            services: [GATTService(handles: 5_000...6_000, uuid: 0x180F)],
            descriptors: (5_001...5_100).map { GATTDescriptor(handle: AttributeHandle($0), uuid: 0x2901) })
        #expect(throws: GATTFailure.databaseTooLarge(limit: 4_096)) {
            try old.replacing(range: 5_000...6_000, with: part)
        }
    }

    @Test func mergesServicesOfAKind() throws {
        let known = GATTDatabase(services: [
            GATTService(handles: 1...5, uuid: 0x1800), GATTService(handles: 6...9, uuid: 0x180F),
            GATTService(handles: 20...29, uuid: 0x180A),
        ])
        let part = GATTDatabase(services: [
            GATTService(handles: 10...15, uuid: 0x180F), GATTService(handles: 16...19, uuid: 0x180F),
        ])
        let merged = try known.merging(part, of: [0x180F])
        #expect(merged.services.map(\.handles) == [1...5, 10...15, 16...19, 20...29])
        #expect(merged.restricted(to: [0x180F]).services == part.services)
    }

    @Test func mergesAsManyServicesOfAKindAsAPeerMayHave() throws {
        let known = GATTDatabase(services: [GATTService(handles: 2...2, uuid: 0x1800), service(9_000), service(3)])
        let part = GATTDatabase(services: (1...4_095).map { service(AttributeHandle(2 * $0 + 1)) })
        let merged = try known.merging(part, of: [0x180F])
        #expect(merged.services.count == 4_096)
        #expect(try merged.merging(part, of: [0x180F]) == merged)
        #expect(try merged.merging(GATTDatabase(), of: [0x180F]).services.map(\.uuid) == [0x1800])
        let tooMany = GATTDatabase(services: part.services + [service(9_000)])
        #expect(throws: GATTFailure.databaseTooLarge(limit: 4_096)) { try known.merging(tooMany, of: [0x180F]) }
    }

    private func service(_ handle: AttributeHandle) -> GATTService {
        GATTService(handles: handle...handle, uuid: 0x180F)
    }
}
