import BLECapture
import BLECore
import TestSupport
import Testing

@Suite("Packet printer")
struct PacketPrinterTests {
    /// An ATT PDU on link 0x0040 as it crosses between host and controller.
    static func attribute(
        _ hex: String, _ direction: CapturedPacket.Direction, at milliseconds: Int64 = 0
    ) throws -> CapturedPacket {
        let pdu = try Hex.decode(hex)
        let frame = [UInt8(pdu.count), 0, 4, 0] + pdu
        return CapturedPacket(
            direction: direction, kind: .asynchronousData, bytes: [0x40, 0x20, UInt8(frame.count), 0] + frame,
            timestamp: .milliseconds(83_645_201 + milliseconds))
    }

    static func event(_ hex: String) throws -> CapturedPacket {
        CapturedPacket(direction: .received, kind: .event, bytes: try Hex.decode(hex), timestamp: .zero)
    }

    static func command(_ hex: String) throws -> CapturedPacket {
        CapturedPacket(direction: .sent, kind: .command, bytes: try Hex.decode(hex), timestamp: .zero)
    }

    @Test(
        "The key in a command that encrypts a link is not printed, also from a capture of another program", .row("S21"))
    func keysInCommandsAreNotPrinted() throws {
        var printer = PacketPrinter()
        let key = "a4e41d70088de98196ae36dec58877be"
        let printed = printer.print(
            try Self.command("1920 1c 4000 8512f2f27da034bc 86b3".filter { $0 != " " } + key))
        let text = "\(printed) \(Hex.encode(printed.bytes))".lowercased().filter { $0 != " " && $0 != "\n" }
        #expect(printed.title.hasPrefix("LE Enable Encryption"))
        #expect(text.contains("8512f2f27da0"), "Rand names the key, and is none")
        for start in stride(from: 0, to: 28, by: 4) {
            #expect(!text.contains(key.dropFirst(start).prefix(4)))
        }
    }

    @Test("Keys that a pairing distributes, and that the kernel is given, are not printed", .row("S21"))
    func distributedKeys() throws {
        let key = "a4e41d70088de98196ae36dec58877be"
        let ofPeer = "0600b3a2c4115500"
        let packets = try [
            (CapturePacket.smp("06" + key), "Encryption Information"),
            (CapturePacket.smp("08" + key), "Identity Information"),
            (CapturePacket.smp("0a" + key), "Signing Information"),
            (CapturePacket.note(16, "01000000 1300 0100" + ofPeer + key), "Management command"),
            (CapturePacket.note(16, "01000000 3000 0100" + ofPeer + key), "Management command"),
            (CapturePacket.note(17, "01000000 0a00 01" + ofPeer + key), "Management event"),
        ]
        for (packet, title) in packets {
            var printer = PacketPrinter()
            let printed = printer.print(packet)
            #expect(printed.title.contains(title))
            let text = "\(printed) \(Hex.encode(printed.bytes))".lowercased().filter { $0 != " " && $0 != "\n" }
            for start in stride(from: 0, to: 28, by: 4) {
                #expect(!text.contains(key.dropFirst(start).prefix(4)), "\(title)")
            }
            #expect(printed.bytes.count == packet.bytes.count)
        }
        // In two pieces.
        var printer = PacketPrinter()
        let whole = try Hex.decode("1100 0600 06" + key)
        let first = printer.print(CapturePacket.data([0x40, 0x20, 8, 0] + whole.prefix(8)))
        #expect(Array(first.bytes.dropFirst(8)) == [6, 0, 0, 0])
        let last = printer.print(CapturePacket.data([0x40, 0x10, 13, 0] + whole.dropFirst(8)))
        #expect(last.title.contains("Encryption Information"))
        #expect(Array(last.bytes.dropFirst(4)) == [UInt8](repeating: 0, count: 13))
    }

    private enum CapturePacket {
        static func smp(_ hex: String) throws -> CapturedPacket {
            let payload = try Hex.decode(hex)
            return data([0x40, 0x20, UInt8(payload.count + 4), 0, UInt8(payload.count), 0, 6, 0] + payload)
        }

        static func data(_ bytes: [UInt8]) -> CapturedPacket {
            CapturedPacket(direction: .received, kind: .asynchronousData, bytes: bytes, timestamp: .zero)
        }

        static func note(_ opcode: UInt16, _ hex: String) throws -> CapturedPacket {
            CapturedPacket(direction: .received, kind: .note(opcode), bytes: try Hex.decode(hex), timestamp: .zero)
        }
    }

    /// The first two packets are the screen in the program's own contract.
    static let exchange: [(hex: String, sent: Bool, at: Int64, title: String, details: [String])] = [
        (
            "10 0100ffff 0028", true, 0,
            "Read By Group Type Request (0x10) 0x0001-0xffff Primary Service", []
        ),
        (
            "11 06 0100 0900 0018 1000 1600 0d18", false, 49, "Read By Group Type Response (0x11)",
            ["0x0001-0x0009  Generic Access 1800", "0x0010-0x0016  Heart Rate 180d"]
        ),
        ("08 1000 1600 0328", true, 50, "Read By Type Request (0x08) 0x0010-0x0016 Characteristic", []),
        (
            "09 07 1100 10 1200 372a", false, 70, "Read By Type Response (0x09)",
            ["0x0011  value 0x0012  Heart Rate Measurement 2a37  notify"]
        ),
        ("04 1300 1300", true, 71, "Find Information Request (0x04) 0x0013-0x0013", []),
        (
            "05 01 1300 0229", false, 80, "Find Information Response (0x05)",
            ["0x0013  Client Characteristic Configuration 2902"]
        ),
        (
            "12 1300 0100", true, 81,
            "Write Request (0x12) handle 0x0013 Client Characteristic Configuration 2902: notifications on", []
        ),
        ("13", false, 90, "Write Response (0x13)", []),
        (
            "1b 1200 0648", false, 95, "Handle Value Notification (0x1b) handle 0x0012 Heart Rate Measurement 2a37",
            ["0648"]
        ),
        ("0a 0300", true, 96, "Read Request (0x0a) handle 0x0003", []),
        (
            "01 0a 0300 05", false, 214,
            "Error Response (0x01) to Read Request, handle 0x0003: insufficient authentication (0x05)", []
        ),
        ("02 0502", true, 215, "Exchange MTU Request (0x02) MTU 517", []),
        (
            "03", false, 216, "Exchange MTU Response (0x03) malformed",
            ["ATT_EXCHANGE_MTU_RSP is malformed at byte 1: the packet ends too early", "03"]
        ),
        ("0b 48524d2d50726f", false, 217, "Read Response (0x0b) 7 bytes", ["48524d2d50726f  \"HRM-Pro\""]),
        ("2a 01", true, 218, "Unknown ATT packet (0x2a)", ["01"]),
    ]

    @Test("Requests, responses, names learnt on the way, and the time of each response")
    func responsesNameTheirRequestsAndTimes() throws {
        var printer = PacketPrinter()
        var elapsed: [Duration] = []
        for (hex, sent, time, title, details) in Self.exchange {
            let printed = printer.print(try Self.attribute(hex, sent ? .sent : .received, at: time))
            #expect(printed.title == title)
            #expect(printed.details == details)
            if let reply = printed.elapsed { elapsed.append(reply) }
        }
        #expect(
            elapsed.prefix(5) == [
                .milliseconds(49), .milliseconds(20), .milliseconds(9), .milliseconds(9), .milliseconds(118),
            ])
        #expect(printer.summary.description == "15 packets, 7 requests, 1 error, slowest response 118 ms")
    }

    @Test("A line puts the times on the right and the fields below")
    func timesAreOnTheRightAndFieldsBelow() throws {
        var printer = PacketPrinter()
        _ = printer.print(try Self.attribute("10 0100ffff 0028", .sent))
        let text = printer.print(try Self.attribute("11 06 0100 0900 0018", .received, at: 49)).text(width: 64)
        #expect(
            text
                == """
                #2 > Read By Group Type Response (0x11)      +49 ms 23:14:05.250
                        0x0001-0x0009  Generic Access 1800
                """)
        #expect(PrintedPacket.timeOfDay(.milliseconds(-1)) == "23:59:59.999")
    }

    @Test("Commands, their responses and links")
    func commandsResponsesAndLinksAreNamed() throws {
        var printer = PacketPrinter()
        func title(_ packet: CapturedPacket) -> String { printer.print(packet).title }
        #expect(title(try Self.command("0c20 02 01 00")) == "LE Set Scan Enable (0x200c)")
        #expect(
            title(try Self.event("0e 04 01 0c20 00"))
                == "Command Complete (0x0e) LE Set Scan Enable (0x200c): Success (0x00)")
        #expect(title(try Self.command("0d20 00")) == "LE Create Connection (0x200d)")
        #expect(
            title(try Self.event("0f 04 0c 01 0d20"))
                == "Command Status (0x0f) LE Create Connection (0x200d): Command Disallowed (0x0c)")
        #expect(
            title(try Self.event("3e 13 01 00 4000 00 01 112233445566 1800 0000 2a00 00"))
                == "LE Connection Complete (0x3e 0x01) link 0x0040 with 66:55:44:33:22:11/random")
        #expect(
            title(try Self.event("05 04 00 4000 13"))
                == "Disconnection Complete (0x05) link 0x0040: Remote User Terminated Connection (0x13)")
        #expect(title(try Self.event("ff 02 0102")) == "Vendor event (0xff)")
        #expect(
            title(try Self.event("30 03 00 0b00"))
                == "Encryption Key Refresh Complete (0x30) link 0x000b: Success (0x00)")
        #expect(title(try Self.event("13 05 01 4000 0100")) == "Number of Completed Packets (0x13) link 0x0040: 1")
        #expect(title(try Self.command("01")) == "Command without a complete opcode")
    }

    @Test("An advertisement shows address, strength and data")
    func anAdvertisementShowsAddressStrengthAndData() throws {
        var printer = PacketPrinter()
        let printed = printer.print(
            try Self.event("3e 1a 02 01 00 01 217e0b195ac3 0e 020106 03030d18 06085669727475 d0"))
        #expect(printed.layer == .advertising)
        #expect(
            printed.title == "LE Advertising Report (0x3e 0x02) C3:5A:19:0B:7E:21 static -48 dBm connectable scannable")
        #expect(
            printed.details.dropFirst().first
                == "Complete List of 16-bit Service or Service Class UUIDs (0x03)  Heart Rate 180d")
        #expect(printed.details.last == "Shortened Local Name (0x08)  \"Virtu\"")
        #expect(printed.reports.count == 1)
    }

    @Test("A dialogue is printed like a capture without times")
    func aDialogueIsPrintedWithoutTimes() throws {
        var printer = PacketPrinter()
        let dialogue = try Dialogue("< 0a 0300 # the name\n> 0b 41\n! link lost")
        #expect(
            dialogue.steps.map { printer.print($0).text() } == [
                "#1 < Read Request (0x0a) handle 0x0003\n        # the name",
                "#2 > Read Response (0x0b) 1 byte\n        41",
                "#3 = The link is lost",
            ])
    }

    @Test("A comment that ends with the packet's name, as in a trace, is printed without it")
    func commentsDoNotRepeatTheName() throws {
        var printer = PacketPrinter()
        let dialogue = try Dialogue(
            """
            < 0a 0300 # 08:42:25.562  Read Request (0x0a) handle 0x0003
            > 0b 41   # Read Response
            < 0a 0300 # noRead Request (0x0a) handle 0x0003
            """)
        #expect(
            dialogue.steps.map { printer.print($0).details } == [
                ["# 08:42:25.562"], ["41"], ["# noRead Request (0x0a) handle 0x0003"],
            ])
    }

    @Test("Anybody may have written a dialogue: its comments cannot steer a terminal", .row("O37"))
    func commentsAreEscaped() throws {
        var printer = PacketPrinter()
        let dialogue = try Dialogue("< 0a 0300 # \u{1B}]52;c;AA==\u{07}\u{202E}x")
        #expect(
            dialogue.steps.map { printer.print($0).text() } == [
                "#1 < Read Request (0x0a) handle 0x0003\n        # \\u{1b}]52;c;AA==\\u{7}\\u{202e}x"
            ])
    }

    @Test("Whatever bytes there are, printing continues", arguments: [UInt8(0x01), 0x80, 0xFF])
    func anyBytesArePrinted(_ mask: UInt8) throws {
        var packets = try Self.exchange.map { try Self.attribute($0.hex, $0.sent ? .sent : .received) }
        packets += [
            try Self.event("3e 13 01 00 4000 00 01 112233445566 1800 0000 2a00 00"),
            try Self.event("3e 1a 02 01 00 01 217e0b195ac3 0e 020106 03030d18 06085669727475 d0"),
            try Self.command("4120 08 00 00 01 01 6000 6000"),
        ]
        var printer = PacketPrinter()
        for packet in packets {
            for index in packet.bytes.indices {
                var cut = packet
                cut.bytes = Array(packet.bytes.prefix(index))
                #expect(!printer.print(cut).text().isEmpty)
                var flipped = packet
                flipped.bytes[index] ^= mask
                #expect(!printer.print(flipped).text().isEmpty)
            }
        }
    }
}
