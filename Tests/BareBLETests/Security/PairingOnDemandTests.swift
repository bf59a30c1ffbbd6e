import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// Calls that a peer refuses for lack of security, and the pairing that follows.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct PairingOnDemandTests {
    @Test func aRefusedReadPairsAndIsRepeatedOnce() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.onDemand = PairingOptions() })
            let peripheral = try await bench.central.connect(bench.id)
            #expect(try await peripheral.read(0xFFF2) == [8])
            #expect(await bench.device.pairingCount == 0, "only where it is needed")
            let errors = await bench.device.errorCount
            #expect(try await peripheral.read(0xFFF1) == [7])
            #expect(await bench.device.errorCount == errors + 1)
            #expect(await bench.device.pairingCount == 1)
            #expect(try await bench.central.bonds().count == 1)
            await peripheral.disconnect()
        }
    }

    @Test func aRefusedChannelPairsAndIsRequestedOnceMore() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.onDemand = PairingOptions() })
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let peripheral = try await bench.central.connect(bench.id)
            let channel = try await peripheral.openChannel(psm: 0x80)
            #expect(await channel.isOpen)
            #expect(await bench.device.pairingCount == 1)
            #expect(try await bench.central.bonds().count == 1)
            await peripheral.disconnect()
        }
    }

    /// The sign of the refusal holds for all requests that are out, and for none that follows.
    @Test func refusedChannelsShareOnePairing() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.onDemand = PairingOptions() })
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let peripheral = try await bench.central.connect(bench.id)
            async let first = peripheral.openChannel(psm: 0x80)
            async let second = peripheral.openChannel(psm: 0x80)
            for channel in try await [first, second] { #expect(await channel.isOpen) }
            #expect(await bench.device.pairingCount == 1)
            await peripheral.disconnect()
        }
    }

    /// The kernel does not report the refusal: that it begins to pair is the sign.
    @Test func aRefusedChannelIsReportedWithoutAPairing() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let peripheral = try await bench.central.connect(bench.id)
            await #expect(throws: error(.insufficientSecurity)) { _ = try await peripheral.openChannel(psm: 0x80) }
            #expect(await bench.device.pairingCount == 0)
            await peripheral.disconnect()
        }
    }

    /// Why an adapter cannot be put under management.
    enum ManagementFailure: CaseIterable, Sendable { case noSocket, noResponse, noCapability }

    /// The kernel's own pairing is reported to nobody, and no other one is possible.
    @Test(arguments: ManagementFailure.allCases, [false, true])
    func aRefusedChannelIsReportedWithoutManagement(_ failure: ManagementFailure, isOnDemand: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(
                time, configure: { $0.onDemand = isOnDemand ? PairingOptions() : nil })
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let cause: String
            switch failure {
            case .noSocket:
                cause = "out of descriptors"
                await bench.radio.refuseManagement(true)
            case .noResponse:
                cause = "did not respond"
                // Read Controller Information; the library waits six seconds for it.
                await bench.radio.ignoreManagementPacket([4, 0, 0, 0, 0, 0])
            case .noCapability:
                cause = "CAP_NET_ADMIN"
                await bench.radio.setPermissions(.commands)
            }
            let peripheral = try await bench.central.connect(bench.id)
            let begin = time.now
            do throws(BLEError) {
                _ = try await peripheral.openChannel(psm: 0x80, L2CAPChannel.Options(timeout: .seconds(60)))
                Issue.record("it is protected")
            } catch {
                #expect(error.code == .insufficientSecurity && error.requiredSecurity == .authentication, "\(error)")
                #expect(error.hint?.contains(cause) == true, "\(error)")
            }
            #expect(time.now - begin < .seconds(isOnDemand && failure == .noResponse ? 20 : 3))
            #expect(await bench.device.pairingCount == 0)
            await peripheral.disconnect()
        }
    }

    /// The kernel needs more than a pairing without questions for the second request, and fails its own one silently.
    @Test func aChannelThatNeedsABetterKeyThanPairingOnDemandMadeIsRefusedAtOnce() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.onDemand = PairingOptions() })
            await bench.device.setReaction(toChannels: 0x80, .acceptAuthenticated)
            let peripheral = try await bench.central.connect(bench.id)
            await expectBetterKey(peripheral)
            #expect(await bench.device.pairingCount == 1)
            #expect(await peripheral.security.isEncrypted, "the link stays")
            await peripheral.disconnect()
        }
    }

    @Test(arguments: [false, true]) func aBondThatIsNotEnoughForAChannelIsNotReplaced(isOnDemand: Bool) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(
                time, configure: { $0.onDemand = isOnDemand ? PairingOptions() : nil })
            try await bench.pair()
            await bench.device.setReaction(toChannels: 0x80, .acceptAuthenticated)
            let peripheral = try await bench.central.connect(bench.id)
            await expectBetterKey(peripheral)
            #expect(await bench.device.pairingCount == 1)
            #expect(try await peripheral.read(0xFFF1) == [7])
            await peripheral.disconnect()
        }
    }

    @Test func aChannelThatNeedsAPasskeyIsOpenedWithAnAgentThatEntersIt() async throws {
        try await VirtualTime.run { time in
            let agent = PairingAgent(enter: { _ in Passkey(123_456) })
            let bench = try await SecurityBench(
                time, VirtualSecurity(capability: .displayOnly, passkey: 123_456),
                configure: { $0.onDemand = PairingOptions(agent: agent) })
            await bench.device.setReaction(toChannels: 0x80, .acceptAuthenticated)
            let peripheral = try await bench.central.connect(bench.id)
            let channel = try await peripheral.openChannel(psm: 0x80)
            #expect(await channel.isOpen)
            #expect(await bench.device.pairingCount == 1)
            await peripheral.disconnect()
        }
    }

    /// The kernel disconnects where the peer fails its pairing.
    @Test func aPeerThatFailsTheKernelsPairingForAChannelHasRefusedIt() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity(capability: .displayOnly, passkey: 123_456)
            security.requiresAuthentication = true
            let bench = try await SecurityBench(time, security)
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let peripheral = try await bench.central.connect(bench.id)
            do throws(BLEError) {
                _ = try await peripheral.openChannel(psm: 0x80)
                Issue.record("it is protected")
            } catch {
                #expect(error.code == .insufficientSecurity)
                #expect(error.requiredSecurity == .authentication)
                #expect(error.hint?.contains("blescan pair") == true)
            }
            #expect(await bench.device.pairingCount == 0)
            await peripheral.disconnect()
        }
    }

    private func expectBetterKey(_ peripheral: Peripheral) async {
        do throws(BLEError) {
            _ = try await peripheral.openChannel(psm: 0x80)
            Issue.record("it is protected")
        } catch {
            #expect(error.code == .insufficientSecurity)
            #expect(error.requiredSecurity == .authentication)
            #expect(error.hint?.contains("blescan pair --require authenticated") == true)
        }
    }

    @Test func callsThatNeedItAtTheSameTimeShareOnePairing() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, configure: { $0.onDemand = PairingOptions() })
            let peripheral = try await bench.central.connect(bench.id)
            async let first = peripheral.read(0xFFF1)
            async let second = peripheral.read(0xFFF1)
            let subscription = try await peripheral.subscribe(to: 0xFFF1)
            #expect(try await [first, second] == [[7], [7]])
            #expect(await bench.device.pairingCount == 1)
            try await subscription.unsubscribe()
            await peripheral.disconnect()
        }
    }

    @Test func aRefusedPairingIsTheReasonAndIsNotRepeated() async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity()
            security.response = .accept
            let asked = Lock(0)
            let agent = PairingAgent(confirm: { _ in
                asked.withLock { $0 += 1 }
                return false
            })
            let bench = try await SecurityBench(
                time, security, configure: { $0.onDemand = PairingOptions(agent: agent) })
            let peripheral = try await bench.central.connect(bench.id)
            for _ in 0..<3 {
                do {
                    _ = try await peripheral.read(0xFFF1)
                    Issue.record("it is protected")
                } catch let error as BLEError {
                    #expect(error.code == .pairingRefused)
                    #expect(error.attError == .insufficientAuthentication)
                }
            }
            #expect(asked.withLock { $0 } == 1)
            #expect(try await peripheral.read(0xFFF2) == [8], "the link stays")
            await peripheral.disconnect()
        }
    }

    /// How a session comes to pair.
    enum Occasion: CaseIterable, Sendable { case connect, preparation, subscription, call }

    /// Each attempt with the same passkey would bring the peer nearer to refusing everybody.
    @Test(.row("S20"), arguments: Occasion.allCases) func aWrongPasskeyEndsASession(at occasion: Occasion) async throws
    {
        try await VirtualTime.run { time in
            let entered = Lock(0)
            let pairing = PairingOptions(
                agent: PairingAgent(enter: { _ in
                    entered.withLock { $0 += 1 }
                    return Passkey(654_321)
                }))
            let bench = try await SecurityBench(
                time, VirtualSecurity(capability: .displayOnly, passkey: 123_456),
                configure: { if occasion != .connect { $0.onDemand = pairing } })
            var options = Session.Options()
            if occasion == .connect { options.connect.security = .pairing(pairing) }
            let session = try await bench.central.session(
                with: bench.id, options,
                onReady: { link in if occasion == .preparation { _ = try await link.read(0xFFF1) } })
            switch occasion {
            case .connect, .preparation:
                await #expect(throws: error(.wrongPasskey)) { _ = try await session.ready() }
            case .subscription:
                await #expect(throws: error(.wrongPasskey)) {
                    for try await _ in await session.subscribe(to: 0xFFF1) {}
                }
            case .call:
                let link = try await session.ready()
                // The link may end before the reason is known.
                await #expect(throws: BLEError.self) { _ = try await link.read(0xFFF1) }
            }
            try await bench.central.clock.sleep(for: .seconds(600))
            #expect(entered.withLock { $0 } == 1)
            guard case .gaveUp(let reason) = session.state else {
                Issue.record("\(session.state)")
                return
            }
            #expect(reason.code == .wrongPasskey && reason.hint?.contains("the one that the peer shows") == true)
            await session.disconnect()
        }
    }

    @Test(.row("T26")) func aBondThatIsNotEnoughIsNotReplaced() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(
                time, protection: .authenticated, configure: { $0.onDemand = PairingOptions() })
            try await bench.pair()
            let peripheral = try await bench.central.connect(bench.id)
            do {
                _ = try await peripheral.read(0xFFF1)
                Issue.record("it is protected")
            } catch let error as BLEError {
                #expect(error.code == .insufficientSecurity)
                #expect(error.hint?.contains("forget the bond") == true)
            }
            #expect(await bench.device.pairingCount == 1)
            await peripheral.disconnect()
        }
    }

    @Test func aMissingAuthorizationNeverPairs() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(
                time,
                change: {
                    $0.services[0].characteristics.append(
                        VirtualCharacteristic(
                            0xFFF3, .read, onRead: .refuse(.insufficientAuthorization)))
                }, configure: { $0.onDemand = PairingOptions() })
            let peripheral = try await bench.central.connect(bench.id)
            await #expect(throws: error(.insufficientSecurity)) { _ = try await peripheral.read(0xFFF3) }
            #expect(await bench.device.pairingCount == 0)
            await peripheral.disconnect()
        }
    }

    @Test func theProgramsOwnMeansComeFirst() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let asked = Lock(0)
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            configuration.security?.onDemand = PairingOptions()
            configuration.raiseSecurity = { _ in
                asked.withLock { $0 += 1 }
                return false
            }
            let central = Central(configuration, radio: bench.radio)
            let peripheral = try await central.connect(bench.id)
            await #expect(throws: error(.insufficientSecurity)) { _ = try await peripheral.read(0xFFF1) }
            #expect(asked.withLock { $0 } == 1)
            #expect(await bench.device.pairingCount == 0)
            await peripheral.disconnect()
        }
    }
}
