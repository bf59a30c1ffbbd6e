import BLECapture
import BLECore
import Testing

@Suite("Pcap")
struct PcapTests {
    /// An HCI Reset in a classic file of link type 201, laid out by hand after the format's draft.
    static let littleEndian: [UInt8] = [
        0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 201, 0, 0, 0,
        0x80, 0x43, 0x6D, 0x38, 7, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x03, 0x0C, 0x00,
    ]
    static let bigEndian: [UInt8] = [
        0xA1, 0xB2, 0xC3, 0xD4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 201,
        0x38, 0x6D, 0x43, 0x80, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0, 0x01, 0x03, 0x0C, 0x00,
    ]
    static let next: [UInt8] = [
        0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 28, 0, 0, 0,
        1, 0, 0, 0, 32, 0, 0, 0, 201, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0,
        6, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x72, 0x0B, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0,
        0, 0, 0, 1, 0x04, 0x0F, 0x00, 0x00, 40, 0, 0, 0,
    ]

    @Test("Both byte orders of the classic format")
    func bothByteOrdersAreRead() {
        let packet = CapturedPacket(
            direction: .sent, kind: .command, bytes: [0x03, 0x0C, 0x00],
            timestamp: .seconds(946_684_800) + .microseconds(7))
        #expect(ReadCapture(Self.littleEndian).packets == [packet])
        #expect(ReadCapture(Self.bigEndian).packets == [packet])
    }

    @Test("The next generation, with a clock of milliseconds")
    func aClockOfMillisecondsIsRead() {
        let capture = ReadCapture(Self.next)
        #expect(
            capture.packets == [
                CapturedPacket(
                    direction: .received, kind: .event, bytes: [0x0F, 0x00, 0x00], timestamp: .milliseconds(2930))
            ])
        #expect(capture.error == nil)
    }

    /// Without the direction there is the type: only a controller sends events.
    @Test("H4 packets without a direction")
    func theTypeOfAPacketDecidesItsDirection() {
        let bytes =
            Array(Self.littleEndian.prefix(20)) + [187, 0, 0, 0]
            + [0x80, 0x43, 0x6D, 0x38, 7, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0x01, 0x03, 0x0C, 0x00]
            + [0x80, 0x43, 0x6D, 0x38, 8, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0x04, 0x0F, 0x01, 0x00]
        let begin = Duration.seconds(946_684_800)
        #expect(
            ReadCapture(bytes).packets == [
                CapturedPacket(
                    direction: .sent, kind: .command, bytes: [0x03, 0x0C, 0x00], timestamp: begin + .microseconds(7)),
                CapturedPacket(
                    direction: .received, kind: .event, bytes: [0x0F, 0x01, 0x00], timestamp: begin + .microseconds(8)),
            ])
    }

    @Test("A link type without Bluetooth LE is refused", arguments: [Self.littleEndian, Self.next])
    func refusesOtherLinkTypes(_ file: [UInt8]) throws {
        var bytes = file
        bytes[try #require(bytes.firstIndex(of: 201))] = 195
        #expect(ReadCapture(bytes).error == .unsupportedDatalink(195))
    }

    @Test("Cut or flipped anywhere, nothing traps", arguments: [Self.littleEndian, Self.bigEndian, Self.next])
    func damagedAnywhere(_ file: [UInt8]) {
        for index in file.indices {
            #expect(ReadCapture(Array(file.prefix(index))).packets.isEmpty)
            for mask: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = file
                bytes[index] ^= mask
                #expect(ReadCapture(bytes).packets.count <= 1)
            }
        }
    }
}
