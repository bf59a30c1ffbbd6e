import BLECore
import Foundation
import Testing

@Suite("Shared captures", .enabled(if: SharedVectors.available(for: "Shared captures")))
struct SharedCaptureTests {
    static let hostCaptures = CaptureIndexEntry.all.filter { $0.level == "hci" && !$0.file.hasSuffix(".pklg") }
    static let airCaptures = CaptureIndexEntry.all.filter { $0.level != "hci" }

    @Test("Packets, advertising reports and ATT PDUs are as many as tshark counts", arguments: hostCaptures)
    func countsEqualTheirs(_ entry: CaptureIndexEntry) throws {
        let capture = ReadCapture(try entry.bytes)
        #expect(capture.error == nil)
        var kinds: [String: Int] = [:]
        var attributes: [String: Int] = [:]
        var subevents: [String: Int] = [:]
        var reassembler = L2CAPReassembler()
        for packet in capture.packets {
            switch packet.kind {
            case .command: kinds["command", default: 0] += 1
            case .event:
                kinds["event", default: 0] += 1
                if packet.bytes.first == 0x3E, let subevent = packet.bytes.dropFirst(2).first {
                    subevents["0x" + Hex.encode([subevent]), default: 0] += 1
                }
            case .asynchronousData:
                kinds["acl", default: 0] += 1
                guard case .frame(let frame) = reassembler.received(packet) else { continue }
                if frame.channel == L2CAPFrame.attributeChannel, let opcode = frame.payload.first {
                    attributes["0x" + Hex.encode([opcode]), default: 0] += 1
                }
            case .synchronousData: kinds["sco", default: 0] += 1
            case .isochronousData: kinds["iso", default: 0] += 1
            case .note: kinds["note", default: 0] += 1
            }
        }
        #expect(capture.packets.count == entry.tshark.packets)
        for (kind, count) in entry.tshark.kinds ?? [:] { #expect(kinds[kind] == count, "\(kind)") }
        #expect(subevents == entry.tshark.subevents ?? [:])
        #expect(attributes == entry.tshark.attributes ?? [:])
    }

    @Test("A sniffer's capture is refused by its link type", arguments: airCaptures)
    func airCapturesAreRefused(_ entry: CaptureIndexEntry) throws {
        let capture = ReadCapture(try entry.bytes)
        guard case .unsupportedDatalink = capture.error else {
            Issue.record("\(String(describing: capture.error))")
            return
        }
        #expect(capture.packets.isEmpty)
    }

    @Test("The size of the chunks does not matter", arguments: [1, 7, 24, 1000])
    func chunksOfAnySize(_ size: Int) throws {
        for entry in Self.hostCaptures where entry.tshark.packets < 700 {
            let bytes = try entry.bytes
            #expect(ReadCapture(bytes, chunk: size).packets == ReadCapture(bytes).packets, "\(entry.file)")
        }
    }
}
