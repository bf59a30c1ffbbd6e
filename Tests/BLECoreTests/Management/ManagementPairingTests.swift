import BLECore
import TestSupport
import Testing

/// The commands and events of settings, keys and pairings, byte by byte: as bluetoothd and kernels sent them where a
/// recording has them, else by the layouts of the kernel's `mgmt.h`.
@Suite struct ManagementPairingTests {
    private let peer = ManagementPeer(PeerID(address: BluetoothAddress("C6:55:44:33:22:11")!, type: .random))

    private func secret(_ hex: String) -> Secret128 { Secret128(bytes(hex).span)! }

    private func content(_ hex: String) throws(MalformedPacket) -> ManagementEvent.Content {
        try ManagementEvent(bytes(hex).span).content
    }

    private func response<Command: ManagementCommand>(
        _ bytes: [UInt8], to command: Command.Type
    ) throws -> Command.Response? {
        try ManagementEvent(bytes.span).response(to: command, of: 0)?.get()
    }

    // MARK: Secrets

    @Test func aSecretIsSixteenBytesInOrder() throws {
        let text = "000102030405060708090a0b0c0d0e0f"
        #expect(secret(text).withBytes { bytes in (0..<bytes.count).map { bytes[$0] } } == bytes(text))
        for count in [0, 15, 17] { #expect(Secret128([UInt8](repeating: 1, count: count).span) == nil) }
        #expect(Secret128([UInt8](repeating: 0, count: 16).span) == .zero)
    }

    @Test func aSecretIsNotShown() {
        let key = secret("abababababababababababababababab")
        let whole = ManagementLongTermKey(
            peer: peer, kind: .secureConnections, isCentral: false, size: 16, ediv: 0, rand: 0, key: key)
        for text in ["\(key)", String(reflecting: key), "\(whole)", "\(ManagementLoadLongTermKeys([whole]))"] {
            #expect(text.contains("(128 bits)"))
            #expect(!text.lowercased().contains("ab") && !text.contains("171"))
        }
    }

    @Test func aShortenedKeyIsZeroAboveItsSize() {
        let key = secret("01020304050607000000000000000000")
        #expect(key.fits(7) && key.fits(16) && !key.fits(6) && !key.fits(0))
        #expect(Secret128.zero.fits(0) && !secret("00000000000000000000000000000001").fits(15))
    }

    // MARK: Settings

    @Test func settingsAreWhatTheKernelReturns() throws {
        #expect(ManagementSetPowered(true).packet(adapter: 0).bytes == ManagementPackets.setPowered)
        #expect(ManagementSetPrivacy(nil).packet(adapter: 0).bytes == ManagementPackets.setPrivacy)
        #expect(
            ManagementSetPrivacy(secret("000102030405060708090a0b0c0d0e0f")).parameters
                == bytes("01000102030405060708090a0b0c0d0e0f"))
        #expect(ManagementSetIOCapability(.keyboardDisplay).packet(adapter: 0).bytes == ManagementPackets.setCapability)
        let on = try #require(try response(ManagementPackets.powered, to: ManagementSetPowered.self))
        #expect(on == [.powered, .bondable, .secureSimplePairing, .classic, .lowEnergy, .secureConnections])
        let off = try #require(try response(ManagementPackets.privacyIsOff, to: ManagementSetPrivacy.self))
        #expect(off == on.subtracting(.powered))
        #expect(try response(ManagementPackets.powered, to: ManagementSetPrivacy.self) == nil)
        let codes = [
            ManagementSetBondable(true).packet(adapter: 0).bytes,
            ManagementSetLowEnergy(false).packet(adapter: 0).bytes,
            ManagementSetSecureConnections(true).packet(adapter: 0).bytes,
        ]
        #expect(codes == [bytes("09000000010001"), bytes("0d000000010000"), bytes("2d000000010001")])
    }

    @Test func theVersionIsRead() throws {
        #expect(ManagementReadVersion().packet(adapter: nil).bytes == bytes("0100ffff0000"))
        let packet = ManagementPackets.version
        let event = try ManagementEvent(packet.span)
        let version = try event.response(to: ManagementReadVersion.self, of: nil)?.get()
        #expect(version?.version == 1 && version?.revision == 22)
    }

    @Test func capabilitiesAreAListOfEntries() throws {
        #expect(ManagementReadControllerCapabilities().packet(adapter: 0).bytes == ManagementPackets.readCapabilities)
        let read = try response(ManagementPackets.capabilities, to: ManagementReadControllerCapabilities.self)
        #expect(read?.maximumKeySize == 16)
        let none = try response(bytes("01000000 0500 4800 00 0000"), to: ManagementReadControllerCapabilities.self)
        #expect(none != nil && none?.maximumKeySize == nil)
        // An entry of no length, one that ends too late, and bytes after the list.
        for hex in ["0100 00", "0200 0303", "0000 00", "0100"] {
            #expect(throws: (any Error).self) {
                let parameters = bytes("4800 00") + bytes(hex)
                _ = try response(
                    ManagementPacket(code: 1, adapter: 0, parameters: parameters).bytes,
                    to: ManagementReadControllerCapabilities.self)
            }
        }
    }

    // MARK: Keys

    @Test func keysAreLoadedAsTheyWereReported() throws {
        let recorded = [RecordedKeys.secureConnections, RecordedKeys.legacyCentral, RecordedKeys.legacyPeripheral]
        var keys: [ManagementLongTermKey] = []
        for key in recorded {
            let event = ManagementPacket(code: 0x0A, adapter: 0, parameters: [1] + key)
            guard case .newLongTermKey(let new) = try ManagementEvent(event.bytes.span).content else {
                Issue.record("another event")
                return
            }
            #expect(new.isForStorage && new.key.peer == peer && new.key.size == 16)
            keys.append(new.key)
        }
        #expect(keys.map(\.kind) == [.secureConnectionsAuthenticated, .legacyAuthenticated, .legacyAuthenticated])
        #expect(keys.map(\.isCentral) == [false, true, false])
        #expect(keys.map(\.ediv) == [0, 0, 0xB386])
        #expect(keys[2].rand == 0xBC34_A07D_F2F2_1285)
        #expect(ManagementLoadLongTermKeys(keys).parameters == bytes("0300") + recorded.joined())
        #expect(ManagementLoadLongTermKeys([]).packet(adapter: 0).bytes == ManagementPackets.loadNoKeys)
        #expect(try response(ManagementPackets.noKeysLoaded, to: ManagementLoadLongTermKeys.self) != nil)
        #expect(throws: ManagementFailure.self) {
            try response(bytes("01000000 0400 1300 00 00"), to: ManagementLoadLongTermKeys.self)
        }
        let passing = ManagementPacket(code: 0x0A, adapter: 0, parameters: [0] + recorded[0])
        guard case .newLongTermKey(let new) = try ManagementEvent(passing.bytes.span).content else {
            Issue.record("another event")
            return
        }
        #expect(!new.isForStorage && new.key == keys[0])
    }

    @Test func identitiesAreLoadedAsTheyWereReported() throws {
        guard
            case .newIdentityResolvingKey(let new) = try content(
                "18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f")
        else {
            Issue.record("another event")
            return
        }
        #expect(new.isForStorage && new.privateAddress == BluetoothAddress("62:CC:28:F3:EE:75"))
        #expect(new.key == .init(peer: peer, key: secret("000102030405060708090a0b0c0d0e0f")))
        #expect(
            ManagementLoadIdentityResolvingKeys([new.key]).parameters
                == bytes("0100 1122334455c6 02 000102030405060708090a0b0c0d0e0f"))
        #expect(ManagementLoadIdentityResolvingKeys([]).packet(adapter: 0).bytes == ManagementPackets.loadNoIdentities)
    }

    @Test func blockedKeysAreThoseOfBluetoothd() {
        let blocked: [ManagementSetBlockedKeys.BlockedKey] = [
            .longTermKey(secret("bf01fb9d4ef3bc36d874f5394138684c")),
            .identityResolvingKey(secret("a599bae4e17ca618228e0756b4e85f01")),
        ]
        #expect(ManagementSetBlockedKeys(blocked).packet(adapter: 0).bytes == ManagementPackets.setBlockedKeys)
    }

    @Test func aListIsCutAtWhatOnePacketHolds() {
        let key = secret("01010101010101010101010101010101")
        let long = ManagementLongTermKey(
            peer: peer, kind: .legacy, isCentral: true, size: 16, ediv: 1, rand: 2, key: key)
        let load = ManagementLoadLongTermKeys(Array(repeating: long, count: 2_000))
        #expect(load.keys.count == 1_820 && load.parameters.count == 2 + 36 * 1_820)
        #expect(load.parameters.prefix(2) == bytes("1c07")[...])
        let identity = ManagementIdentityResolvingKey(peer: peer, key: key)
        let identities = ManagementLoadIdentityResolvingKeys(Array(repeating: identity, count: 3_000))
        #expect(identities.keys.count == 2_849 && identities.parameters.count <= 0xFFFF)
        let blocked = ManagementSetBlockedKeys(Array(repeating: .longTermKey(key), count: 4_000))
        #expect(blocked.keys.count == 3_854 && blocked.parameters.count <= 0xFFFF)
    }

    @Test func aSignatureKeyHasItsSideAndItsAuthentication() throws {
        let key = "000102030405060708090a0b0c0d0e0f"
        for (kind, isRemote, isAuthenticated) in [
            (0, false, false), (1, true, false), (2, false, true), (3, true, true),
        ] {
            guard case .newSignatureKey(let new) = try content("19000000 1900 01 1122334455c6 02 0\(kind) \(key)")
            else {
                Issue.record("another event")
                return
            }
            #expect(new.isRemote == isRemote && new.isAuthenticated == isAuthenticated && new.isForStorage)
            #expect(new.key == secret(key) && new.peer == peer)
        }
    }

    // MARK: Pairing

    @Test func commandsHaveTheLayoutOfTheKernel() {
        let name = "1122334455c602"
        let packets: [(ManagementPacket, String)] = [
            (ManagementPairDevice(peer, .keyboardOnly).packet(adapter: 0), "19000000 0800 \(name) 02"),
            (ManagementCancelPairDevice(peer).packet(adapter: 0), "1a000000 0700 \(name)"),
            (ManagementUnpairDevice(peer, disconnects: true).packet(adapter: 0), "1b000000 0800 \(name) 01"),
            (ManagementUnpairDevice(peer, disconnects: false).packet(adapter: 0), "1b000000 0800 \(name) 00"),
            (ManagementUserConfirmationReply(peer).packet(adapter: 0), "1c000000 0700 \(name)"),
            (ManagementUserConfirmationNegativeReply(peer).packet(adapter: 0), "1d000000 0700 \(name)"),
            (ManagementUserPasskeyReply(peer, passkey: 123_456).packet(adapter: 0), "1e000000 0b00 \(name) 40e20100"),
            (ManagementUserPasskeyNegativeReply(peer).packet(adapter: 0), "1f000000 0700 \(name)"),
            (ManagementDisconnect(peer).packet(adapter: 0), "14000000 0700 \(name)"),
            (ManagementGetConnections().packet(adapter: 0), "15000000 0000"),
            (ManagementReadLocalOutOfBandData().packet(adapter: 0), "3b000000 0100 06"),
        ]
        for (packet, expected) in packets { #expect(packet.bytes == bytes(expected)) }
        let data = ManagementAddRemoteOutOfBandData(
            peer, confirmation: secret("000102030405060708090a0b0c0d0e0f"),
            random: secret("101112131415161718191a1b1c1d1e1f"))
        #expect(
            data.packet(adapter: 0).bytes
                == bytes("21000000 4700 \(name)") + [UInt8](repeating: 0, count: 32) + (0..<32).map { $0 })
        let open = PeerID(address: BluetoothAddress("00:1A:7D:DA:71:13")!, type: .public)
        #expect(ManagementDisconnect(ManagementPeer(open)).parameters == bytes("1371da7d1a0001"))
    }

    @Test func responsesNameThePeer() throws {
        let paired = try response(bytes("01000000 0a00 1900 00 1122334455c602"), to: ManagementPairDevice.self)
        #expect(paired == peer && paired?.id?.description == "C6:55:44:33:22:11/random")
        // What a refusal carries is not looked at.
        #expect(throws: ManagementFailure.status(.alreadyPaired)) {
            try response(bytes("01000000 0a00 1900 13 1122334455c602"), to: ManagementPairDevice.self)
        }
        #expect(throws: ManagementFailure.self) {
            try response(bytes("01000000 0900 1900 00 1122334455c6"), to: ManagementPairDevice.self)
        }
        let peers = try response(
            bytes("01000000 1300 1500 00 0200 1122334455c602 1371da7d1a0000"), to: ManagementGetConnections.self)
        #expect(peers?.first == peer && peers?.last?.id == nil && peers?.count == 2)
        for hex in ["0300 1122334455c602", "0000 00", "00"] {
            let parameters = bytes("1500 00") + bytes(hex)
            #expect(throws: ManagementFailure.self) {
                try response(
                    ManagementPacket(code: 1, adapter: 0, parameters: parameters).bytes,
                    to: ManagementGetConnections.self)
            }
        }
        let local = try response(
            bytes("01000000 0900 3b00 00 06 0300 020106"), to: ManagementReadLocalOutOfBandData.self)
        #expect(local == [2, 1, 6])
    }

    @Test func theKernelAsksAndReports() throws {
        let name = "1122334455c602"
        guard case .userConfirmationRequest(let compare) = try content("0f000000 0c00 \(name) 00 40e20100"),
            case .userConfirmationRequest(let justWorks) = try content("0f000000 0c00 \(name) 01 78563412"),
            case .userPasskeyRequest(let enter) = try content("10000000 0700 \(name)"),
            case .passkeyNotify(let show) = try content("17000000 0c00 \(name) 40e20100 03"),
            case .authenticationFailed(let failed) = try content("11000000 0800 \(name) 05"),
            case .deviceUnblocked(let unblocked) = try content("15000000 0700 00000000000000"),
            case .deviceUnpaired(let unpaired) = try content("16000000 0700 \(name)"),
            case .deviceConnected(let up) = try content("0b000000 1000 \(name) 08000000 0300 020106"),
            case .deviceDisconnected(let down) = try content("0c000000 0800 \(name) 04")
        else {
            Issue.record("other events")
            return
        }
        #expect(compare.number == 123_456 && justWorks.number == nil)
        #expect(unblocked == ManagementPeer(address: .zero, rawType: 0))
        #expect(show.passkey == 123_456 && show.entered == 3)
        #expect(failed.status == .authenticationFailed && down.reason == .authenticationFailure)
        #expect(up.flags == 8 && up.data == [2, 1, 6])
        #expect(
            [
                compare.peer, justWorks.peer, enter.peer, show.peer, failed.peer, unpaired.peer, up.peer, down.peer,
            ].allSatisfy { $0 == peer })
        #expect(try content("04000100 0000") == .indexAdded)
        #expect(try content("05000100 0000") == .indexRemoved)
    }

    @Test(
        .row("O31"),
        arguments: [
            "04000000 0000", "05000000 0000", "06000000 0400 d00a0000",
            "0a000000 2500 01 1122334455c6 02 03 00 10 0000 0000000000000000 ef8c26c1e45e8cbe9d7e39d53905d68e",
            "0b000000 1000 1122334455c602 08000000 0300 020106", "0c000000 0800 1122334455c602 04",
            "0f000000 0c00 1122334455c602 00 40e20100", "10000000 0700 1122334455c602",
            "11000000 0800 1122334455c602 05", "16000000 0700 1122334455c602",
            "17000000 0c00 1122334455c602 40e20100 03",
            "18000000 1e00 01 75eef328cc62 1122334455c6 02 000102030405060708090a0b0c0d0e0f",
            "19000000 1900 01 1122334455c6 02 00 000102030405060708090a0b0c0d0e0f",
        ]) func eventsHaveExactlyTheirLength(_ hex: String) throws
    {
        let whole = try ManagementPacket(bytes(hex).span)
        _ = try content(hex)
        for length in 0..<whole.parameters.count {
            let cut = ManagementPacket(code: whole.code, adapter: 0, parameters: Array(whole.parameters.prefix(length)))
            #expect(throws: MalformedPacket.self) { try ManagementEvent(cut.bytes.span) }
        }
        let long = ManagementPacket(code: whole.code, adapter: 0, parameters: whole.parameters + [0])
        #expect(throws: MalformedPacket.self) { try ManagementEvent(long.bytes.span) }
    }
}
