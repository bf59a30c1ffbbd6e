import BLECore
import TestSupport
import Testing

@Suite struct GATTCacheTests {
    private static let hash = [UInt8](0..<16)

    /// Written by a few lines of Python after the layout, with zlib's checksum: a hash, all services to the full level;
    /// a service that includes a secondary one, a characteristic each, one with a long UUID, two configurations, a
    /// quirk.
    private static let golden = """
        424c454301 68000000 10 000102030405060708090a0b0c0d0e0f 02
        0200 0100 0500 01 02 0118 0100 0200 0600 0900 02 0f18 0600 0900 00 02 0f18 0000
        0200 0300 0400 0500 20 02 052a 0700 0800 0900 12 10 9ecadc240ee5a9e093f3a3b50100406e
        0200 0500 01 02 0229 0900 00 02 0229 0100 01 0600 7eb23269
        """

    private static let sample = GATTCache(
        database: GATTDatabase(
            services: [
                GATTService(
                    handles: 1...5, uuid: 0x1801,
                    includes: [GATTService.Include(handle: 2, handles: 6...9, uuid: 0x180F)]),
                GATTService(handles: 6...9, uuid: 0x180F, isPrimary: false),
            ],
            characteristics: [
                GATTCharacteristic(
                    declarationHandle: 3, valueHandle: 4, endHandle: 5, properties: .indicate, uuid: 0x2A05),
                GATTCharacteristic(
                    declarationHandle: 7, valueHandle: 8, endHandle: 9, properties: [.read, .notify],
                    uuid: BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)),
            ],
            descriptors: [
                GATTDescriptor(handle: 5, uuid: 0x2902, isInferred: true), GATTDescriptor(handle: 9, uuid: 0x2902),
            ], quirks: [.serviceEndClamped(6)]),
        coverage: .whole(.full), databaseHash: hash)

    private static var goldenBytes: [UInt8] {
        get throws { try Hex.decode(golden.filter { $0 != "\n" }) }
    }

    private func reason(_ bytes: [UInt8]) -> MalformedPacket.Reason? {
        do throws(MalformedPacket) {
            _ = try GATTCache(bytes: bytes)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func aCacheHasTheExpectedBytesBothWays() throws {
        #expect(try GATTCache(bytes: Self.goldenBytes) == Self.sample)
        #expect(Self.sample.bytes == (try Self.goldenBytes))
    }

    @Test func partialCoverageIsStoredWithoutAHash() throws {
        var cache = Self.sample
        cache.coverage = .services([0x180F: .structure, 0x1801: .subscribable, long(3): .full])
        cache.databaseHash = nil
        #expect(try GATTCache(bytes: cache.bytes) == cache)
        var same = cache
        same.coverage = .services([long(3): .full, 0x1801: .subscribable, 0x180F: .structure])
        #expect(same.bytes == cache.bytes)
    }

    @Test(arguments: [0, 1, 15, 17, 256, 272])
    func aHashOfAnotherLengthIsNotStored(length: Int) throws {
        var cache = Self.sample
        cache.databaseHash = [UInt8](repeating: 1, count: length)
        let stored = try GATTCache(bytes: cache.bytes)
        #expect(stored.databaseHash == nil)
        cache.databaseHash = nil
        #expect(stored == cache)
    }

    /// Whatever discovery finds can be stored, whatever the level.
    @Test(arguments: 0..<300 as Range<UInt64>)
    func keepsWhatDiscoveryFinds(seed: UInt64) throws {
        let level = DiscoveryLevel.allCases[Int(seed % 3)]
        let quirks: Set<TestAttributeServer.Quirk> = seed % 2 == 0 ? [.skipsOtherLengths] : []
        var server = TestAttributeServer(RandomDatabase(seed: seed).database, mtu: 247, quirks: quirks)
        let database = try server.run(GATTDiscovery(level: level, mtu: 247)).get()
        let cache = GATTCache(database: database, coverage: .whole(level), databaseHash: Self.hash)
        #expect(try GATTCache(bytes: cache.bytes) == cache)
    }

    @Test(.row("O25")) func everyTruncationIsReported() throws {
        let bytes = Self.sample.bytes
        for count in 0..<bytes.count {
            #expect(reason(Array(bytes.prefix(count))) == .tooShort, "\(count) bytes")
        }
        #expect(reason(bytes + [0]) == .trailingBytes(1))
    }

    @Test(.row("O25")) func everyFlippedBitIsReported() throws {
        let bytes = Self.sample.bytes
        for index in bytes.indices {
            for bit in 0..<8 {
                var flipped = bytes
                flipped[index] ^= 1 << UInt8(bit)
                #expect(reason(flipped) != nil, "bit \(bit) of byte \(index)")
            }
        }
        var other = bytes
        other[0] = 0
        #expect(reason(other) == .invalidField("signature"))
        other = bytes
        other[4] = 2
        #expect(reason(Self.sealed(other)) == .invalidField("version"))
        other = bytes
        other[30] ^= 0x10
        #expect(reason(other) == .invalidField("checksum"))
        other = bytes
        other[8] = 0xFF
        #expect(reason(other) == .invalidField("length"))
    }

    /// Bytes whose checksum is right and whose content is not: refused or understood, and what is understood holds
    /// together well enough to be asked about and stored again.
    @Test(.row("O25")) func madeUpContentDoesNoHarm() throws {
        let bytes = Self.sample.bytes
        var accepted = 0
        for index in 9..<(bytes.count - 4) {
            for value in [0, 1, 2, 16, 0x7F, 0xFE, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = value
                guard let cache = try? GATTCache(bytes: Self.sealed(changed)) else { continue }
                accepted += 1
                _ = cache.database.service(containing: 6)
                for characteristic in cache.database.characteristics {
                    _ = cache.database.descriptors(of: characteristic)
                }
                #expect(try GATTCache(bytes: cache.bytes) == cache)
            }
        }
        #expect(accepted > 0)
        for count in 9..<(bytes.count - 5) {
            #expect(reason(Self.sealed(Array(bytes.prefix(count)) + [0, 0, 0, 0])) != nil)
        }
    }

    /// `bytes` with the length and the checksum that belong to them.
    private static func sealed(_ bytes: [UInt8]) -> [UInt8] {
        var sealed = Array(bytes.dropLast(4))
        let length = UInt16(truncatingIfNeeded: sealed.count - 9)
        sealed.replaceSubrange(5..<9, with: length.wireBytes + [0, 0])
        let checksum = CRC32.checksum(sealed)
        return sealed + (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * $0)) }
    }

    /// Handles that two services claim, or two characteristics, are no answer to whose they are.
    @Test(.row("O25")) func whatOverlapsIsRefused() {
        var cache = Self.sample
        let services = [1...6, 6...9].map { GATTService(handles: $0, uuid: 0x180F) }
        cache.database = GATTDatabase(services: services)
        #expect(reason(cache.bytes) == .invalidField("order of services"))
        let characteristics = [2...3, 2...4].map {
            GATTCharacteristic(
                declarationHandle: $0.lowerBound, valueHandle: $0.upperBound, endHandle: $0.upperBound,
                properties: .read, uuid: 0x2A19)
        }
        cache.database = GATTDatabase(characteristics: characteristics)
        #expect(reason(cache.bytes) == .invalidField("characteristic handles"))
        cache.database = GATTDatabase(descriptors: [4, 4].map { GATTDescriptor(handle: $0, uuid: 0x2902) })
        #expect(reason(cache.bytes) == .invalidField("order of descriptors"))
    }

    @Test(.row("O25")) func moreAttributesThanTheLimitAreRefused() throws {
        let descriptors = (1...4_096).map { GATTDescriptor(handle: AttributeHandle($0), uuid: long(UInt64($0))) }
        var cache = GATTCache(database: GATTDatabase(descriptors: descriptors), coverage: .whole(.full))
        #expect(cache.bytes.count < GATTCache.byteLimit)
        #expect(try GATTCache(bytes: cache.bytes) == cache)
        cache.database = GATTDatabase(
            services: [GATTService(handles: 0xFFFF...0xFFFF, uuid: 0x180F)], descriptors: descriptors)
        #expect(reason(cache.bytes) == .invalidField("number of attributes"))
        cache.database = GATTDatabase(descriptors: descriptors + [GATTDescriptor(handle: 0xFFFF, uuid: 0x2901)])
        #expect(reason(cache.bytes) == .invalidField("number of descriptors"))
    }
}
