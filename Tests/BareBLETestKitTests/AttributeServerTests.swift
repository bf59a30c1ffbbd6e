import BLECore
import BLELinux
import BareBLETestKit
import Testing

/// Bytes are laid out by hand after the specification, Core Vol 3 Part F, 3.4.
@Suite("Attribute server")
struct AttributeServerTests {
    static let device = VirtualDevice(
        name: "Test",
        services: [
            VirtualService(
                0xFFF0, includes: [1],
                [
                    VirtualCharacteristic(0xFFF1, [.read, .write], value: (0..<30).map { UInt8($0) }),
                    VirtualCharacteristic(0xFFF2, .indicate, descriptors: [VirtualDescriptor(0x2901, value: [0x41])]),
                    VirtualCharacteristic(0xFFF3, .read, onRead: .refuse(.insufficientEncryption)),
                ]),
            VirtualService(0xFFE0, isPrimary: false, [VirtualCharacteristic(0xFFE1, .read, value: [7])]),
        ])

    private func exchange(_ server: inout AttributeServer, _ request: String) throws -> [String] {
        server.received(try Hex.decode(request)).map { Hex.encode($0) }
    }

    /// Handles of the device: 1 service, 2 include, 3 and 4 first characteristic, 5 to 8 second, 9 and 10 third; 11 the
    /// secondary service, 12 and 13 its characteristic.
    static let exchanges: [(request: String, response: String)] = [
        ("02 0002", "030502"),
        ("10 0100ffff 0028", "110601000a00f0ff"),
        ("10 0100ffff 0128", "11060b000d00e0ff"),
        ("10 0100ffff 0328", "0110010010"),
        ("08 0100ffff 0228", "090802000b000d00e0ff"),
        ("08 0100ffff 0328", "090703000a0400f1ff0500200600f2ff090002 0a00f3ff"),
        ("04 0700ffff", "0501070002290800012909000328 0a00f3ff 0b000128"),
        ("06 0100ffff 0028 f0ff", "0701000a00"),
        ("06 0100ffff 0028 f1ff", "010601000a"),
        ("0a 0400", "0b000102030405060708090a0b0c0d0e0f101112131415"),
        ("0c 0400 1600", "0d161718191a1b1c1d"),
        ("0c 0400 1f00", "010c040007"),
        ("0a 0000", "010a000001"),
        ("0a ff00", "010aff0001"),
        ("0a 0a00", "010a0a000f"),
        ("0a 0600", "010a060002"),
        ("12 0600 00", "0112060003"),
        ("12 0700 01", "011207000d"),
        ("0e 0400 0d00", "0f000102030405060708090a0b0c0d0e0f101112131415"),
        ("20 0d00 0800", "21010007010041"),
        ("0a", "010a000004"),
        ("0a 0400 00", "010a000004"),
        ("08 0200 0100 0028", "0108020001"),
        ("2a 00", "012a000006"),
    ]

    @Test("One request, one response", arguments: exchanges)
    func eachRequestHasOneResponse(_ request: String, _ response: String) throws {
        var server = AttributeServer(Self.device)
        #expect(try server.received(Hex.decode(request)) == [Hex.decode(response)])
    }

    @Test(
        "Commands, responses and confirmations have no response",
        arguments: ["520400ff", "ff00", "52", "0b01", "1e", ""])
    func commandsResponsesAndConfirmationsHaveNoResponse(_ pdu: String) throws {
        var server = AttributeServer(Self.device)
        #expect(try exchange(&server, pdu).isEmpty)
        #expect(server.requestCount == 0)
    }

    @Test("A second indication waits for the confirmation of the first")
    func aSecondIndicationWaitsForTheConfirmationOfTheFirst() throws {
        var server = AttributeServer(Self.device)
        #expect(server.send([1], of: 6) == nil)
        #expect(try exchange(&server, "1207000200") == ["13"])
        #expect(server.send([1], of: 6).map { Hex.encode($0) } == "1d060001")
        #expect(server.send([2], of: 6) == nil)
        #expect(try exchange(&server, "1e") == ["1d060002"])
        #expect(try exchange(&server, "1e") == [])
        #expect(server.send([3], of: 6) != nil)
        server.disconnected()
        #expect(server.send([4], of: 6) == nil)
    }

    @Test("Prepared writes are carried out together, or not at all")
    func preparedWrites() throws {
        var server = AttributeServer(Self.device)
        #expect(try exchange(&server, "16 0400 0000 aabb") == ["1704000000aabb"])
        #expect(try exchange(&server, "16 0400 0200 cc") == ["1704000200cc"])
        #expect(try exchange(&server, "18 01") == ["19"])
        #expect(server.value(of: 4) == [0xAA, 0xBB, 0xCC])
        _ = try exchange(&server, "16 0400 0000 11")
        _ = try exchange(&server, "16 0400 0500 22")
        #expect(try exchange(&server, "18 01") == ["0118040007"])
        #expect(server.value(of: 4) == [0xAA, 0xBB, 0xCC])
        _ = try exchange(&server, "16 0400 0000 11")
        #expect(try exchange(&server, "18 00") == ["19"])
        #expect(try exchange(&server, "18 01") == ["19"])
        #expect(server.value(of: 4) == [0xAA, 0xBB, 0xCC])
        for _ in 0..<64 { _ = try exchange(&server, "16 0400 0000 11") }
        #expect(try exchange(&server, "16 0400 0000 11") == ["0116040009"])
    }

    @Test("a computed value is computed for each part, and a written one is kept")
    func computedValues() throws {
        let calls = Lock(UInt8(0))
        let computed = VirtualCharacteristic(
            0xFFF1, [.read, .write],
            onRead: .compute {
                calls.withLock { calls in
                    calls += 1
                    return [UInt8](repeating: calls, count: 30)
                }
            })
        var server = AttributeServer(VirtualDevice(name: "", services: [VirtualService(0xFFF0, [computed])]))
        #expect(try exchange(&server, "0a0300") == ["0b" + String(repeating: "01", count: 22)])
        #expect(try exchange(&server, "0c03001600") == ["0d" + String(repeating: "02", count: 8)])
        #expect(try exchange(&server, "1203000a0b") == ["13"])
        #expect(server.value(of: 3) == [0x0A, 0x0B])
        for part in ["160300010011", "160300020012"] { _ = try exchange(&server, part) }
        #expect(try exchange(&server, "1801") == ["19"])
        #expect(server.value(of: 3) == [0x0A, 0x11, 0x12])
    }

    @Test("what a device refuses is not written, nor what was prepared with it; an echo follows the response")
    func aRefusedValueIsNotWritten() throws {
        let characteristics = [
            VirtualCharacteristic(0xFFF1, .write, value: [0], onWrite: .echo(0xFFF3)),
            VirtualCharacteristic(0xFFF2, .write, value: [0], onWrite: .call { $0 == [9] ? .valueNotAllowed : nil }),
            VirtualCharacteristic(0xFFF3, .notify),
            VirtualCharacteristic(0xFFF4, [.write, .writeWithoutResponse], value: [0], onWrite: .refuse(.outOfRange)),
        ]
        var server = AttributeServer(VirtualDevice(name: "", services: [VirtualService(0xFFF0, characteristics)]))
        #expect(try exchange(&server, "1208000100") == ["13"])
        #expect(try exchange(&server, "12030007") == ["13", "1b070007"])
        #expect(try exchange(&server, "12050009") == ["0112050013"])
        for part in ["160300000001", "160500000009"] { _ = try exchange(&server, part) }
        #expect(try exchange(&server, "1801") == ["0118050013"])
        #expect(try exchange(&server, "120a0001") == ["01120a00ff"])
        #expect(try exchange(&server, "520a0001") == [])
        #expect([3, 5, 10].map { server.value(of: $0) } == [[7], [0], [0]])
        let long = [UInt8](repeating: 1, count: 30)
        #expect(server.send(long, of: 7)?.count == 23)
    }

    /// A packet of the usual MTU has room for 20 bytes of a value.
    @Test("a written value comes back whole, in as many packets as it takes", arguments: [0, 1, 20, 21, 60, 512])
    func anEchoIsWhole(_ count: Int) throws {
        let characteristics = [
            VirtualCharacteristic(0xFFF1, .write, onWrite: .echo(0xFFF2)), VirtualCharacteristic(0xFFF2, .notify),
        ]
        var server = AttributeServer(VirtualDevice(name: "", services: [VirtualService(0xFFF0, characteristics)]))
        let value = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        func write() throws -> [String] {
            for start in stride(from: 0, to: count, by: 18) {
                let part = value[start..<min(start + 18, count)]
                let offset = [UInt8(truncatingIfNeeded: start), UInt8(truncatingIfNeeded: start >> 8)]
                let request = "160300" + Hex.encode(offset) + Hex.encode(part)
                #expect(try exchange(&server, request) == ["17" + String(request.dropFirst(2))])
            }
            return try exchange(&server, count == 0 ? "120300" : "1801")
        }
        let response = count == 0 ? "13" : "19"
        #expect(try write() == [response], "nothing without a subscription")
        #expect(try exchange(&server, "1206000100") == ["13"])
        let packets = try write()
        #expect(packets.first == response && packets.count == 1 + max(1, (count + 19) / 20))
        #expect(packets.dropFirst().allSatisfy { $0.hasPrefix("1b0500") && $0.count <= 46 })
        #expect(packets.dropFirst().map { String($0.dropFirst(6)) }.joined(separator: "") == Hex.encode(value))
    }

    /// Each part of an indicated one waits for the confirmation of the part before.
    @Test("an indicated echo is whole too") func anIndicatedEchoIsWhole() throws {
        let characteristics = [VirtualCharacteristic(0xFFF1, [.write, .indicate], onWrite: .echo(0xFFF1))]
        var server = AttributeServer(VirtualDevice(name: "", services: [VirtualService(0xFFF0, characteristics)]))
        #expect(try exchange(&server, "1204000200") == ["13"])
        _ = try exchange(&server, "1603000000" + String(repeating: "07", count: 18))
        _ = try exchange(&server, "1603001200" + String(repeating: "08", count: 18))
        let first = String(repeating: "07", count: 18) + "0808"
        #expect(try exchange(&server, "1801") == ["19", "1d0300" + first])
        #expect(try exchange(&server, "1e") == ["1d0300" + String(repeating: "08", count: 16)])
        #expect(try exchange(&server, "1e") == [])
    }

    @Test("replies follow the response to a write in their order, for a client that has subscribed")
    func repliesFollowTheResponseInTheirOrder() throws {
        let characteristics = [
            VirtualCharacteristic(0xFFF1, .write, onWrite: .reply(0xFFF2) { value in value.map { [$0, 0] } }),
            VirtualCharacteristic(0xFFF2, [.notify, .indicate]),
        ]
        var server = AttributeServer(VirtualDevice(name: "", services: [VirtualService(0xFFF0, characteristics)]))
        #expect(try exchange(&server, "1203000708") == ["13"])
        #expect(try exchange(&server, "1206000100") == ["13"])
        #expect(try exchange(&server, "1203000708") == ["13", "1b05000700", "1b05000800"])
        #expect(try exchange(&server, "1206000200") == ["13"])
        #expect(try exchange(&server, "1203000708") == ["13", "1d05000700"])
        #expect(try exchange(&server, "1e") == ["1d05000800"])
        #expect(try exchange(&server, "1e") == [])
    }

    @Test("A client has what it configured as long as the link, and the counters continue")
    func configurationsEndWithTheLinkAndCountersContinue() throws {
        var server = AttributeServer(Self.device)
        #expect(try exchange(&server, "023000") == ["030502"])
        #expect(try exchange(&server, "1207000200") == ["13"])
        #expect(server.isSubscribed(to: 6) && server.value(of: 7) == [2, 0])
        #expect(try exchange(&server, "0a0000") == ["010a000001"])
        server.disconnected()
        #expect(server.mtu == 23 && server.value(of: 7) == [0, 0] && !server.isSubscribed(to: 6))
        #expect(try exchange(&server, "0a0000") == ["010a000001"])
        #expect(server.requestCount == 4 && server.errorCount == 2)
    }
}
