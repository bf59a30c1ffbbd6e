import TestSupport
import Testing

@testable import BLECore

@Suite("Server database") struct ServerDatabaseTests {
    private static let battery = ServiceDefinition(
        0x180F, [CharacteristicDefinition(0x2A19, [.read, .notify], value: .stored([100]))])

    /// The sample's hash is verified over the same message in `DatabaseHashTests`.
    @Test("the hash message of the specification's sample: Core Vol 3 Part G, appendix B")
    func theHashMessageIsThatOfTheSpecificationsSample() throws {
        var database = ServerDatabase(name: "Sample", appearance: 0, isNameWritable: true)
        let glucose = ServiceDefinition(
            0x1808, includes: [.position(1)],
            [
                CharacteristicDefinition(
                    0x2A18, [.read, .indicate, .extendedProperties], value: .handled)
            ])
        let battery = ServiceDefinition(
            0x180F, isPrimary: false, [CharacteristicDefinition(0x2A19, .read, value: .handled)])
        _ = try database.publish([glucose, battery])
        let lines = [
            "010000280018", "020003280a0300002a", "04000328020500012a", "060000280118", "07000328200800052a",
            "09000229",
            "0a0003280a0b00292b", "0c000328020d002a2b", "0e0000280818", "0f000228140016000f18", "10000328a21100182a",
            "12000229", "130000290000", "140001280f18", "15000328021600192a",
        ]
        #expect(Hex.encode(database.hashMessage.bytes) == lines.joined().filter { $0 != " " })
    }

    @Test("Generic Access and Generic Attribute are first, at the same handles")
    func genericAccessAndGenericAttributeComeFirst() {
        let database = ServerDatabase(name: String(repeating: "n", count: 300), appearance: 0x0341)
        let types = database.all.map(\.type.description)
        #expect(
            types == [
                "2800", "2803", "2a00", "2803", "2a01", "2800", "2803", "2a05", "2902", "2803", "2b29", "2803", "2b2a",
            ])
        #expect(database[3]?.value.count == 248)
        #expect(database[5]?.value == [0x41, 0x03])
        #expect(ServerDatabase(name: "", appearance: 0, hasHash: false).count == 11)
    }

    @Test("handles are stable, and never used again")
    func handlesAreStableAndNeverUsedAgain() throws {
        var database = ServerDatabase(name: "", appearance: 0)
        let first = try database.publish([Self.battery, Self.battery])
        #expect(first.affected == 14...21)
        #expect(first.services.map(\.handles) == [14...17, 18...21])
        #expect(first.services.map(\.values) == [[16], [20]])
        let checksum = database.checksum
        #expect(try database.withdraw(18) == 18...21)
        #expect(database[19] == nil)
        #expect(database.checksum != checksum)
        #expect(try database.publish([Self.battery]).affected == 22...25)

        var again = ServerDatabase(name: "", appearance: 0)
        _ = try again.publish([Self.battery])
        _ = try again.publish([Self.battery])
        #expect(again.checksum == checksum)
        #expect(try again.publish([]).affected == nil)
    }

    @Test("A change makes the hash unknown until it was computed again")
    func aChangeMakesTheHashUnknown() throws {
        var database = ServerDatabase(name: "", appearance: 0)
        let hash = [UInt8](repeating: 7, count: 16)
        database.setHash(hash)
        #expect(database[13]?.value == hash)
        _ = try database.publish([Self.battery])
        #expect(database[13]?.value == [])
        database.setHash([1])
        #expect(database[13]?.value == [])
    }

    @Test("What cannot be published is refused, and changes nothing")
    func whatCannotBePublishedIsRefusedAndChangesNothing() throws {
        func failure(_ services: [ServiceDefinition]) -> ServerDatabase.Failure? {
            var database = ServerDatabase(name: "", appearance: 0)
            do throws(ServerDatabase.Failure) {
                _ = try database.publish(services)
                return nil
            } catch {
                return database.count == 13 ? error : nil
            }
        }
        func service(_ value: DefinedValue, _ properties: CharacteristicProperties = .read) -> [ServiceDefinition] {
            [ServiceDefinition(0xFFF0, [CharacteristicDefinition(0xFFF1, properties, value: value)])]
        }
        let long = [UInt8](repeating: 0, count: 513)
        #expect(failure([ServiceDefinition(0x1801)]) == .reservedService(0x1801))
        #expect(failure(service(.fixed([]), [.read, .write])) == .fixedValueWritable(0xFFF1))
        #expect(failure(service(.fixed(long))) == .valueTooLong(0xFFF1))
        #expect(failure(service(.stored(long))) == .valueTooLong(0xFFF1))
        #expect(failure([ServiceDefinition(0xFFF0, includes: [.published(2)])]) == .noSuchService)
        #expect(failure([ServiceDefinition(0xFFF0, includes: [.position(1)])]) == .noSuchService)
        #expect(failure([ServiceDefinition](repeating: Self.battery, count: 16_381)) == .noHandlesLeft)
        var described = Self.battery
        described.characteristics[0].descriptors = [DescriptorDefinition(0x2902, value: .fixed([]))]
        #expect(failure([described]) == .reservedDescriptor(0x2902))
    }

    /// Clients take such an attribute for what its type says, at the wrong place.
    @Test(
        "No value has the type of a declaration or descriptor, and no descriptor that of a declaration",
        arguments: [0x2800, 0x2801, 0x2802, 0x2803, 0x2900, 0x2901, 0x2902, 0x2903, 0x2904, 0x2905] as [UInt16])
    func typesOfDeclarationsAndDescriptorsAreRefused(_ type: UInt16) {
        func failure(_ characteristic: CharacteristicDefinition) -> ServerDatabase.Failure? {
            var database = ServerDatabase(name: "", appearance: 0)
            do throws(ServerDatabase.Failure) {
                _ = try database.publish([ServiceDefinition(0xFFF0, [characteristic])])
                return nil
            } catch {
                return error
            }
        }
        let uuid = BluetoothUUID(type)
        #expect(failure(CharacteristicDefinition(uuid, .read, value: .stored([0]))) == .reservedType(uuid))
        var described = CharacteristicDefinition(0xFFF1, .read, value: .stored([0]))
        described.descriptors = [DescriptorDefinition(uuid, value: .stored([0]))]
        let expected: ServerDatabase.Failure? =
            switch type {
            case 0x2800...0x2803: .reservedType(uuid)
            case 0x2900, 0x2902, 0x2903: .reservedDescriptor(uuid)
            default: nil
            }
        #expect(failure(described) == expected)
    }

    @Test("All handles can be used")
    func lastHandle() throws {
        var database = ServerDatabase(name: "", appearance: 0)
        let services = [ServiceDefinition](repeating: ServiceDefinition(0xFFF0), count: 0xFFFF - 13)
        #expect(try database.publish(services).affected == 14...0xFFFF)
        #expect(throws: ServerDatabase.Failure.noHandlesLeft) { try database.publish([ServiceDefinition(0xFFF0)]) }
    }

    @Test("A service that another one includes stays, as do the two that the server has itself")
    func anIncludedServiceIsNotWithdrawn() throws {
        var database = ServerDatabase(name: "", appearance: 0)
        _ = try database.publish([Self.battery])
        _ = try database.publish([ServiceDefinition(0xFFF0, includes: [.published(14)])])
        #expect(database[19]?.value == [14, 0, 17, 0, 0x0F, 0x18])
        #expect(throws: ServerDatabase.Failure.isIncluded(by: 18)) { try database.withdraw(14) }
        #expect(throws: ServerDatabase.Failure.noSuchService) { try database.withdraw(1) }
        #expect(throws: ServerDatabase.Failure.noSuchService) { try database.withdraw(15) }
        _ = try database.withdraw(18)
        #expect(try database.withdraw(14) == 14...17)
    }

    @Test("Attributes that are given singly are sorted, each handle once")
    func singleAttributesAreSortedAndEachHandleIsUsedOnce() {
        let database = ServerDatabase(
            attributes: [9, 3, 0, 3].map { ServerAttribute(handle: $0, type: 0x2A00) })
        #expect(database.all.map(\.handle) == [3, 9])
        #expect(database.attributes(from: 4, through: 8).isEmpty)
        #expect(database.attributes(from: 9, through: 3).isEmpty)
        #expect(database[4] == nil)
    }

    @Test("A record of a client survives its encoding, and is refused when it was damaged")
    func aClientRecordSurvivesItsEncodingAndIsRefusedWhenDamaged() throws {
        var record = ClientRecord(checksum: 0x0102_0304)
        record.configurations = [9: .indications, 17: .notifications]
        record.features = 5
        record.isAware = false
        record.pendingChange = 14...21
        record.signCounter = 77
        #expect(try ClientRecord(bytes: record.bytes) == record)
        let bytes = record.bytes
        for count in 0..<bytes.count {
            #expect(throws: MalformedPacket.self) { try ClientRecord(bytes: Array(bytes.prefix(count))) }
        }
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x10
            #expect(throws: MalformedPacket.self) { try ClientRecord(bytes: damaged) }
        }
        record.databaseChanged(8...15, checksum: 5)
        #expect(record.pendingChange == 8...21 && record.configurations == [17: .notifications] && record.checksum == 5)
    }
}
