import BLECore
import Testing

/// Golden bytes: btsnoop captures of Android, Raspberry Pi and desktop hosts (`file:record` of
/// shared/vectors/captures), and where none has the command, the layout of Core Vol 4 Part E laid out by hand.
@Suite struct HCICommandTests {
    @Test func linkControl() throws {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:549
        #expect(HCIDisconnect(handle: 0x0040).bytes == bytes("01060403400013"))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:365
        #expect(HCIReadRemoteVersion(handle: 0x0040).bytes == bytes("011d04024000"))
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:34869
        #expect(HCIReadRSSI(handle: 0x03B3).bytes == bytes("01051402b303"))
    }

    @Test func information() {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:9, 11, 61, 13, 5; choonkiatlee_wban-python:17
        #expect(HCIReadLocalVersion().bytes == bytes("01011000"))
        #expect(HCIReadLocalSupportedCommands().bytes == bytes("01021000"))
        #expect(HCIReadAddress().bytes == bytes("01091000"))
        #expect(LEReadLocalFeatures().bytes == bytes("01032000"))
        #expect(HCIWriteLEHostSupport(isSupported: true).bytes == bytes("016d0c020100"))
        #expect(HCIWriteLEHostSupport(isSupported: false).bytes == bytes("016d0c020000"))
    }

    @Test func scanning() {
        // ajesler_bluetooth-candle-go-talk__btsnoop_hci:5, 7, 9
        let legacy = LESetScanParameters(isActive: true, interval: 0x1F40, window: 0x1F40, ownAddressType: .random)
        #expect(legacy.bytes == bytes("010b200701401f401f0100"))
        #expect(LESetScanEnable(isEnabled: true).bytes == bytes("010c20020100"))
        #expect(LESetScanEnable(isEnabled: false, filtersDuplicates: true).bytes == bytes("010c20020001"))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:203, 199, 201; Syed-Bipul-Rahman:51514
        let extended = LESetExtendedScanParameters(
            isActive: true, interval: 0xE008, window: 0x00E0, ownAddressType: .random)
        #expect(extended.bytes == bytes("0141200801000101" + "08e0e000"))
        #expect(LESetExtendedScanEnable(isEnabled: true).bytes == bytes("01422006010000000000"))
        #expect(LESetExtendedScanEnable(isEnabled: false).bytes == bytes("01422006000000000000"))
        #expect(
            LESetExtendedScanEnable(isEnabled: false, filtersDuplicates: true).bytes == bytes("01422006000100000000"))
        // Layout of 7.8.64 with two PHYs.
        let both = LESetExtendedScanParameters(
            isActive: false, interval: 0x0060, window: 0x0030, phys: [.le1M, .le2M, .leCoded])
        #expect(both.bytes == bytes("0141200d000005" + "0060003000" + "0060003000"))
    }

    @Test func connecting() throws {
        // ajesler_bluetooth-candle-go-talk__btsnoop_hci:375
        let candle = try #require(BluetoothAddress("8C:20:4B:13:AC:E6"))
        let plain = LECreateConnection(
            LEInitiation(
                peer: PeerID(address: candle, type: .public), ownAddressType: .random, scanInterval: 0x60,
                scanWindow: 0x30,
                parameters: ConnectionParameters(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 2000)))
        #expect(plain.bytes == bytes("010d2019600030000000e6ac134b208c01180028000000d00700000000"))
        // The groups of FrankHJCuypers_fuut__btsnoop_hci20241230_02:345, which calls the accept list; here one peer.
        let extended = LEExtendedCreateConnection(
            LEInitiation(
                peer: PeerID(address: candle, type: .random), scanInterval: 0x60, scanWindow: 0x30,
                parameters: .balanced),
            phys: [.le1M, .le2M, .leCoded])
        let group = "60003000180028000000f40100000000"
        #expect(extended.bytes == bytes("0143203a000001e6ac134b208c07" + group + group + group))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:336
        #expect(LECreateConnectionCancel().bytes == bytes("010e2000"))
    }

    @Test func links() {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:368, 354
        let fast = ConnectionParameters(intervalMin: 6, intervalMax: 6, latency: 0, timeout: 500)
        #expect(
            LEConnectionUpdate(handle: 0x0040, parameters: fast).bytes == bytes("0113200e4000060006000000f40100000000"))
        #expect(LEReadRemoteFeatures(handle: 0x0040).bytes == bytes("011620024000"))
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:47923, syssi_esphome-jk-bms__can_rs485:496
        #expect(LESetDataLength(handle: 0x03F3, transmitTime: 0x0A90).bytes == bytes("01222006f303fb00900a"))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:371; the layout of 7.8.24 for a key of LE legacy pairing.
        let key = Secret128(bytes("150a76c11771799b772492fec0bcf951").span)!
        #expect(
            LEEnableEncryption(handle: 0x0040, rand: 0, ediv: 0, key: key).bytes
                == bytes("0119201c400000000000000000000000150a76c11771799b772492fec0bcf951"))
        #expect(
            LEEnableEncryption(handle: 0x0040, rand: 0xBC34_A07D_F2F2_1285, ediv: 0xB386, key: key).bytes
                == bytes("0119201c40008512f2f27da034bc86b3150a76c11771799b772492fec0bcf951"))
        // Layouts of 7.8.47 and 7.8.49.
        #expect(LEReadPHY(handle: 0x0040).bytes == bytes("013020024000"))
        #expect(LESetPHY(handle: 0x0040, transmit: .le2M, receive: []).bytes == bytes("013220074000020200" + "0000"))
    }

    @Test func packetsReadBackAndRefuseWrongLengths() throws {
        let whole = HCIDisconnect(handle: 0x0040).bytes
        let packet = try HCICommandPacket(whole.span.extracting(droppingFirst: 1))
        #expect(packet.bytes == whole)
        #expect(packet.opcode == .disconnect)
        for count in 1..<whole.count {
            #expect(throws: MalformedPacket.self) { try HCICommandPacket(whole.span.extracting(1..<count)) }
        }
        let long = whole + [0]
        #expect(throws: MalformedPacket.self) { try HCICommandPacket(long.span.extracting(droppingFirst: 1)) }
    }

    @Test func parametersAreCheckedByTheSpecification() throws {
        typealias Parameters = ConnectionParameters
        let fine = try Parameters(interval: .milliseconds(30)...(.milliseconds(50)), supervisionTimeout: .seconds(5))
        #expect(fine == .balanced)
        #expect(fine.interval == .milliseconds(30)...(.milliseconds(50)))
        #expect(fine.supervisionTimeout == .seconds(5))
        #expect(throws: Parameters.Invalid.interval) {
            try Parameters(interval: .milliseconds(7)...(.milliseconds(50)), supervisionTimeout: .seconds(5))
        }
        #expect(throws: Parameters.Invalid.interval) {
            try Parameters(interval: .milliseconds(8)...(.milliseconds(4001)), supervisionTimeout: .seconds(5))
        }
        #expect(throws: Parameters.Invalid.latency) {
            try Parameters(
                interval: .milliseconds(8)...(.milliseconds(8)), latency: 500, supervisionTimeout: .seconds(5))
        }
        #expect(throws: Parameters.Invalid.supervisionTimeout) {
            try Parameters(interval: .milliseconds(8)...(.milliseconds(8)), supervisionTimeout: .seconds(33))
        }
        #expect(throws: Parameters.Invalid.supervisionTimeoutTooShort) {
            try Parameters(
                interval: .milliseconds(8)...(.milliseconds(50)), latency: 4, supervisionTimeout: .milliseconds(500))
        }
    }
}

func bytes(_ hex: String) -> [UInt8] {
    do {
        return try Hex.decode(hex)
    } catch {
        Issue.record("no hexadecimal: \(hex)")
        return []
    }
}
