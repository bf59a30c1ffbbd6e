import BLECore
import Testing

/// A caller that knows its services pays for those only.
@Suite struct GATTDiscoveryByUUIDTests {
    @Test(arguments: [(23, 5), (247, 3), (517, 3)])
    func findsOneServiceOfMany(mtu: Int, requests: Int) throws {
        var server = TestAttributeServer(.smallSensor, mtu: mtu)
        let found = try server.run(
            GATTDiscovery(level: .subscribable, services: [0x180D], mtu: UInt16(mtu))
        ).get()
        #expect(found.services.map(\.uuid) == [0x180D])
        #expect(found.characteristics.map(\.uuid) == [0x2A37, 0x2A38, 0x2A39])
        #expect(found.cccd(of: found.characteristics[0])?.isInferred == true)
        #expect(server.requests.count <= requests)
    }

    @Test func findsSeveralAndDuplicates() throws {
        var database = ModelDatabase()
        for uuid in [long(1), 0x180F, 0x180A, long(1)] {
            database.service(uuid)
            database.characteristic(0x2A19, .read)
            database.append(0x2901)
            database.endService()
        }
        var server = TestAttributeServer(database)
        let found = try server.run(GATTDiscovery(level: .full, services: [0x180F, long(1)], mtu: 23)).get()
        #expect(found.services.map(\.uuid) == [long(1), 0x180F, long(1)])
        #expect(found.characteristics.count == 3)
        #expect(found.descriptors.count == 3)
    }

    @Test func answersWithNothingForAnAbsentService() throws {
        var server = TestAttributeServer(.smallSensor)
        let found = try server.run(GATTDiscovery(services: [0x1812], mtu: 23)).get()
        #expect(found.attributeCount == 0)
        #expect(server.requests.count == 1)
    }

    @Test func includesStayReferences() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        database.include(4...6, uuid: long(9))
        database.skip(1)
        database.endService()
        database.service(long(9))
        database.characteristic(0x2A1A, .read)
        database.endService()
        var server = TestAttributeServer(database)
        let found = try server.run(GATTDiscovery(level: .full, services: [0x180F], mtu: 23)).get()
        #expect(found.services.count == 1)
        #expect(found.services[0].includes.map(\.uuid) == [long(9)])
    }
}
