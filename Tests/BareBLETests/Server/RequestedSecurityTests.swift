import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import TestSupport
import Testing

/// Security that a local peripheral requests of the centrals on a virtual radio.
@Suite(.timeLimit(.minutes(5))) struct RequestedSecurityTests {
    @Test func aCentralWithABondEncrypts() async throws {
        try await PairingBench.run { bench in
            let (phone, id) = try await Self.bonded(bench)
            await bench.radio.setReaction(of: phone, toSecurityRequests: .encrypt(VirtualLinkSecurity()))
            let security = try await bench.local.requestSecurity(of: id)
            let peer = await phone.peer
            #expect(security.isEncrypted && security.bond?.peer == peer)
            #expect(try await phone.read(PairingBench.sealed) == [2])
            // It has what is required.
            _ = try await bench.local.requestSecurity(of: id)
            #expect(await bench.radio.securityRequests(to: phone) == 1)
        }
    }

    @Test(arguments: [true, false]) func aCentralWithoutOnePairsWhereItMay(_ agrees: Bool) async throws {
        try await PairingBench.run { bench in
            var options = CentralPairingOptions.justWorks
            if !agrees { options.agent.confirm = { _ in false } }
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            await bench.radio.setReaction(of: phone, toSecurityRequests: .pair(VirtualSecurity()))
            let id = try await Self.id(bench)
            if agrees {
                let security = try await bench.local.requestSecurity(of: id)
                let bond = try #require(await bench.paired().first)
                #expect(security.isEncrypted && security.bond == bond)
            } else {
                #expect(await Self.failure(bench, id)?.code == .pairingRefused)
                #expect(await bench.failures().count == 1)
            }
        }
    }

    @Test func oneWithoutABondThatMayNotPairIsNotAsked() async throws {
        try await PairingBench.run { bench in
            let phone = try await bench.connect()
            #expect(await Self.failure(bench, try await Self.id(bench))?.code == .notBonded)
            #expect(await bench.radio.securityRequests(to: phone) == 0)
        }
    }

    @Test func oneThatRefusesIsDisconnectedByTheKernel() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            await bench.radio.setReaction(of: phone, toSecurityRequests: .refuse)
            let error = await Self.failure(bench, try await Self.id(bench))
            #expect(error?.code == .pairingRefused && error?.origin == .peer)
            try await bench.sleep(.seconds(1))
            #expect(await !phone.isConnected)
            #expect(await bench.central.statistics.securityRequests == 0)
        }
    }

    @Test func oneThatDoesNotReactIsDisconnectedByTheKernel() async throws {
        try await PairingBench.run { bench in
            let (phone, id) = try await Self.bonded(bench)
            #expect(await Self.failure(bench, id, timeout: .seconds(10))?.code == .timedOut)
            #expect(await phone.isConnected)
            // Another request is not sent while one is out.
            #expect(await Self.failure(bench, id, timeout: .seconds(30))?.code == .disconnected)
            #expect(await bench.radio.securityRequests(to: phone) == 1)
            #expect(await !phone.isConnected)
            #expect(await Self.failure(bench, id)?.code == .disconnected)
        }
    }

    /// The kernel takes the commands, and does not respond to them.
    @Test func theTimeoutCoversTheManagementOfTheAdapter() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let kernel = Lock<[Int32]>([])
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            let central = Central(configuration, radio: radio) { system in
                system.openManagement = { () throws(SystemCallError) in
                    let (ours, theirs) = try LinkSocket.pair()
                    kernel.withLock { $0.append(theirs) }
                    return ManagementSocket(adopting: ours)
                }
            }
            let local = LocalPeripheral(on: central)
            let advertising = try await local.advertise([.localName("Safe")])
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            let id = try #require(await local.centrals.first?.id)
            let begin = time.now
            let error = await #expect(throws: BLEError.self) {
                try await local.requestSecurity(of: id, timeout: .seconds(2))
            }
            #expect(error?.code == .timedOut && time.now == begin + .seconds(2))
            #expect(await radio.securityRequests(to: phone) == 0)
            await advertising.stop()
            await local.stop()
            for descriptor in kernel.withLock(\.self) { MemoryFile.close(descriptor) }
        }
    }

    @Test func aCallThatFailsAdvisesAboutTheController() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            let central = Central(configuration, radio: radio) { system in
                system.requestSecurity = { _, _, _ throws(SystemCallError) in
                    throw SystemCallError(call: "connect", errno: EIO)
                }
            }
            let local = LocalPeripheral(on: central)
            let advertising = try await local.advertise([.localName("Safe")])
            try await local.allowPairing(.justWorks)
            let phone = await radio.addCentral()
            try await phone.connect()
            await time.settle()
            let id = try #require(await local.centrals.first?.id)
            let error = await #expect(throws: BLEError.self) { try await local.requestSecurity(of: id) }
            #expect(error?.code == .system && error?.errorNumber == EIO)
            #expect(error?.hint?.contains("controller") == true)
            expectNoFile(error?.hint)
            await advertising.stop()
            await local.stop()
        }
    }

    @Test func aCancelledTaskWaitsNoLonger() async throws {
        try await PairingBench.run { bench in
            let (_, id) = try await Self.bonded(bench)
            let task = bench.time.task { try await bench.local.requestSecurity(of: id) }
            try await bench.sleep(.seconds(1))
            task.cancel()
            let error = await #expect(throws: BLEError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func aBondThatIsWorthLessIsNotEnough() async throws {
        try await PairingBench.run { bench in
            let (phone, id) = try await Self.bonded(bench)
            #expect(await Self.failure(bench, id, .authenticated)?.code == .insufficientSecurity)
            #expect(await bench.radio.securityRequests(to: phone) == 0)
            // Nor is one that it makes then.
            let other = try await bench.connect()
            await bench.radio.setReaction(of: other, toSecurityRequests: .pair(VirtualSecurity()))
            let second = try #require(await bench.local.centrals.last?.id)
            #expect(await Self.failure(bench, second, .authenticated)?.code == .insufficientSecurity)
            #expect(await bench.paired().count == 2)
        }
    }

    /// The kernel would open a channel then, and the call would wait for an event that does not come.
    @Test func nothingIsSentOnALinkThatIsEncryptedWithALesserKey() async throws {
        try await PairingBench.run { bench in
            try await bench.local.allowPairing(.justWorks)
            let phone = try await bench.connect()
            await bench.radio.encrypt(phone)
            try await bench.sleep(.milliseconds(100))
            let before = bench.central.clock.now
            #expect(await Self.failure(bench, try await Self.id(bench), .authenticated)?.code == .insufficientSecurity)
            #expect(bench.central.clock.now == before)
            #expect(await bench.radio.securityRequests(to: phone) == 0)
        }
    }

    @Test func aLinkOnWhichAPairingHasFailedIsNotSecuredWithABond() async throws {
        try await PairingBench.run { bench in
            var options = CentralPairingOptions.justWorks
            options.agent.confirm = { _ in false }
            try await bench.local.allowPairing(options)
            let phone = try await bench.connect()
            try await bench.pair(phone)
            #expect(await bench.failures().count == 1)
            let error = await Self.failure(bench, try await Self.id(bench), .authenticated)
            #expect(error?.code == .insufficientSecurity)
            #expect(error?.reason.contains("a pairing has failed on this link") == true)
        }
    }

    /// The kernel refuses one that wants to bond, and the library one that does not.
    @Test(arguments: [true, false]) func aCentralThatHasLostItsBondAndMayNotPairIsReportedAtOnce(
        _ bonds: Bool
    ) async throws {
        try await PairingBench.run { bench in
            let (phone, id) = try await Self.bonded(bench)
            await bench.local.refusePairing()
            var security = VirtualSecurity()
            security.keepsBonds = bonds
            await bench.radio.setReaction(of: phone, toSecurityRequests: .pair(security))
            #expect(await Self.failure(bench, id)?.code == .notBonded)
            #expect(await bench.paired().count == 1)
        }
    }

    // MARK: Helpers

    /// Returns a bonded central on a link that is not encrypted.
    private static func bonded(_ bench: PairingBench) async throws -> (VirtualCentral, ConnectedCentral.ID) {
        try await bench.local.allowPairing(.justWorks)
        let phone = try await bench.connect()
        try await bench.pair(phone)
        await phone.disconnect()
        try await bench.reconnect(phone)
        return (phone, try await id(bench))
    }

    private static func id(_ bench: PairingBench) async throws -> ConnectedCentral.ID {
        try #require(await bench.local.centrals.first?.id)
    }

    private static func failure(
        _ bench: PairingBench, _ id: ConnectedCentral.ID, _ required: PairingOptions.RequiredSecurity = .encrypted,
        timeout: Duration = .seconds(30)
    ) async -> BLEError? {
        do throws(BLEError) {
            _ = try await bench.local.requestSecurity(required, of: id, timeout: timeout)
            return nil
        } catch {
            return error
        }
    }
}
