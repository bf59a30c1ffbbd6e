import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Links to bonded peers: encrypted before their first byte, or not made.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct BondedLinkTests {
    /// An unencrypted notification of the protected value: handle 3 of the bench's device or not, it must not arrive.
    private let forged: [UInt8] = [0x1B, 0x03, 0x00, 0x66]

    @Test(.row("S01", "S02")) func whatAForgerSendsInClearIsNotDelivered() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            await bench.device.forgetBonds()
            var security = VirtualSecurity()
            security.earlyPackets = [forged, forged]
            await bench.device.setSecurity(security)
            let requests = await bench.device.requestCount
            await #expect(throws: error(.bondRejected)) { _ = try await bench.central.connect(bench.id) }
            #expect(await bench.device.requestCount == requests, "nothing is sent to it")
            #expect(await bench.device.pairingCount == 1)
            #expect(try await bench.central.bonds().first?.rejectedSince != nil, "the bond is kept, and marked")
            #expect(await bench.device.isConnected == false)
        }
    }

    @Test(.row("S01")) func whatComesBeforeEncryptionIsDiscardedAndEndsItsWait() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            var security = VirtualSecurity()
            // A notification, an indication, and a request of the peer's own client.
            security.earlyPackets = [forged, [0x1D, 0x03, 0x00, 0x01], [0x02, 0x40, 0x00]]
            await bench.device.setSecurity(security)
            let peripheral = try await bench.central.connect(bench.id, ConnectOptions(mtu: 23))
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
            #expect(await peripheral.security.isEncrypted)
            #expect(await bench.central.statistics.discardedPackets == 3)
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
        }
    }

    @Test func aSessionReportsThatItsLinkIsEncrypted() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let bond = try await bench.pair()
            let session = try await bench.central.session(with: bench.id)
            var changes = session.securityChanges.makeAsyncIterator()
            _ = try await session.ready()
            let security = try #require(try await changes.next())
            #expect(security.level == 2 && security.keySize == 16 && security.bond?.peer == bond.peer)
            await session.disconnect()
            #expect(try await changes.next() == nil)
            var late = session.securityChanges.makeAsyncIterator()
            #expect(try await late.next() == nil)
        }
    }

    @Test func aSessionReportsThatItsLinkIsEncryptedBeforeItIsPrepared() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let waiting = Lock<LinkSecuritySequence?>(nil)
            let options = Session.Options(reconnect: .backoff(initial: .seconds(1), jitter: 0))
            let session = try await bench.central.session(
                with: bench.id, options,
                onReady: { _ in
                    guard let changes = waiting.withLock({ $0.take() }) else { return }
                    var iterator = changes.makeAsyncIterator()
                    let change = try await iterator.next()
                    #expect(change?.level == 2)
                })
            _ = try await session.ready()
            var events = session.events.makeAsyncIterator()
            #expect(try await events.next() == .ready)
            waiting.withLock { $0 = session.securityChanges }
            await bench.radio.disconnect(bench.device)
            let words = try await events.words(upTo: "ready")
            let isTaken = waiting.withLock { $0 == nil }
            #expect(isTaken)
            // Otherwise `onReady` takes too long, and another link is made.
            #expect(words.filter { $0 == "connected" } == ["connected"], "\(words)")
            await session.disconnect()
        }
    }

    @Test func aSessionReportsWhatAPairingOnDemandHasDone() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.onDemand = PairingOptions() })
            let session = try await bench.central.session(with: bench.id)
            var changes = session.securityChanges.makeAsyncIterator()
            let link = try await session.ready()
            #expect(await link.security == .none)
            #expect(try await link.read(0xFFF1) == [7])
            #expect(try await changes.next()?.level == 2)
            await session.disconnect()
            #expect(try await changes.next() == nil)
        }
    }

    /// Returns a session with a bonded peer, and the link that it has given away, which has ended.
    private static func sessionWithAnEndedLink(_ bench: SecurityBench) async throws -> (Session, Peripheral) {
        try await bench.pair()
        let session = try await bench.central.session(with: bench.id)
        _ = try await session.ready()
        let lent = try await session.releaseLink()
        await lent.disconnect()
        return (session, lent)
    }

    /// It has no security any more.
    @Test func anEndedLinkToABondedPeerIsReplacedOnceItIsReturned() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let (session, lent) = try await Self.sessionWithAnEndedLink(bench)
            try await session.returnLink(lent)
            let next = try await session.ready()
            #expect(next !== lent)
            #expect(await next.security.isEncrypted)
            await session.disconnect()
        }
    }

    @Test func aSessionReportsNoSecurityOfALinkThatHasEnded() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let (session, lent) = try await Self.sessionWithAnEndedLink(bench)
            var changes = session.securityChanges.makeAsyncIterator()
            try await session.returnLink(lent)
            // That of the link after it.
            #expect(try await changes.next()?.level == 2)
            await session.disconnect()
            #expect(try await changes.next() == nil)
        }
    }

    @Test func theSecurityOfALinkIsKnown() async throws {
        try await VirtualTime.run { time in
            let security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
            let bench = try await SecurityBench(time, security)
            let first = try await bench.central.connect(bench.id)
            #expect(await first.security == .none)
            let passkey = try #require(Passkey(123_456))
            let bond = try await first.pair(PairingOptions(agent: .passkey(passkey), require: .authenticated))
            #expect(await first.security.isAuthenticated)
            await first.disconnect()
            #expect(await first.security == .none)
            let second = try await bench.central.connect(bench.id)
            let found = await second.security
            #expect(found.level == 4 && found.keySize == 16 && found.isAuthenticated && found.bond?.peer == bond.peer)
            await second.disconnect()
        }
    }

    /// The kernel has the first link until the controller has reported its end, some intervals after the command.
    @Test(.row("S03"), arguments: [true, false], [nil, Duration.milliseconds(100)])
    func keysThatTheKernelHasLostAreLoadedAgain(isConnected: Bool, delay: Duration?) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            await bench.radio.connectWhilePairing(isConnected)
            await bench.radio.delayDisconnections(by: delay)
            var events = bench.central.securityEvents.makeAsyncIterator()
            // Another program empties the kernel's lists before the first link comes up.
            let other = try #require(try? await bench.radio.openManagement().get())
            let emptying = OneShot {
                var socket = LinkSocket(adopting: other)
                _ = socket.send([0x13, 0, 0, 0, 2, 0, 0, 0])
                _ = socket.send([0x30, 0, 0, 0, 2, 0, 0, 0])
                _ = socket.release()
            }
            await bench.radio.observe { isCommand in if isCommand { emptying.fire() } }
            let peripheral = try await bench.central.connect(bench.id)
            #expect(await bench.device.pairingCount == 1, "nobody was paired")
            #expect(try await events.next() == .pairingRefused(bench.id))
            #expect(try await events.next() == .keysLoadedAgain(bench.id))
            // It is another link than the one that has ended.
            try await time.clock.sleep(for: .seconds(1))
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    /// Another central has the same bonds, and has read them before.
    @Test func aKeyThatIsRemovedIsLoadedAgainUnlessItsBondIsForgotten() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let other = SecurityBench.central(bench.radio, bench.bonds)
            let link = try await other.connect(bench.id)
            await link.disconnect()
            let key = try #require(await bench.radio.longTermKeys().first)
            var program = LinkSocket(adopting: try await bench.radio.openManagement().get())
            _ = program.send(ManagementUnpairDevice(key.peer, disconnects: false).packet(adapter: 0).bytes)
            try await time.clock.sleep(for: .seconds(1))
            #expect(await bench.radio.longTermKeys().count == 1)
            try await bench.central.forgetBond(with: bench.id)
            try await time.clock.sleep(for: .seconds(1))
            #expect(await bench.radio.longTermKeys().isEmpty)
            #expect(try await other.bonds().isEmpty)
        }
    }

    @Test(.row("S03")) func keysThatAreRemovedAgainAndAgainMeanASharedAdapter() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let requests = await bench.device.requestCount
            let other = try #require(try? await bench.radio.openManagement().get())
            await bench.radio.observe { isCommand in
                guard isCommand else { return }
                var socket = LinkSocket(adopting: other)
                _ = socket.send([0x13, 0, 0, 0, 2, 0, 0, 0])
                _ = socket.release()
            }
            await #expect(throws: error(.adapterShared)) { _ = try await bench.central.connect(bench.id) }
            #expect(await bench.device.requestCount == requests, "nothing is sent without encryption")
            #expect(await bench.device.pairingCount == 1, "nobody was paired")
            await bench.radio.observe(nil)
            let peripheral = try await bench.central.connect(bench.id)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    /// The first program that replies to the kernel's question decides.
    @Test(.row("S03"), arguments: [true, false]) func aRefusalIsNotThePeersAloneWhereAnotherProgramManages(
        isBefore: Bool
    ) async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.response = .refuse
            let bench = try await SecurityBench(time, security)
            var events = bench.central.securityEvents.makeAsyncIterator()
            if !isBefore { _ = try await bench.central.ready(powerOn: true) }
            let other = try #require(try? await bench.radio.openManagement().get())
            var socket = LinkSocket(adopting: other)
            _ = socket.send([0x09, 0, 0, 0, 1, 0, 1])
            await #expect(throws: error(.adapterShared)) { try await bench.pair() }
            #expect(try await events.next() == .otherManager)
        }
    }

    @Test(.row("S03")) func bluetoothdIsNoticedWhenTheAdapterIsPutUnderManagement() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            await bench.radio.runBluetoothd(true)
            var events = bench.central.securityEvents.makeAsyncIterator()
            try await bench.central.ready(powerOn: true)
            #expect(try await events.next() == .otherManager)
        }
    }

    @Test(.row("S06")) func aKeyThatIsTooShortByNowIsNotUsed() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.keySize = 7
            let bench = try await SecurityBench(time, security, configure: { $0.minimumKeySize = 7 })
            #expect(try await bench.pair().keySize == 7)
            let strict = SecurityBench.central(bench.radio, bench.bonds)
            await #expect(throws: error(.keyTooShort)) { _ = try await strict.connect(bench.id) }
        }
    }

    @Test(.row("S16")) func aLinkThatIsNoLongerEncryptedEnds() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let peripheral = try await bench.central.connect(bench.id)
            await bench.radio.stopEncryption(of: bench.device)
            await bench.device.send(raw: forged)
            let reason = await peripheral.disconnected()
            #expect(reason == .other(.authenticationFailure, errorNumber: nil))
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
        }
    }

    /// What waits in the socket is read before the request is written, and before the loop looks at its descriptors.
    @Test(.row("S16")) func aValueAfterTheEndOfTheEncryptionIsNotReadForARequest() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let peripheral = try await bench.central.connect(bench.id)
            let requests = await bench.device.requestCount
            await bench.radio.stopEncryption(of: bench.device)
            await bench.device.send(raw: forged)
            await #expect(throws: error(.disconnected)) { _ = try await peripheral.read(.handle(3)) }
            let reason = await peripheral.disconnected()
            #expect(reason == .other(.authenticationFailure, errorNumber: nil))
            #expect(await peripheral.statistics.unsolicitedNotifications == 0)
            #expect(await bench.device.requestCount == requests, "the request is not sent")
        }
    }

    /// The kernel still reports the socket as encrypted when the end of the link could already be read.
    @Test(.row("S02")) func aRejectionThatIsReadLastIsNotRetried() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let isArmed = Lock(true)
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: bench.bonds)
            let central = Central(configuration, radio: bench.radio) {
                [radio = bench.radio, device = bench.device] system in
                let security = system.security
                system.security = { descriptor throws(SystemCallError) in
                    let found = try security(descriptor)
                    let isDue = isArmed.withLock { isArmed in
                        defer { if found.keySize > 0 { isArmed = false } }
                        return isArmed && found.keySize > 0
                    }
                    if isDue { radio.assumeIsolated { $0.disconnect(device, because: .micFailure) } }
                    return found
                }
            }
            let failure = await #expect(throws: BLEError.self) { _ = try await central.connect(bench.id) }
            #expect(failure?.code == .bondRejected)
            #expect(failure?.hciStatus == .micFailure)
            #expect(await bench.device.isConnected == false)
        }
    }

    @Test(.row("S04")) func aSecurityRequestOfAStrangerIsRefusedAndReported() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            _ = try await bench.central.bonds()
            var events = bench.central.securityEvents.makeAsyncIterator()
            let peripheral = try await bench.central.connect(bench.id)
            for _ in 0..<50 { await bench.device.requestSecurity() }
            #expect(try await events.next() == .securityRequested(bench.id))
            await bench.device.requestSecurity(VirtualSecurityRequest(isBonding: false))
            while let event = try await events.next() {
                if event == .pairingRefused(bench.id) { break }
                #expect(event == .securityRequested(bench.id))
            }
            #expect(await bench.device.pairingCount == 0)
            #expect(await peripheral.security == .none)
            #expect(try await peripheral.read(0xFFF2) == [8])
            await peripheral.disconnect()
        }
    }

    @Test func bondsAndTheirLossAreReported() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            var events = bench.central.securityEvents.makeAsyncIterator()
            let bond = try await bench.pair()
            #expect(try await events.next() == .bonded(bond))
            await bench.device.forgetBonds()
            _ = try? await bench.central.connect(bench.id)
            #expect(try await events.next() == .bondRejected(bench.id))
        }
    }

    // MARK: Demands

    @Test func aDemandedBondMustExist() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let options = ConnectOptions(security: .bonded)
            await #expect(throws: error(.notBonded)) { _ = try await bench.central.connect(bench.id, options) }
            try await bench.pair()
            let peripheral = try await bench.central.connect(bench.id, options)
            #expect(await peripheral.security.isEncrypted)
            await peripheral.disconnect()
        }
    }

    @Test func aDemandedPairingPrecedesEverything() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, isPrivate: true)
            let options = ConnectOptions(security: .pairing(PairingOptions()))
            let peripheral = try await bench.central.connect(bench.id, options)
            #expect(peripheral.id == SecurityBench.identity)
            #expect(await peripheral.security.isEncrypted)
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
            // It is bonded now.
            let again = try await bench.central.connect(SecurityBench.identity, options)
            #expect(await bench.device.pairingCount == 1)
            await again.disconnect()
        }
    }

    @Test func aPairingThatIsDemandedAndFailsEndsTheLink() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.response = .refuse
            let bench = try await SecurityBench(time, security)
            let requests = await bench.device.requestCount
            await #expect(throws: error(.pairingRefused)) {
                _ = try await bench.central.connect(bench.id, ConnectOptions(security: .pairing(PairingOptions())))
            }
            #expect(await bench.device.requestCount == requests)
        }
    }

    @Test(.row("S02")) func aLostBondIsReplacedOnlyWhereTheOptionsAllowIt() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            await bench.device.forgetBonds()
            let never = ConnectOptions(security: .pairing(PairingOptions()))
            let lost = ConnectOptions(security: .pairing(PairingOptions(replacing: .lostByPeer)))
            // The first connect finds out.
            await #expect(throws: error(.bondRejected)) { _ = try await bench.central.connect(bench.id, lost) }
            await #expect(throws: error(.bondRejected)) { _ = try await bench.central.connect(bench.id, never) }
            #expect(await bench.device.pairingCount == 1)
            let peripheral = try await bench.central.connect(bench.id, lost)
            #expect(await bench.device.pairingCount == 2)
            #expect(try await bench.central.bonds().map(\.rejectedSince) == [nil])
            await peripheral.disconnect()
        }
    }

    /// The kernel is not given the key of a bond that is to be replaced. A device that connects by itself would find
    /// none, and may forget its bond.
    @Test func theKeyOfABondThatWasNotReplacedIsInTheKernelAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            #expect(await bench.radio.longTermKeys().count == 1)
            await bench.radio.remove(bench.device)
            let options = ConnectOptions(security: .pairing(PairingOptions(replacing: .always)))
            await #expect(throws: error(.timedOut)) { _ = try await bench.central.connect(bench.id, options) }
            try await time.clock.sleep(for: .seconds(1))
            #expect(await bench.radio.longTermKeys().count == 1)
        }
    }

    @Test func withoutADemandALinkToABondedPeerIsInClear() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            let peripheral = try await bench.central.connect(bench.id, ConnectOptions(security: .none))
            #expect(await peripheral.security == .none)
            #expect(try await peripheral.read(0xFFF2) == [8])
            await #expect(throws: error(.insufficientSecurity)) { _ = try await peripheral.read(0xFFF1) }
            await peripheral.disconnect()
        }
    }
}

/// Something that happens once.
private final class OneShot: Sendable {
    private let body: Lock<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = Lock(body)
    }

    func fire() { body.withLock { $0.take() }?() }
}
