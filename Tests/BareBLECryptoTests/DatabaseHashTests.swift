import BLECore
import BareBLECrypto
import Testing

/// The specification's own sample (Core Vol 3 Part G, appendix B), and a database of which OpenSSL has computed the hash.
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

    /// The message of a database with UUIDs of 128 bits, a service with such a UUID that is included, so that the include
    /// does not have it, and descriptors whose values do not count, or that do not count at all (0x14). It is written by
    /// hand from Core Vol 3 Part G, 3 and 7.3.1: a line for each attribute.
    private static let otherMessage = [
        "010000280018", "02000328020300002a", "04000328020500012a", "060000280118", "07000328200800052a", "09000229",
        "0a0003280a0b00292b", "0c000328020d002a2b", "0e0001289f8e7d6c5b2a3e9c0a4f1c7d0100e5b1",
        "0f0003281210009f8e7d6c5b2a3e9c0a4f1c7d0200e5b1", "11000229", "12000129", "13000429", "15000028f0ff",
        "160002280e001400", "170003288a1800f1ff", "190000290100", "1a000129", "1b0000281218",
    ].joined()

    /// The output of OpenSSL 3.0, and that of the Python package `cryptography`, for `MESSAGE`, the text above:
    /// ```
    /// echo MESSAGE | xxd -r -p |
    ///     openssl mac -cipher AES-128-CBC -macopt hexkey:00000000000000000000000000000000 -in - CMAC
    /// ```
    private static let otherHash = "4977e387ba988d5659e6d8be0a7cced9"
    private static let otherService: BluetoothUUID = "b1e50001-7d1c-4f0a-9c3e-2a5b6c7d8e9f"
    private static let otherCharacteristic: BluetoothUUID = "b1e50002-7d1c-4f0a-9c3e-2a5b6c7d8e9f"

    @Test("The hash of a served database is the one that another implementation has computed")
    func served() throws {
        var database = ServerDatabase(name: "Other", appearance: 0x0341)
        let format: [UInt8] = [0x04, 0x00, 0x27, 0x00, 0x01, 0x00, 0x00]
        let included = ServiceDefinition(
            Self.otherService, isPrimary: false,
            [
                CharacteristicDefinition(
                    Self.otherCharacteristic, [.read, .notify], value: .stored([1]),
                    descriptors: [
                        DescriptorDefinition(0x2901, value: .fixed([0x41])),
                        DescriptorDefinition(0x2904, value: .fixed(format)),
                        DescriptorDefinition(0xFFD1, value: .fixed([2])),
                    ])
            ])
        let including = ServiceDefinition(
            0xFFF0, includes: [.position(0)],
            [
                CharacteristicDefinition(
                    0xFFF1, [.read, .write], extendedProperties: .reliableWrite, value: .stored([3]),
                    descriptors: [DescriptorDefinition(0x2901, value: .fixed([0x42]))])
            ])
        _ = try database.publish([included, including, ServiceDefinition(0x1812)])
        #expect(Hex.encode(database.hashMessage.bytes) == Self.otherMessage)
        #expect(Hex.encode(database.hashMessage.hash) == Self.otherHash)
    }

    @Test("The hash of a discovered database is the one that another implementation has computed")
    func discovered() throws {
        let database = GATTDatabase(
            services: [
                GATTService(handles: 0x01...0x05, uuid: 0x1800),
                GATTService(handles: 0x06...0x0D, uuid: 0x1801),
                GATTService(handles: 0x0E...0x14, uuid: Self.otherService, isPrimary: false),
                GATTService(
                    handles: 0x15...0x1A, uuid: 0xFFF0,
                    includes: [GATTService.Include(handle: 0x16, handles: 0x0E...0x14, uuid: Self.otherService)]),
                GATTService(handles: 0x1B...0x1B, uuid: 0x1812),
            ],
            characteristics: [
                Self.characteristic(0x02, 0x02, 0x2A00), Self.characteristic(0x04, 0x02, 0x2A01),
                Self.characteristic(0x07, 0x20, 0x2A05, endHandle: 0x09), Self.characteristic(0x0A, 0x0A, 0x2B29),
                Self.characteristic(0x0C, 0x02, 0x2B2A),
                Self.characteristic(0x0F, 0x12, Self.otherCharacteristic, endHandle: 0x14),
                Self.characteristic(0x17, 0x8A, 0xFFF1, endHandle: 0x1A),
            ],
            descriptors: [
                GATTDescriptor(handle: 0x09, uuid: 0x2902), GATTDescriptor(handle: 0x11, uuid: 0x2902),
                GATTDescriptor(handle: 0x12, uuid: 0x2901), GATTDescriptor(handle: 0x13, uuid: 0x2904),
                GATTDescriptor(handle: 0x14, uuid: 0xFFD1), GATTDescriptor(handle: 0x19, uuid: 0x2900),
                GATTDescriptor(handle: 0x1A, uuid: 0x2901),
            ])
        let message = try #require(DatabaseHashMessage(database, extendedProperties: [0x19: [0x01, 0x00]]))
        #expect(Hex.encode(message.bytes) == Self.otherMessage)
        #expect(Hex.encode(message.hash) == Self.otherHash)
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
