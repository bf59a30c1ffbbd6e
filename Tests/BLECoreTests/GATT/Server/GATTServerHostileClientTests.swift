import TestSupport
import Testing

@testable import BLECore

/// What a client may do to a server that no client should.
@Suite("GATT server: hostile clients") struct GATTServerHostileClientTests {
    private static func client(
        _ properties: CharacteristicProperties, count: Int = 1
    ) throws -> ServedClient {
        let characteristics = (0..<count).map { _ in CharacteristicDefinition(0xFFF1, properties, value: .stored([0])) }
        return try ServedClient([ServiceDefinition(0xFFF0, characteristics)])
    }

    @Test("every opcode, with many handles and lengths: one response for a request, none for the rest", .row("P06"))
    func everyPacket() throws {
        let fresh = try GATTServerExchangeTests.client(mtu: 517)
        let handles: [UInt8] = [0, 1, 3, 9, 11, 13, 14, 17, 19, 21, 23, 25, 27, 29, 30, 33, 35, 37, 40, 41, 0xFF]
        for opcode in 0...UInt8.max {
            let kind = ATTOpcode(rawValue: opcode)
            let isRequest = kind.isRequest || kind.isResponse && kind.specificationName == nil
            for handle in handles {
                for length in [1, 2, 3, 4, 5, 6, 7, 8, 21, 22, 23, 24, 25, 517] {
                    var client = fresh
                    let body = [handle, handle == 0xFF ? 0xFF : 0] + [UInt8](repeating: handle, count: 514)
                    let packet = [opcode] + body.prefix(length - 1)
                    client.perform(client.server.received(packet, in: &client.database, at: client.now))
                    let isRight =
                        client.closeReason == nil && client.sent.count == (isRequest ? 1 : 0)
                        && client.sent.allSatisfy { $0.count <= 23 }
                    if !isRight { Issue.record("\(Hex.encode(packet))") }
                }
            }
            var client = fresh
            let packet = [opcode] + [UInt8](repeating: 1, count: 599)
            client.perform(client.server.received(packet, in: &client.database, at: client.now))
            #expect(client.closeReason == .oversizedPacket && client.sent.isEmpty)
        }
    }

    @Test(
        "a client that prepares and never executes is refused at the limits; the end of its link frees everything",
        .row("P04"))
    func preparesForever() throws {
        for _ in 0..<100 {
            var client = try Self.client(.write)
            var refused = 0
            for _ in 0..<200 where try client.send("161000000000") == ["0116100009"] { refused += 1 }
            #expect(refused == 136 && client.server.heldBytes == 64)
            client.end()
            #expect(client.server.heldBytes == 0)
        }
    }

    @Test("of writes for 64 attributes, the last with an offset that is wrong, none is executed", .row("P05"))
    func oneBadOffset() throws {
        var client = try Self.client(.write, count: 64)
        for index in 0..<64 {
            let handle = Hex.encode([UInt8(16 + 2 * index), 0])
            let offset = index == 63 ? "0200" : "0000"
            #expect(try client.send("16\(handle)\(offset)aa") == ["17\(handle)\(offset)aa"])
        }
        #expect(try client.send("1801") == ["01188e0007"])
        #expect((0..<64).allSatisfy { client.database[AttributeHandle(16 + 2 * $0)]?.value == [0] })
        #expect(client.takeEvents().isEmpty)
        #expect(client.server.heldBytes == 0)
    }

    @Test("an MTU is exchanged after other requests, and counts once", .row("P10"))
    func lateExchange() throws {
        var client = try Self.client(.read)
        client.database.setValue([UInt8](repeating: 7, count: 100), of: 16)
        #expect(try client.send("0a1000").first?.count == 46)
        #expect(try client.send("023000") == ["030502"])
        #expect(try client.send("0a1000").first?.count == 96)
        #expect(try client.send("020502") == ["030502"])
        #expect(try client.send("0a1000").first?.count == 96)
    }

    @Test("a configuration that is switched ten thousand times reports each state, and is stored once", .row("P14"))
    func switchesConfiguration() throws {
        var client = try Self.client(.notify)
        client.secure(ClientSecurity(isBonded: true))
        client.events.removeAll()
        for _ in 0..<5_000 {
            try client.send("5211000100")
            try client.send("5211000000")
        }
        client.pass(.seconds(5))
        var isSubscribed = false
        var stored = 0
        for event in client.takeEvents() {
            switch event {
            case .configured(16, let configuration, isRestored: false):
                #expect(configuration.isEmpty == isSubscribed)
                isSubscribed = !configuration.isEmpty
            case .store(let record):
                stored += 1
                #expect(record.configurations.isEmpty)
            default: Issue.record("\(event)")
            }
        }
        #expect(!isSubscribed && stored == 1)
    }

    @Test("a configuration with reserved bits or of another length has no effect by a command either", .row("P15"))
    func malformedConfigurations() throws {
        var client = try Self.client([.read, .notify])
        for value in ["0400", "0001", "ffff", "01", "", "010000", "0200"] {
            #expect(try client.send("521100" + value).isEmpty)
        }
        #expect(client.takeEvents().isEmpty)
        #expect(client.update([1], of: 16) == .notSubscribed)
        try client.send("5211000100")
        #expect(try client.send("0e11001000") == ["0f010000"])
        #expect(try client.send("2011001000") == ["2102000100010000"])
        #expect(try client.send("0c11000100") == ["0d00"])
    }

    @Test("a client that sends only responses is ignored, and served once it asks", .row("P25"))
    func onlyResponses() throws {
        var client = try Self.client(.read)
        for opcode in stride(from: 1, through: 0x21 as UInt8, by: 2) {
            let kind = ATTOpcode(rawValue: opcode)
            guard kind.isResponse, kind.specificationName != nil else { continue }
            for _ in 0..<1_000 { try client.send(Hex.encode([opcode, 0, 0, 0, 0])) }
        }
        #expect(client.server.statistics.strayPackets >= 10_000)
        #expect(client.server.statistics.requests == 0 && client.closeReason == nil)
        #expect(try client.send("0a1000") == ["0b00"])
    }

    @Test("a packet of no bytes is not the end of the link", .row("P35"))
    func emptyPackets() throws {
        var client = try Self.client(.read)
        for _ in 0..<100 { #expect(try client.send("").isEmpty) }
        #expect(client.events.isEmpty)
        #expect(try client.send("0a1000") == ["0b00"])
    }

    @Test(
        "of Generic Access and Generic Attribute, a client writes its configuration and its features alone", .row("P31")
    )
    func ownServices() throws {
        for handle: AttributeHandle in 1...13 where handle != 9 && handle != 11 {
            var client = try Self.client(.read)
            client.database.setHash([UInt8](repeating: 0xCC, count: 16))
            let before = client.database[handle]
            let name = Hex.encode([UInt8(handle), 0])
            #expect(try client.send("12\(name)0100") == ["0112\(name)03"])
            #expect(try client.send("16\(name)00000100") == ["0116\(name)03"])
            #expect(try client.send("52\(name)0100").isEmpty)
            #expect(client.database[handle] == before)
        }
    }
}
