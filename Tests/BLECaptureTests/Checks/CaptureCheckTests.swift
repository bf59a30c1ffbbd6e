import BLECapture
import BLECore
import TestSupport
import Testing

/// Packets by hand, from the layouts of Core Vol 3 Part F, 3.4.
@Suite("Check of recorded sessions")
struct CaptureCheckTests {
    private static func finding(_ text: String) throws -> CaptureCheck.Finding? {
        let dialogue = try Dialogue(text)
        var check = CaptureCheck(dialogue)
        for step in dialogue.steps {
            if let finding = check.received(step) { return finding }
        }
        return nil
    }

    private static let long = String(repeating: "55", count: 23)

    @Test(
        "Each disagreement is found where it is",
        arguments: [
            ("< 0a 0300\n> 0b 01\n> 0b 02", 3, .unasked),
            ("< 0a 0300\n> 09 03 0300 01", 2, .unasked),
            ("> 0b 02", 1, .unasked),
            ("< 0a 0300\n< 0a 0400", 2, .overlappingRequests(first: 1)),
            ("< 0a 0300\n> 0b \(long)", 2, .closed(.oversizedResponse)),
            ("< 52 0300 \(long)", 1, .tooLong(mtu: 23)),
            ("< 02 f700\n> 03 1700\n< 52 0300 \(long)", 3, .tooLong(mtu: 23)),
            ("< 0a 0300\n> 01 0a 0400 02", 2, .otherHandle),
            ("< 08 0200 0500 032a\n> 01 08 0600 0a", 2, .otherHandle),
            ("< 1e", 1, .strayConfirmation),
            ("> 1d 0300 01\n< 1e\n< 1e", 3, .strayConfirmation),
            ("> 1e", 1, .strayConfirmation),
            ("> 1d 0300 01\n> 1d 0300 02", 2, .overlappingIndications(first: 1)),
            ("> 1b 03", 1, .unusableValue),
            ("> 1b 0000 01", 1, .unusableValue),
            ("< 0a 0300\n! wait 31000 ms\n> 0b 01", 3, .closed(.responseTimeout)),
            ("< 10 0500 ffff 0028\n> 11 06 0100 0400 0018", 2, .discovery(.outOfRange(1))),
            // The second piece of a list repeats the first.
            (
                "< 08 0100 0900 0328\n> 09 07 0200 02 0300 002a\n< 0a 0300\n> 0b 01\n"
                    + "< 08 0400 0900 0328\n> 09 07 0200 02 0300 002a", 6, .discovery(.noProgress(at: 2))
            ),
            // A list in our own order: the value handle is that of the declaration.
            (
                "< 10 0100 ffff 0028\n> 11 06 0100 0500 0018\n< 10 0600 ffff 0028\n> 01 10 0600 0a\n"
                    + "< 08 0200 0500 0328\n> 09 07 0200 02 0200 002a", 6, .discovery(.quirk(.characteristicDropped(2)))
            ),
        ] as [(String, Int, SessionCheck.Reason)])
    func eachDisagreementIsFoundWhereItIs(_ text: String, _ line: Int, _ reason: SessionCheck.Reason) throws {
        let found = try Self.finding(text)?.disagreement
        #expect(found?.number == line)
        #expect(found?.reason == reason)
        #expect(reason.sentence { "packet \($0)" }.hasSuffix("."))
    }

    @Test(
        "What is in order is no disagreement",
        arguments: [
            "< 02 f700\n> 03 f700\n< 52 0300 \(long)\n< 0a 0300\n> 0b \(long)",
            "mtu: 100\n\n< 0a 0300\n> 0b \(long)",
            "> 1d 0300 01\n< 0a 0300\n< 1e\n> 0b 01",
            "< 1d 0300 01\n> 1e",
            "< 08 0200 0500 032a\n> 01 08 0400 02",
            "> 02 f700\n< 03 f700",
            "< 0a 0300\n! wait 29000 ms\n> 0b 01\n! link lost",
            // Two lists side by side.
            "< 04 0400 0500\n> 05 01 0400 0229\n< 04 0800 0900\n> 05 01 0800 0229\n< 04 0500 0500\n> 01 04 0500 0a\n"
                + "< 04 0900 0900\n> 01 04 0900 0a",
        ])
    func inOrder(_ text: String) throws {
        #expect(try Self.finding(text) == nil)
    }

    @Test("The confirmation of an indication before the recording does not count against a later one")
    func theConfirmationOfAnUnrecordedIndication() {
        let check = SessionCheck(mtu: 23, isWhole: false)
        #expect(check.received([0x1E], number: 1) == nil)
        #expect(check.sent([0x0A, 0x03, 0x00], number: 2) == nil)
        #expect(check.received([0x0B, 0x01], number: 3) == nil)
        #expect(check.sent([0x1D, 0x03, 0x00, 0x01], number: 4) == nil)
        #expect(check.received([0x1E], number: 5) == nil)
        #expect(check.received([0x1E], number: 6)?.reason == .strayConfirmation)
    }

    @Test("The recorded fixtures agree, but for defects and a case that names a handle before its range")
    func theRecordedFixturesAgreeButForKnownDefects() throws {
        var found: [String: Int] = [:]
        for folder in ["att", "att/defects"] {
            for name in CaptureFixtures.names(in: folder, ending: ".dialogue") {
                if let finding = try Self.finding(CaptureFixtures.text(name)) {
                    found[name] = finding.disagreement.number
                }
            }
        }
        #expect(
            found == [
                "att/gad-cl-bv-04-c-own-order.dialogue": 12, "att/gad-cl-bv-04-c.dialogue": 15,
                "att/defects/declaration-at-the-last-handle.dialogue": 10, "att/defects/empty-lists.dialogue": 10,
                "att/defects/entries-of-no-length.dialogue": 12, "att/defects/one-byte-notification.dialogue": 8,
                "att/defects/read-multiple-variable-truncated.dialogue": 9,
            ])
    }

    @Test("Damaged packets are disagreements or none, and never more")
    func damagedPacketsAreDisagreementsAtMost() throws {
        var numbers = SeededNumbers(seed: 7)
        for name in CaptureFixtures.names(in: "att", ending: ".dialogue") {
            let dialogue = try Dialogue(CaptureFixtures.text(name))
            for _ in 0..<20 {
                var check = CaptureCheck(dialogue)
                for step in dialogue.steps {
                    switch step.event {
                    case .sent(let pdu):
                        _ = check.received(Dialogue.Step(.sent(numbers.damaged(pdu)), line: step.line))
                    case .received(let pdu):
                        _ = check.received(Dialogue.Step(.received(numbers.damaged(pdu)), line: step.line))
                    case .wait, .linkLost: _ = check.received(step)
                    }
                }
                #expect(check.packetCount > 0)
            }
        }
    }

    @Test("A request without a response is counted, also where its link has ended")
    func aRequestWithoutAResponseIsCounted() throws {
        // The peer falls silent: of the link's data the first request is all that there is.
        var asked = false
        let packets = ReadCapture(try CaptureFixtures.bytes("hci/three-devices.btsnoop")).packets.filter { packet in
            guard packet.kind == .asynchronousData else { return true }
            defer { asked = asked || packet.direction == .sent }
            return packet.direction == .sent && !asked
        }
        var check = CaptureCheck()
        for packet in packets + packets { #expect(check.received(packet) == nil) }
        #expect(check.unanswered?.count == 2)
        #expect(check.requestCount == 2)
        #expect(try #require(check.unanswered?.first) <= packets.count)

        let answered = try Dialogue("< 0a 0300\n> 0b 01\n")
        check = CaptureCheck(answered)
        for step in answered.steps { _ = check.received(step) }
        #expect(check.unanswered == nil)
    }

    @Test("A handle that is used again ends its former link, and nothing is kept of that", .row("O36"))
    func reusedHandle() throws {
        // LE Connection Complete: handle 1, central, D1:00:00:00:00:01; then the same as the peripheral.
        let complete = try Hex.decode("3e13010001000001010000 0000d1180000004800 01".replacing(" ", with: ""))
        var incoming = complete
        incoming[6] = 1
        // A Read Request without a response, so that each link has something to count.
        let request = try Hex.decode("01000700030004000a0300")
        var check = CaptureCheck()
        for _ in 1...1000 {
            for (kind, bytes) in [(CapturedPacket.Kind.event, complete), (.asynchronousData, request)] {
                let direction: CapturedPacket.Direction = kind == .event ? .received : .sent
                let packet = CapturedPacket(direction: direction, kind: kind, bytes: bytes, timestamp: .zero)
                #expect(check.received(packet) == nil)
            }
            #expect(check.openLinkCount == 1)
        }
        #expect(check.linkCount == 1000 && check.requestCount == 1000)
        #expect(check.unanswered?.count == 1000 && check.unanswered?.first == 2)
        let packet = CapturedPacket(direction: .received, kind: .event, bytes: incoming, timestamp: .zero)
        #expect(check.received(packet) == nil)
        #expect(check.openLinkCount == 0 && check.requestCount == 1000)
    }

    /// 39 ATT packets on three links, counted by btmon 5.66 while it recorded.
    @Test("All links of a capture are looked at")
    func allLinksOfACaptureAreChecked() throws {
        var check = CaptureCheck()
        for packet in ReadCapture(try CaptureFixtures.bytes("hci/three-devices.btsnoop")).packets {
            #expect(check.received(packet) == nil)
        }
        #expect(check.packetCount == 39)
        #expect(check.requestCount == 17)
    }

    /// Origin: shared/vectors/captures. Three hosts name, in an error, a handle that was not asked about. Three
    /// sniffers have missed packets, or marked one with the wrong way: their responses have no request, or their
    /// requests no response.
    @Test(
        "Captures of others agree, but for six",
        .enabled(if: SharedVectors.available(for: "Check of recorded sessions")))
    func sharedCaptures() throws {
        var found: [String: Int] = [:]
        var reasons: [SessionCheck.Reason] = []
        var packets = 0
        for entry in CaptureIndexEntry.all {
            var check = CaptureCheck()
            for packet in ReadCapture(try entry.bytes).packets {
                guard let finding = check.received(packet) else { continue }
                found[entry.file] = finding.disagreement.number
                reasons.append(finding.disagreement.reason)
                break
            }
            packets += check.packetCount
        }
        #expect(packets > 10_000)
        #expect(
            found == [
                "wcbonner_GoveeBTTempLogger__btsnoop_hci.btsnoop": 344,
                "whoisbe_pongbot-mcp__btsnoop_hci-3e7545.btsnoop": 1125,
                "whoisbe_pongbot-mcp__btsnoop_hci.btsnoop": 684,
                "whad-team_whad-client__ble_pairing.pcap": 3,
                "AleBonora3_Tesi_BLE__mouse.pcapng": 886,
                "AleBonora3_Tesi_BLE__garmin.pcapng": 3627,
            ])
        #expect(reasons.filter { $0 == .otherHandle }.count == 3)
        #expect(reasons.filter { $0 == .unasked }.count == 2)
        #expect(reasons.contains(.overlappingRequests(first: 885)))
    }
}

extension SeededNumbers {
    /// The packet, cut off or with one byte changed, or as it is.
    fileprivate mutating func damaged(_ pdu: [UInt8]) -> [UInt8] {
        var pdu = pdu
        switch Int.random(in: 0..<6, using: &self) {
        case 0: return Array(pdu.prefix(Int.random(in: 0...pdu.count, using: &self)))
        case 1 where !pdu.isEmpty:
            pdu[Int.random(in: 0..<pdu.count, using: &self)] ^= UInt8.random(in: 1...255, using: &self)
            return pdu
        default: return pdu
        }
    }
}
