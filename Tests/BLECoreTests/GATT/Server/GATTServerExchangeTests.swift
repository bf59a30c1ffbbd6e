import TestSupport
import Testing

@testable import BLECore

/// Requests and the responses that the specification prescribes, laid out by hand: Core Vol 3 Part F, 3.4; Part G, 2.5.
///
/// The names in the tables are those of the qualification tests whose subject they are.
@Suite("GATT server: exchanges") struct GATTServerExchangeTests {
    static let long = (0..<30).map { UInt8($0) }
    static let vendor = BluetoothUUID(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)

    /// Handles: 14 the service, 15 an include of 38; values at 17 (long), 19 (only writable), 21 (encrypted), 23
    /// (authenticated), 25 (key size), 27 (authorized), 29 (notified and indicated, its configuration 30, description
    /// 31), 33 (from the application), 35 (fixed length), 37 (vendor's type); 38 a secondary service with 40.
    static func client(mtu: UInt16 = 512) throws -> ServedClient {
        let services = [
            ServiceDefinition(
                0xFFF0, includes: [.position(1)],
                [
                    CharacteristicDefinition(0xFFF1, [.read, .write, .writeWithoutResponse], value: .stored(long)),
                    CharacteristicDefinition(0xFFF2, .write, value: .stored([1])),
                    CharacteristicDefinition(0xFFF3, [.read, .write], value: .stored([2]), access: .init(.encrypted)),
                    CharacteristicDefinition(
                        0xFFF4, [.read, .write], value: .stored([3]), access: .init(.authenticated)),
                    CharacteristicDefinition(
                        0xFFF5, [.read, .write], value: .stored([4]), access: .init(.init(.encrypted, keySize: 16))),
                    CharacteristicDefinition(
                        0xFFF6, [.read, .write], value: .stored([5]), access: .init(.init(.open, isAuthorized: true))),
                    CharacteristicDefinition(
                        0xFFF7, [.read, .notify, .indicate], value: .stored([6]),
                        descriptors: [DescriptorDefinition(0x2901, value: .fixed([0x41]))]),
                    CharacteristicDefinition(0xFFF8, [.read, .write], value: .handled),
                    CharacteristicDefinition(
                        0xFFF9, [.read, .write], value: .stored([1, 2, 3, 4], isFixedLength: true)),
                    CharacteristicDefinition(vendor, .read, value: .fixed([7])),
                ]),
            ServiceDefinition(0xFFE0, isPrimary: false, [CharacteristicDefinition(0xFFE1, .read, value: .fixed([8]))]),
        ]
        var client = try ServedClient(services, limits: GATTServer.Limits(mtu: mtu))
        client.decide = { question in
            switch question {
            case .read: .value([0xAB])
            case .write(let values): values.first?.value == [0xEE] ? .rejected(ATTErrorCode(rawValue: 0x80)) : .accepted
            case .authorize: .rejected(.insufficientAuthorization)
            case .verify: .rejected(.insufficientAuthentication)
            }
        }
        return client
    }

    static let table: [(name: String, request: String, response: String)] = [
        // Formats.
        ("an unknown request, ROBUSTNESS", "bf", "01bf000006"),
        ("an even unknown request", "2a00", "012a000006"),
        ("a request without parameters", "0a", "010a000004"),
        ("a request with a byte too many", "0a110000", "010a000004"),
        ("a type of 4 bytes", "080100ffff00280000", "0108000004"),
        ("Execute Write with another flag", "1802", "0118000004"),
        // Exchange MTU.
        ("GAC/SR/BV-01", "021700", "030002"),
        // Find Information.
        ("GAD/SR/BV-06", "0411001200", "050111 00f1ff 12000328"),
        ("the range begins at 0", "040000ffff", "0104000001"),
        ("the range ends before it begins", "0405000400", "0104050001"),
        ("nothing in the range", "042900ffff", "010429000a"),
        ("types of one length end the list", "0424002500", "0501 24000328"),
        ("a type of 16 bytes", "0425002600", "0502 2500 100f0e0d0c0b0a090807060504030201"),
        // Find By Type Value.
        ("GAD/SR/BV-02", "060100ffff0028f0ff", "070e002500"),
        ("GAD/SR/BV-02, missing", "060100ffff0028f1ff", "010601000a"),
        ("no group: its own handle", "060100fffff7ff06", "071d001d00"),
        ("an encrypted value is not found by its value", "060100fffff3ff02", "010601000a"),
        ("nor is one for which the application decides", "060100fffff6ff05", "010601000a"),
        // Read By Type.
        ("GAD/SR/BV-03", "080100ffff0228", "09080f0026002800e0ff"),
        ("GAD/SR/BV-04, lengths end the list", "0822002500 0328", "09072200 0a2300f9ff"),
        ("GAR/SR/BV-03", "080100fffff1ff", "0915 1100 000102030405060708090a0b0c0d0e0f101112"),
        ("a 16-bit type as 128 bits", "080100ffff fb349b5f8000008000100000002a0000", "090603 0054657374"),
        ("GAR/SR/BI-06", "080100fffff2ff", "0108130002"),
        ("GAR/SR/BI-07", "080100fffffaff", "010801000a"),
        ("GAR/SR/BI-08, start 0", "080000fffff1ff", "0108000001"),
        ("GAR/SR/BI-09", "080100fffff6ff", "01081b0008"),
        ("GAR/SR/BI-10", "080100fffff3ff", "0108150005"),
        ("the client's own configuration by type", "081e001e000229", "09041e000000"),
        // Read By Group Type.
        ("GAD/SR/BV-01", "100e00ffff0028", "11060e002500f0ff"),
        ("services of both defaults", "100100ffff0028", "1106010005000018 06000d000118 0e002500f0ff"),
        ("secondary services", "100100ffff0128", "110626002800e0ff"),
        ("another group type", "100100ffff0328", "0110010010"),
        ("the range before the type", "100000ffff0328", "0110000001"),
        // Read.
        ("GAR/SR/BV-01", "0a2500", "0b07"),
        ("cut to the MTU", "0a1100", "0b000102030405060708090a0b0c0d0e0f101112131415"),
        ("GAR/SR/BI-02, handle 0", "0a0000", "010a000001"),
        ("GAR/SR/BI-01", "0a1300", "010a130002"),
        ("GAR/SR/BI-03", "0a1b00", "010a1b0008"),
        ("GAR/SR/BI-04", "0a1700", "010a170005"),
        ("a key size without encryption", "0a1900", "010a190005"),
        ("GAR/SR/BV-04", "0c11001600", "0d161718191a1b1c1d"),
        ("the end of the value", "0c11001e00", "0d"),
        ("GAR/SR/BI-13", "0c11001f00", "010c110007"),
        ("GAR/SR/BI-12", "0c13000000", "010c130002"),
        ("GAR/SR/BI-14", "0cff000000", "010cff0001"),
        ("GAR/SR/BI-15", "0c1b000000", "010c1b0008"),
        ("GAR/SR/BI-16", "0c15000000", "010c150005"),
        ("a short value in parts", "0c25000000", "0d07"),
        // Read Blob.
        ("GAR/SR/BV-05", "0e2500 2800", "0f0708"),
        ("cut at the end", "0e1100 2500", "0f000102030405060708090a0b0c0d0e0f101112131415"),
        ("GAR/SR/BI-18", "0e2500 1300", "010e130002"),
        ("GAR/SR/BI-19", "0e2500 ff00", "010eff0001"),
        ("GAR/SR/BI-20", "0e2500 1b00", "010e1b0008"),
        ("GAR/SR/BI-21", "0e2500 1500", "010e150005"),
        ("an error after the cut", "0e1100 1500", "010e150005"),
        ("one handle", "0e2500", "010e000004"),
        ("GAR/SR/BV-08", "202500 2800", "2101000701 0008"),
        ("cut within a value, its length whole", "2025001100", "210100071e00000102030405060708090a0b0c0d0e0f10"),
        ("a value of the application", "202500 2100", "21010007 0100ab"),
        ("GAR/SR/BI-45", "202500 1500", "0120150005"),
        // Write.
        ("GAW/SR/BV-03", "1211000907", "13"),
        ("GAW/SR/BI-02", "12ff0000", "0112ff0001"),
        ("GAW/SR/BI-03", "12250000", "0112250003"),
        ("GAW/SR/BI-04", "121b0000", "01121b0008"),
        ("GAW/SR/BI-05", "12170000", "0112170005"),
        ("a key size without encryption", "12190000", "0112190005"),
        ("a longer value than fixed", "122300 0102030405", "011223000d"),
        ("the application refuses", "122100ee", "0112210080"),
        ("the application accepts", "12210011", "13"),
        ("a declaration", "120e0000", "01120e0003"),
        ("the name of the device", "12030041", "0112030003"),
        // Prepared writes.
        ("GAW/SR/BV-05", "1611000000aabb", "1711000000aabb"),
        ("the offset is checked at execution", "161100ffffaa", "171100ffffaa"),
        ("GAW/SR/BI-07", "16ff000000aa", "0116ff0001"),
        ("GAW/SR/BI-08", "162500 000000", "0116250003"),
        ("GAW/SR/BI-11", "161b00 000000", "01161b0008"),
        ("GAW/SR/BI-12", "161500 000000", "0116150005"),
        ("an empty queue is executed", "1801", "19"),
        ("and dropped", "1800", "19"),
        // Client configurations and supported features.
        ("GAN/SR/BV-01, configuration", "121e000100", "13"),
        ("both bits", "121e000300", "13"),
        ("reserved bits", "121e000400", "01121e0013"),
        ("one byte", "121e0001", "01121e000d"),
        ("three bytes", "121e00010000", "01121e000d"),
        ("no byte", "121e00", "01121e000d"),
        ("Service Changed has no notifications", "1209000100", "0112090013"),
        ("Client Supported Features", "120b0005", "13"),
        ("no octet of features", "120b00", "01120b000d"),
        // Generic Access and Generic Attribute.
        ("the name", "0a0300", "0b54657374"),
        ("the hash, before it was computed", "0a0d00", "010a0d000e"),
    ]

    @Test("A request gets the response of the specification", arguments: table)
    func eachRequestHasTheSpecifiedResponse(_ name: String, _ request: String, _ response: String) throws {
        var client = try Self.client()
        #expect(try client.send(request.filter { $0 != " " }) == [response.filter { $0 != " " }], "\(name)")
        #expect(client.closeReason == nil)
    }

    @Test(
        "Nothing is sent for a command, a confirmation, a response or an empty packet",
        arguments: ["521100ff", "ff00", "52", "0b01", "1e", "1e00", "", "1b0100", "1d010001", "d2110001"])
    func commandsConfirmationsAndResponsesHaveNoResponse(_ packet: String) throws {
        var client = try Self.client()
        #expect(try client.send(packet).isEmpty)
        #expect(client.server.statistics.requests == 0)
        #expect(client.closeReason == nil)
        #expect(client.database[17]?.value == (packet == "521100ff" ? [0xFF] : Self.long))
    }

    @Test("the first exchange of the MTU counts, after its response", .row("P10"), arguments: [0, 22, 23, 100, 65_535])
    func onlyTheFirstMTUExchangeCounts(_ offered: UInt16) throws {
        var client = try Self.client(mtu: 200)
        client.hasRoom = false
        let low = [UInt8(truncatingIfNeeded: offered), UInt8(truncatingIfNeeded: offered >> 8)]
        try client.send("02" + Hex.encode(low))
        #expect(client.server.mtu == 23)
        client.makeRoom()
        #expect(client.takeSent() == ["03c800"])
        let agreed = max(23, min(200, offered))
        #expect(client.server.mtu == agreed)
        #expect(try client.send("029600") == ["03c800"])
        #expect(client.server.mtu == agreed)
        // The other role's exchange has changed the MTU of the link, which both roles share.
        for (size, shared) in [(180, 180), (50, 50), (22, 23), (300, 200)] as [(UInt16, UInt16)] {
            client.server.mtuExchanged(size)
            #expect(client.server.mtu == shared)
        }
    }

    @Test(
        "a second request before the response closes the link, while the application or the system delays it",
        .row("P07"))
    func aSecondRequestBeforeTheResponseClosesTheLink() throws {
        var waiting = try Self.client()
        waiting.decide = { _ in nil }
        #expect(try waiting.send("0a2100").isEmpty)
        #expect(try waiting.send("0a2500").isEmpty)
        #expect(waiting.closeReason == .overlappingRequests)
        #expect(waiting.handlerReturns(.value([1])).isEmpty)

        var blocked = try Self.client()
        blocked.hasRoom = false
        try blocked.send("0a2500")
        try blocked.send("0a2500")
        #expect(blocked.closeReason == .overlappingRequests)
        blocked.makeRoom()
        #expect(blocked.takeSent().isEmpty)
    }

    @Test("a packet longer than the MTU in effect is invalid", .row("P24"))
    func tooLong() throws {
        var client = try Self.client()
        let part = String(repeating: "00", count: 19)
        #expect(try client.send("1611000000" + part) == ["0116000004"])
        #expect(try client.send("521100" + part + "0000").isEmpty)
        #expect(client.database[17]?.value == Self.long)
        try client.send("021800")
        #expect(try client.send("1611000000" + part) == ["1711000000" + part])
    }

    @Test("a packet longer than the server's MTU closes the link", .row("P24"))
    func aPacketLongerThanTheMTUClosesTheLink() throws {
        var client = try Self.client(mtu: 23)
        try client.send("121100" + String(repeating: "00", count: 21))
        #expect(client.closeReason == .oversizedPacket)
    }
}
