import BLECore
import BareBLECrypto
import Testing

/// The specification's own sample: Core Vol 3 Part G, appendix B.
@Suite("Database Hash")
struct DatabaseHashTests {
    private static let hash = "f1ca2d48ecf58bac8a8830bbb9fba990"
    private static let extendedProperties: [AttributeHandle: [UInt8]] = [0x13: [0x00, 0x00]]

    private static let sample = GATTDatabase(
        services: [
            GATTService(handles: 0x01...0x05, uuid: 0x1800),
            GATTService(handles: 0x06...0x0D, uuid: 0x1801),
            GATTService(
                handles: 0x0E...0x13, uuid: 0x1808,
                includes: [GATTService.Include(handle: 0x0F, handles: 0x14...0x16, uuid: 0x180F)]),
            GATTService(handles: 0x14...0x16, uuid: 0x180F, isPrimary: false),
        ],
        characteristics: [
            characteristic(0x02, 0x0A, 0x2A00), characteristic(0x04, 0x02, 0x2A01),
            characteristic(0x07, 0x20, 0x2A05, endHandle: 0x09), characteristic(0x0A, 0x0A, 0x2B29),
            characteristic(0x0C, 0x02, 0x2B2A), characteristic(0x10, 0xA2, 0x2A18, endHandle: 0x13),
            characteristic(0x15, 0x02, 0x2A19),
        ],
        descriptors: [
            GATTDescriptor(handle: 0x09, uuid: 0x2902), GATTDescriptor(handle: 0x12, uuid: 0x2902),
            GATTDescriptor(handle: 0x13, uuid: 0x2900),
        ])

    private static func characteristic(
        _ declaration: AttributeHandle, _ properties: UInt8, _ uuid: BluetoothUUID, endHandle: AttributeHandle = 0
    ) -> GATTCharacteristic {
        GATTCharacteristic(
            declarationHandle: declaration, valueHandle: declaration + 1, endHandle: endHandle,
            properties: CharacteristicProperties(rawValue: properties), uuid: uuid)
    }

    @Test("The sample's hash is the one that the specification gives")
    func theSampleHasTheSpecificationsHash() throws {
        let message = try #require(
            DatabaseHashMessage(Self.sample, extendedProperties: Self.extendedProperties))
        #expect(Hex.encode(message.hash) == Self.hash)
    }

    @Test("A cache is verified in either order of the octets, and distinguished from another database's")
    func aCacheIsVerifiedInEitherOrderOfTheOctets() throws {
        var cache = GATTCache(database: Self.sample, coverage: .whole(.full), databaseHash: try Hex.decode(Self.hash))
        #expect(cache.hashAgrees(extendedProperties: Self.extendedProperties) == true)
        cache.databaseHash?.reverse()
        #expect(cache.hashAgrees(extendedProperties: Self.extendedProperties) == true)
        cache.database = GATTDatabase(services: [GATTService(handles: 1...1, uuid: 0x1800)])
        #expect(cache.hashAgrees() == false)
    }

    @Test("What cannot be verified neither agrees nor disagrees")
    func whatCannotBeVerifiedNeitherAgreesNorDisagrees() throws {
        let hash = try Hex.decode(Self.hash)
        #expect(GATTCache(database: Self.sample, coverage: .whole(.full)).hashAgrees() == nil)
        #expect(GATTCache(database: Self.sample, coverage: .whole(.full), databaseHash: hash).hashAgrees() == nil)
        let partial = GATTCache(database: Self.sample, coverage: .whole(.structure), databaseHash: hash)
        #expect(partial.hashAgrees(extendedProperties: Self.extendedProperties) == nil)
        let quirky = GATTDatabase(services: Self.sample.services, quirks: [.serviceDropped(0x17)])
        #expect(GATTCache(database: quirky, coverage: .whole(.full), databaseHash: hash).hashAgrees() == nil)
    }
}
