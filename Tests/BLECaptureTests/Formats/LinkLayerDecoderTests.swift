import BLECapture
import BLECore
import Testing

/// Captures of a sniffer: `hci/sniffed-*.pcap`, the same packets in three link types; Fixtures/README.md says where
/// they are from.
@Suite("What a sniffer hears")
struct LinkLayerDecoderTests {
    private static func packets(_ linkType: Int) throws -> [CapturedPacket] {
        let capture = ReadCapture(try CaptureFixtures.bytes("hci/sniffed-\(linkType).pcap"))
        #expect(capture.error == nil)
        return capture.packets
    }

    /// The events by hand, after Core Vol 4 Part E, 7.7.65.2, 7.7.65.13 and 7.7.65.1.
    private static let events = [
        // ADV_IND, its SCAN_RSP, ADV_NONCONN_IND, ADV_DIRECT_IND, ADV_SCAN_IND
        "3e1602010001 0100000000d1 0a 020106060950756c7365 d1",
        "3e1202010401 0100000000d1 06 05ffffff0102 d1",
        "3e2a02010301 0200000000d1 1e 0201061aff4c0002150000000000000000000000000000000000010002c5 b0",
        "3e0c02010101 0100000000d1 00 d1",
        "3e0f02010201 0100000000d1 03 020106 d1",
        // AUX_ADV_IND of set 5, 4 dBm; ADV_EXT_IND says nothing by itself
        "3e260d010000 01 0300000000d1 01 01 05 04 c3 0000 00 000000000000 0c 0b094c69676874686f757365",
        // CONNECT_IND: handle 1, as central, to a random address, 30 ms, latency 0, 720 ms, accuracy 1
        "3e130100 0100 00 01 0100000000d1 1800 0000 4800 01",
    ]

    @Test("Advertisements and calls are the controller's events", arguments: [256, 272])
    func advertisementsAndConnectsAreTheControllersEvents(_ linkType: Int) throws {
        let found = try Self.packets(linkType).filter { $0.kind == .event }
        #expect(found.allSatisfy { $0.direction == .received })
        #expect(found.prefix(7).map { Hex.encode($0.bytes) } == Self.events.map { $0.filter { $0 != " " } })
        // LL_TERMINATE_IND of the central.
        #expect(found.dropFirst(7).map { Hex.encode($0.bytes) } == ["050400010016"])
        #expect(found.first?.timestamp == .seconds(1_700_000_000))
    }

    @Test("Without a radio header there are no signals, and no data")
    func bareLinkLayer() throws {
        let found = try Self.packets(251)
        #expect(found.allSatisfy { $0.kind == .event })
        let reports = try found.compactMap { packet -> AdvertisingReport.Batch? in
            guard case .advertisingReports(let batch) = try HCIEvent(packet.bytes.span) else { return nil }
            return batch
        }
        #expect(reports.flatMap(\.reports).map(\.rssi) == Array(repeating: nil, count: 6))
        #expect(reports.allSatisfy { $0.losses.isEmpty })
    }

    @Test("The data of a link, its pieces joined, what was sent again left out", arguments: [256, 272])
    func piecesAreJoinedAndRepetitionsLeftOut(_ linkType: Int) throws {
        var traffic = AttributeTraffic()
        let peer = PeerID(address: try #require(BluetoothAddress("D1:00:00:00:00:01")), type: .random)
        let found = try Self.packets(linkType).flatMap { traffic.received($0) }
        #expect(
            found.map(\.event) == [
                .began(peer, isWhole: true),
                .packet([0x02, 0x05, 0x02], isSent: true), .packet([0x03, 0x17, 0x00], isSent: false),
                .packet([0x0A, 0x15, 0x00], isSent: true),
                .packet([0x0B, 0x41, 0x42, 0x43, 0x44, 0x45], isSent: false),
                .ended(.localHostTerminated),
            ])
    }

    @Test("Cut or flipped anywhere, nothing traps", arguments: [251, 256, 272])
    func damagedPacketsDoNotTrap(_ linkType: Int) throws {
        let bytes = try CaptureFixtures.bytes("hci/sniffed-\(linkType).pcap")
        for index in bytes.indices {
            _ = ReadCapture(Array(bytes.prefix(index)))
            for mask: UInt8 in [0x01, 0x80, 0xFF] {
                var flipped = bytes
                flipped[index] ^= mask
                var printer = PacketPrinter()
                for packet in ReadCapture(flipped).packets { _ = printer.print(packet).text() }
            }
        }
    }
}
