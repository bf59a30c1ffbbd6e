import TestSupport
import Testing

@testable import BLECore

/// Whatever the order of packets, no value is read, written or sent below the level of its attribute.
@Suite("GATT server: security") struct GATTServerSecurityTests {
    static let requirements: [AccessRequirement] = [
        .encrypted, .authenticated, .secureConnections, .init(.open, keySize: 16), .init(.open, isBonded: true),
    ]
    static let links: [ClientSecurity] = [
        .none, .init(keySize: 0, isBonded: true), .init(keySize: 7), .init(), .init(isBonded: true),
        .init(isAuthenticated: true), .init(isAuthenticated: true, isSecureConnections: true, isBonded: true),
    ]
    /// By requirement and link: the error, 0 for none. Core Vol 3 Part C, 10.3.1, table 10.2.
    static let refusals: [[UInt8]] = [
        [0x05, 0x0F, 0, 0, 0, 0, 0],
        [0x05, 0x0F, 0x05, 0x05, 0x05, 0, 0],
        [0x05, 0x0F, 0x0C, 0x05, 0x05, 0x05, 0],
        [0x05, 0x0F, 0x0C, 0, 0, 0, 0],
        [0x05, 0x0F, 0x05, 0x05, 0, 0x05, 0],
    ]

    @Test("the error depends on what the link lacks", arguments: requirements.indices)
    func theErrorDependsOnWhatTheLinkLacks(_ index: Int) {
        let codes = Self.links.map { Self.requirements[index].refusal(over: $0)?.rawValue ?? 0 }
        #expect(codes == Self.refusals[index])
        #expect(Self.links.allSatisfy { AccessRequirement.open.refusal(over: $0) == nil })
    }

    /// The value at 16, its configuration at 17.
    private static func client(
        _ requirement: AccessRequirement, _ value: DefinedValue = .stored([0xAA])
    ) throws -> ServedClient {
        try ServedClient([
            ServiceDefinition(
                0xFFF0,
                [
                    CharacteristicDefinition(
                        0xFFF1, [.read, .write, .writeWithoutResponse, .notify], value: value,
                        access: AttributeAccess(requirement))
                ])
        ])
    }

    /// Each way to read, write or subscribe, and its Error Response without the code.
    static let accesses: [(name: String, request: String, response: String?)] = [
        ("Read", "0a1000", "010a1000"), ("Read Blob", "0c10000000", "010c1000"),
        ("Read By Type", "080100fffff1ff", "01081000"), ("Read Multiple", "0e10001000", "010e1000"),
        ("Read Multiple Variable", "2003001000", "01201000"), ("Write", "1210000b", "01121000"),
        ("Prepare Write", "16100000000b", "01161000"), ("subscribe", "1211000100", "01121100"),
        ("prepare to subscribe", "16110000000100", "01161100"), ("Write Command", "5210000b", nil),
        ("Write Command to subscribe", "5211000100", nil),
    ]

    @Test("every way of access, at every link", .row("P20"), arguments: accesses, requirements.indices)
    func everyAccessNeedsTheLevelOfItsAttribute(
        _ access: (name: String, request: String, response: String?), _ index: Int
    ) throws {
        for (link, code) in zip(Self.links, Self.refusals[index]) where code != 0 {
            var client = try Self.client(Self.requirements[index])
            client.secure(link)
            let expected = access.response.map { [$0 + Hex.encode([code])] } ?? []
            #expect(try client.send(access.request) == expected, "\(access.name) \(link)")
            #expect(client.database[16]?.value == [0xAA])
            #expect(client.server.configuration(of: 16, in: client.database).isEmpty)
        }
        for (link, code) in zip(Self.links, Self.refusals[index]) where code == 0 {
            try Self.expectPermitted(access.request, Self.requirements[index], link)
        }
    }

    @Test("and of an open attribute", arguments: accesses)
    func anOpenAttributeIsAccessibleAtEveryLevel(_ access: (name: String, request: String, response: String?)) throws {
        for link in Self.links { try Self.expectPermitted(access.request, .open, link) }
    }

    /// Expects that a request is executed.
    private static func expectPermitted(
        _ request: String, _ requirement: AccessRequirement, _ link: ClientSecurity
    ) throws {
        var client = try Self.client(requirement)
        client.secure(link)
        var received = try client.send(request)
        let isPrepared = request.hasPrefix("16")
        if isPrepared { received += try client.send("1801") }
        #expect(received.allSatisfy { !$0.hasPrefix("01") }, "\(request) \(link)")
        #expect(received.isEmpty == request.hasPrefix("52"))
        switch request.prefix(6) {
        case "121000", "521000", "161000": #expect(client.database[16]?.value == [0x0B])
        case "121100", "521100", "161100":
            #expect(client.update([1], of: 16) == .notified)
            #expect(client.takeSent() == ["1b100001"])
        default: #expect(received.first?.contains("aa") == true)
        }
    }

    @Test("A value is not found by trying values, below its level", .row("P20"))
    func aProtectedValueCannotBeFoundByTrying() throws {
        var client = try Self.client(.encrypted)
        #expect(try client.send("060100fffff1ffaa") == ["010601000a"])
        client.secure(ClientSecurity())
        #expect(try client.send("060100fffff1ffaa") == ["0710001000"])
    }

    @Test("The level is checked again after the application has returned")
    func loweredMeanwhile() throws {
        var client = try Self.client(.encrypted, .handled)
        client.secure(ClientSecurity())
        try client.send("0a1000")
        client.secure(.none)
        #expect(client.handlerReturns(.value([1])) == ["010a100005"])
    }

    @Test("and for a write after it was authorized")
    func loweredBeforeWrite() throws {
        var client = try Self.client(AccessRequirement(.encrypted, isAuthorized: true), .handled)
        client.secure(ClientSecurity())
        try client.send("12100001")
        client.secure(.none)
        #expect(client.handlerReturns(.accepted) == ["0112100005"])
        #expect(client.questions == [.authorize(16, isWrite: true)])
        client.secure(ClientSecurity())
        try client.send("12100001")
        #expect(client.handlerReturns(.accepted).isEmpty)
        #expect(client.handlerReturns(.accepted) == ["13"])
        try client.send("12100001")
        #expect(client.handlerReturns(.rejected(.unlikelyError)) == ["0112100008"])
    }

    @Test("Prepared writes are not executed below the level of their attribute", .row("P20"))
    func preparedWrites() throws {
        var client = try Self.client(.encrypted)
        client.secure(ClientSecurity())
        #expect(try client.send("16100000000b") == ["17100000000b"])
        client.secure(.none)
        #expect(try client.send("1801") == ["0118100005"])
        #expect(client.database[16]?.value == [0xAA])
    }

    @Test("Packets that wait for room are not sent after the level was lowered")
    func waitingPackets() throws {
        var client = try Self.client(.encrypted)
        client.secure(ClientSecurity())
        try client.send("1211000100")
        client.hasRoom = false
        #expect(client.update([1], of: 16, id: 7) == .notified)
        try client.send("0a1000")
        client.secure(.none)
        client.events.removeAll()
        client.makeRoom()
        #expect(client.takeSent() == ["010a100005"])
        #expect(client.takeEvents() == [.notified(.init(7), failure: .insecure)])
    }

    @Test("A subscription below its level sends nothing, notified or indicated", .row("P20"))
    func aSubscriptionBelowItsLevelSendsNothing() throws {
        var client = try ServedClient([
            ServiceDefinition(
                0xFFF0,
                [CharacteristicDefinition(0xFFF1, [.indicate], value: .handled, access: .init(subscribe: .encrypted))])
        ])
        client.secure(ClientSecurity())
        try client.send("1211000200")
        client.update([1], of: 16, id: 1)
        client.update([2], of: 16, id: 2)
        client.takeSent()
        client.events.removeAll()
        client.secure(.none)
        #expect(client.update([3], of: 16) == .insecure)
        #expect(try client.send("1e").isEmpty)
        #expect(
            client.takeEvents() == [.finish(.init(1), failure: nil), .finish(.init(2), failure: .insecure)])
        let (outcomes, _) = client.server.notify([(.init(4), 16, [1])], in: client.database)
        #expect(outcomes == [.notSubscribed])
    }

    // MARK: Bonded clients

    @Test("the configurations of a bonded client are in force once it has encrypted the link, and reported")
    func configurationsAreInForceOnceABondedClientEncryptsTheLink() throws {
        var client = try Self.client(.open)
        var record = ClientRecord(checksum: client.database.checksum)
        record.configurations = [9: .indications, 17: [.notifications, .indications], 99: .notifications]
        record.features = 1
        client.perform(client.server.identified(record, in: client.database, at: client.now))
        client.secure(ClientSecurity(keySize: 0, isBonded: true))
        #expect(try client.send("0a1100") == ["0b0000"])
        #expect(client.update([1], of: 16) == .notSubscribed)
        #expect(client.events.isEmpty)
        client.secure(ClientSecurity(isBonded: true))
        // The value cannot be indicated, and the last attribute no longer exists.
        record.configurations = [9: .indications, 17: .notifications]
        #expect(
            client.takeEvents() == [
                .configured(8, .indications, isRestored: true), .configured(16, .notifications, isRestored: true),
                .store(record),
            ])
        #expect(client.update([1], of: 16) == .notified)
        #expect(try client.send("0a0b00") == ["1b100001", "0b01"])
    }

    @Test("What the client has written on this link counts more than its record")
    func writtenAgain() throws {
        var client = try Self.client(.open)
        var record = ClientRecord(checksum: client.database.checksum)
        record.configurations = [17: .notifications]
        try client.send("1211000000")
        client.secure(ClientSecurity(isBonded: true))
        client.events.removeAll()
        client.perform(client.server.identified(record, in: client.database, at: client.now))
        #expect(client.update([1], of: 16) == .notSubscribed)
    }

    @Test("a record is stored at most once in 5 s, and at the end of the link", .row("P14"))
    func aRecordIsStoredAtMostOnceInFiveSeconds() throws {
        var client = try Self.client(.open)
        client.secure(ClientSecurity(isBonded: true))
        client.events.removeAll()
        for _ in 0..<1_000 {
            try client.send("5211000100")
            try client.send("5211000000")
        }
        try client.send("5211000100")
        func stored(_ client: inout ServedClient) -> [ClientRecord] {
            client.takeEvents().compactMap { if case .store(let record) = $0 { record } else { nil } }
        }
        #expect(stored(&client).isEmpty)
        client.pass(.seconds(5))
        let first = stored(&client)
        #expect(first.map(\.configurations) == [[17: .notifications]])
        #expect(client.server.nextDeadline == nil)
        try client.send("5211000000")
        client.end()
        #expect(stored(&client).map(\.configurations) == [[:]])
    }

    @Test("Nothing of a client without a proven identity is stored")
    func nothingOfAClientWithoutAProvenIdentityIsStored() throws {
        for security in [ClientSecurity.none, .init(keySize: 0, isBonded: true), .init()] {
            var client = try Self.client(.open)
            client.secure(security)
            try client.send("1211000100")
            client.end()
            #expect(!client.events.contains { if case .store = $0 { true } else { false } })
        }
    }
}
