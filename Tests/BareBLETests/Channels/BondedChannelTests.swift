import BLECore
import BLELinux
import BareBLE
import BareBLECrypto
import BareBLETestKit
import TestSupport
import Testing

/// Channels beside the links of bonded peers: encrypted as these are, or not opened.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct BondedChannelTests {
    /// How the link to the bonded peer is encrypted.
    enum Means: CaseIterable, Sendable {
        case kernel, command, neither
    }

    /// What happens while the kernel opens a channel.
    enum Change: CaseIterable, Sendable {
        case nothing
        /// The link ends, and the kernel makes another one for the channel.
        case anotherLink
        /// The channel is one of an unencrypted link.
        case linkInClear
        /// The link is no longer encrypted.
        case encryptionStops
    }

    /// A central beside a kernel that changes something, and a peer with a bond.
    private struct Bed {
        let bench: SecurityBench
        let central: Central
        let link: Peripheral
        /// What the kernel was asked for.
        let requests: Lock<[ChannelRequest]>
        /// The far ends of the channels that are not the device's.
        let farEnds: Lock<[LinkSocketBox]>
        /// The level that the kernel reports of the link, if it is another one.
        let linkLevel: Lock<SocketSecurity.Level?>

        init(
            _ time: VirtualTime, _ means: Means, _ change: Change = .nothing,
            _ security: VirtualSecurity = VirtualSecurity(), _ pairing: PairingOptions = PairingOptions()
        ) async throws {
            let bench = try await SecurityBench(time, security)
            await bench.device.setReaction(toChannels: 0x80, .accept)
            try await bench.pair(pairing)
            if means == .command { await bench.radio.setPermissions(.commands) }
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            configuration.addressHash = { $0.hash }
            let (requests, farEnds) = (Lock<[ChannelRequest]>([]), Lock<[LinkSocketBox]>([]))
            let descriptor = Lock<Int32>(-1)
            let linkLevel = Lock<SocketSecurity.Level?>(nil)
            let (radio, device) = (bench.radio, bench.device)
            let central = Central(configuration, radio: radio) { system in
                let (openChannel, security) = (system.openChannel, system.security)
                system.openChannel = { own, type, peer, request throws(SystemCallError) in
                    requests.withLock { $0.append(request) }
                    switch change {
                    case .nothing: return try openChannel(own, type, peer, request)
                    case .anotherLink: radio.assumeIsolated { $0.disconnect(device) }
                    case .linkInClear: break
                    case .encryptionStops: radio.assumeIsolated { $0.stopEncryption(of: device) }
                    }
                    let (ours, theirs) = try LinkSocket.pair()
                    farEnds.withLock { $0.append(LinkSocketBox(LinkSocket(adopting: theirs))) }
                    descriptor.withLock { $0 = ours }
                    return LinkSocket(adopting: ours)
                }
                system.security = { asked throws(SystemCallError) in
                    guard asked == descriptor.withLock(\.self) else {
                        let found = try security(asked)
                        guard let level = linkLevel.withLock(\.self) else { return found }
                        return SocketSecurity(level: level, keySize: found.keySize)
                    }
                    // What the kernel reports of the other link is right or wrong, as the events are to be enough.
                    return change == .linkInClear
                        ? SocketSecurity(level: .low, keySize: 0) : SocketSecurity(level: .fips, keySize: 16)
                }
            }
            let demand: ConnectOptions.SecurityDemand = means == .neither ? .none : .asBonded
            self.bench = bench
            self.central = central
            self.requests = requests
            self.farEnds = farEnds
            self.linkLevel = linkLevel
            link = try await central.connect(bench.id, ConnectOptions(security: demand))
        }
    }

    @Test(arguments: Means.allCases) func theKernelIsAskedForTheLevelOfTheBondWhereItHasTheKey(
        _ means: Means
    ) async throws {
        try await VirtualTime.run { time in
            let bed = try await Bed(time, means)
            let channel = try await bed.link.openChannel(psm: 0x80)
            let requests = bed.requests.withLock(\.self)
            let level: SocketSecurity.Level? = means == .kernel ? .medium : nil
            #expect(requests.map(\.security) == [level])
            #expect(requests.map(\.isEncrypted) == [means != .neither])
            let far = try #require(await bed.bench.device.nextChannel())
            try await channel.send([1, 2])
            #expect(await far.nextPacket() == [1, 2])
            #expect(await bed.bench.device.pairingCount == 1)
            await bed.link.disconnect()
        }
    }

    @Test func theLevelIsTheOneOfTheKey() async throws {
        try await VirtualTime.run { time in
            let passkey = try #require(Passkey(123_456))
            let bed = try await Bed(
                time, .kernel, .nothing, VirtualSecurity(capability: .displayOnly, passkey: 123_456),
                PairingOptions(agent: .passkey(passkey), require: .authenticated))
            _ = try await bed.link.openChannel(psm: 0x80)
            let level: SocketSecurity.Level? = .fips
            #expect(bed.requests.withLock(\.self).map(\.security) == [level])
            await bed.link.disconnect()
        }
    }

    /// Right after a pairing the kernel reports the level that was requested, though the key is worth more.
    @Test func theKernelIsAskedForNoMoreThanTheLinkHas() async throws {
        try await VirtualTime.run { time in
            let passkey = try #require(Passkey(123_456))
            let bed = try await Bed(
                time, .kernel, .nothing, VirtualSecurity(capability: .displayOnly, passkey: 123_456),
                PairingOptions(agent: .passkey(passkey), require: .authenticated))
            bed.linkLevel.withLock { $0 = .high }
            _ = try await bed.link.openChannel(psm: 0x80)
            let level: SocketSecurity.Level? = .high
            #expect(bed.requests.withLock(\.self).map(\.security) == [level])
            await bed.link.disconnect()
        }
    }

    /// Its end waits to be read when the channel is open, and the kernel's handles are used again.
    @Test(.row("S01"), arguments: Means.allCases) func aChannelOfAnotherLinkIsRefused(_ means: Means) async throws {
        try await VirtualTime.run { time in
            let bed = try await Bed(time, means, .anotherLink)
            await #expect(throws: error(.disconnected)) { _ = try await bed.link.openChannel(psm: 0x80) }
            #expect(bed.farEnds.withLock { $0.map(\.isHungUp) } == [true])
        }
    }

    @Test(.row("S01")) func aChannelOfALinkInClearIsRefused() async throws {
        try await VirtualTime.run { time in
            let bed = try await Bed(time, .kernel, .linkInClear)
            await #expect(throws: error(.disconnected)) { _ = try await bed.link.openChannel(psm: 0x80) }
            #expect(bed.farEnds.withLock { $0.map(\.isHungUp) } == [true])
            await bed.link.disconnect()
        }
    }

    @Test(.row("S16"), arguments: [Means.kernel, .command]) func aChannelOfALinkThatIsNoLongerEncryptedIsRefused(
        _ means: Means
    ) async throws {
        try await VirtualTime.run { time in
            let bed = try await Bed(time, means, .encryptionStops)
            await #expect(throws: BLEError.self) { _ = try await bed.link.openChannel(psm: 0x80) }
            #expect(bed.farEnds.withLock { $0.map(\.isHungUp) } == [true])
            _ = await bed.link.disconnected()
        }
    }
}
