import BLECore
import TestSupport
import Testing

/// Golden bytes: btsnoop captures of Android, Raspberry Pi and desktop hosts (`file:record` of
/// shared/vectors/captures), and where none has the command, the layout of Core Vol 4 Part E laid out by hand.
@Suite struct HCICommandTests {
    @Test func linkControlCommandsHaveTheRecordedBytes() throws {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:549
        #expect(HCIDisconnect(handle: 0x0040).bytes == bytes("01060403400013"))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:365
        #expect(HCIReadRemoteVersion(handle: 0x0040).bytes == bytes("011d04024000"))
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:34869
        #expect(HCIReadRSSI(handle: 0x03B3).bytes == bytes("01051402b303"))
    }

    @Test func commandsForInformationHaveTheRecordedBytes() {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:9, 11, 61, 13, 5; choonkiatlee_wban-python:17
        #expect(HCIReadLocalVersion().bytes == bytes("01011000"))
        #expect(HCIReadLocalSupportedCommands().bytes == bytes("01021000"))
        #expect(HCIReadAddress().bytes == bytes("01091000"))
        #expect(LEReadLocalFeatures().bytes == bytes("01032000"))
        #expect(HCIWriteLEHostSupport(isSupported: true).bytes == bytes("016d0c020100"))
        #expect(HCIWriteLEHostSupport(isSupported: false).bytes == bytes("016d0c020000"))
    }

    @Test func scanCommandsHaveTheRecordedBytes() {
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

    @Test func advertisingCommandsHaveTheSpecifiedBytes() throws {
        // Layouts of 7.8.5, 7.8.7, 7.8.8 and 7.8.9.
        let parameters = LESetAdvertisingParameters(kind: .nonconnectable, interval: 0x00A0...0x00D2)
        #expect(parameters.bytes == bytes("0106200fa000d200" + "030000000000000000" + "0700"))
        #expect(
            LESetAdvertisingParameters(kind: .connectable, interval: 32...32, ownAddressType: .random).parameters[4...5]
                == [0, 1])
        #expect(LESetAdvertisingParameters(kind: .scannable, interval: 32...32).parameters[4] == 2)
        let padding = String(repeating: "00", count: 28)
        #expect(try #require(LESetAdvertisingData(data: [2, 1, 6])).bytes == bytes("01082020" + "03020106" + padding))
        #expect(try #require(LESetScanResponseData(data: [2, 1, 6])).bytes == bytes("01092020" + "03020106" + padding))
        let full = [UInt8](repeating: 0xA5, count: 31)
        #expect(try #require(LESetAdvertisingData(data: full)).parameters == [31] + full)
        #expect(LESetAdvertisingData(data: full + [0]) == nil)
        #expect(LESetScanResponseData(data: full + [0]) == nil)
        #expect(LESetAdvertisingEnable(isEnabled: true).bytes == bytes("010a200101"))
        #expect(LESetAdvertisingEnable(isEnabled: false).bytes == bytes("010a200100"))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:83
        let address = try #require(BluetoothAddress("7E:D7:AA:61:9F:2D"))
        #expect(LESetRandomAddress(address: address).bytes == bytes("010520062d9f61aad77e"))
    }

    @Test func commandsOfAdvertisingSetsHaveTheRecordedBytes() throws {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:45, 47, 249, 251, 253, 255, 257, 334, 598
        #expect(LEReadMaximumAdvertisingDataLength().bytes == bytes("013a2000"))
        #expect(LEReadNumberOfSupportedAdvertisingSets().bytes == bytes("013b2000"))
        let parameters = LESetExtendedAdvertisingParameters(
            handle: 0, properties: [.connectable, .scannable, .legacy], interval: 0xA0...0xD2, ownAddressType: .random,
            txPower: 1)
        #expect(parameters.bytes == bytes("01362019001300a00000d2000007010000000000000000010100010000"))
        let address = try #require(BluetoothAddress("31:0B:98:9E:5B:A9"))
        #expect(LESetAdvertisingSetRandomAddress(handle: 0, address: address).bytes == bytes("0135200700a95b9e980b31"))
        let data = bytes("0201021916f1fc04f5dcfd3586c1da8c065cffd373683db13160245ba2")
        let none = try #require(AdvertisingDataFragment.fragments(of: []).first)
        #expect(LESetExtendedScanResponseData(handle: 0, fragment: none).bytes == bytes("0138200400030100"))
        let only = try #require(AdvertisingDataFragment.fragments(of: data).first)
        #expect(
            LESetExtendedAdvertisingData(handle: 0, fragment: only).bytes
                == bytes("013720210003011d0201021916f1fc04f5dcfd3586c1da8c065cffd373683db13160245ba2"))
        #expect(LESetExtendedAdvertisingEnable(isEnabled: true, handles: [0]).bytes == bytes("01392006010100000000"))
        #expect(LESetExtendedAdvertisingEnable(isEnabled: false, handles: [0]).bytes == bytes("01392006000100000000"))
        #expect(LERemoveAdvertisingSet(handle: 0).bytes == bytes("013c200100"))
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:18212
        let quiet = LESetExtendedAdvertisingParameters(
            handle: 2, properties: .legacy, interval: 0xA0...0xD2, txPower: -7, secondaryPHY: .le2M)
        #expect(quiet.bytes == bytes("01362019021000a00000d2000007000000000000000000f90100020000"))
        // Layouts of 7.8.53, 7.8.56 and 7.8.60.
        let long = LESetExtendedAdvertisingParameters(
            handle: 0xEF, properties: .connectable, interval: 0x0A0B0C...0xFFFFFF, primaryPHY: .leCoded,
            secondaryPHY: .leCoded, sid: 0x1F)
        #expect(long.bytes == bytes("01362019ef0100" + "0c0b0affffff" + "07000000000000000000" + "7f0300030f00"))
        #expect(
            LESetExtendedAdvertisingEnable(isEnabled: true, handles: [0xE0, 0xE1]).bytes
                == bytes("0139200a0102e0000000e1000000"))
        #expect(LESetExtendedAdvertisingEnable(isEnabled: false, handles: []).bytes == bytes("013920020000"))
        let many = LESetExtendedAdvertisingEnable(isEnabled: true, handles: [UInt8](repeating: 1, count: 64))
        #expect(many.parameters.count == 254 && many.parameters[1] == 63)
        #expect(LEClearAdvertisingSets().bytes == bytes("013d2000"))
    }

    @Test func advertisingDataAreSentInParts() {
        // Operations of 7.8.54: 3 all of it, 1 the first part, 0 one in between, 2 the last.
        let data = (0..<1650).map { UInt8(truncatingIfNeeded: $0) }
        for (count, places) in [
            (0, [3]), (251, [3]), (252, [1, 2]), (502, [1, 2]), (503, [1, 0, 2]), (1650, [1, 0, 0, 0, 0, 0, 2]),
        ] {
            let commands = AdvertisingDataFragment.fragments(of: Array(data.prefix(count)))
                .map { LESetExtendedAdvertisingData(handle: 0xE0, fragment: $0).parameters }
            #expect(commands.map { Int($0[1]) } == places)
            #expect(commands.allSatisfy { $0[0] == 0xE0 && $0[2] == 1 && Int($0[3]) == $0.count - 4 })
            #expect(commands.flatMap { $0.dropFirst(4) } == Array(data.prefix(count)))
        }
    }

    @Test func connectionCommandsHaveTheRecordedBytes() throws {
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

    @Test func eventMaskCommandsHaveTheKernelsBytes() {
        // The masks that the kernel sends to a controller of Bluetooth 4.0, as noble and BlueZ do.
        #expect(LESetEventMask(LEEventMask(rawValue: 0x1F)).bytes == bytes("010120081f00000000000000"))
        #expect(HCISetEventMask([.initial, .leMeta]).bytes == bytes("01010c08ffffffffff1f0020"))
        #expect(HCIOpcode.leSetEventMask.name == "LE Set Event Mask" && HCIOpcode.setEventMask.name == "Set Event Mask")
    }

    @Test func linkCommandsHaveTheRecordedBytes() {
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
        // The layout of 7.8.48.
        #expect(LESetDefaultPHY(.le1M).bytes == bytes("01312003000101"))
        #expect(LESetDefaultPHY([]).bytes == bytes("01312003030000"))
        #expect(LESetPHY(handle: 0x0040, transmit: .le2M, receive: []).bytes == bytes("013220074000020200" + "0000"))
    }

    /// The layouts of Core Vol 4 Part E, 7.1.10, 7.1.12, 7.1.38, 7.1.34, 7.1.53, 7.3.9, 7.8.24, 7.8.22, 7.8.25, 7.8.38,
    /// 7.8.103 and 7.8.106: the bytes before the first key, and those from there on.
    private static let commandsWithKeys: [(opcode: UInt16, before: Int, rest: Int)] = [
        (0x040B, 6, 16), (0x040D, 6, 17), (0x042E, 6, 4), (0x0430, 6, 32), (0x0445, 6, 64), (0x0C11, 1, 2 * 22),
        (0x2019, 12, 16), (0x2017, 0, 32), (0x201A, 2, 16), (0x2027, 7, 32), (0x2068, 15, 16), (0x206B, 4, 16 + 5),
    ]

    @Test(.row("S21")) func keysInCommandsAreZerosInTraces() {
        for (opcode, before, rest) in Self.commandsWithKeys {
            let head = [UInt8(truncatingIfNeeded: opcode), UInt8(opcode >> 8), UInt8(before + rest)]
            let whole = head + [UInt8](repeating: 0x5A, count: before + rest)
            let wanted = whole.prefix(3 + before) + [UInt8](repeating: 0, count: rest)
            // Also in a command that is cut off.
            for count in 0...whole.count {
                var packet = Array(whole.prefix(count))
                HCICommandPacket.blankKeys(in: &packet)
                #expect(packet == Array(wanted.prefix(count)), "\(String(opcode, radix: 16)), \(count) bytes")
            }
        }
        // LE Set Scan Enable, and LE Long Term Key Request Negative Reply.
        for hex in ["0c20020100", "1b20024000"] {
            var packet = bytes(hex)
            HCICommandPacket.blankKeys(in: &packet)
            #expect(packet == bytes(hex))
        }
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
