import BLECapture
import BLECore
import TestSupport
import Testing

/// Packets of the link layer by hand, after Core Vol 6 Part B, 2.3 and 2.4, after the header of link type 256 at
/// tcpdump.org.
@Suite("What a sniffer hears, packet by packet")
struct SniffedPacketTests {
    /// Made white again, with a signal, and with a checksum that was looked at and is right.
    private static let good: UInt16 = 0x0C03
    private static let fromCentral: UInt16 = 2 << 7
    private static let fromPeripheral: UInt16 = 3 << 7
    private static let advertising: UInt32 = 0x8E89_BED6
    private static let link: UInt32 = 0x5065_5641
    /// A Read Request in a frame of L2CAP, as the first piece of one.
    private static let read = "0207 03000400 0a0300"

    private struct Heard {
        var address = SniffedPacketTests.link
        var flags = SniffedPacketTests.good
        var pdu: String
    }

    private func read(_ heard: [Heard]) throws -> [CapturedPacket] {
        var file: [UInt8] = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0] + [UInt8](repeating: 0, count: 8)
        file += [0xFF, 0xFF, 0, 0, 0, 1, 0, 0]
        for one in heard {
            var record: [UInt8] = [37, 0xC4, 0, 0, 0, 0, 0, 0] + one.flags.wireBytes
            record += UInt16(truncatingIfNeeded: one.address).wireBytes
            record += UInt16(truncatingIfNeeded: one.address >> 16).wireBytes
            record += try Hex.decode(one.pdu) + [0, 0, 0]
            let length = UInt16(record.count).wireBytes + [0, 0]
            file += [UInt8](repeating: 0, count: 8) + length + length + record
        }
        let capture = ReadCapture(file)
        #expect(capture.error == nil)
        return capture.packets
    }

    private func hex(_ heard: Heard...) throws -> [String] { try read(heard).map { Hex.encode($0.bytes) } }

    @Test func afterTheStartOfEncryptionNothingCanBeRead() throws {
        let found = try hex(
            Heard(flags: Self.good | Self.fromCentral, pdu: Self.read),
            // LL_START_ENC_REQ, and what nobody can make sense of: data, and the end of the link.
            Heard(flags: Self.good | Self.fromPeripheral, pdu: "0301 05"),
            Heard(flags: Self.good | Self.fromCentral, pdu: "0a0b 29df7c1c 8e0f41 5d00b2c7"),
            Heard(flags: Self.good | Self.fromPeripheral, pdu: "0706 02134ed2a90c"))
        #expect(found == ["01000700030004000a0300", "080400010001"])
    }

    @Test func aTerminateIndicationIsADisconnectionWithItsReason() throws {
        // LL_TERMINATE_IND of the peripheral; the address may be that of another link afterwards.
        let found = try hex(
            Heard(flags: Self.good | Self.fromCentral, pdu: Self.read),
            Heard(flags: Self.good | Self.fromPeripheral, pdu: "0302 0213"),
            Heard(flags: Self.good | Self.fromPeripheral, pdu: "0302 0213"),
            Heard(flags: Self.good | Self.fromCentral, pdu: Self.read))
        #expect(found == ["01000700030004000a0300", "050400010013", "02000700030004000a0300"])
    }

    @Test func packetsThatBelongToNoLinkAreLeftOut() throws {
        let sides = [Self.fromCentral, Self.fromPeripheral]
        for flags in sides.map({ Self.good | $0 }) {
            // Control without a link or of another kind, nothing at all, isochronous data.
            #expect(try hex(Heard(flags: flags, pdu: "0302 0213")) == [])
            #expect(
                try hex(
                    Heard(flags: flags, pdu: "0100"), Heard(flags: flags, pdu: "0309 08ff00000000000000"),
                    Heard(flags: flags, pdu: "0300"), Heard(flags: flags, pdu: "0301 02")) == [])
            #expect(try hex(Heard(flags: flags, pdu: "0001 00")) == [])
        }
        // Nobody knows who has sent it.
        #expect(try hex(Heard(pdu: Self.read)) == [])
    }

    /// Whatever addresses there are, a table of links does not grow; who is heard again after that is a new link.
    @Test func linksAreBounded() throws {
        let flags = Self.good | Self.fromCentral
        let links = (0..<70).map { Heard(address: 0x1000_0000 + $0, flags: flags, pdu: Self.read) }
        let found = try read(links + [links[69], links[0]])
        #expect(found.map { $0.bytes.first } == (1...71).map { UInt8($0) }, "the same packet again is left out")
    }

    @Test(
        "Packets that were not heard well are left out",
        arguments: [
            0x0C02 | fromCentral,  // still white
            0x0403 | fromCentral,  // a wrong checksum
            0x0C0B | fromCentral,  // decrypted, which leaves out what was after it
            good | 4 << 7, good | 7 << 7,  // other kinds of packets
        ])
    func notHeardWell(_ flags: UInt16) throws {
        #expect(try hex(Heard(flags: flags, pdu: Self.read)) == [])
        #expect(try hex(Heard(flags: Self.good | Self.fromCentral, pdu: Self.read)).count == 1)
    }

    @Test func headersAreAsLongAsTheirPHYAndTheirToneMakeThem() throws {
        // How the coded PHY is coded stands in front; what a tone is like, after the length.
        let coded = Self.good | Self.fromCentral | 2 << 14
        #expect(try hex(Heard(flags: coded, pdu: "00" + Self.read)) == ["01000700030004000a0300"])
        let tone = Self.good | Self.fromCentral
        #expect(try hex(Heard(flags: tone, pdu: "2207 14 03000400 0a0300")) == ["01000700030004000a0300"])
    }

    @Test func aDirectedExtendedAdvertisementHasItsTargetAddress() throws {
        // Mode connectable, a header of 16: address, target, set 5 and 4 dBm; then data.
        let pdu = "c717 50 4b 0300000000d1 0600000000c6 0050 04 020106050607"
        let packets = try read([Heard(address: Self.advertising, pdu: pdu)])
        guard case .advertisingReports(let batch)? = try packets.first.map({ try HCIEvent($0.bytes.span) }) else {
            Issue.record("\(packets)")
            return
        }
        let report = try #require(batch.reports.first)
        #expect(report.properties == [.connectable, .directed])
        #expect(report.address == BluetoothAddress("D1:00:00:00:00:03") && report.addressType == .random)
        #expect(report.directAddress == BluetoothAddress("C6:00:00:00:00:06") && report.directAddressType == .random)
        #expect(report.sid == 5 && report.txPower == 4 && report.rssi == -60)
        #expect(report.data == [2, 1, 6, 5, 6, 7])
        #expect(report.dataStatus == .complete)
    }

    /// One report holds 229 bytes, and a chain continues where the sniffer may not listen.
    @Test func longExtendedAdvertisementsAreCut() throws {
        let data = String(repeating: "ab", count: 240)
        let long = "47f8 07 01 0300000000d1" + data
        let chain = "470e 0a 11 0300000000d1 aabbcc 020106"
        for (pdu, count) in [(long, 229), (chain, 3)] {
            let packets = try read([Heard(address: Self.advertising, pdu: pdu)])
            guard case .advertisingReports(let batch)? = try packets.first.map({ try HCIEvent($0.bytes.span) }) else {
                Issue.record("\(pdu)")
                continue
            }
            #expect(batch.reports.map(\.data.count) == [count])
            #expect(batch.reports.first?.dataStatus == .truncated)
        }
    }

    @Test(
        "Advertisements that lack something are left out",
        arguments: [
            "4005 0100000000",  // no whole address
            "4026 0100000000d1" + String(repeating: "00", count: 32),  // more than an old one holds
            "430c 0100000000d1 0200000000d1",  // a request for a scan response
            "4521 0100000000d1 0200000000d1" + String(repeating: "00", count: 21),  // a call without its last byte
            "4700", "4701 00", "4702 01 00",  // no header, none of a length, one of no fields
            "4705 04 01 030000",  // half an address
            "470a 09 03 0300000000d1 06",  // half a target
            "4708 07 05 0300000000d1",  // no room for what it announces: supplementary information,
            "4709 08 09 0300000000d1 00",  // half a set,
            "470d 07 11 0300000000d1 020106 0000",  // where it goes on,
            "4708 07 21 0300000000d1",  // synchronisation,
            "4708 07 41 0300000000d1",  // power
            "470b 0a 11 0300000000d1 aabbcc",  // nothing but where to listen
        ])
    func incompleteAdvertisements(_ pdu: String) throws {
        #expect(try hex(Heard(address: Self.advertising, pdu: pdu)) == [])
    }
}
