import BLECore
import TestSupport
import Testing

/// The commands and events of advertising instances. The bytes are those of BlueZ's `tools/mgmt-tester.c`
/// (`ext_adv_params_valid`, `ext_adv_data_valid`, `read_adv_features_rsp_1` and `_3`, `advertising_instance1_param`).
@Suite struct ManagementAdvertisingTests {
    private func event(_ hex: String) throws(MalformedPacket) -> ManagementEvent.Content {
        try ManagementEvent(bytes(hex).span).content
    }

    @Test func commandsAreAsTheKernelReadsThem() throws {
        #expect(ManagementReadAdvertisingFeatures().packet(adapter: 0).bytes == bytes("3d000000 0000"))
        #expect(ManagementRemoveAdvertising(1).packet(adapter: 0).bytes == bytes("3f000000 0100 01"))
        let parameters = ManagementAddExtendedAdvertisingParameters(1, [.txPower, .intervals], interval: 0xA0...0xA0)
        #expect(
            parameters.packet(adapter: 0).bytes
                == bytes("54000000 1200 01 00c00000 0000 0000 a0000000 a0000000 7f"))
        let data = ManagementAddExtendedAdvertisingData(
            1, data: bytes("03190123"), scanResponse: bytes("050874657374"))
        #expect(data.packet(adapter: 0).bytes == bytes("55000000 0d00 01 04 06 03190123 050874657374"))
        let long = ManagementAddExtendedAdvertisingData(1, data: [UInt8](repeating: 7, count: 300))
        #expect(long.parameters.count == 3 + 255 && long.parameters.prefix(3) == [1, 255, 0])
    }

    @Test func responsesAreRead() throws {
        let legacy = try ManagementReadAdvertisingFeatures.response(from: bytes("7ff00100 1f 1f 05 00").span)
        #expect(legacy.maximumDataLength == 31 && legacy.maximumScanResponseLength == 31)
        #expect(legacy.maximumInstances == 5 && legacy.instances.isEmpty && !legacy.hasSets)
        #expect(legacy.supportedFlags.isSuperset(of: [.connectable, .intervals, .txPower, .scanResponse]))
        let extended = try ManagementReadAdvertisingFeatures.response(from: bytes("ffff0100 1f 1f 03 02 03 01").span)
        #expect(extended.maximumInstances == 3 && extended.instances == [3, 1] && extended.hasSets)
        let accepted = try ManagementAddExtendedAdvertisingParameters.response(from: bytes("01 7f 1f 1f").span)
        #expect(accepted.instance == 1 && accepted.txPower == 127)
        #expect(accepted.maximumDataLength == 31 && accepted.maximumScanResponseLength == 31)
        let added = try ManagementAddExtendedAdvertisingData.response(from: bytes("01").span)
        let removed = try ManagementRemoveAdvertising.response(from: bytes("01").span)
        #expect(added == 1 && removed == 1)
    }

    @Test func eventsHaveTheNumber() throws {
        #expect(try event("23000000 0100 01") == .advertisingAdded(1))
        #expect(try event("24000000 0100 01") == .advertisingRemoved(1))
    }

    @Test(.row("O31")) func cutOffAndOverlongResponsesAreErrors() {
        let features = bytes("7ff00100 1f 1f 05 02 05 04")
        for length in 0..<features.count {
            #expect(throws: MalformedPacket.self) {
                try ManagementReadAdvertisingFeatures.response(from: Array(features.prefix(length)).span)
            }
        }
        #expect(throws: MalformedPacket.self) {
            try ManagementReadAdvertisingFeatures.response(from: (features + [3]).span)
        }
        let accepted = bytes("01 7f 1f 1f")
        for wrong in (0..<accepted.count).map({ Array(accepted.prefix($0)) }) + [accepted + [0]] {
            #expect(throws: MalformedPacket.self) {
                try ManagementAddExtendedAdvertisingParameters.response(from: wrong.span)
            }
        }
        for wrong in [[], [1, 2]] as [[UInt8]] {
            #expect(throws: MalformedPacket.self) { try ManagementRemoveAdvertising.response(from: wrong.span) }
        }
        for packet in ["23000000 0000", "24000000 0200 0100"] {
            #expect(throws: MalformedPacket.self) { try event(packet) }
        }
    }
}
