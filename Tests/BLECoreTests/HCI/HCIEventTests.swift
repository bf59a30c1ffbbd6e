import BLECore
import TestSupport
import Testing

/// Golden bytes: btsnoop captures (`file:record` of shared/vectors/captures); the H4 type 04 is left off.
@Suite struct HCIEventTests {
    static let samples = [
        "0504004000" + "16", "080400400001", "5905004400" + "0110", "0c080040000930001211",
        "0e0c010110000bcb200b0f000100",
        "0f0400010604", "100103", "13050140000100", "1309024200010043000100",
        "3e130100020000002d1504a1de4527000000d00705", "3e0a0300400006000000f401",
        "3e0c040040000900000000000000", "3e0b07f3031b004801fb004808",
        "3003000b00", "3e1f0a024000000000000000000000000000000000000000000024000000f40100", "3e060c00f3030202",
        "3e0612" + "00e0400000", "3e0913e0012d9f61aad77e",
        "3e2229004000000146af0f00aa6000000000000000000000000024000000f40100ff0000",
    ]

    @Test func responsesToCommandsAreReadFromRecordings() throws {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:10, 62, 14, 12
        let version = try complete("0e0c010110000bcb200b0f000100").parameters(of: HCIReadLocalVersion.self)
        #expect(version.specification == "5.2")
        #expect(version.company == 0x000F)
        #expect(version.hciRevision == 0x20CB)
        let address = try complete("0e0a01091000d766dc5be5dc").parameters(of: HCIReadAddress.self)
        #expect(address == BluetoothAddress("DC:E5:5B:DC:66:D7"))
        let features = try complete("0e0c01032000eff9011f0e000000").parameters(of: LEReadLocalFeatures.self)
        #expect(features.contains([.encryption, .le2M, .coded, .extendedAdvertising, .dataLengthExtension]))
        let commands = try complete(
            "0e4401021000ffffff03ccffeffffffffc1ff20fe8fe3ff78fff1c00040061f7ffff7ff8ffffffffffffffffffe7e0ffffffffad"
                + "000000000000000000000000000000000000"
        ).parameters(of: HCIReadLocalSupportedCommands.self)
        #expect(commands.hasExtendedScan && commands.hasExtendedConnect && commands.hasLegacyScan)
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:34871
        let rssi = try complete("0e0701051400b303bc").parameters(of: HCIReadRSSI.self)
        #expect(rssi.handle == 0x03B3)
        #expect(rssi.rssi == -68)
        // 127 is "not available", Core Vol 4 Part E, 7.5.4.
        #expect(try complete("0e0701051400b3037f").parameters(of: HCIReadRSSI.self).rssi == nil)
    }

    @Test func responsesThatAreNone() throws {
        let refused = try complete("0e0401051402")
        #expect(throws: HCICommandFailure(opcode: .readRSSI, reason: .status(.unknownConnection))) {
            try refused.parameters(of: HCIReadRSSI.self)
        }
        let other = try complete("0e0401031000")
        #expect(throws: HCICommandFailure(opcode: .readRSSI, reason: .noResponse)) {
            try other.parameters(of: HCIReadRSSI.self)
        }
        let short = try complete("0e0601051400b303")
        #expect(throws: HCICommandFailure.self) { try short.parameters(of: HCIReadRSSI.self) }
        #expect(try complete("0e03010514").status == nil)
    }

    @Test func advertisingResponsesAreReadFromRecordings() throws {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:46, 48, 250
        let length = try complete("0e06013a20007206").parameters(of: LEReadMaximumAdvertisingDataLength.self)
        #expect(length == 1650)
        let sets = try complete("0e05013b200010").parameters(of: LEReadNumberOfSupportedAdvertisingSets.self)
        #expect(sets == 16)
        let power = try complete("0e050136200001").parameters(of: LESetExtendedAdvertisingParameters.self)
        #expect(power == 1)
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:18213
        #expect(try complete("0e0501362000f9").parameters(of: LESetExtendedAdvertisingParameters.self) == -7)
        for short in ["0e04013a2000", "0e05013a200072", "0e07013a2000720600", "0e06013b20001000", "0e04013b2000"] {
            let complete = try complete(short)
            #expect(throws: HCICommandFailure.self) {
                try complete.parameters(of: LEReadMaximumAdvertisingDataLength.self)
            }
            #expect(throws: HCICommandFailure.self) {
                try complete.parameters(of: LEReadNumberOfSupportedAdvertisingSets.self)
            }
        }
        // Layouts of 7.7.65.18 and 7.7.65.19.
        guard case .advertisingSetTerminated(let end) = try event("3e061200e040f003") else { throw WrongCase() }
        #expect(
            end.status.isSuccess && end.advertisingHandle == 0xE0 && end.handle == 0x0040 && end.completedEvents == 3)
        guard case .advertisingSetTerminated(let over) = try event("3e0612" + "3ce1000000") else { throw WrongCase() }
        #expect(over.status == .advertisingTimeout && over.advertisingHandle == 0xE1)
        guard case .scanRequestReceived(let request) = try event("3e0913e0012d9f61aad77e") else { throw WrongCase() }
        #expect(request.advertisingHandle == 0xE0 && request.scanner == PeerID("7E:D7:AA:61:9F:2D/random"))
        guard case .scanRequestReceived(let odd) = try event("3e0913e0072d9f61aad77e") else { throw WrongCase() }
        #expect(odd.scanner == nil)
    }

    @Test func linkEventsAreReadFromRecordings() throws {
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:551
        let gone = try event("050400400016")
        guard case .disconnectionComplete(let end) = gone else { throw WrongCase() }
        #expect(end.handle == 0x0040 && end.reason == .localHostTerminated && end.status.isSuccess)
        // choonkiatlee_wban-python__btsnoop_hci:157
        guard case .connectionComplete(let up) = try event("3e130100020000002d1504a1de4527000000d00705") else {
            throw WrongCase()
        }
        #expect(up.status.isSuccess && up.isCentral && up.handle == 2)
        #expect(up.peer == PeerID("45:DE:A1:04:15:2D/public"))
        #expect(up.parameters.interval.lowerBound == .microseconds(48_750))
        #expect(up.parameters.supervisionTimeout == .seconds(20))
        // FrankHJCuypers_fuut__btsnoop_hci20241230_02:338: the call was cancelled.
        let enhanced = "3e1f0a024000000000000000000000000000000000000000000024000000f40100"
        guard case .connectionComplete(let cancelled) = try event(enhanced) else { throw WrongCase() }
        #expect(cancelled.status == .unknownConnection)
        // Syed-Bipul-Rahman_bluethooth_light_controll__btsnoop_hci:47769, 47771
        guard case .phyUpdateComplete(let phy) = try event("3e060c00f3030202") else { throw WrongCase() }
        #expect(phy.transmit == .le2M && phy.receive == .le2M && phy.handle == 0x03F3)
        guard case .dataLengthChange(let length) = try event("3e0b07f3031b004801fb004808") else { throw WrongCase() }
        #expect(length.transmitOctets == 27 && length.receiveOctets == 251 && length.receiveTime == 2120)
        // whoisbe_pongbot-mcp__btsnoop_hci-3e7545:598
        guard case .numberOfCompletedPackets(let sent) = try event("1309024200010043000100") else { throw WrongCase() }
        #expect(sent.map(\.handle) == [0x42, 0x43] && sent.map(\.count) == [1, 1])
        // FrankHJCuypers_fuut:367; whoisbe_pongbot-mcp__btsnoop_hci-3e7545:1115
        guard case .readRemoteVersionComplete(let version) = try event("0c080040000930001211") else {
            throw WrongCase()
        }
        #expect(version.version == 9 && version.company == 0x0030)
        guard case .encryptionChange(let encryption) = try event("59050044000110") else { throw WrongCase() }
        #expect(encryption.isEncrypted && encryption.keySize == 16 && encryption.handle == 0x44)
        // The layout of 7.7.8 for a peer that has lost its key.
        guard case .encryptionChange(let missing) = try event("080406400000") else { throw WrongCase() }
        #expect(missing.status == .keyMissing && !missing.isEncrypted && missing.keySize == nil)
        // cheoljun99_bluetooth-pcap-test__bluetooth:11273
        guard case .encryptionKeyRefresh(let refresh) = try event("3003000b00") else { throw WrongCase() }
        #expect(refresh.status.isSuccess && refresh.handle == 0x0B)
    }

    @Test(.row("H04")) func lengthByteMustEqualTheBytes() {
        for sample in Self.samples {
            let whole = bytes(sample)
            #expect(throws: Never.self, "\(sample)") { try HCIEvent(whole.span) }
            for count in 0..<whole.count {
                #expect(throws: MalformedPacket.self) { try HCIEvent(whole.span.extracting(0..<count)) }
            }
            let long = whole + [0]
            #expect(throws: MalformedPacket.self) { try HCIEvent(long.span) }
        }
    }

    /// Only what a command returns may be of any length.
    @Test(.row("H04")) func eventsHoldNoMoreThanTheirLayout() {
        for sample in Self.samples where !sample.hasPrefix("0e") {
            var surplus = bytes(sample) + [0]
            surplus[1] += 1
            #expect(throws: MalformedPacket.self, "\(sample)") { try HCIEvent(surplus.span) }
        }
    }

    @Test func everyFlippedOrShortenedByteEndsWithoutTrap() {
        for sample in Self.samples {
            let whole = bytes(sample)
            for index in whole.indices {
                for flip: UInt8 in [0x01, 0x80, 0xFF] {
                    var bent = whole
                    bent[index] ^= flip
                    _ = try? HCIEvent(bent.span)
                }
                var short = Array(whole[0..<max(index, 2)])
                short[1] = UInt8(short.count - 2)
                _ = try? HCIEvent(short.span)
            }
        }
    }

    @Test(.row("H11")) func unknownEventsAreKept() throws {
        #expect(try event("ff0201" + "02") == .unknown(code: 0xFF, parameters: [1, 2]))
        #expect(try event("3e03ee0102") == .unknownMeta(subevent: 0xEE, parameters: [1, 2]))
        #expect(try event("3e00") == .emptyMeta)
        #expect(try event("100103") == .hardwareError(code: 3))
    }

    @Test func advertisementsComeAsReports() throws {
        // ajesler_bluetooth-candle-go-talk__btsnoop_hci:114
        let packet = bytes("3e1d02010400e6ac134b208c111009504c415942554c422043414e444c45d5")
        guard case .advertisingReports(let batch) = try HCIEvent(packet.span) else { throw WrongCase() }
        #expect(batch.losses.isEmpty)
        #expect(batch.reports.map(\.address) == [BluetoothAddress("8C:20:4B:13:AC:E6")])
        // 255 reports announced, bytes for one; it counts, and the scan continues.
        var liar = packet
        liar[3] = 0xFF
        guard case .advertisingReports(let partial) = try HCIEvent(liar.span) else { throw WrongCase() }
        #expect(partial.reports == batch.reports)
        #expect(partial.losses.missing == 254)
    }

    private func event(_ hex: String) throws -> HCIEvent {
        try HCIEvent(bytes(hex).span)
    }

    private func complete(_ hex: String) throws -> HCICommandComplete {
        guard case .commandComplete(let complete) = try event(hex) else { throw WrongCase() }
        return complete
    }

    private struct WrongCase: Error {}
}
