import BLECapture
import BLECore
import Foundation
import Testing

@Suite("Capture fixtures")
struct CaptureFixtureTests {
    /// Counted by btmon 5.66 while it recorded: 178 records, 41 extended advertising reports.
    @Test("The recorded session holds what its recorder saw")
    func recordedSession() throws {
        let capture = ReadCapture(try CaptureFixtures.bytes("hci/three-devices.btsnoop"))
        #expect(capture.error == nil)
        #expect(capture.packets.count == 178)
        var reassembler = L2CAPReassembler()
        var attributes = 0
        var peers: Set<PeerID> = []
        for packet in capture.packets {
            if case .frame(let frame) = reassembler.received(packet), frame.channel == L2CAPFrame.attributeChannel {
                attributes += 1
            }
            if packet.kind == .event, case .advertisingReports(let batch) = try HCIEvent(packet.bytes.span) {
                peers.formUnion(batch.reports.compactMap(\.peer))
            }
        }
        #expect(attributes == 39)
        #expect(
            peers.map(\.description).sorted() == [
                "00:AA:02:00:00:0B/public", "5B:10:44:9D:2E:F6/random", "C3:5A:19:0B:7E:21/random",
            ])
    }

    @Test("The recorded session is printed as on the golden page")
    func theRecordedSessionIsPrintedAsOnItsPage() throws {
        var printer = PacketPrinter()
        let packets = ReadCapture(try CaptureFixtures.bytes("hci/three-devices.btsnoop")).packets
        let printed = packets.map { printer.print($0).text() }.joined(separator: "\n")
        let page = try CaptureFixtures.text("cli/replay-three-devices.txt")
        // The program adds the date.
        #expect(page.hasPrefix("2026-11-21, UTC\n" + printed + "\n"))
        #expect(page.hasSuffix("\n\(printer.summary)\n"))
    }

    @Test("The recorded session cut or flipped anywhere is read without a trap")
    func aDamagedSessionIsReadWithoutATrap() throws {
        let bytes = try CaptureFixtures.bytes("hci/three-devices.btsnoop")
        for index in stride(from: 0, to: bytes.count, by: 7) {
            _ = ReadCapture(Array(bytes.prefix(index)))
            var flipped = bytes
            flipped[index] ^= 0xFF
            var printer = PacketPrinter()
            for packet in ReadCapture(flipped).packets.suffix(8) { _ = printer.print(packet).text() }
        }
    }

    @Test("Every dialogue is readable, names its origin, and is the same when it is written again")
    func everyDialogueIsTheSameWhenItIsWrittenAgain() throws {
        let names = CaptureFixtures.names(in: "att", ending: ".dialogue")
        #expect(names.count >= 23)
        for name in names {
            let dialogue = try Dialogue(try CaptureFixtures.text(name))
            #expect(dialogue.header("test") != nil, "\(name)")
            #expect(dialogue.header("origin") != nil, "\(name)")
            #expect(try Dialogue(dialogue.text).steps.map(\.event) == dialogue.steps.map(\.event), "\(name)")
            for step in dialogue.steps {
                guard case .sent(let pdu) = step.event else { continue }
                #expect(throws: Never.self, "\(name):\(step.line)") { try ATTPacket(pdu) }
            }
        }
    }
}
