import BLECore
import Testing

/// What peers and other stacks got wrong in the field.
@Suite struct GATTDiscoveryQuirkTests {
    private func discover(
        _ database: ModelDatabase, level: DiscoveryLevel = .full, mtu: Int = 23,
        quirks: Set<TestAttributeServer.Quirk> = []
    ) throws -> GATTDatabase {
        var server = TestAttributeServer(database, mtu: mtu, quirks: quirks)
        return try server.run(GATTDiscovery(level: level, mtu: UInt16(mtu))).get()
    }

    /// An off-by-one test elsewhere loses a characteristic on exactly the last two handles.
    @Test func packedCharacteristicsAreAllFound() throws {
        var database = ModelDatabase()
        database.service(0x180A)
        for number in 0..<4 as Range<UInt16> { database.characteristic(BluetoothUUID(0x2A23 + number), .read) }
        database.endService()
        for level in DiscoveryLevel.allCases {
            #expect(try discover(database, level: level).characteristics.map(\.valueHandle) == [3, 5, 7, 9])
        }
    }

    /// A characteristic without room for descriptors is not asked about: another stack sends a range that ends ahead
    /// of its beginning.
    @Test func noRequestIsSentForNoDescriptors() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        database.characteristic(0x2A19, .read)
        database.endService()
        var server = TestAttributeServer(database)
        let found = try server.run(GATTDiscovery(level: .full, mtu: 23)).get()
        #expect(found.characteristics[0].descriptorHandles == nil)
        let asked = server.requests.contains { if case .findInformationRequest = $0 { true } else { false } }
        #expect(!asked)
    }

    /// The last descriptor after a full response: another stack stops one handle early.
    @Test func theLastDescriptorAfterAFullResponseIsFound() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        database.characteristic(0x2A19, .read)
        for number in 0..<6 as Range<UInt16> { database.append(BluetoothUUID(0x2900 + number)) }
        database.endService()
        let found = try discover(database)
        #expect(found.descriptors.map(\.handle) == [4, 5, 6, 7, 8, 9])
    }

    /// A declaration at 0xFFFF has no room for its value; another stack traps on it.
    @Test func aDeclarationAtTheLastHandleIsDropped() throws {
        var script = try ScriptedResponses([
            "11 06 0100 FFFF 0F18", "09 07 FFFF 02 0000 192A", "01 04 0100 0A",
        ])
        let found = try script.run(GATTDiscovery(level: .full, mtu: 23)).get()
        #expect(found.characteristics == [])
        #expect(found.quirks == [.characteristicDropped(0xFFFF)])
    }

    /// Several other stacks keep one service, or one characteristic, for each UUID.
    @Test func equalUUIDsStayApart() throws {
        var database = ModelDatabase()
        for _ in 0..<2 {
            database.service(0x180F)
            database.characteristic(0x2A19, [.read, .notify])
            database.cccd()
            database.characteristic(0x2A19, .read)
            database.endService()
        }
        let found = try discover(database)
        #expect(found.services(0x180F).count == 2)
        #expect(found.characteristics(0x2A19).map(\.valueHandle) == [3, 6, 9, 12])
        #expect(found.characteristics(0x2A19, in: 0x180F).count == 4)
        #expect(found.characteristics(0x2A19, in: 0x180A) == [])
    }

    /// Read By Type of the configurations is refused: their types are asked for instead.
    @Test(arguments: [23, 247])
    func configurationsThatCannotBeRead(mtu: Int) throws {
        let database = ModelDatabase.longUUIDs(withGenericServices: true)
        let found = try discover(database, level: .subscribable, mtu: mtu, quirks: [.hidesConfigurations])
        #expect(database.differences(from: found, level: .subscribable) == [])
    }

    /// Attribute Not Found that names another handle than was asked about.
    @Test func errorsMayNameAnyHandle() throws {
        let found = try discover(.smallSensor, quirks: [.errorsNameHandleZero])
        #expect(found.attributeCount == 38)
        #expect(found.quirks == [])
    }

    /// A peer without services, and one that does not know what services are.
    @Test(arguments: [ATTErrorCode.attributeNotFound, .unsupportedGroupType])
    func aPeerWithoutServicesIsNoFailure(code: ATTErrorCode) throws {
        var server = TestAttributeServer(ModelDatabase())
        server.intercept = { packet in
            ATTErrorResponse(requestOpcode: packet.opcode, handle: 1, code: code).bytes
        }
        let found = try server.run(GATTDiscovery(level: .full, mtu: 23)).get()
        #expect(found.attributeCount == 0)
        #expect(server.requests.count == 1)
    }

    @Test func aRefusedFirstRequestIsAFailure() throws {
        var script = try ScriptedResponses(["01 10 0100 05"])
        let failure = try script.run(GATTDiscovery(mtu: 23)).failure
        #expect(failure == .att(.readByGroupTypeRequest, 1, .insufficientAuthentication))
    }

    /// Characteristics in a gap between services, at every level: they are kept, and the gap is searched.
    @Test(arguments: DiscoveryLevel.allCases)
    func characteristicsOutsideServicesAreKept(level: DiscoveryLevel) throws {
        var database = ModelDatabase()
        database.service(0x1800)
        database.characteristic(0x2A00, .read)
        database.endService()
        database.characteristic(0x2A05, .read)
        database.service(0x180F)
        database.characteristic(0x2A19, .read)
        database.endService()
        let found = try discover(database, level: level)
        #expect(found.characteristics.map(\.valueHandle) == [3, 5, 8])
        #expect(found.quirks == [.characteristicOutsideService(4)])
    }

    /// A secondary service shows through its characteristics, also where nobody looks for secondary services.
    @Test(arguments: DiscoveryLevel.allCases)
    func secondaryServicesAreFoundByTheirCharacteristics(level: DiscoveryLevel) throws {
        var database = ModelDatabase()
        database.service(0x1800)
        database.characteristic(0x2A00, .read)
        database.endService()
        database.service(long(7), isPrimary: false)
        database.characteristic(0x2A05, .read)
        database.endService()
        database.service(0x180F)
        database.include(4...6, uuid: long(7))
        database.characteristic(0x2A19, .read)
        database.endService()
        let found = try discover(database, level: level)
        #expect(found.services.map(\.isPrimary) == [true, false, true])
        #expect(found.services[1].uuid == long(7))
        #expect(found.quirks == [])
        guard level == .full else { return }
        #expect(found.services[2].includes == [GATTService.Include(handle: 8, handles: 4...6, uuid: long(7))])
    }

    /// A secondary service after the last primary one is found through the reference to it.
    @Test func secondaryServiceAtTheEnd() throws {
        var database = ModelDatabase()
        database.service(0x180F)
        database.include(5...7, uuid: long(9))
        database.characteristic(0x2A19, .read)
        database.endService()
        database.service(long(9), isPrimary: false)
        database.characteristic(0x2A1A, .read)
        database.endService()
        let found = try discover(database)
        #expect(found.services.map(\.uuid) == [0x180F, long(9)])
        #expect(found.services[0].includes.first?.uuid == long(9))
        #expect(found.characteristics.map(\.uuid) == [0x2A19, 0x2A1A])
    }

    /// Types that nobody may see: the rest is found, and the place is named.
    @Test func refusedTypesAreNamedAndTheRestIsFound() throws {
        var script = try ScriptedResponses([
            "11 06 0100 0A00 0F18", "01 10 0B00 0A", "09 07 0200 02 0300 192A", "01 04 0400 06",
        ])
        let found = try script.run(GATTDiscovery(level: .full, mtu: 23)).get()
        #expect(found.characteristics.count == 1)
        #expect(found.quirks == [.informationRefused(4)])
    }
}
