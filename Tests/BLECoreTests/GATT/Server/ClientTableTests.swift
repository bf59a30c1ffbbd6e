import TestSupport
import Testing

@testable import BLECore

/// What is kept of bonded clients between runs: Core Vol 3 Part G, 2.5.2 and 7.1.
@Suite("GATT server: the table of clients") struct ClientTableTests {
    /// Put together and sealed with Python's struct and zlib, from the layouts in `ClientTable.swift`,
    /// `ServerOutline.swift` and `ClientRecord.swift`.
    private static let golden = """
        424c4557017d000000010200010005001111111106000d002222222202000142000001aa0003000000000000002100424c45\
        4b011400000004030201000100000000000000000100090002000af791f2025544332211c007000000000000002500424c45\
        4b01180000000403020105004d0000000e00150002000900020011000100c2f4043e88cc0bcb
        """
    private static let outline = ServerOutline(services: [
        .init(handles: 1...5, checksum: 0x1111_1111), .init(handles: 6...13, checksum: 0x2222_2222),
    ])
    private static let first = PeerID(address: BluetoothAddress(rawValue: 0x00AA_0100_0042), type: .public)
    private static let second = PeerID(address: BluetoothAddress(rawValue: 0xC011_2233_4455), type: .random)

    private static func record(_ change: (inout ClientRecord) -> Void = { _ in }) -> ClientRecord {
        var record = ClientRecord(checksum: 0x0102_0304)
        record.configurations = [9: .indications]
        change(&record)
        return record
    }

    private static var sample: ClientTable {
        var table = ClientTable()
        table.begin(with: outline, checksum: 0x0102_0304)
        table.store(record(), of: first, bond: 3)
        table.store(
            record { record in
                record.features = 5
                record.isAware = false
                record.signCounter = 77
                record.pendingChange = 14...21
                record.configurations[17] = .notifications
            }, of: second, bond: 7)
        return table
    }

    private static func peer(_ number: Int) -> PeerID {
        PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0000 + UInt64(number)), type: .random)
    }

    @Test("bytes are as laid out")
    func theTableHasTheExpectedBytes() throws {
        let golden = try Hex.decode(Self.golden)
        #expect(Self.sample.bytes == golden)
        #expect(try ClientTable(bytes: golden) == Self.sample)
        #expect(try ClientTable(bytes: ClientTable().bytes) == ClientTable())
    }

    @Test("every truncation and every flipped bit is an error", .row("O25"))
    func everyTruncationAndEveryFlippedBitIsAnError() {
        let bytes = Self.sample.bytes
        for count in bytes.indices {
            #expect(throws: MalformedPacket.self) { try ClientTable(bytes: Array(bytes.prefix(count))) }
        }
        for index in bytes.indices {
            for bit in 0..<8 as Range<UInt8> {
                var flipped = bytes
                flipped[index] ^= 1 << bit
                #expect(throws: MalformedPacket.self) { try ClientTable(bytes: flipped) }
            }
        }
    }

    @Test("content that was made up is refused, or encodes to itself", .row("O25"))
    func madeUp() {
        let bytes = Self.sample.bytes
        var accepted = 0
        for index in 9..<bytes.count - 4 {
            for value in [0, 1, 2, 3, 0x7F, 0x80, 0xFF] as [UInt8] where value != bytes[index] {
                var changed = Array(bytes.dropLast(4))
                changed[index] = value
                let checksum = CRC32.checksum(changed)
                changed += (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * $0)) }
                guard let table = try? ClientTable(bytes: changed) else { continue }
                accepted += 1
                #expect(table.bytes == changed)
            }
        }
        #expect(accepted > 50)
    }

    @Test("a client twice, or more clients than there may be, are refused", .row("O25"))
    func duplicateOrTooManyClientsAreRefused() throws {
        var twice = ClientTable()
        twice.store(Self.record(), of: Self.first, bond: 1)
        let one = Array(twice.bytes[12..<twice.bytes.count - 4])
        func little(_ number: UInt32, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        }
        func sealed(_ count: Int) -> [UInt8] {
            var payload: [UInt8] = [0] + little(UInt32(count), 2)
            for _ in 0..<count { payload += one }
            let file: [UInt8] = [0x42, 0x4C, 0x45, 0x57, 1] + little(UInt32(payload.count), 4) + payload
            return file + little(CRC32.checksum(file), 4)
        }
        #expect(try ClientTable(bytes: sealed(1)) == twice)
        #expect(throws: MalformedPacket.self) { try ClientTable(bytes: sealed(2)) }
        #expect(throws: MalformedPacket.self) { try ClientTable(bytes: sealed(1_025)) }
    }

    @Test("a record is that of one bond")
    func aRecordBelongsToOneBond() {
        let table = Self.sample
        #expect(table.record(of: Self.second, bond: 7)?.signCounter == 77)
        #expect(table.record(of: Self.second, bond: 8) == nil)
        #expect(table.record(of: Self.peer(1), bond: 7) == nil)
        var other = table
        other.store(Self.record(), of: Self.second, bond: 8)
        #expect(other.record(of: Self.second, bond: 7) == nil && other.count == 2)
    }

    @Test("of too many clients the least recently seen goes, and never one that is connected", .row("P16"))
    func leastRecentlySeen() throws {
        var table = ClientTable()
        for number in 0..<ClientTable.limit { table.store(Self.record(), of: Self.peer(number), bond: 1) }
        table.seen(Self.peer(0))
        table.store(Self.record(), of: Self.peer(2_000), bond: 1, connected: [Self.peer(1)])
        #expect(table.count == ClientTable.limit)
        func isKept(_ number: Int) -> Bool { table.record(of: Self.peer(number), bond: 1) != nil }
        #expect(isKept(0) && isKept(1) && !isKept(2) && isKept(3) && isKept(2_000))
        #expect(try ClientTable(bytes: table.bytes) == table)
    }

    @Test("a form that is full has those that were seen last")
    func fullForm() throws {
        var table = ClientTable()
        let large = Self.record { record in
            for handle in 1...4_096 as ClosedRange<AttributeHandle> { record.configurations[handle] = .notifications }
        }
        for number in 0..<100 { table.store(large, of: Self.peer(number), bond: 1) }
        let bytes = table.bytes
        #expect(bytes.count <= ClientTable.byteLimit)
        let stored = try ClientTable(bytes: bytes)
        #expect(stored.count == 63)
        #expect(stored.record(of: Self.peer(99), bond: 1) == large && stored.record(of: Self.peer(36), bond: 1) == nil)
    }

    // MARK: Services of another run

    private static func database(_ services: [ServiceDefinition]) throws -> ServerDatabase {
        var database = ServerDatabase(name: "Test", appearance: 0)
        for service in services { _ = try database.publish([service]) }
        return database
    }

    private static let heart = ServiceDefinition(
        0x180D, [CharacteristicDefinition(0x2A37, .notify, value: .handled)])
    private static let battery = ServiceDefinition(
        0x180F, [CharacteristicDefinition(0x2A19, [.read, .notify], value: .stored([1]))])

    /// Heart rate is at 14 to 17, the battery at 18 to 21.
    @Test("the same services have the same outline, whatever their values, and others differ where they differ")
    func theOutlineDependsOnServicesAndNotOnValues() throws {
        let former = try Self.database([Self.heart, Self.battery])
        func difference(_ services: [ServiceDefinition]) throws -> ClosedRange<AttributeHandle>? {
            try Self.database(services).outline.difference(from: former.outline)
        }
        #expect(former.outline.services.map(\.handles) == [1...5, 6...13, 14...17, 18...21])
        var charged = Self.battery
        charged.characteristics[0].value = .stored([99])
        #expect(try difference([Self.heart, charged]) == nil)
        var withHash = former
        withHash.setHash([UInt8](repeating: 1, count: 16))
        #expect(withHash.outline == former.outline)
        var readable = Self.battery
        readable.characteristics[0].properties = .read
        #expect(try difference([Self.heart, readable]) == 18...21)
        #expect(try difference([Self.heart]) == 18...21)
        #expect(try difference([Self.heart, Self.battery, Self.heart]) == 22...25)
        #expect(try difference([Self.battery, Self.heart]) == 14...21)
    }

    @Test("a run with other services records the change for every client, one with the same records nothing")
    func anotherRun() throws {
        let former = try Self.database([Self.heart, Self.battery])
        var table = ClientTable()
        #expect(table.begin(with: former.outline, checksum: former.checksum) == nil)
        var record = ClientRecord(checksum: former.checksum)
        record.configurations = [9: .indications, 17: .notifications, 21: .notifications]
        table.store(record, of: Self.first, bond: 1)
        let restarted = table
        #expect(table.begin(with: former.outline, checksum: former.checksum) == nil)
        #expect(table == restarted)
        let later = try Self.database([Self.heart])
        #expect(table.begin(with: later.outline, checksum: later.checksum) == 18...21)
        record.databaseChanged(18...21, checksum: later.checksum)
        #expect(table.record(of: Self.first, bond: 1) == record)
        #expect(record.configurations == [9: .indications, 17: .notifications] && !record.isAware)
    }

    @Test("each change while the program runs is recorded for every client that does not store another record")
    func aChangeIsRecordedForEachClient() throws {
        let database = try Self.database([Self.heart])
        var table = Self.sample
        table.databaseChanged(14...17, checksum: 1, outline: Self.outline)
        // This one has confirmed the change on its link.
        table.store(Self.record { $0.checksum = 1 }, of: Self.first, bond: 3)
        table.databaseChanged(30...33, checksum: database.checksum, outline: database.outline)
        let first = try #require(table.record(of: Self.first, bond: 3))
        #expect(first.pendingChange == 30...33 && !first.isAware && first.checksum == database.checksum)
        #expect(table.record(of: Self.second, bond: 7)?.pendingChange == 14...33)
        #expect(table.record(of: Self.second, bond: 7)?.configurations == [9: .indications])
        #expect(table.begin(with: database.outline, checksum: database.checksum) == nil)
    }
}
