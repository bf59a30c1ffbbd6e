import BLECapture
import BLECore
import Testing

@Suite("BTSnoop")
struct BTSnoopTests {
    /// The header and first record that `btmon` and Android agree on, laid out by hand after RFC 1761: an HCI Reset,
    /// sent on 2000-01-01 at midnight, whose timestamp 0x00E03AB44A676000 is a constant in BlueZ's source.
    static let reset: [UInt8] = [
        0x62, 0x74, 0x73, 0x6E, 0x6F, 0x6F, 0x70, 0x00, 0, 0, 0, 1, 0x00, 0x00, 0x03, 0xEA,
        0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0x00, 0xE0, 0x3A, 0xB4, 0x4A, 0x67, 0x60, 0x00,
        0x01, 0x03, 0x0C, 0x00,
    ]
    static let resetPacket = CapturedPacket(
        direction: .sent, kind: .command, bytes: [0x03, 0x0C, 0x00], timestamp: .seconds(946_684_800))

    @Test("A record of datalink 1002")
    func readsH4() {
        let capture = ReadCapture(Self.reset)
        #expect(capture.packets == [Self.resetPacket])
        #expect(capture.error == nil)
    }

    @Test("The writer's bytes are the golden ones")
    func theWritersBytesAreTheGoldenOnes() {
        let writer = BTSnoopWriter()
        #expect(writer.header + (writer.record(Self.resetPacket) ?? []) == Self.reset)
        let note = CapturedPacket(direction: .received, kind: .note(0), bytes: [], timestamp: .zero)
        #expect(writer.record(note) == nil)
    }

    @Test("Datalink 1001 has type and direction in flags")
    func readsBare() {
        var bytes = Self.reset
        bytes.replaceSubrange(12..<16, with: [0, 0, 0x03, 0xE9])
        bytes.replaceSubrange(16..<24, with: [0, 0, 0, 3, 0, 0, 0, 3])
        bytes.remove(at: 40)
        #expect(ReadCapture(bytes).packets == [Self.resetPacket])
        bytes[27] = 3
        #expect(ReadCapture(bytes).packets.map(\.kind) == [.event])
        bytes[27] = 0
        #expect(ReadCapture(bytes).packets.map(\.kind) == [.asynchronousData])
    }

    @Test("Datalink 2001 names controller and opcode in the flags")
    func readsMonitor() {
        var bytes = Self.reset
        bytes.replaceSubrange(12..<16, with: [0, 0, 0x07, 0xD1])
        bytes.replaceSubrange(24..<28, with: [0, 1, 0, 3])
        let packet = ReadCapture(bytes).packets.first
        #expect(packet?.controller == 1)
        #expect(packet?.kind == .event)
        #expect(packet?.direction == .received)
        bytes[27] = 12
        #expect(ReadCapture(bytes).packets.first?.kind == .note(12))
    }

    @Test("The message for a file that cannot be read")
    func anUnreadableFileHasAMessage() {
        #expect(ReadCapture(Array("not a capture at all".utf8)).error == .notACapture)
        #expect(ReadCapture([]).error == .notACapture)
        var bytes = Self.reset
        bytes[15] = 0xF1
        #expect(ReadCapture(bytes).error == .unsupportedDatalink(1009))
        bytes = Self.reset
        bytes[11] = 2
        #expect(ReadCapture(bytes).error == .unsupportedVersion(2))
        bytes = Self.reset
        bytes[20] = 0x7F
        #expect(ReadCapture(bytes).error == .corruptRecord(packetsRead: 0))
    }

    @Test("A capture cut anywhere keeps what came before and reports that it is cut")
    func truncatedAnywhere() {
        let twice = Self.reset + Self.reset.dropFirst(16)
        for count in 0..<twice.count {
            let capture = ReadCapture(Array(twice.prefix(count)))
            let whole = count < 44 ? 0 : 1
            #expect(capture.packets.count == whole)
            switch count {
            case 0..<8: #expect(capture.error == .notACapture)
            case 16, 44: #expect(capture.error == nil)
            default: #expect(capture.error == .truncated(packetsRead: whole))
            }
        }
    }

    @Test("A packet that the recorder shortened has the number of missing bytes")
    func aShortenedPacketHasTheNumberOfMissingBytes() {
        var bytes = Self.reset
        bytes[19] = 9
        #expect(ReadCapture(bytes).packets.first?.missingByteCount == 5)
    }

    @Test("No flipped byte traps, and every file comes to an end")
    func flippedAnywhere() {
        let twice = Self.reset + Self.reset.dropFirst(16)
        for index in twice.indices {
            for mask: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = twice
                bytes[index] ^= mask
                #expect(ReadCapture(bytes).packets.count <= 2)
            }
        }
    }
}
