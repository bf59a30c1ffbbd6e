import TestSupport
import Testing

@testable import BLECore

/// Dialogues for those of the Bluetooth SIG's qualification tests of a server that no published dialogue covers. They
/// are named after the tests; the bytes are laid out by hand after Core Vol 3 Part F, 3.4, and the errors are those of
/// Core Vol 3 Part C, 10.3.1.
@Suite("GATT server: qualification tests") struct GATTServerQualificationTests {
    struct Dialogue: CustomTestStringConvertible {
        let name: String
        let subject: String
        var link = ClientSecurity.none
        /// Packets of the client, each with the response; an empty one for none.
        let exchanges: [(String, String)]
        var testDescription: String { "\(name): \(subject)" }

        init(_ name: String, _ subject: String, link: ClientSecurity = .none, _ exchanges: [(String, String)]) {
            self.name = name
            self.subject = subject
            self.link = link
            self.exchanges = exchanges
        }
    }

    private static let short = ClientSecurity(keySize: 7)
    private static let long = "0b000102030405060708090a0b0c0d0e0f101112131415"

    /// The handles are those of `GATTServerExchangeTests.client`.
    static let dialogues: [Dialogue] = [
        Dialogue("GATT/SR/GAR/BI-01-C", "Read: not permitted", [("0a1300", "010a130002")]),
        Dialogue("GATT/SR/GAR/BI-03-C", "Read: authorization", [("0a1b00", "010a1b0008")]),
        Dialogue("GATT/SR/GAR/BI-04-C", "Read: authentication", [("0a1700", "010a170005")]),
        Dialogue("GATT/SR/GAR/BI-05-C", "Read: key size", link: short, [("0a1900", "010a19000c")]),
        Dialogue("GATT/SR/GAR/BI-09-C", "Read By Type: authorization", [("080100fffff6ff", "01081b0008")]),
        Dialogue("GATT/SR/GAR/BI-10-C", "Read By Type: authentication", [("080100fffff4ff", "0108170005")]),
        Dialogue("GATT/SR/GAR/BI-11-C", "Read By Type: key size", link: short, [("080100fffff5ff", "010819000c")]),
        Dialogue("GATT/SR/GAR/BI-15-C", "Read Blob: authorization", [("0c1b000000", "010c1b0008")]),
        Dialogue("GATT/SR/GAR/BI-16-C", "Read Blob: authentication", [("0c17000000", "010c170005")]),
        Dialogue("GATT/SR/GAR/BI-17-C", "Read Blob: key size", link: short, [("0c19000000", "010c19000c")]),
        Dialogue("GATT/SR/GAR/BI-20-C", "Read Multiple: authorization", [("0e25001b00", "010e1b0008")]),
        Dialogue("GATT/SR/GAR/BI-21-C", "Read Multiple: authentication", [("0e25001700", "010e170005")]),
        Dialogue("GATT/SR/GAR/BI-22-C", "Read Multiple: key size", link: short, [("0e25001900", "010e19000c")]),
        Dialogue(
            "GATT/SR/GAR/BI-45-C", "Read Multiple Variable: each refusal", link: short,
            [
                ("2025001300", "0120130002"), ("202500ff00", "0120ff0001"), ("2025001b00", "01201b0008"),
                ("2025001700", "0120170005"), ("2025001900", "012019000c"),
            ]),
        Dialogue("GATT/SR/GAW/BV-01-C", "Write Command", [("5211000102", ""), ("0a1100", "0b0102")]),
        Dialogue("GATT/SR/GAW/BI-04-C", "Write: authorization", [("121b0000", "01121b0008")]),
        Dialogue("GATT/SR/GAW/BI-05-C", "Write: authentication", [("12170000", "0112170005")]),
        Dialogue("GATT/SR/GAW/BI-06-C", "Write: key size", link: short, [("12190000", "011219000c")]),
        Dialogue(
            "GATT/SR/GAW/BI-09-C", "long write: offset after the end of the value",
            [("1611002000aa", "1711002000aa"), ("1801", "0118110007"), ("0a1100", long)]),
        Dialogue("GATT/SR/GAW/BI-11-C", "long write: authorization", [("161b00000000", "01161b0008")]),
        Dialogue("GATT/SR/GAW/BI-12-C", "long write: authentication", [("161700000000", "0116170005")]),
        Dialogue("GATT/SR/GAW/BI-13-C", "long write: key size", link: short, [("161900000000", "011619000c")]),
        Dialogue(
            "GATT/SR/GAW/BI-32-C", "Write: a longer value than the attribute's",
            [("1223000504030201", "011223000d"), ("0a2300", "0b01020304")]),
        Dialogue(
            "GATT/SR/GAW/BI-33-C", "long write: a longer value than the attribute's",
            [
                ("162300000005040302", "172300000005040302"), ("16230004000100", "17230004000100"),
                ("1801", "011823000d"), ("0a2300", "0b01020304"),
            ]),
        Dialogue(
            "GATT/SR/GAW/BI-39-C", "reliable writes: a longer value than the second attribute's",
            [
                ("161100000009", "171100000009"), ("16230003000102", "17230003000102"), ("1801", "011823000d"),
                ("0a1100", long), ("0a2300", "0b01020304"),
            ]),
        Dialogue("GATT/SR/UNS/BI-01-C", "an unsupported request", [("bf00", "01bf000006"), ("0a2500", "0b07")]),
        Dialogue("GATT/SR/UNS/BI-02-C", "an unsupported command", [("ff00", ""), ("0a2500", "0b07")]),
    ]

    @Test("the dialogue is that of the specification", arguments: dialogues)
    func theDialogueIsThatOfTheSpecification(_ dialogue: Dialogue) throws {
        var client = try GATTServerExchangeTests.client()
        client.secure(dialogue.link)
        for (request, response) in dialogue.exchanges {
            #expect(try client.send(request) == (response.isEmpty ? [] : [response]))
        }
        #expect(client.closeReason == nil)
    }

    @Test("GATT/SR/GAN/BV-03-C: a value is notified while it is configured so, not before and not after")
    func aValueIsNotifiedOnlyWhileItIsConfiguredSo() throws {
        var client = try GATTServerExchangeTests.client()
        #expect(client.update([9], of: 29) == .notSubscribed)
        for _ in 0..<2 {
            #expect(try client.send("121e000100") == ["13"])
            #expect(client.update([9], of: 29) == .notified)
            #expect(client.takeSent() == ["1b1d0009"])
            #expect(try client.send("121e000000") == ["13"])
            #expect(client.update([9], of: 29) == .notSubscribed)
            #expect(client.takeSent().isEmpty)
        }
    }

    @Test("GATT/SR/GAI/BV-02-C: a value is indicated while it is configured so, not before and not after")
    func aValueIsIndicatedOnlyWhileItIsConfiguredSo() throws {
        var client = try GATTServerExchangeTests.client()
        #expect(client.update([9], of: 29) == .notSubscribed)
        for _ in 0..<2 {
            #expect(try client.send("121e000200") == ["13"])
            #expect(client.update([9], of: 29) == .indicated)
            #expect(client.takeSent() == ["1d1d0009"])
            #expect(try client.send("1e").isEmpty)
            #expect(try client.send("121e000000") == ["13"])
            #expect(client.update([9], of: 29) == .notSubscribed)
            #expect(client.takeSent().isEmpty)
        }
    }

    @Test("GATT/SR/GAS/BV-01-C: a change is indicated with the handles that it affects")
    func serviceChanged() throws {
        var client = try GATTServerExchangeTests.client()
        #expect(try client.send("1209000200") == ["13"])
        try client.changeDatabase { try $0.publish([ServiceDefinition(0xFFD0)]).affected }
        #expect(client.takeSent() == ["1d0800 2900 2900".filter { $0 != " " }])
        #expect(try client.send("1e").isEmpty)
        try client.changeDatabase { try $0.withdraw(0x29) }
        #expect(client.takeSent() == ["1d0800 2900 2900".filter { $0 != " " }])
    }

    @Test(
        "GATT/SR/GAT/BV-01-C: nothing is sent on a link whose client has not confirmed an indication for 30 s",
        .row("P02"))
    func transactionTimeout() throws {
        var client = try GATTServerExchangeTests.client()
        #expect(try client.send("121e000200") == ["13"])
        client.update([9], of: 29)
        #expect(client.takeSent() == ["1d1d0009"])
        client.pass(.milliseconds(29_999))
        #expect(try client.send("0a2500") == ["0b07"])
        client.pass(.milliseconds(1))
        #expect(client.closeReason == .confirmationTimeout)
        #expect(try client.send("0a2500").isEmpty)
        #expect(client.update([9], of: 29) == .closed)
        #expect(client.takeSent().isEmpty)
    }
}
