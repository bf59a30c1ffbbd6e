import BLECapture
import BLECore
import Foundation
import TestSupport
import Testing

@Suite("Shared captures", .enabled(if: SharedVectors.available(for: "Shared captures")))
struct SharedCaptureTests {
    static let hostCaptures = CaptureIndexEntry.all.filter { $0.level == "hci" }
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

    /// What was sent again, or is taken for it, and tshark counts again.
    static let repeated: [String: [String: Int]] = [
        "AleBonora3_Tesi_BLE__mouse.pcapng": ["0x09": 1, "0x0b": 5],
        "adren423_BLE_Analysis__Config1_1.pcap": ["0x02": 1, "0x1b": 14],
        "adren423_BLE_Analysis__Config3_1.pcap": ["0x02": 1, "0x0b": 1, "0x10": 1, "0x1b": 6],
        "whad-team_whad-client__ble_pairing.pcap": ["0x01": 1, "0x08": 1],
    ]

    @Test(
        "A sniffer's capture is told as packets of a host, with the ATT PDUs that tshark counts", arguments: airCaptures
    )
    func airCapturesAreRead(_ entry: CaptureIndexEntry) throws {
        let capture = ReadCapture(try entry.bytes)
        #expect(capture.error == nil)
        #expect(!capture.packets.isEmpty)
        var attributes: [String: Int] = [:]
        var reassembler = L2CAPReassembler()
        for packet in capture.packets {
            if packet.kind == .event { _ = try HCIEvent(packet.bytes.span) }
            guard case .frame(let frame) = reassembler.received(packet) else { continue }
            if frame.channel == L2CAPFrame.attributeChannel, let opcode = frame.payload.first {
                attributes["0x" + Hex.encode([opcode]), default: 0] += 1
            }
        }
        let theirs = entry.tshark.attributes ?? [:]
        if entry.file.hasPrefix("Matheus-Garbelini_sweyntooth") {
            // Their numbers in turn are out of turn, and their lengths wrong, on purpose.
            for (opcode, count) in attributes { #expect(count <= theirs[opcode] ?? 0, "\(opcode)") }
        } else if entry.file.hasPrefix("mikeryan_crackle") {
            #expect(attributes.isEmpty, "nothing says who sent it")
        } else {
            let repeated = Self.repeated[entry.file] ?? [:]
            #expect(attributes.merging(repeated, uniquingKeysWith: +) == theirs)
        }
    }

    @Test("The size of the chunks does not matter", arguments: [1, 7, 24, 1000])
    func chunksOfAnySize(_ size: Int) throws {
        for entry in Self.hostCaptures where entry.tshark.packets < 700 {
            let bytes = try entry.bytes
            #expect(ReadCapture(bytes, chunk: size).packets == ReadCapture(bytes).packets, "\(entry.file)")
        }
    }
}
