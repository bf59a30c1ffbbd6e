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

    /// The second search would get the first one's responses, and look like a peer that begins again.
    @Test func aKindThatIsNamedTwiceIsLookedForOnce() throws {
        var (once, twice) = (TestAttributeServer(.smallSensor), TestAttributeServer(.smallSensor))
        let found = try once.run(GATTDiscovery(services: [0x180D, 0x180A], mtu: 23)).get()
        #expect(try twice.run(GATTDiscovery(services: [0x180D, 0x180A, 0x180D], mtu: 23)).get() == found)
        #expect(twice.requests == once.requests)
        #expect(found.services.count == 2)
        #expect(found.quirks == [])
    }

    @Test func findsNothingForAnAbsentService() throws {
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

    // MARK: Descriptors of one characteristic

    private func characteristic(_ end: AttributeHandle) -> GATTCharacteristic {
        GATTCharacteristic(declarationHandle: 2, valueHandle: 3, endHandle: end, properties: .notify, uuid: 0x2A19)
    }

    @Test func findsDescriptorsOnDemand() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        database.characteristic(0x2A19, .notify)
        let types: [BluetoothUUID] = [0x2900, 0x2901, 0x2902, 0x2904, 0x2905, 0x2906, long(3)]
        for type in types { database.append(type) }
        database.endService()
        var server = TestAttributeServer(database)
        let found = try server.run(DescriptorDiscovery(of: characteristic(10))).get()
        #expect(found.map(\.uuid) == types)
        #expect(server.requests.count == 3)
    }

    @Test func asksNothingWhereThereIsNoRoom() throws {
        var server = TestAttributeServer(.smallSensor)
        #expect(try server.run(DescriptorDiscovery(of: characteristic(3))).get() == [])
        #expect(server.requests.isEmpty)
    }

    /// The service claims handles that are not its own: descriptors end where the next declaration begins.
    @Test func stopsAtTheNextDeclaration() throws {
        var script = try ScriptedResponses(["05 01 0400 0229 0500 0028 0600 0328"])
        let found = try script.run(DescriptorDiscovery(of: characteristic(0xFFFF))).get()
        #expect(found.map(\.handle) == [4])
    }

    @Test(arguments: [
        ("05 01 0300 0229", GATTFailure.outOfRange(3)), ("05 01 0500 0229 0500 0129", .noProgress(at: 5)),
        ("01 04 0400 06", .att(request: .findInformationRequest, handle: 4, code: .requestNotSupported)),
    ])
    func aMalformedResponseIsRefused(response: String, failure: GATTFailure) throws {
        var script = try ScriptedResponses([response])
        #expect(try script.run(DescriptorDiscovery(of: characteristic(9))).failure == failure)
    }
}
