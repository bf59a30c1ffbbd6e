import BLECore
import BLELinux
import BareBLE
import Glibc
import Testing

@testable import BareBLETestKit

/// Links that a stored key encrypts, by raw packets: as kernels 6.1 and 6.12 were seen to do it.
@Suite("Virtual reconnect", .timeLimit(.minutes(5)))
struct VirtualReconnectTests {
    private static let peer = KernelSecurityBench.peer
    private static let encrypted = "04080400400001"

    /// A bonded peer whose link has ended.
    private func bonded(
        _ time: VirtualTime, _ security: VirtualSecurity = VirtualSecurity()
    ) async throws -> KernelSecurityBench {
        let bench = try await KernelSecurityBench(time, security)
        try await bench.linked()
        try await bench.pair()
        try await bench.disconnect()
        return bench
    }

    @Test("With the key, a socket that asked before is connected once the link is encrypted")
    func encryptedFirst() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            try await bench.initiate()
            try bench.attach(level: .medium)
            #expect(bench.link?.finishConnect() == .pending)
            #expect(bench.commands.received().isEmpty)
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == [Self.encrypted])
            #expect(bench.link?.finishConnect() == .connected)
            #expect(try bench.security() == SocketSecurity(level: .medium, keySize: 16))
            #expect(await bench.read(3) == "0b01")
            // No event but that of the link.
            #expect(bench.management.received() == [packet("0b000000 0d00 \(Self.peer) 00000000 0000")])
            #expect(await bench.device.encryptionCount == 1)
            #expect(await bench.device.pairingCount == 1)
            // What the link has cannot be asked for again.
            #expect(throws: SystemCallError(call: "BT_SECURITY", errno: EINVAL)) {
                try bench.radio.system.setSecurity(bench.descriptor, .medium)
            }
        }
    }

    @Test("The kernel's own connect encrypts as well before the socket is connected")
    func kernelsConnect() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(200))
            #expect(bench.commands.received() == [Self.encrypted])
            #expect(bench.link?.finishConnect() == .connected)
            #expect(try bench.security() == SocketSecurity(level: .medium, keySize: 16))
        }
    }

    @Test("A connected socket that asks is silent until the link is encrypted")
    func aSocketThatAsksIsSilentUntilTheLinkIsEncrypted() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            try await bench.initiate()
            try bench.attach()
            try bench.radio.system.setSecurity(bench.descriptor, .medium)
            _ = bench.link?.send([0x0A, 3, 0])
            await bench.pass(.milliseconds(5))
            #expect(bench.link?.receivePacket() == nil)
            await bench.pass(.milliseconds(50))
            #expect(bench.link?.receivePacket() == [0x0B, 1])
        }
    }

    @Test("The client configuration of a bonded client comes back with the encryption")
    func theConfigurationOfABondedClientComesBackWithTheEncryption() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            try await bench.pair()
            _ = bench.link?.send([0x12, 8, 0, 1, 0])
            await bench.pass(.milliseconds(50))
            #expect(bench.link?.receivePacket() == [0x13])
            try await bench.disconnect()
            #expect(await !bench.device.isSubscribed(to: 0xFFF3))
            try await bench.initiate()
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(20))
            #expect(await bench.device.isSubscribed(to: 0xFFF3))
            // Not without encryption.
            try await bench.disconnect()
            try await bench.initiate()
            try bench.attach()
            #expect(await !bench.device.isSubscribed(to: 0xFFF3))
            #expect(await bench.read(3) == "010a03000f")
        }
    }

    @Test("Encryption can end while the link stays up")
    func encryptionStops() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            try await bench.initiate()
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(20))
            _ = bench.commands.received()
            await bench.radio.stopEncryption(of: bench.device)
            await bench.pass(.zero)
            #expect(bench.commands.received() == ["04080400400000"])
            #expect(try bench.security() == SocketSecurity(level: .low, keySize: 0))
            #expect(await bench.read(3) == "010a03000f")
        }
    }

    // MARK: Failures

    @Test("The peer has lost its key: 06, and the link ends with reason 4; the kernel keeps the key")
    func keyLost() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            await bench.device.forgetBonds()
            try await bench.initiate()
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["04080406400000", "04050400400016"])
            #expect(bench.management.received().last == packet("0c000000 0800 \(Self.peer) 04"))
            #expect(bench.link?.finishConnect() == .failed(errno: ECONNABORTED))
            #expect(await bench.radio.longTermKeys().count == 1)
            // Only after Unpair there is a new bond.
            bench.link = nil
            try await bench.initiate()
            try bench.attach()
            let refused = try await bench.exchange("19000000 0800 \(Self.peer) 03")
            #expect(refused.last == packet("01000000 0a00 1900 13 \(Self.peer)"))
            #expect(
                try await bench.exchange("1b000000 0800 \(Self.peer) 00")
                    == [packet("01000000 0a00 1b00 00 \(Self.peer)")])
            #expect(try await bench.pair().last == packet("01000000 0a00 1900 00 \(Self.peer)"))
        }
    }

    @Test("The peer has another key: the link ends by a MIC failure, for the kernel for no reason")
    func otherKey() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            await bench.device.replaceBondKeys()
            try await bench.initiate()
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["0405040040003d"])
            #expect(bench.management.received().last == packet("0c000000 0800 \(Self.peer) 00"))
            #expect(bench.link?.finishConnect() == .failed(errno: ENOSYS))
        }
    }

    @Test(
        "Another program has emptied the list: a pairing begins; the socket is never connected, or at once unencrypted"
    )
    func ourKeyMissing() async throws {
        for isConnected in [false, true] {
            try await VirtualTime.run { time in
                let bench = try await bonded(time)
                await bench.radio.connectWhilePairing(isConnected)
                let other = try await bench.anotherSocket()
                try other.send("13000000 0200 0000")
                await bench.pass(.zero)
                // Nothing is reported.
                #expect(bench.management.received().isEmpty)
                try await bench.initiate()
                try bench.attach(level: .medium)
                await bench.pass(.milliseconds(50))
                #expect(bench.management.received().last?.hasPrefix(packet("0f000000 0c00 \(Self.peer) 01")) == true)
                #expect(bench.link?.finishConnect() == (isConnected ? .connected : .pending))
                if isConnected { #expect(try bench.security() == SocketSecurity(level: .low, keySize: 0)) }
                #expect(
                    try await bench.exchange("1d000000 0700 \(Self.peer)") == [
                        packet("01000000 0a00 1d00 00 \(Self.peer)"), packet("11000000 0800 \(Self.peer) 05"),
                    ])
                await bench.pass(.seconds(10))
                // The link stays; a socket that waits does so for ever, and closing it ends the link.
                #expect(bench.commands.received().isEmpty)
                #expect(await bench.device.pairingCount == 1)
                guard !isConnected else { return }
                #expect(bench.link?.finishConnect() == .pending)
                bench.link = nil
                await bench.pass(.seconds(3))
                #expect(bench.commands.received() == ["04050400400016"])
            }
        }
    }

    @Test("A peer that sends without encryption makes the kernel report the socket as connected, before its key fails")
    func earlyPackets() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            await bench.device.forgetBonds()
            var security = VirtualSecurity()
            security.earlyPackets = [[0x1B, 7, 0, 0x66]]
            await bench.device.setSecurity(security)
            try await bench.initiate()
            try bench.attach(level: .medium)
            #expect(bench.link?.finishConnect() == .connected)
            #expect(try bench.security() == SocketSecurity(level: .low, keySize: 0))
            #expect(bench.link?.receivePacket() == [0x1B, 7, 0, 0x66])
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["04080406400000", "04050400400016"])
        }
    }

    @Test("The level is the one that was asked, not what the key is worth; asking for more pairs again")
    func theLevelIsTheOneThatWasRequested() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity(capability: .displayYesNo))
            try await bench.linked()
            _ = try await bench.exchange("19000000 0800 \(Self.peer) 01", for: .milliseconds(50))
            _ = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(100))
            #expect(try bench.security().level == .fips)
            try await bench.disconnect()
            try await bench.initiate()
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(20))
            #expect(try bench.security() == SocketSecurity(level: .medium, keySize: 16))
            #expect(await bench.read(5) == "0b02")
            try await bench.disconnect()
        }
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            try await bench.initiate()
            try bench.attach(level: .high)
            await bench.pass(.milliseconds(50))
            // No capability for it: the pairing fails, the link stays, and the socket is stuck.
            #expect(bench.management.received().last == packet("11000000 0800 \(Self.peer) 05"))
            #expect(bench.link?.finishConnect() == .pending)
        }
    }

    @Test("A second request during a pairing is believed: the level says more than the key is worth")
    func levelsLie() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            let descriptor = bench.descriptor
            try bench.radio.system.setSecurity(descriptor, .medium)
            await bench.pass(.milliseconds(50))
            try bench.radio.system.setSecurity(descriptor, .high)
            _ = bench.management.received()
            let events = try await bench.exchange("1c000000 0700 \(Self.peer)", for: .milliseconds(100))
            #expect(events.last?.hasPrefix(packet("0a000000 2500 01 \(Self.peer) 02")) == true)
            #expect(try bench.security() == SocketSecurity(level: .high, keySize: 16))
        }
    }

    @Test("Secure Connections only: the kernel ends each link that it encrypts")
    func secureConnectionsOnly() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            _ = try await bench.exchange("2d000000 0100 02")
            try await bench.initiate()
            try bench.attach(level: .medium)
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == [Self.encrypted, "04050400400016"])
        }
    }

    // MARK: Raw encryption

    @Test("A command encrypts without a key in the kernel, whose socket never hears of it")
    func rawEncryption() async throws {
        try await VirtualTime.run { time in
            let bench = try await bonded(time)
            let key = await bench.device.bondKeys.first?.value
            let hex = key?.withBytes { bytes in Hex.encode((0..<bytes.count).map { bytes[$0] }) } ?? ""
            _ = try await bench.exchange("13000000 0200 0000")
            try await bench.initiate()
            let command = "0119201c 4000 0000000000000000 0000 \(hex)"
            try bench.commands.send(command)
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["040f0400011920", Self.encrypted])
            try bench.attach()
            #expect(try bench.security() == SocketSecurity(level: .low, keySize: 0))
            #expect(await bench.read(3) == "0b01")
            // Again: another key for an encrypted link.
            try bench.commands.send(command)
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["040f0400011920", "0430030040 00".filter { $0 != " " }])
            // Other keys, other links, bad lengths.
            try bench.commands.send("0119201c 4100 0000000000000000 0000 \(hex)")
            try bench.commands.send("01192004 40000000")
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["040f0402011920", "040f0412011920"])
            try bench.commands.send("0119201c 4000 0000000000000000 0000 \(String(repeating: "77", count: 16))")
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["040f0400011920", "0405040040003d"])
        }
    }

    @Test("A key of a command that the peer does not have ends as one of the kernel does")
    func rawKeyLost() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            try bench.commands.send(packet("0119201c 4000 0000000000000000 0000", String(repeating: "77", count: 16)))
            await bench.pass(.milliseconds(20))
            #expect(bench.commands.received() == ["040f0400011920", "04080406400000", "04050400400016"])
            #expect(bench.management.received() == [packet("0c000000 0800 \(Self.peer) 04")])
        }
    }

    // MARK: Forgetting

    @Test("Unpair ends the link, removes the keys and notifies the others")
    func unpairEndsTheLinkAndRemovesTheKeys() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, VirtualSecurity())
            try await bench.linked()
            try await bench.pair()
            let other = try await bench.anotherSocket()
            let events = try await bench.exchange("1b000000 0800 \(Self.peer) 01")
            #expect(
                events == [
                    packet("0c000000 0800 \(Self.peer) 02"), packet("01000000 0a00 1b00 00 \(Self.peer)"),
                ])
            #expect(other.received().last == packet("16000000 0700 \(Self.peer)"))
            #expect(await bench.radio.longTermKeys().isEmpty)
            #expect(await bench.device.isBonded)
            #expect(
                try await bench.exchange("1b000000 0800 \(Self.peer) 01")
                    == [packet("01000000 0a00 1b00 06 \(Self.peer)")])
        }
    }

    // MARK: Private addresses

    private static let irk = "000102030405060708090a0b0c0d0e0f"
    private static let onAir = PeerID(address: BluetoothAddress(rawValue: 0x62CC_28F3_EE75), type: .random)

    private func privatePeer() throws -> VirtualSecurity {
        var security = VirtualSecurity()
        security.identity = VirtualIdentity(KernelSecurityBench.id, key: try Hex.decode(Self.irk))
        return security
    }

    @Test("A pairing distributes the identity, which names the peer from then on")
    func aPairingDistributesTheIdentity() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, try privatePeer(), at: Self.onAir)
            try await bench.manage()
            try await bench.initiate(Self.onAir)
            try bench.attach(Self.onAir)
            _ = bench.management.received()
            let before = "75eef328cc6202"
            let question = try await bench.exchange("19000000 0800 \(before) 03", for: .milliseconds(50))
            #expect(question.last?.hasPrefix(packet("0f000000 0c00 \(before) 01")) == true)
            let events = try await bench.exchange("1c000000 0700 \(before)", for: .milliseconds(100))
            #expect(events.count == 4)
            #expect(events[1] == packet("18000000 1e00 01 75eef328cc62 \(Self.peer) \(Self.irk)"))
            #expect(events[2].hasPrefix(packet("0a000000 2500 01 \(Self.peer) 02 00 10")))
            #expect(events[3] == packet("01000000 0a00 1900 00 \(Self.peer)"))
            #expect(try await bench.exchange("15000000 0000") == [packet("01000000 0c00 1500 00 0100 \(Self.peer)")])
            // From now on with the identity, under another address.
            try await bench.disconnect()
            let next = try #require(await bench.radio.rotateAddress(of: bench.device))
            #expect(next != Self.onAir && next.kind == .resolvablePrivate)
            try await bench.initiate(next)
            #expect(bench.management.received() == [packet("0b000000 0d00 \(Self.peer) 00000000 0000")])
            try bench.attach(KernelSecurityBench.id, level: .medium)
            await bench.pass(.milliseconds(20))
            #expect(bench.link?.finishConnect() == .connected)
            #expect(bench.radio.system.linkHandle(0, KernelSecurityBench.id.address) != nil)
            try await bench.disconnect()
            // With the private address it hangs: the link is filed under the identity.
            try await bench.initiate(next)
            try bench.attach(next)
            await bench.pass(.seconds(1))
            #expect(bench.link?.finishConnect() == .pending)
            bench.link = nil
            await bench.pass(.seconds(5))
            // The kernel's own connect finds the identity.
            try bench.attach(KernelSecurityBench.id, level: .medium)
            await bench.pass(.milliseconds(300))
            #expect(bench.link?.finishConnect() == .connected)
            #expect(try bench.security().keySize == 16)
        }
    }

    @Test("Of two peers with equal keys the kernel takes the first one, whichever it is")
    func equalKeys() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, try privatePeer(), at: Self.onAir)
            try await bench.manage()
            let stranger = "665544332211 01"
            _ = try await bench.exchange(packet("30000000 3000 0200", stranger, Self.irk, Self.peer, Self.irk))
            try await bench.initiate(Self.onAir)
            #expect(bench.management.received() == [packet("0b000000 0d00", stranger, "00000000 0000")])
        }
    }

    @Test("Without identities loaded once, the kernel does not ask for one: no bond is possible")
    func identityNotAsked() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, try privatePeer(), at: Self.onAir)
            for command in ["0500000001 0000", "2d00000001 0001", "0900000001 0001", "0500000001 0001"] {
                _ = try await bench.exchange(command)
            }
            try await bench.initiate(Self.onAir)
            try bench.attach(Self.onAir)
            _ = bench.management.received()
            _ = try await bench.exchange("19000000 0800 75eef328cc6202 03", for: .milliseconds(50))
            let events = try await bench.exchange("1c000000 0700 75eef328cc6202", for: .milliseconds(100))
            #expect(events.count == 3)
            #expect(events[1].hasPrefix(packet("0a000000 2500 00 75eef328cc6202")))
        }
    }

    @Test("Keys that are not loaded: the private address is the name, and the key is not found")
    func identityUnknown() async throws {
        try await VirtualTime.run { time in
            let bench = try await KernelSecurityBench(time, try privatePeer(), at: Self.onAir)
            try await bench.manage()
            try await bench.initiate(Self.onAir)
            try bench.attach(Self.onAir)
            _ = try await bench.exchange("19000000 0800 75eef328cc6202 03", for: .milliseconds(50))
            _ = try await bench.exchange("1c000000 0700 75eef328cc6202", for: .milliseconds(100))
            try await bench.disconnect()
            _ = try await bench.exchange("30000000 0200 0000")
            try await bench.initiate(Self.onAir)
            try bench.attach(Self.onAir, level: .medium)
            await bench.pass(.milliseconds(50))
            #expect(bench.management.received().last?.hasPrefix(packet("0f000000 0c00 75eef328cc6202 01")) == true)
        }
    }

    @Test("A bonded central learns of a missed change once it has encrypted the link", arguments: [true, false])
    func missedChange(isAnnounced: Bool) async throws {
        let services: [VirtualService] = [.genericAttribute, .battery(level: 1)]
        let device = VirtualPeripheral(VirtualDevice(name: "Bonded", services: services))
        let address = BluetoothAddress(rawValue: 1)
        let key = ManagementLongTermKey(
            peer: ManagementPeer(PeerID(address: address, type: .public)), kind: .secureConnections, isCentral: true,
            size: 16, ediv: 0, rand: 0, key: .zero)
        var first = RawClient(try await device.connect())
        await device.paired(VirtualLinkSecurity(), with: address, VirtualBond(key, VirtualLinkSecurity()))
        #expect(first.request("1204000200") == "13")
        await device.disconnect()
        let battery = VirtualDevice(name: "Bonded", services: services + [.battery(level: 2)])
        #expect(await device.changeServices(to: battery, isAnnounced: isAnnounced) == 9...12)

        var second = RawClient(try await device.connect())
        #expect(second.request("0a0400") == "0b0000")
        #expect(await device.encrypted(with: VirtualKey(key), by: address) == .encrypted)
        if isAnnounced {
            #expect(second.next() == "1d030009000c00")
            second.send("1e")
        }
        #expect(second.request("0a0400") == "0b0200")
    }
}
