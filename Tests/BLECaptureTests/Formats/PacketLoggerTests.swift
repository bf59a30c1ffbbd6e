import BLECapture
import BLECore
import Testing

@Suite("PacketLogger")
struct PacketLoggerTests {
    /// An HCI Reset, its response and a note, laid out by hand as Wireshark's reader describes the format, which calls
    /// it so too.
    static let bigEndian: [UInt8] = [
        0, 0, 0, 12, 0x38, 0x6D, 0x43, 0x80, 0, 0, 0, 7, 0x00, 0x03, 0x0C, 0x00,
        0, 0, 0, 15, 0x38, 0x6D, 0x43, 0x80, 0, 0, 0, 8, 0x01, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00,
        0, 0, 0, 11, 0x38, 0x6D, 0x43, 0x80, 0, 0, 0, 9, 0xFC, 0x68, 0x69,
    ]
    static let littleEndian: [UInt8] = [
        12, 0, 0, 0, 0x80, 0x43, 0x6D, 0x38, 7, 0, 0, 0, 0x00, 0x03, 0x0C, 0x00,
        15, 0, 0, 0, 0x80, 0x43, 0x6D, 0x38, 8, 0, 0, 0, 0x01, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00,
        11, 0, 0, 0, 0x80, 0x43, 0x6D, 0x38, 9, 0, 0, 0, 0xFC, 0x68, 0x69,
    ]

    @Test("Packets and notes in both byte orders", arguments: [bigEndian, littleEndian], [1, 100])
    func packetsAndNotesAreReadInBothByteOrders(_ file: [UInt8], _ chunk: Int) {
        let capture = ReadCapture(file, chunk: chunk)
        let begin = Duration.seconds(946_684_800)
        #expect(capture.error == nil)
        #expect(
            capture.packets == [
                CapturedPacket(
                    direction: .sent, kind: .command, bytes: [0x03, 0x0C, 0x00], timestamp: begin + .microseconds(7)),
                CapturedPacket(
                    direction: .received, kind: .event, bytes: [0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00],
                    timestamp: begin + .microseconds(8)),
                CapturedPacket(
                    direction: .received, kind: .note(12), bytes: [0x68, 0x69], timestamp: begin + .microseconds(9)),
            ])
    }

    @Test("A text is none", arguments: ["# a text", "< 0a 0300\n> 0b 01", "\n\n\n\n\n\n\n\n\n\n\n\n\n"])
    func aTextIsNoCapture(_ text: String) {
        #expect(ReadCapture(Array(text.utf8)).error == .notACapture)
    }

    @Test("Cut or flipped anywhere, nothing traps", arguments: [bigEndian, littleEndian])
    func damagedFilesDoNotTrap(_ file: [UInt8]) {
        for index in file.indices {
            #expect(ReadCapture(Array(file.prefix(index))).packets.count < 3)
            for mask: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = file
                bytes[index] ^= mask
                #expect(ReadCapture(bytes).packets.count <= 3)
            }
        }
    }
}
