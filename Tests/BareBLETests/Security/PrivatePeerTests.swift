import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Bonded peers that change their addresses are one peer.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct PrivatePeerTests {
    private let identity = SecurityBench.identity
    private let environment = ServiceEnvironment(variables: [:], processID: 1)

    private func central(_ bench: SecurityBench, keepingIn folder: Folder) -> Central {
        let store = StateStore(directory: folder.path, identifier: "hub")
        return SecurityBench.central(bench.radio, bench.bonds, change: { $0.stateStore = store })
    }

    /// The commands of the resolving list, from LE Add Device To Resolving List to LE Set Resolvable Private Address
    /// Timeout, and LE Set Privacy Mode.
    private static let resolvingListCommands = Set<UInt16>(0x2027...0x202E).union([0x204E])

    /// The list has few entries, and a controller refuses its commands while it scans: none of them is sent.
    @Test(.row("S11", "W67")) func aSessionStaysOneSessionOverAddresses() async throws {
        try await VirtualTime.run { time in
            let sent = Lock<Set<UInt16>>([])
            let bench = try await SecurityBench(
                time, isPrivate: true,
                trace: { packet in
                    guard packet.isOutgoing, packet.type == .command, packet.bytes.count >= 2 else { return }
                    let opcode = UInt16(packet.bytes[0]) | UInt16(packet.bytes[1]) << 8
                    sent.withLock { _ = $0.insert(opcode) }
                })
            try await bench.pair()
            let options = Session.Options(reconnect: .backoff(initial: .seconds(1), jitter: 0))
            let session = try await bench.central.session(with: identity, options)
            var events = session.events.makeAsyncIterator()
            var changes = session.securityChanges.makeAsyncIterator()
            for round in 1...20 {
                #expect(try await events.words(upTo: "ready").suffix(2) == ["connected", "ready"], "\(round)")
                #expect(try await changes.next()?.level == 2, "\(round)")
                let peripheral = try await session.ready()
                #expect(await peripheral.security.isEncrypted)
                #expect(peripheral.id == identity)
                #expect(try await peripheral.read(0xFFF1) == [7])
                await bench.radio.disconnect(bench.device)
                await bench.radio.rotateAddress(of: bench.device)
            }
            #expect(await bench.device.pairingCount == 1)
            await session.disconnect()
            let opcodes = sent.withLock { $0 }
            #expect(opcodes.contains(HCIOpcode.leExtendedCreateConnection.rawValue))
            #expect(opcodes.isDisjoint(with: Self.resolvingListCommands))
        }
    }

    /// Its link would not be encrypted, and nothing would show that.
    @Test(.row("S01")) func aPrivateAddressThatCannotBeResolvedIsNotTakenForAStrangers() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let address = try #require(await bench.radio.rotateAddress(of: bench.device))
            let requests = await bench.device.requestCount
            let central = SecurityBench.central(bench.radio, bench.bonds, change: { $0.addressHash = nil })
            let refused = await #expect(throws: BLEError.self) { _ = try await central.connect(address) }
            #expect(refused?.code == .notSupported)
            #expect(refused?.hint?.contains("addressHash") == true)
            #expect(await bench.device.requestCount == requests)
            #expect(await !bench.device.isConnected)
        }
    }

    /// The kernel has the link under the identity then, and a bond belongs to that.
    @Test func aPairedLinkIsTheBondsAlsoWhereNothingResolvesItsAddress() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let central = SecurityBench.central(bench.radio, bench.bonds, change: { $0.addressHash = nil })
            let peripheral = try await central.connect(bench.id)
            #expect(try await peripheral.pair().peer == identity)
            #expect(await peripheral.security.bond?.peer == identity)
            #expect(try await peripheral.pair().peer == identity)
            #expect(await bench.device.pairingCount == 1, "there is a bond")
            let channel = try await peripheral.openChannel(psm: 0x80)
            #expect(await channel.isOpen)
            await peripheral.disconnect()
        }
    }

    /// Without CAP_NET_RAW the kernel connects: from 6.19 on to the identity of a bonded peer, which is not on air.
    @Test(.row("S11"), arguments: [true, false]) func theErrorOfTheKernelsConnectNamesPrivateAddresses(
        _ isPrivate: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: isPrivate)
            let peer = try await bench.pair().peer
            await bench.radio.setPermissions([.administration])
            await bench.radio.move(bench.device, to: .outOfRange)
            let central = SecurityBench.central(bench.radio, bench.bonds)
            let refused = await #expect(throws: BLEError.self) {
                _ = try await central.connect(peer, ConnectOptions(timeout: .seconds(20)))
            }
            #expect(refused?.code == .timedOut)
            #expect(refused?.hint?.contains("cap_net_raw") == true)
            #expect(refused?.hint?.contains("6.19") == isPrivate)
        }
    }

    @Test(.row("S11")) func anAddressThatResolvesIsTheIdentity() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let rotated = await bench.radio.rotateAddress(of: bench.device)
            let address = try #require(rotated)
            let peripheral = try await bench.central.connect(address)
            #expect(peripheral.id == identity)
            #expect(await peripheral.security.isEncrypted)
            // A former address is the same peer.
            for name in [identity, address, bench.id] {
                await #expect(throws: error(.busy)) { _ = try await bench.central.connect(name) }
            }
            await peripheral.disconnect()
        }
    }

    @Test(.row("S02", "S11"), arguments: [PairingOptions.Replacement.lostByPeer, .always], [false, true])
    func aBondThatThePeerHasLostIsReplaced(_ replacing: PairingOptions.Replacement, rotates: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            await bench.device.forgetBonds()
            await #expect(throws: error(.bondRejected)) { _ = try await bench.central.connect(identity) }
            if rotates { await bench.radio.rotateAddress(of: bench.device) }
            let options = ConnectOptions(security: .pairing(PairingOptions(replacing: replacing)))
            let peripheral = try await bench.central.connect(identity, options)
            #expect(peripheral.id == identity)
            #expect(await peripheral.security.isEncrypted)
            #expect(await bench.device.pairingCount == 2)
            let bonds = try await bench.central.bonds()
            #expect(bonds.map(\.peer) == [identity] && bonds.first?.rejectedSince == nil)
            await peripheral.disconnect()
            let next = try await bench.central.connect(identity)
            #expect(await next.security.isEncrypted)
            #expect(await bench.device.pairingCount == 2)
            await next.disconnect()
        }
    }

    /// The connect that waits loads the keys of all bonds between the connect that replaces one and its pairing.
    @Test(.row("S11")) func aBondIsReplacedWhileAnotherConnectWaits() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let other = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            let otherID = try #require(await bench.radio.id(of: other))
            let first = try await bench.central.connect(otherID)
            try await first.pair()
            await first.disconnect()
            await bench.device.forgetBonds()
            await #expect(throws: error(.bondRejected)) { _ = try await bench.central.connect(identity) }
            _ = try await bench.central.first(.peer(identity), timeout: .seconds(5))
            let absent = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0777), type: .random)
            let occupied = time.task {
                _ = try await bench.central.connect(absent, ConnectOptions(timeout: .seconds(2)))
            }
            try await time.clock.sleep(for: .milliseconds(100))
            let options = ConnectOptions(security: .pairing(PairingOptions(replacing: .lostByPeer)))
            let replaced = time.task { try await bench.central.connect(identity, options) }
            try await time.clock.sleep(for: .milliseconds(100))
            let waiting = time.task { try await bench.central.connect(otherID) }
            await #expect(throws: error(.timedOut)) { try await occupied.value }
            let links = try await [replaced.value, waiting.value]
            #expect(links.map(\.id) == [identity, otherID])
            for link in links {
                #expect(await link.security.isEncrypted)
                await link.disconnect()
            }
            #expect(await bench.device.pairingCount == 2)
            #expect(await other.pairingCount == 1)
        }
    }

    /// The kernel keeps the key of the peer, and has its links under its identity; whether that is a public address
    /// cannot be seen from one that looks like a static one.
    @Test(
        .row("S11"),
        arguments: ["11:22:33:44:55:C6/public", "C6:55:44:33:22:11/random", "C8:55:44:33:22:11/public"])
    func aPeerThatAnotherProgramHasPairedIsConnectedByItsPrivateAddress(_ name: String) async throws {
        try await VirtualTime.run { time in
            let identity = try #require(PeerID(name))
            var security = VirtualSecurity()
            security.identity = VirtualIdentity(identity, key: Array(0x20...0x2F))
            let bench = try await SecurityBench(time, security)
            let first = await bench.radio.rotateAddress(of: bench.device)
            let link = try await bench.central.connect(try #require(first))
            #expect(try await link.pair().peer == identity)
            await link.disconnect()
            let others = Central(Configuration(), radio: bench.radio)
            let second = await bench.radio.rotateAddress(of: bench.device)
            let address = try #require(second)
            let peripheral = try await others.connect(address)
            #expect(peripheral.id == address)
            #expect(try await peripheral.read(0xFFF2) == [8])
            await peripheral.disconnect()
        }
    }

    @Test func aPeerHasOneSessionUnderAllItsNames() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let session = try await bench.central.session(with: bench.id)
            let link = try await session.ready()
            #expect(link.id == identity)
            #expect(await bench.central.session(of: identity) === session)
            await #expect(throws: error(.busy)) { _ = try await bench.central.session(with: identity) }
            await #expect(throws: error(.busy)) { _ = try await bench.central.connect(identity) }
            let released = try await session.releaseLink()
            try await session.returnLink(released)
            #expect(try await session.ready() === link)
            await session.disconnect()
        }
    }

    /// The links of a session have the identity of the peer, and the state has the address that it was begun with.
    @Test(.row("S11")) func aSessionThatIsRestoredContinuesTheLinkThatWasHandedOver() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let first = central(bench, keepingIn: folder)
            _ = try await first.restore(from: environment)
            let session = try await first.session(with: bench.id)
            #expect(try await session.ready().id == identity)
            let links = await first.suspend(keepingLinks: true)
            #expect(links.map(\.peer) == [identity])
            let second = central(bench, keepingIn: folder)
            let restoration = try await second.restore(links, from: environment)
            #expect(restoration.links.isEmpty)
            let restored = try #require(restoration.peer(bench.id))
            if case .adopted(let next) = restored.outcome {
                #expect(try await next.ready(within: .seconds(20)).id == identity)
            } else {
                Issue.record("\(restored.outcome)")
            }
            await second.suspend()
        }
    }

    @Test func aPeerIsForgottenUnderAllItsNames() async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let first = central(bench, keepingIn: folder)
            _ = try await first.restore(from: environment)
            let session = try await first.session(with: bench.id)
            let link = try await session.ready()
            await first.forget(try #require(link.id))
            await first.suspend()
            #expect(session.state == .ended)
            let second = central(bench, keepingIn: folder)
            #expect(try await second.restore(from: environment).peers.isEmpty)
            await second.suspend()
        }
    }

    @Test(.row("S11")) func aPeerThatIsAwayTimesOut() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            await bench.radio.move(bench.device, to: .outOfRange)
            try await time.clock.sleep(for: .seconds(20))
            await #expect(throws: error(.timedOut)) {
                _ = try await bench.central.connect(identity, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(await bench.radio.isScanning() == false)
            await bench.radio.rotateAddress(of: bench.device)
            await bench.radio.move(bench.device, to: .near)
            let peripheral = try await bench.central.connect(identity)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    @Test func aConnectThatListensFailsWhereTheAdapterGoesAway() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            await bench.radio.move(bench.device, to: .outOfRange)
            let connected = time.task {
                _ = try await bench.central.connect(identity, ConnectOptions(timeout: nil))
            }
            try await time.clock.sleep(for: .seconds(60))
            await bench.radio.unplug()
            await #expect(throws: error(.noAdapter)) { try await connected.value }
        }
    }

    @Test(.row("S11", "S02")) func aReplayedAddressEndsAsALostBond() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            await bench.radio.move(bench.device, to: .outOfRange)
            // Another device sends the address, and has no key.
            let forger = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            await bench.radio.changeAddress(of: forger, to: bench.id)
            let requests = await forger.requestCount
            await #expect(throws: error(.bondRejected)) { _ = try await bench.central.connect(identity) }
            #expect(await forger.requestCount == requests)
            #expect(await forger.pairingCount == 0)
        }
    }

    @Test(.row("S10")) func aPeerWithoutIdentityGetsALinkAndNoBond() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let address = PeerID(address: BluetoothAddress(rawValue: 0x5A8D_ED8E_AB1E), type: .random)
            await bench.radio.changeAddress(of: bench.device, to: address)
            let peripheral = try await bench.central.connect(address)
            await #expect(throws: error(.notBonded)) { try await peripheral.pair() }
            #expect(await peripheral.security.isEncrypted)
            #expect(await peripheral.security.bond == nil)
            #expect(try await bench.central.bonds().isEmpty)
            await peripheral.disconnect()
        }
    }

    @Test(.row("S02")) func aSessionEndsAtOnceWhenTheBondIsRejected() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            try await bench.pair()
            let session = try await bench.central.session(
                with: identity, Session.Options(reconnect: .backoff(initial: .seconds(1), jitter: 0)))
            var events = session.events.makeAsyncIterator()
            _ = try await events.words(upTo: "ready")
            await bench.device.forgetBonds()
            await bench.radio.disconnect(bench.device)
            let words = try await events.words(upTo: "gaveUp bondRejected")
            #expect(
                words == [
                    "disconnected disconnected", "connecting 2", "disconnected bondRejected", "gaveUp bondRejected",
                ])
            #expect(session.state == .gaveUp(error(.bondRejected)))
            #expect(await bench.device.pairingCount == 1)
            #expect(try await bench.central.bonds().first?.rejectedSince != nil)
            await session.disconnect()
        }
    }

    @Test(.row("S13")) func pairingThatFailsEachTimeIsAttemptedEverMoreRarely() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.response = .refuse
            let bench = try await SecurityBench(time, security)
            let options = Session.Options(
                connect: ConnectOptions(security: .pairing(PairingOptions())),
                reconnect: .backoff(initial: .seconds(1), max: .seconds(300), jitter: 0))
            let session = try await bench.central.session(with: bench.id, options)
            var events = session.events.makeAsyncIterator()
            var pauses: [Duration] = []
            while pauses.count < 12, let event = try await events.next() {
                guard case .disconnected(let loss) = event else { continue }
                #expect(loss.error.code == .pairingRefused)
                if let delay = loss.delay { pauses.append(delay) }
            }
            #expect(pauses.first == .seconds(1) && pauses.last == .seconds(300))
            #expect(pauses == pauses.sorted())
            #expect(await bench.device.pairingCount == 0)
            await session.disconnect()
        }
    }
}
