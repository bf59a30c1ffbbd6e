import BLECore
import BLELinux
import BareBLE
import BareBLECrypto
import Logging
import TestSupport
import Testing

@testable import BareBLETestKit

/// Centrals on a virtual radio that pair with a local peripheral.
@Suite(.timeLimit(.minutes(5))) struct PairingCentralTests {
    @Test func aCentralPairsAndItsBondEncryptsLaterLinks() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            #expect(await bench.refusal(of: PairingBench.sealed, to: phone) == .insufficientAuthentication)
            try await bench.pair(phone)
            let bond = try #require(await bench.paired().first)
            #expect(await phone.peer == bond.peer)
            #expect(bond.method == .justWorks && !bond.isAuthenticated)
            #expect(await bench.local.centrals.map(\.isBonded) == [true])
            #expect(try await bench.central.bonds() == [bond])
            #expect(try await phone.read(PairingBench.sealed) == [2])
            // Nothing has excluded a man in the middle.
            #expect(await bench.refusal(of: PairingBench.guarded, to: phone) == .insufficientAuthentication)

            await phone.disconnect()
            await bench.local.refusePairing()
            try await bench.reconnect(phone)
            #expect(await bench.refusal(of: PairingBench.sealed, to: phone) == .insufficientEncryption)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            #expect(try await phone.read(PairingBench.sealed) == [2])
            #expect(await bench.paired().count == 1)
            #expect(await bench.failures().isEmpty)
        }
    }

    /// A program may forget bonds that nobody uses any more.
    @Test func theUseOfABondByACentralIsRecorded() async throws {
        let clock = Lock<UInt64>(1_790_000_000)
        try await PairingBench.run { configuration in
            configuration.security?.timeOfDay = { clock.withLock { $0 } }
        } _: { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            #expect(try await bench.central.bonds().map(\.lastEncryptedAt) == [1_790_000_000])
            // At most once an hour.
            let uses: [(at: UInt64, recorded: UInt64)] = [
                (1_790_001_000, 1_790_000_000), (1_790_010_000, 1_790_010_000),
            ]
            for use in uses {
                try await bench.disconnect(phone)
                clock.withLock { $0 = use.at }
                try await bench.reconnect(phone)
                await bench.radio.encrypt(phone)
                try await bench.sleep(.seconds(1))
                #expect(try await bench.central.bonds().map(\.lastEncryptedAt) == [use.recorded])
            }
        }
    }

    /// What is worth protection against a man in the middle is not worth LE Secure Connections.
    @Test func aCentralThatPairedByALegacyPasskeyIsAuthenticated() async throws {
        try await PairingBench.run { bench in
            let options = CentralPairingOptions(
                agent: PairingAgent(show: { _, _ in }), require: .legacyPasskey)
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            var security = VirtualSecurity(capability: .keyboardOnly)
            security.hasSecureConnections = false
            try await bench.pair(phone, security)
            let bond = try #require(await bench.paired().first)
            #expect(bond.isLegacyPasskey && !bond.isAuthenticated)
            #expect(try await phone.read(PairingBench.guarded) == [3])
            await phone.disconnect()
            try await bench.reconnect(phone)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            #expect(try await phone.read(PairingBench.guarded) == [3])
        }
    }

    /// The kernel has lost its keys, and nothing that the program calls gives them back.
    @Test func anAdapterThatComesBackServesBondedCentralsAgain() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            #expect(await bench.radio.longTermKeys().count == 1)
            await bench.radio.unplug()
            try await bench.sleep(.seconds(5))
            await bench.radio.plugIn(isUp: true)
            try await bench.sleep(.seconds(10))
            #expect(await bench.radio.longTermKeys().count == 1)
            try await bench.reconnect(phone)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            #expect(try await phone.read(PairingBench.sealed) == [2])
            let other = try await bench.connect()
            try await bench.pair(other)
            #expect(await bench.paired().count == 2, "pairing is still allowed")
        }
    }

    /// Nothing that the program calls opens the management interface again, without which no central can pair.
    @Test(arguments: [false, true]) func aManagementInterfaceThatIsLostIsOpenedAgainForCentrals(
        _ isRefusedFirst: Bool
    ) async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            await bench.radio.refuseManagement(isRefusedFirst)
            await bench.radio.closeManagement()
            try await bench.sleep(.seconds(10))
            await bench.radio.refuseManagement(false)
            try await bench.sleep(.seconds(60))
            #expect(try await phone.read(PairingBench.sealed) == [2], "its link stays")
            let other = try await bench.connect()
            try await bench.pair(other)
            #expect(await bench.paired().count == 2)
        }
    }

    /// Each loss would otherwise begin another row of attempts.
    @Test func aManagementInterfaceThatIsLostAgainIsOpenedByOneRowOfAttempts() async throws {
        let log = KeptLog(detail: "reason")
        try await PairingBench.run {
            $0.logger = log.logger
        } _: { bench in
            try await bench.local.allowPairing(.justWorks)
            for _ in 1...3 {
                await bench.radio.closeManagement()
                await bench.time.settle()
                // This use opens it before it is time.
                try await bench.central.ready()
            }
            await bench.radio.refuseManagement(true)
            await bench.radio.closeManagement()
            // Attempts after 1, 3, 7, 15 and 31 s.
            try await bench.sleep(.seconds(60))
            #expect(log.all.count { $0.hasPrefix("the adapter is not under management") } == 5)
            await bench.radio.refuseManagement(false)
            try await bench.sleep(.seconds(60))
            let phone = try await bench.connect()
            try await bench.pair(phone)
            #expect(await bench.paired().count == 1)
        }
    }

    /// A central whose key the kernel does not have may forget its bond. An adapter that cannot be managed advertises
    /// all the same, once that is known.
    @Test func anAdapterThatComesBackIsManagedBeforeItAdvertises() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            await bench.radio.unplug()
            try await bench.sleep(.seconds(5))
            // Read Controller Information, with which the management begins; the library waits six seconds for it.
            await bench.radio.ignoreManagementPacket([4, 0, 0, 0, 0, 0])
            await bench.radio.plugIn(isUp: true)
            // The adapter is looked at every two seconds.
            try await bench.sleep(.seconds(3))
            #expect(await bench.radio.advertisements().isEmpty)
            try await bench.sleep(.seconds(60))
            #expect(await bench.radio.advertisements().count == 1)
        }
    }

    /// The return of an adapter that is pulled out while it is being managed is managed too, before it advertises.
    @Test func anAdapterThatComesBackWhileItIsManagedIsManagedAgain() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            await bench.radio.unplug()
            try await bench.sleep(.seconds(5))
            await bench.radio.ignoreManagementPacket([4, 0, 0, 0, 0, 0])
            await bench.radio.plugIn(isUp: true)
            try await bench.sleep(.seconds(3))
            await bench.radio.ignoreManagementPacket(nil)
            await bench.radio.unplug()
            await bench.radio.plugIn(isUp: true)
            for _ in 0..<6_000 {
                if await !bench.radio.advertisements().isEmpty { break }
                try await bench.sleep(.milliseconds(10))
            }
            #expect(await bench.radio.advertisements().count == 1)
            #expect(await bench.radio.longTermKeys().count == 1)
        }
    }

    /// Another program may advertise, so that nothing of this one looks at the adapter.
    @Test(arguments: [true, false]) func anAdapterThatComesBackIsManagedWithoutAnAdvertisement(
        _ announcesChanges: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            if announcesChanges { await radio.announceChanges() }
            let central = SecurityBench.central(radio, .inMemory)
            let local = LocalPeripheral(on: central)
            try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read, value: .fixed([1]))]))
            let advertising = try await local.advertise([.localName("Safe")])
            try await local.allowPairing(.justWorks)
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            await radio.pair(phone, VirtualSecurity())
            try await time.clock.sleep(for: .seconds(1))
            #expect(await radio.longTermKeys().count == 1)
            await advertising.stop()
            let adapter = await central.adapter
            #expect(await !adapter.isWatched)
            await radio.unplug()
            try await time.clock.sleep(for: .seconds(5))
            #expect(await radio.longTermKeys().isEmpty)
            await radio.plugIn(isUp: true)
            try await time.clock.sleep(for: .seconds(10))
            #expect(await radio.longTermKeys().count == 1)
            #expect(await !adapter.isWatched, "an adapter that is on is not looked at")
            await local.stop()
        }
    }

    /// Anybody that has heard the address of a central can connect with it.
    @Test(.row("P28")) func aLinkThatABondEncryptsEndsOnlyForANewerOneThatTheBondEncrypts() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let peer = try #require(await phone.peer)
            let first = try #require(await bench.local.centrals.first)
            let second = await bench.radio.addCentral(as: peer)
            try await bench.reconnect(second)
            try await bench.sleep(.seconds(1))
            #expect(await bench.local.centrals.map(\.peer) == [peer, peer])
            #expect(await bench.local.centrals.map(\.isBonded) == [true, false])
            #expect(try await phone.read(PairingBench.sealed) == [2])
            #expect(await bench.refusal(of: PairingBench.sealed, to: second) == .insufficientEncryption)

            await bench.radio.encrypt(second)
            #expect(await phone.disconnected() == .remoteUserTerminated)
            let left = await bench.local.centrals
            #expect(left.map(\.isBonded) == [true] && left.allSatisfy { $0.id != first.id })
            #expect(try await second.read(PairingBench.sealed) == [2])
        }
    }

    @Test(.row("P08")) func onlyALinkThatABondEncryptsIsKeptFromANewcomer() async throws {
        let log = KeptLog(from: .notice, detail: "reason")
        try await PairingBench.run(maximumCentrals: 1) {
            $0.logger = log.logger
        } _: { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let refused = try await bench.connect()
            #expect(await refused.disconnected() == .remoteUserTerminated)
            #expect(log.all.count { $0.hasPrefix("a central is not served: ") } == 1)
            #expect(try await phone.read(PairingBench.sealed) == [2])

            try await bench.disconnect(phone)
            try await bench.reconnect(phone)
            let newcomer = try await bench.connect()
            #expect(await phone.disconnected() == .remoteUserTerminated, "nothing has proven who it is")
            #expect(try await newcomer.read(PairingBench.open) == [])
        }
    }

    /// Its own earlier link takes no place from it, however few there are; others get none for that.
    @Test func aBondedCentralThatComesBackHasThePlaceOfItsEarlierLink() async throws {
        try await PairingBench.run(maximumCentrals: 1) { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let peer = try #require(await phone.peer)
            let second = await bench.radio.addCentral(as: peer)
            try await bench.reconnect(second)
            let other = try await bench.connect()
            #expect(await other.disconnected() == .remoteUserTerminated)
            #expect(await bench.local.centrals.map(\.peer) == [peer, peer])
            await bench.radio.encrypt(second)
            #expect(await phone.disconnected() == .remoteUserTerminated)
            #expect(try await second.read(PairingBench.sealed) == [2])
            #expect(await bench.local.centrals.map(\.isBonded) == [true])
        }
    }

    /// Nor do others take it from it, as long as there are idle links.
    @Test func aBondedCentralThatComesBackHasOnePlace() async throws {
        try await PairingBench.run(maximumCentrals: 2) { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let peer = try #require(await phone.peer)
            let second = await bench.radio.addCentral(as: peer)
            try await bench.reconnect(second)
            let idle = try await bench.connect()
            _ = try await bench.connect()
            #expect(await idle.disconnected() == .remoteUserTerminated)
            #expect(await bench.local.centrals.count == 3)
            await bench.radio.encrypt(second)
            #expect(await phone.disconnected() == .remoteUserTerminated)
            #expect(try await second.read(PairingBench.sealed) == [2])
        }
    }

    /// What its lost link has not stored yet is in force on the next one, and that begins after the lost one has ended.
    @Test func aBondedCentralThatComesBackHasAllThatItHasConfigured() async throws {
        try await PairingBench.run { bench in
            let other: BluetoothUUID = 0xFFE1
            try await bench.local.publish(LocalService(0xFFE0, [LocalCharacteristic(other, [.read, .notify])]))
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            try await bench.sleep(.seconds(10))
            try await phone.subscribe(to: PairingBench.open)
            try await phone.subscribe(to: other)
            await bench.radio.reset(phone)
            try await bench.reconnect(phone)
            #expect(await bench.local.centrals.count == 2)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            try await bench.local.update([7], of: .uuid(other))
            #expect(try await phone.nextValue().bytes == [7])
            #expect(
                await bench.names() == [
                    "connected", "paired", "subscribed", "subscribed", "connected", "unsubscribed", "unsubscribed",
                    "disconnected", "restored", "restored",
                ])
        }
    }

    /// Its link has no bond until the pairing on the lost link has ended.
    @Test func aBondedCentralThatIsLostWhileItPairsAgainHasAllThatItHasConfigured() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            try await phone.subscribe(to: PairingBench.open)
            try await bench.sleep(.seconds(10))
            try await bench.disconnect(phone)

            let clock = bench.time.clock
            var options = CentralPairingOptions.justWorks
            options.replace = { _ in
                try? await clock.sleep(for: .seconds(600))
                return false
            }
            try await bench.local.allowPairing(options)
            try await bench.reconnect(phone)
            try await bench.pair(phone)
            await bench.radio.reset(phone)
            try await bench.reconnect(phone)
            try await bench.sleep(.seconds(2))
            #expect(await bench.failures().count == 1)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            #expect(await bench.names().last == "restored")
            #expect(await bench.local.centrals.map(\.subscriptions.count) == [1])
        }
    }

    /// Anybody may use the address of a central: a link without the key of the bond has learned nothing for it.
    @Test func aBondedCentralIsNotifiedOfChangesDuringALinkThatItHasNotEncrypted() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            // Service Changed is at 8.
            _ = try await phone.request([0x12, 9, 0, 2, 0])
            try await bench.sleep(.seconds(10))
            try await bench.disconnect(phone)

            try await bench.reconnect(phone)
            let first = try await bench.local.publish(LocalService(0xFFE0, []))
            try await bench.disconnect(phone)
            let second = try await bench.local.publish(LocalService(0xFFE1, []))

            try await bench.reconnect(phone)
            #expect(await phone.unreadValues.isEmpty)
            await bench.radio.encrypt(phone)
            let change = try await phone.nextValue()
            #expect(change.handle == 8 && change.isIndication)
            #expect(change.bytes == first.handles.lowerBound.bytes + second.handles.upperBound.bytes)
        }
    }

    @Test func aRequestCountsAsEncryptedFromTheBeginningOfTheEncryptionOn() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let handle = try await bench.handle(of: PairingBench.sealed)
            let request = ATTReadRequest(handle: handle).bytes
            /// What the central receives, where the library sees both steps at once.
            func response(_ steps: @Sendable (VirtualRadio, VirtualCentral) -> Void) async throws -> [UInt8]? {
                await phone.disconnect()
                try await bench.reconnect(phone)
                await bench.radio.perform { steps($0, phone) }
                await bench.time.settle()
                return await phone.transcript.steps.reversed().compactMap { step in
                    if case .sent(let pdu) = step.event { pdu } else { nil }
                }.first
            }
            let early = try await response { radio, phone in
                phone.assumeIsolated { $0.send(raw: request) }
                radio.assumeIsolated { $0.encrypt(phone) }
            }
            let late = try await response { radio, phone in
                radio.assumeIsolated { $0.encrypt(phone) }
                phone.assumeIsolated { $0.send(raw: request) }
            }
            #expect(early == [0x01, 0x0A, UInt8(handle), 0, 0x0F], "the request came unencrypted")
            #expect(late == [0x0B, 2], "the request came encrypted")
        }
    }

    /// Where this side is a client too, a request of its own has the socket read before the loop does.
    @Test func aRequestThatIsReadForAnotherOneCountsAsEncryptedToo() async throws {
        try await PairingBench.run { bench in
            let (phone, device) = try await bench.connectInBothRoles()
            let request = ATTReadRequest(handle: try await bench.handle(of: PairingBench.sealed)).bytes
            await bench.radio.perform { radio in
                radio.assumeIsolated { $0.encrypt(phone) }
                phone.assumeIsolated { $0.send(raw: request) }
            }
            _ = try? await device.read(.handle(3))
            #expect(await bench.readResponse(to: phone) == [0x0B, 2])
        }
    }

    /// The response lets the next request of this side out, while what came before the encryption is being read.
    @Test func aRequestAfterAnUnencryptedResponseCountsAsEncrypted() async throws {
        try await PairingBench.run { bench in
            let (phone, device) = try await bench.connectInBothRoles()
            let request = ATTReadRequest(handle: try await bench.handle(of: PairingBench.sealed)).bytes
            async let first = try? await device.read(.handle(3))
            async let second = try? await device.read(.handle(3))
            // One is sent, the other one waits for it. The loop has not looked at its descriptors since.
            while await device.unfinishedCount < 2, !Task.isCancelled { await Task.yield() }
            await bench.radio.perform { radio in
                phone.assumeIsolated { $0.send(raw: [0x01, 0x0A, 0, 0, 0x06]) }
                radio.assumeIsolated { $0.encrypt(phone) }
                phone.assumeIsolated { $0.send(raw: request) }
            }
            _ = await (first, second)
            #expect(await bench.readResponse(to: phone) == [0x0B, 2])
        }
    }

    @Test(.row("P19")) func aSignedWriteIsExecutedOnceAndOnlyWithTheKeyOfTheBond() async throws {
        try await PairingBench.run { bench in
            let key: [UInt8] = Array(0x40..<0x50)
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            var security = VirtualSecurity()
            security.signatureKey = key
            try await bench.pair(phone, security)
            #expect(await bench.paired().count == 1)
            let handle = try await bench.handle(of: PairingBench.signed)
            func write(_ value: UInt8, _ counter: UInt32, key: [UInt8]) async throws -> [UInt8] {
                var signer = try #require(WriteSigner(key: key, counter: counter))
                let packet = signer.sign([value], for: handle)
                await phone.send(raw: try #require(packet).bytes)
                try await bench.sleep(.milliseconds(100))
                return try await bench.local.value(of: .handle(handle))
            }
            // The link on which it has paired is encrypted: there, no write is signed.
            #expect(try await write(1, 0, key: key) == [0])
            try await bench.disconnect(phone)
            try await bench.reconnect(phone)
            #expect(try await write(1, 0, key: key) == [1])
            #expect(try await write(2, 0, key: key) == [1], "a counter that was used")
            #expect(try await write(3, 5, key: Array(0x41..<0x51)) == [1], "another key")
            #expect(try await write(4, 5, key: key) == [4])
            #expect(try await write(5, 4, key: key) == [4], "a lower counter")
            #expect(await bench.central.statistics.refusedSignatures == 1)
            let stored = try bench.bonds.open(adapter: VirtualRadio.address(of: 0)).load().records.first?.peerSigning
            #expect(stored?.counter == 64, "the next run accepts nothing lower")
            // Another bond has another key, whose counters begin again.
            try await bench.central.forgetBond(with: try #require(await phone.peer))
            try await bench.reconnect(phone)
            security.signatureKey = Array(0x60..<0x70)
            try await bench.pair(phone, security)
            try await bench.disconnect(phone)
            try await bench.reconnect(phone)
            #expect(try await write(6, 6, key: key) == [4], "the key of the bond before")
            #expect(try await write(7, 0, key: Array(0x60..<0x70)) == [7])
        }
    }

    @Test(arguments: PairingBench.Refusal.allCases) func noCentralPairsUnlessItIsAllowed(
        _ refusal: PairingBench.Refusal
    ) async throws {
        try await PairingBench.run { bench in
            switch refusal {
            case .neverAllowed: break
            case .refused:
                try await bench.local.allowPairing(.justWorks)
                await bench.local.refusePairing()
            case .timeIsOver:
                try await bench.local.allowPairing(.justWorks, for: .seconds(30))
                try await bench.sleep(.seconds(31))
            }
            #expect(await !bench.local.allowsPairing)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            // One that does not want to bond is not refused by the kernel.
            var fleeting = VirtualSecurity()
            fleeting.keepsBonds = false
            try await bench.pair(phone, fleeting)
            #expect(await bench.paired().isEmpty)
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
            #expect(try await phone.read(PairingBench.open) == [])
            #expect(await bench.refusal(of: PairingBench.sealed, to: phone) == .insufficientAuthentication)
        }
    }

    @Test func aPasskeyThatIsShownAuthenticatesTheCentral() async throws {
        try await PairingBench.run { bench in
            let shown = Lock<[PeerID]>([])
            let agent = PairingAgent(show: { peer, _ in shown.withLock { $0.append(peer) } })
            try await bench.local.allowPairing(CentralPairingOptions(agent: agent, require: .authenticated))
            let phone = try await bench.connect()
            try await bench.pair(phone, VirtualSecurity(capability: .keyboardOnly))
            let id = try #require(await phone.peer)
            #expect(shown.withLock { $0 } == [id])
            #expect(await bench.paired().map(\.isAuthenticated) == [true])
            #expect(try await phone.read(PairingBench.guarded) == [3])
            // One without a keyboard cannot pair so.
            let other = try await bench.connect()
            try await bench.pair(other)
            #expect(await bench.failures().count == 1)
            #expect(await bench.paired().count == 1)
            #expect(await bench.refusal(of: PairingBench.sealed, to: other) == .insufficientAuthentication)
        }
    }

    /// The passkey is entered on this side, on that of the central, or the numbers of both are compared.
    @Test(
        arguments: [
            (.displayOnly, PairingAgent(enter: { _ in Passkey(654_321) }), .wrongPasskey, "entered here"),
            (.keyboardOnly, PairingAgent(show: { _, _ in }), .pairingRefused, "entered at the central"),
            (.displayYesNo, PairingAgent(compare: { _, _ in true }), .pairingRefused, "the number"),
        ] as [(VirtualSecurity.Capability, PairingAgent, BLEError.Code, String)])
    func theFailureIsThatOfTheQuestion(
        _ capability: VirtualSecurity.Capability, _ agent: PairingAgent, _ code: BLEError.Code, _ reason: String
    ) async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(CentralPairingOptions(agent: agent))
            let phone = try await bench.connect()
            var security = VirtualSecurity(capability: capability, passkey: 123_456)
            if code != .wrongPasskey { security.response = .reject }
            try await bench.pair(phone, security)
            try await bench.sleep(.seconds(20))
            let failures = await bench.failures()
            #expect(failures.map(\.code) == [code] && failures.allSatisfy { $0.origin == .peer }, "\(failures)")
            #expect(failures.first?.reason.contains(reason) == true, "\(failures)")
            #expect(await bench.paired().isEmpty)
        }
    }

    @Test(.row("P17")) func aCentralWhosePairingsFailIsRefusedForAMinute() async throws {
        try await PairingBench.run { bench in
            let asked = Lock<[PeerID: Int]>([:])
            let hostile = try await bench.connect()
            let id = try #require(await hostile.peer)
            let agent = PairingAgent(confirm: { peer in
                asked.withLock { $0[peer, default: 0] += 1 }
                return peer != id
            })
            try await bench.local.allowPairing(CentralPairingOptions(agent: agent))
            for _ in 0..<10 { try await bench.pair(hostile) }
            #expect(asked.withLock { $0[id] } == 3)
            #expect(await bench.failures().count == 3, "what it repeats fills no queue")
            #expect(try await hostile.read(PairingBench.open) == [], "the rest is served")
            let other = try await bench.connect()
            try await bench.pair(other)
            let honest = try #require(await other.peer)
            #expect(await bench.paired().map(\.peer) == [honest])
            try await bench.sleep(.seconds(60))
            try await bench.pair(hostile)
            #expect(asked.withLock { $0[id] } == 4)
            #expect(try await bench.central.bonds().count == 1)
        }
    }

    @Test(.row("P17")) func centralsWithChangingAddressesGetThreeBondsInAMinute() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            var refused: [VirtualCentral] = []
            for number in 1...5 {
                let phone = try await bench.connect()
                try await bench.pair(phone)
                if number > 3 { refused.append(phone) }
            }
            #expect(await bench.paired().count == 3)
            #expect(try await bench.central.bonds().count == 3)
            for phone in refused {
                #expect(await bench.refusal(of: PairingBench.sealed, to: phone) == .insufficientAuthentication)
                #expect(try await phone.read(PairingBench.open) == [], "the rest is served")
            }
            try await bench.sleep(.seconds(60))
            try await bench.pair(refused[0])
            #expect(await bench.paired().count == 4)
        }
    }

    /// Each of them begins as soon as the one before has ended, and its user never replies.
    @Test func thisSidePairsAlthoughCentralsKeepPairing() async throws {
        try await PairingBench.run { bench in
            let clock = bench.time.clock
            let agent = PairingAgent(confirm: { _ in
                try? await clock.sleep(for: .seconds(600))
                return false
            })
            try await bench.local.allowPairing(CentralPairingOptions(agent: agent))
            let lock = await bench.radio.add(SecurityBench.described(VirtualSecurity()))
            let id = try #require(await bench.radio.id(of: lock))
            let device = try await bench.central.connect(id)
            let phones = [try await bench.connect(), try await bench.connect()]
            try await bench.pair(phones[0])
            let begin = bench.time.now
            let bond = bench.time.task { try await device.pair(PairingOptions(timeout: .seconds(60))) }
            let hostile = bench.time.task {
                while bench.time.now < begin + .seconds(70) {
                    for phone in phones { await bench.radio.pair(phone, VirtualSecurity()) }
                    try await clock.sleep(for: .milliseconds(50))
                }
            }
            #expect(try await bond.value.peer == id)
            #expect(bench.time.now < begin + .seconds(27))
            hostile.cancel()
            _ = await hostile.result
            await device.disconnect()
        }
    }

    @Test(.row("P17", "P18")) func aBondGoesOnlyWhereTheApplicationReplacesIt() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let keys = await bench.radio.longTermKeys()
            for round in 1...3 {
                await phone.disconnect()
                try await bench.reconnect(phone)
                try await bench.pair(phone)
                let refused = await bench.failures()
                #expect(refused.count == round && refused.allSatisfy { $0.code == .pairingRefused })
                #expect(await bench.refusal(of: PairingBench.sealed, to: phone) == .insufficientEncryption)
            }
            #expect(await bench.radio.longTermKeys() == keys)

            let asked = Lock<[Bond]>([])
            var options = CentralPairingOptions.justWorks
            options.replace = { bond in
                asked.withLock { $0.append(bond) }
                return true
            }
            try await bench.local.allowPairing(options)
            try await bench.pair(phone)
            let bonds = await bench.paired()
            #expect(bonds.count == 2 && asked.withLock { $0 }.map(\.peer) == [bonds[0].peer])
            #expect(await bench.radio.longTermKeys() != keys)
            #expect(try await bench.central.bonds().count == 1, "one bond a central")
            #expect(try await phone.read(PairingBench.sealed) == [2])
        }
    }

    @Test(.row("P37")) func aCentralThatDistributesItsIdentityKeepsItsLinkAndItsSubscriptions() async throws {
        try await PairingBench.run { bench in
            let identity = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)
            var security = VirtualSecurity()
            security.identity = VirtualIdentity(identity, key: Array(0x20...0x2F))
            try await bench.local.allowPairing(.justWorks)
            let phone = await bench.radio.addCentral(as: bench.privateAddress(of: security, 1))
            try await bench.reconnect(phone)
            try await phone.subscribe(to: PairingBench.open)
            let before = try #require(await bench.local.centrals.first)
            #expect(await phone.peer == before.peer)
            try await bench.pair(phone, security)
            let after = try #require(await bench.local.centrals.first)
            #expect(after.id == before.id && after.peer == identity && after.subscriptions == before.subscriptions)
            try await bench.local.update([5], of: .uuid(PairingBench.open))
            #expect(try await phone.nextValue().bytes == [5])
            #expect(await bench.names() == ["connected", "subscribed", "paired"])

            await phone.disconnect()
            await bench.radio.changeAddress(of: phone, to: bench.privateAddress(of: security, 2))
            try await bench.reconnect(phone)
            #expect(await bench.local.centrals.map(\.peer) == [identity])
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            #expect(await bench.local.centrals.map(\.subscriptions.count) == [1], "what it has configured is in force")
            #expect(
                await bench.names() == [
                    "connected", "subscribed", "paired", "unsubscribed", "disconnected", "connected", "restored",
                ])
        }
    }

    /// The link is encrypted with a key that belongs to no bond.
    @Test(.row("P18")) func afterAFailedPairingTheBondIsNotInForce() async throws {
        try await PairingBench.run { bench in
            var options = CentralPairingOptions(agent: PairingAgent(show: { _, _ in }), acceptsUnconfirmed: true)
            options.replace = { _ in true }
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            try await bench.pair(phone, VirtualSecurity(capability: .keyboardOnly))
            #expect(await bench.paired().map(\.isAuthenticated) == [true])
            try await phone.subscribe(to: PairingBench.open)
            await phone.disconnect()

            try await bench.reconnect(phone)
            var fleeting = VirtualSecurity()
            fleeting.keepsBonds = false
            try await bench.pair(phone, fleeting)
            try await bench.sleep(.seconds(10))
            #expect(await bench.failures().count == 1)
            #expect(await bench.local.centrals.map(\.isBonded) == [false])
            #expect(await bench.refusal(of: PairingBench.guarded, to: phone) == .insufficientAuthentication)
            #expect(await !bench.names().contains("restored"))

            await phone.disconnect()
            try await bench.reconnect(phone)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            #expect(try await phone.read(PairingBench.guarded) == [3])
            #expect(await bench.names().contains("restored"))
        }
    }

    /// A link that a bonded central has made serves a connect once the key of the bond encrypts it, and not with
    /// another key: anybody may use the address.
    @Test(.row("P18")) func aConnectDoesNotUseTheLinkOfABondedCentralWithoutItsKey() async throws {
        try await PairingBench.run { bench in
            var options = CentralPairingOptions(agent: PairingAgent(show: { _, _ in }), acceptsUnconfirmed: true)
            options.replace = { _ in true }
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            try await bench.pair(phone, VirtualSecurity(capability: .keyboardOnly))
            let peer = try #require(await bench.paired().first).peer
            await phone.disconnect()

            try await bench.reconnect(phone)
            let clear = await #expect(throws: BLEError.self) { _ = try await bench.central.connect(peer) }
            #expect(clear?.code == .notBonded)
            let id = try #require(await bench.local.centrals.first).id
            let refused = await #expect(throws: BLEError.self) { _ = try await bench.local.peripheral(of: id) }
            #expect(refused?.code == .notBonded && refused?.hint?.contains("requestSecurity") == true)
            var fleeting = VirtualSecurity()
            fleeting.keepsBonds = false
            try await bench.pair(phone, fleeting)
            try await bench.sleep(.seconds(10))
            #expect(await bench.failures().count == 1)
            for demand in [ConnectOptions.SecurityDemand.asBonded, .bonded] {
                let error = await #expect(throws: BLEError.self) {
                    _ = try await bench.central.connect(peer, ConnectOptions(security: demand))
                }
                #expect(error?.code == .notBonded)
                #expect(error?.reason == "its bond is not used on this link")
            }
            #expect(await phone.isConnected)

            await phone.disconnect()
            try await bench.reconnect(phone)
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            let device = try await bench.central.connect(peer)
            #expect(await device.security.isEncrypted)
            let encrypted = try #require(await bench.local.centrals.first).id
            #expect(try await bench.local.peripheral(of: encrypted) === device)
            await device.disconnect()
        }
    }

    /// The link of a central may be the one of a bonded device, unencrypted: a connect and a session take it as they
    /// would make one, and so does the call for its client side.
    @Test(.row("S01"), arguments: [true, false]) func aLinkOfAPrivateAddressIsTakenWhereItCanBeResolved(
        _ resolves: Bool
    ) async throws {
        try await PairingBench.run { configuration in
            if !resolves { configuration.addressHash = nil }
        } _: { bench in
            var (bonded, strange) = (VirtualSecurity(), VirtualSecurity())
            bonded.identity = VirtualIdentity(SecurityBench.identity, key: Array(0x20...0x2F))
            strange.identity = VirtualIdentity(SecurityBench.identity, key: Array(0x40...0x4F))
            let address = bench.privateAddress(of: strange, 2)
            let stranger = await bench.radio.addCentral(as: address)
            try await bench.reconnect(stranger)
            // As long as no bond has a key of private addresses.
            let device = try await bench.central.connect(address)
            let session = try await bench.central.session(adopting: device)
            _ = try await session.ready()
            let released = try await session.releaseLink()

            try await bench.local.allowPairing(.justWorks)
            let phone = await bench.radio.addCentral(as: bench.privateAddress(of: bonded, 1))
            try await bench.reconnect(phone)
            try await bench.pair(phone, bonded)
            #expect(await bench.paired().map(\.peer) == [SecurityBench.identity])
            if resolves {
                try await session.returnLink(released)
                #expect(try await session.ready() === released)
                return await session.disconnect()
            }
            await #expect(throws: error(.notSupported)) { try await session.returnLink(released) }
            await session.disconnect()
            let refused = await #expect(throws: BLEError.self) { _ = try await bench.central.connect(address) }
            #expect(refused?.code == .notSupported && refused?.operation == "connect")
            #expect(refused?.hint?.contains("addressHash") == true)
            let id = try #require(await bench.local.centrals.first { $0.peer == address }).id
            await #expect(throws: error(.notSupported)) { _ = try await bench.local.peripheral(of: id) }
            await #expect(throws: error(.notSupported)) { _ = try await bench.central.session(adopting: released) }
            #expect(await stranger.isConnected, "it is served all the same")
            let clear = try await bench.central.connect(address, ConnectOptions(security: .none))
            #expect(await clear.isConnected)
            await clear.disconnect()
        }
    }

    /// Anybody may make a link with the address of a bonded central, and that itself encrypts its link a moment later.
    @Test func aLinkWithoutTheKeyOfTheBondDoesNotEndASession() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let peer = try #require(await bench.paired().first).peer
            await phone.disconnect()
            try await bench.reconnect(phone)
            let session = try await bench.central.session(with: peer)
            let early = await #expect(throws: BLEError.self) { _ = try await session.ready(within: .seconds(10)) }
            #expect(early?.code == .timedOut)
            await bench.radio.encrypt(phone)
            let link = try await session.ready(within: .seconds(120))
            #expect(await link.security.isEncrypted)
            await session.disconnect()
        }
    }

    /// The first central that uses an identity keeps another one with it away: the two could not be distinguished.
    @Test(.row("P18")) func noCentralGetsABondWithTheIdentityOfAnotherConnectedOne() async throws {
        try await PairingBench.run { bench in
            let identity = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)
            try await bench.local.allowPairing(
                CentralPairingOptions(agent: PairingAgent(show: { _, _ in }), acceptsUnconfirmed: true))
            let hostile = await bench.radio.addCentral(as: identity)
            try await bench.reconnect(hostile)
            var fleeting = VirtualSecurity()
            fleeting.keepsBonds = false
            try await bench.pair(hostile, fleeting)
            try await bench.sleep(.seconds(10))
            #expect(try await hostile.read(PairingBench.sealed) == [2], "it is encrypted")

            var security = VirtualSecurity(capability: .keyboardOnly)
            security.identity = VirtualIdentity(identity, key: Array(0x20...0x2F))
            let phone = await bench.radio.addCentral(as: bench.privateAddress(of: security, 1))
            try await bench.reconnect(phone)
            try await bench.pair(phone, security)
            #expect(await bench.paired().isEmpty)
            #expect(await bench.failures().last?.code == .pairingFailed)
            #expect(await bench.failures().last?.reason.contains("another one that is connected") == true)
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
            #expect(await bench.local.centrals.map(\.peer) == [identity], "the one that claims is disconnected")
            #expect(await bench.local.centrals.map(\.isBonded) == [false])

            await hostile.disconnect()
            try await bench.reconnect(phone)
            try await bench.pair(phone, security)
            #expect(await bench.paired().map(\.isAuthenticated) == [true])
            #expect(try await phone.read(PairingBench.guarded) == [3])
        }
    }

    /// The bond would be taken for one with the device that this program has connected to.
    @Test(.row("P18")) func noCentralGetsABondWithTheIdentityOfAConnectedPeripheral() async throws {
        try await PairingBench.run { bench in
            let identity = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)
            let belt = await bench.radio.add(.heartRate)
            await bench.radio.changeAddress(of: belt, to: identity)
            let device = try await bench.central.connect(identity)
            try await bench.local.allowPairing(.justWorks)
            var security = VirtualSecurity()
            security.identity = VirtualIdentity(identity, key: Array(0x20...0x2F))
            let phone = await bench.radio.addCentral(as: bench.privateAddress(of: security, 1))
            try await bench.reconnect(phone)
            try await bench.pair(phone, security)
            #expect(await bench.failures().last?.reason.contains("another one that is connected") == true)
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await device.security.bond == nil)
            await device.disconnect()
        }
    }

    @Test func aSignedWriteIsNoChangeOfTheBonds() async throws {
        let log = KeptLog(detail: "adapter")
        try await PairingBench.run { configuration in
            configuration.logger = log.logger
            // With it, each change of the bonds is logged.
            configuration.addressHash = nil
        } _: { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            var security = VirtualSecurity()
            security.signatureKey = Array(0x40..<0x50)
            security.identity = VirtualIdentity(try #require(await phone.peer), key: Array(0x20...0x2F))
            try await bench.pair(phone, security)
            let handle = try await bench.handle(of: PairingBench.signed)
            try await bench.disconnect(phone)
            try await bench.reconnect(phone)
            let before = log.all.count { $0.contains("are not recognized") }
            var signer = try #require(WriteSigner(key: Array(0x40..<0x50), counter: 0))
            for value in UInt8(1)...3 {
                await phone.send(raw: try #require(signer.sign([value], for: handle)).bytes)
                try await bench.sleep(.milliseconds(100))
                #expect(try await bench.local.value(of: .handle(handle)) == [value])
            }
            #expect(before > 0 && log.all.count { $0.contains("are not recognized") } == before)
        }
    }

    @Test func pairingsMayBeAllowedAgainWhileOneRuns() async throws {
        try await PairingBench.run { bench in
            let clock = bench.time.clock
            let agent = PairingAgent(confirm: { _ in
                try? await clock.sleep(for: .seconds(20))
                return true
            })
            try await bench.local.allowPairing(CentralPairingOptions(agent: agent))
            let phone = try await bench.connect()
            try await bench.pair(phone)
            try await bench.local.allowPairing(.justWorks, for: .seconds(5))
            #expect(await bench.local.allowsPairing)
            try await bench.sleep(.seconds(30))
            #expect(await bench.paired().count == 1)
            #expect(await bench.failures().isEmpty)
            #expect(await !bench.local.allowsPairing)
        }
    }

    /// The central has its keys already.
    @Test func aBondIsStoredBeforeItsLinkIsHandedOver() async throws {
        try await VirtualTime.run { time in
            let manager = try VirtualServiceManager()
            let store = DescriptorStore(try #require(ServiceNotifier(manager.environment())))
            let radio = VirtualRadio(time: time)
            let run = Lock<LocalPeripheral?>(nil)
            let end = Lock<Task<Void, any Error>?>(nil)
            // It is asked for the time right before the bond is stored.
            let central = SecurityBench.central(radio, .inMemory) { security in
                security.timeOfDay = {
                    if let local = run.withLock({ $0.take() }) {
                        // No time passes while the service manager works.
                        let task = time.task { _ = await time.hold { await local.suspend(handingOverTo: store) } }
                        end.withLock { $0 = task }
                    }
                    return 1
                }
            }
            let local = LocalPeripheral(on: central)
            try await local.publish(LocalService(0xFFF0, [LocalCharacteristic(0xFFF1, .read)]))
            let advertising = try await local.advertise([.localName("Safe")])
            try await local.allowPairing(.justWorks)
            let events = local.events
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            run.withLock { $0 = local }
            await radio.pair(phone, VirtualSecurity())
            var bonds: [Bond] = []
            for try await case .paired(_, let bond) in events { bonds.append(bond) }
            let task = try #require(end.withLock { $0 })
            try await task.value
            let peer = await phone.peer
            #expect(bonds.map(\.peer) == [peer])
            #expect(await manager.storedNames.count == 2, "the socket of the link, and its state")
            #expect(await manager.storedNames.first?.hasPrefix("bareble-central.") == true)
            for descriptor in await manager.takeStored() { MemoryFile.close(descriptor.number) }
            await advertising.stop()
        }
    }

    /// Its key may be no bond's.
    @Test func aLinkOnWhichAPairingHasFailedIsNotHandedOver() async throws {
        try await PairingBench.run { bench in
            let manager = try VirtualServiceManager()
            let store = DescriptorStore(try #require(ServiceNotifier(manager.environment())))
            var options = CentralPairingOptions(agent: PairingAgent(show: { _, _ in }), acceptsUnconfirmed: true)
            options.replace = { _ in true }
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            try await bench.pair(phone, VirtualSecurity(capability: .keyboardOnly))
            #expect(await bench.paired().count == 1)
            await phone.disconnect()
            try await bench.reconnect(phone)
            var fleeting = VirtualSecurity()
            fleeting.keepsBonds = false
            try await bench.pair(phone, fleeting)
            try await bench.sleep(.seconds(10))
            #expect(await bench.failures().count == 1)
            #expect(await phone.isConnected)
            let lost = await bench.local.suspend(handingOverTo: store)
            #expect(lost.values.map(\.code) == [.pairingFailed])
            #expect(await manager.storedNames.isEmpty)
            await bench.time.settle()
            #expect(await !phone.isConnected)
        }
    }

    /// The lost link of a central whose user has removed the bond ends seconds after the next one has begun.
    /// Without CAP_NET_RAW too: the kernel reports that end by its handle, and once more by the address of both links.
    @Test(arguments: [[.commands, .administration], [.administration]] as [VirtualPermissions])
    func theEndOfAnEarlierLinkOfTheCentralDoesNotEndThePairing(permissions: VirtualPermissions) async throws {
        try await PairingBench.run(permissions: permissions) { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            let peer = try #require(await phone.peer)
            let clock = bench.time.clock
            var options = CentralPairingOptions.justWorks
            options.replace = { _ in
                try? await clock.sleep(for: .seconds(5))
                return true
            }
            try await bench.local.allowPairing(options)
            let second = await bench.radio.addCentral(as: peer)
            try await bench.reconnect(second)
            try await bench.pair(second)
            await phone.disconnect()
            try await bench.sleep(.seconds(10))
            #expect(await bench.failures().isEmpty)
            #expect(await bench.paired().count == 2)
            #expect(try await second.read(PairingBench.sealed) == [2])
        }
    }

    @Test func theEndOfTheLinkEndsThePairing() async throws {
        try await PairingBench.run { bench in
            let asked = Lock(0)
            let clock = bench.time.clock
            let agent = PairingAgent(confirm: { _ in
                asked.withLock { $0 += 1 }
                try? await clock.sleep(for: .seconds(600))
                return true
            })
            try await bench.local.allowPairing(CentralPairingOptions(agent: agent))
            let phone = try await bench.connect()
            try await bench.pair(phone)
            await phone.disconnect()
            try await bench.sleep(.seconds(2))
            #expect(await bench.failures().map(\.code) == [.disconnected])
            // Another one has its turn.
            let other = try await bench.connect()
            try await bench.pair(other)
            #expect(asked.withLock { $0 } == 2)
            try await bench.sleep(.seconds(40))
            #expect(await bench.failures().count == 2, "its user has not decided in time")
            #expect(try await bench.central.bonds().isEmpty)
        }
    }
}

/// A local peripheral that keeps bonds, on a virtual radio with centrals.
struct PairingBench: Sendable {
    enum Refusal: CaseIterable, Sendable {
        case neverAllowed
        case refused
        case timeIsOver
    }

    static let open: BluetoothUUID = 0xFFF1
    static let sealed: BluetoothUUID = 0xFFF2
    static let guarded: BluetoothUUID = 0xFFF3
    static let signed: BluetoothUUID = 0xFFF4

    let time: VirtualTime
    let radio: VirtualRadio
    let central: Central
    let local: LocalPeripheral
    let bonds: BondStore
    private let events: Lock<[LocalPeripheral.Event]>

    static func run(
        maximumCentrals: Int = 16, permissions: VirtualPermissions = [.commands, .administration],
        _ configure: @Sendable @escaping (inout Configuration) -> Void = { _ in },
        _ body: @Sendable @escaping (PairingBench) async throws -> Void
    ) async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPermissions(permissions)
            let bonds = BondStore.inMemory
            let central = SecurityBench.central(radio, bonds, change: configure)
            var settings = LocalPeripheral.Settings()
            settings.maximumCentrals = maximumCentrals
            let local = LocalPeripheral(settings, on: central)
            try await local.publish(
                LocalService(
                    0xFFF0,
                    [
                        LocalCharacteristic(open, [.read, .notify]),
                        LocalCharacteristic(
                            sealed, .read, value: .fixed([2]), access: AttributeAccess(.encrypted)),
                        LocalCharacteristic(
                            guarded, .read, value: .fixed([3]), access: AttributeAccess(.authenticated)),
                        LocalCharacteristic(signed, [.read, .authenticatedSignedWrites], value: .stored([0])),
                    ]))
            var advertisement: Advertisement = [.localName("Safe")]
            if !permissions.contains(.commands) { advertisement.backEnd = .management }
            let advertising = try await local.advertise(advertisement)
            let seen = Lock<[LocalPeripheral.Event]>([])
            let events = local.events
            let watch = time.task {
                for try await event in events { seen.withLock { $0.append(event) } }
            }
            try await body(
                PairingBench(time: time, radio: radio, central: central, local: local, bonds: bonds, events: seen))
            await advertising.stop()
            await local.stop()
            try await watch.value
        }
    }

    /// Connects a new central.
    func connect() async throws -> VirtualCentral {
        let central = await radio.addCentral()
        try await reconnect(central)
        return central
    }

    func reconnect(_ central: VirtualCentral) async throws {
        try await central.connect()
        await time.settle()
    }

    func disconnect(_ central: VirtualCentral) async throws {
        await central.disconnect()
        await time.settle()
    }

    /// Connects a central that has a bond and has not encrypted its link yet, and returns the client side of the link
    /// too. The central serves nothing, and says so.
    func connectInBothRoles() async throws -> (VirtualCentral, Peripheral) {
        try await local.allowPairing(.justWorks)
        let phone = try await connect()
        try await pair(phone)
        try await disconnect(phone)
        try await reconnect(phone)
        let peer = try #require(await phone.peer)
        return (phone, try await central.connect(peer, ConnectOptions(security: .none)))
    }

    /// Returns the last response to a Read Request that a central has received.
    func readResponse(to central: VirtualCentral) async -> [UInt8]? {
        await time.settle()
        return await central.transcript.steps.reversed().compactMap { step -> [UInt8]? in
            guard case .sent(let pdu) = step.event, pdu.first == 0x0B || pdu.starts(with: [0x01, 0x0A]) else {
                return nil
            }
            return pdu
        }.first
    }

    /// Returns the handle of a value.
    func handle(of value: BluetoothUUID) async throws -> AttributeHandle {
        let all = await local.publishedServices.flatMap(\.characteristics)
        return try #require(all.first { $0.uuid == value }).id
    }

    /// Has a central begin to pair, and waits for the end unless a user is asked.
    func pair(_ central: VirtualCentral, _ security: VirtualSecurity = VirtualSecurity()) async throws {
        await radio.pair(central, security)
        try await sleep(.seconds(1))
    }

    /// Returns why a value is not read; `nil` if it is.
    func refusal(of value: BluetoothUUID, to central: VirtualCentral) async -> ATTErrorCode? {
        do throws(VirtualCentralError) {
            _ = try await central.read(value)
            return nil
        } catch {
            guard case .refused(_, _, let code) = error else {
                Issue.record(error)
                return nil
            }
            return code
        }
    }

    /// Returns a private address of a central.
    func privateAddress(of security: VirtualSecurity, _ number: UInt32) -> PeerID {
        let bytes = security.identity?.key ?? []
        let key = Secret128(bytes.span) ?? .zero
        return PeerID(address: PrivateAddress.address(key, prand: number &* 0x12345), type: .random)
    }

    func sleep(_ duration: Duration) async throws { try await time.clock.sleep(for: duration) }

    // MARK: Events

    func paired() async -> [Bond] {
        await seen { if case .paired(_, let bond) = $0 { bond } else { nil } }
    }

    func failures() async -> [BLEError] {
        await seen { if case .pairingFailed(_, let error) = $0 { error } else { nil } }
    }

    func names() async -> [String] {
        await seen { event in
            switch event {
            case .connected: "connected"
            case .disconnected: "disconnected"
            case .subscribed(_, _, let isRestored): isRestored ? "restored" : "subscribed"
            case .unsubscribed: "unsubscribed"
            case .paired: "paired"
            case .pairingFailed: "pairing failed"
            case .written, .writeDropped, .dropped: nil
            }
        }
    }

    private func seen<Value>(_ find: (LocalPeripheral.Event) -> Value?) async -> [Value] {
        await time.settle()
        return events.withLock { $0 }.compactMap(find)
    }
}

extension VirtualRadio {
    /// Performs several steps at one moment.
    fileprivate func perform(_ steps: @Sendable (VirtualRadio) -> Void) { steps(self) }
}
