import BLECore
import BLELinux
import Foundation
import TestSupport
import Testing

@testable import BareBLE
@testable import BareBLETestKit

/// The error of a pairing that fails: its code, and the hint what to do next.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct PairingFailureTests {
    private static let peer = PeerID(address: BluetoothAddress(rawValue: 0xC411_2233_4455), type: .random)

    // MARK: On the virtual kernel

    /// The failures that a user can do something about, each with a cause of its own.
    private enum Cause: CaseIterable, Sendable {
        case noPermission, otherManager, noSecurityManager, damagedFile, wrongPasskey, noInputNorOutput, noIdentity

        var code: BLEError.Code {
            switch self {
            case .noPermission: .notPermitted
            case .otherManager: .adapterShared
            case .noSecurityManager: .pairingUnavailable
            case .damagedFile: .unusableState
            case .wrongPasskey: .wrongPasskey
            case .noInputNorOutput: .pairingFailed
            case .noIdentity: .notBonded
            }
        }

        /// What the hint names.
        var hint: String {
            switch self {
            case .noPermission: "cap_net_admin"
            case .otherManager: "bluetoothd"
            case .noSecurityManager: "Disconnect all peers"
            case .damagedFile: ".bonds.damaged"
            case .wrongPasskey: "the one that the peer shows"
            case .noInputNorOutput: "`.encrypted`"
            case .noIdentity: "identity address"
            }
        }

        var security: VirtualSecurity {
            var security = VirtualSecurity(passkey: 123_456)
            if self == .wrongPasskey { security.capability = .displayOnly }
            if self == .otherManager { security.response = .refuse }
            return security
        }

        var options: PairingOptions {
            switch self {
            case .wrongPasskey: PairingOptions(agent: PairingAgent(enter: { _ in Passkey(654_321) }))
            case .noInputNorOutput:
                PairingOptions(agent: PairingAgent(enter: { _ in Passkey(123_456) }), require: .authenticated)
            default: PairingOptions()
            }
        }
    }

    @Test(arguments: Cause.allCases) private func eachFailureHasItsCodeAndLeavesNothing(
        _ cause: Cause
    ) async throws {
        try await VirtualTime.run { time in
            let folder = try Folder()
            let bench = try await SecurityBench(time, cause.security, bonds: try BondStore(directory: folder.path))
            var address = bench.id
            switch cause {
            case .noIdentity:
                address = PeerID(address: BluetoothAddress(rawValue: 0x5A8D_ED8E_AB1E), type: .random)
                await bench.radio.changeAddress(of: bench.device, to: address)
            case .noPermission: await bench.radio.setPermissions([.commands])
            case .otherManager: await bench.radio.runBluetoothd(true)
            case .noSecurityManager, .damagedFile, .wrongPasskey, .noInputNorOutput: break
            }
            let link = try await bench.central.connect(address)
            if cause == .noSecurityManager {
                // As after a pairing in which the kernel did nothing; the link is in the way of switching the adapter
                // off.
                await bench.central.adapter.assumeSecurityManagerIsOff()
            }
            if cause == .damagedFile {
                let lock = try #require(folder.names.first { $0.hasSuffix(".lock") })
                let isWritten = FileManager.default.createFile(
                    atPath: "\(folder.path)/\(lock.dropLast(5)).bonds", contents: Data("no bonds".utf8),
                    attributes: [.posixPermissions: 0o600])
                #expect(isWritten)
            }
            do {
                _ = try await link.pair(cause.options)
                Issue.record("it was paired")
            } catch let error as BLEError {
                #expect(error.code == cause.code, "\(error)")
                #expect(error.hint?.contains(cause.hint) == true, "\(error)")
            }
            #expect(try await bench.central.bonds().isEmpty)
            #expect(await bench.radio.longTermKeys().isEmpty)
            await link.disconnect()
        }
    }

    /// It is as it was, unless a link has shown since that the kernel cannot pair with it.
    @Test(arguments: [false, true]) func anAdapterWhoseManagementWasLostKeepsItsPowerUnlessItIsSeenToBeUnable(
        _ isSeen: Bool
    ) async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            await bench.radio.closeManagement()
            try await time.clock.sleep(for: .seconds(1))
            if isSeen { await bench.central.adapter.assumeSecurityManagerIsOff() }
            let managed = try await bench.central.adapter.manage(in: .unlimited("pair"))
            #expect(managed.hasCycledPower == isSeen)
            #expect(managed.canPair == true)
        }
    }

    /// The kernel pairs for no channel then, so that nothing but the level that it wants shows the refusal.
    @Test func aRefusedChannelIsReportedAtOnceWhereTheKernelIsKnownToPairWithNobody() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            await bench.device.setReaction(toChannels: 0x80, .acceptEncrypted)
            let adapter = await bench.central.adapter
            try await adapter.prepare(during: "adopt a link", mayCyclePower: false)
            await adapter.assumeSecurityManagerStaysOff()
            let link = try await bench.central.connect(bench.id)
            #expect(await !bench.radio.hasSecurityManager())
            let begin = time.now
            do throws(BLEError) {
                _ = try await link.openChannel(psm: 0x80)
                Issue.record("it is protected")
            } catch {
                #expect(error.code == .insufficientSecurity && error.requiredSecurity == .authentication, "\(error)")
                #expect(error.hint?.contains("Disconnect all peers") == true, "\(error)")
            }
            #expect(time.now - begin < .seconds(1))
            await link.disconnect()
        }
    }

    /// What is known of the cause after the peer's no: the kernel has one status for all of them.
    @Test(
        arguments: [
            (.displayYesNo, PairingAgent(compare: { _, _ in true }), "confirm the number"),
            (.keyboardOnly, PairingAgent(show: { _, _ in }), "shown here at the peer"),
            (.noInputNoOutput, PairingAgent(), "pairing mode"),
        ] as [(VirtualSecurity.Capability, PairingAgent, String)])
    func theHintOfARejectionByThePeerIsAboutItsQuestion(
        _ capability: VirtualSecurity.Capability, _ agent: PairingAgent, _ hint: String
    ) async throws {
        try await VirtualTime.run { time in
            var security = VirtualSecurity(capability: capability)
            security.response = .reject
            let bench = try await SecurityBench(time, security)
            do {
                try await bench.pair(PairingOptions(agent: agent))
                Issue.record("it was paired")
            } catch let error as BLEError {
                #expect(error.code == .pairingRefused && error.origin == .peer, "\(error)")
                #expect(error.hint?.contains(hint) == true, "\(error)")
            }
            #expect(await bench.radio.longTermKeys().isEmpty)
        }
    }

    /// The kernel takes the commands, and does not respond to them.
    @Test func theTimeoutsCoverTheManagementOfTheAdapter() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let kernel = Lock<[Int32]>([])
            let central = central(bench, onSilentKernel: kernel)
            var begin = time.now
            var error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(bench.id, ConnectOptions(timeout: .seconds(2)))
            }
            #expect(error?.code == .timedOut && time.now == begin + .seconds(2))
            // That was not the adapter's failure: the next connect waits for it, and goes on without.
            begin = time.now
            let link = try await central.connect(bench.id)
            #expect(time.now >= begin + .seconds(4))
            begin = time.now
            error = await #expect(throws: BLEError.self) {
                try await link.pair(PairingOptions(timeout: .seconds(2)))
            }
            #expect(error?.code == .timedOut && time.now == begin + .seconds(2))
            await link.disconnect()
            for descriptor in kernel.withLock(\.self) { MemoryFile.close(descriptor) }
        }
    }

    /// The management fails when no connect waits for that any more: the next one goes on without.
    @Test func connectsWithShortTimeoutsSucceedOnceTheManagementHasFailed() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            let kernel = Lock<[Int32]>([])
            let central = central(bench, onSilentKernel: kernel)
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(bench.id, ConnectOptions(timeout: .seconds(2)))
            }
            #expect(error?.code == .timedOut)
            try await time.clock.sleep(for: .seconds(7))
            let link = try await central.connect(bench.id, ConnectOptions(timeout: .seconds(2)))
            await link.disconnect()
            for descriptor in kernel.withLock(\.self) { MemoryFile.close(descriptor) }
        }
    }

    /// The first connect begins to switch the adapter off and on, and does not wait for that.
    @Test func connectsToAnAdapterThatTheManagementHasSwitchedOffKeepTheirTimeoutsAndRecordItsFailure() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            // Set Powered, on.
            await bench.radio.ignoreManagementPacket([5, 0, 0, 0, 1, 0, 1])
            for attempt in 1...2 {
                let begin = time.now
                let error = await #expect(throws: BLEError.self) {
                    _ = try await bench.central.connect(bench.id, ConnectOptions(timeout: .seconds(2)))
                }
                #expect(error?.code == .timedOut && time.now == begin + .seconds(2), "attempt \(attempt)")
            }
            // Its power-on fails while this one waits.
            let error = await #expect(throws: BLEError.self) {
                _ = try await bench.central.connect(bench.id, ConnectOptions(timeout: .seconds(60)))
            }
            #expect(error?.code == .adapterDown)
            await bench.radio.powerOn()
            let commands = await bench.radio.managementCommands
            let link = try await bench.central.connect(bench.id, ConnectOptions(timeout: .seconds(2)))
            #expect(await bench.radio.managementCommands == commands, "it goes on without")
            await link.disconnect()
        }
    }

    /// What follows is for the task that has begun the setup, not for a connect that has waited for it.
    @Test func aSetUpThatFailedWhileAConnectWaitedIsTriedAgain() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.central.ready(powerOn: true)
            await bench.radio.ignoreManagementPacket([5, 0, 0, 0, 1, 0, 1])
            await bench.radio.unplug()
            try await time.clock.sleep(for: .seconds(2))
            await bench.radio.plugIn()
            try await time.clock.sleep(for: .seconds(2))
            let error = await #expect(throws: BLEError.self) {
                _ = try await bench.central.connect(bench.id, ConnectOptions(timeout: .seconds(60)))
            }
            #expect(error?.code == .adapterDown)
            await bench.radio.ignoreManagementPacket(nil)
            await bench.radio.powerOn()
            let commands = await bench.radio.managementCommands
            let link = try await bench.central.connect(bench.id, ConnectOptions(timeout: .seconds(60)))
            #expect(await bench.radio.managementCommands > commands)
            await link.disconnect()
        }
    }

    /// Returns a central beside a kernel that does not respond to management; the kernel's ends of its sockets are in
    /// `kernel`.
    private func central(_ bench: SecurityBench, onSilentKernel kernel: Lock<[Int32]>) -> Central {
        var configuration = Configuration()
        configuration.security = SecurityConfiguration(bonds: .inMemory)
        return Central(configuration, radio: bench.radio) { system in
            system.openManagement = { () throws(SystemCallError) in
                let (ours, theirs) = try LinkSocket.pair()
                kernel.withLock { $0.append(theirs) }
                return ManagementSocket(adopting: ours)
            }
        }
    }

    // MARK: All of them

    private static let questions: [PairingExchange.Question] = [.justWorks, .compare(1), .enter, .show(1)]

    private typealias Expectation = (failure: PairingExchange.Failure, options: PairingOptions, code: BLEError.Code)

    private static var expectations: [Expectation] {
        let failures: [(PairingExchange.Failure, BLEError.Code)] = [
            (.command(.pairDevice, .busy), .busy), (.command(.pairDevice, .permissionDenied), .notPermitted),
            (.command(.pairDevice, .notPowered), .adapterDown),
            (.command(.pairDevice, .notSupported), .notSupported),
            (.command(.pairDevice, .rejected), .pairingFailed), (.noResponse(.pairDevice), .timedOut),
            (.timedOut(.enter), .timedOut), (.timedOut(nil), .timedOut), (.refusedByPeer, .pairingRefused),
            (.wrongPasskey, .wrongPasskey), (.passkeyNotEntered, .pairingRefused),
            (.numberRejected, .pairingRefused), (.notProtected, .pairingFailed), (.keyTooWeak(nil), .pairingFailed),
            (.keyTooShort(7), .keyTooShort), (.alreadyEncrypted, .pairingFailed), (.identityTaken, .pairingFailed),
            (.noKey, .notBonded), (.noIdentity, .notBonded), (.notEncrypted, .pairingUnavailable),
            (.notStored, .bondNotStored), (.linkLost, .disconnected), (.adapterLost, .adapterDown),
        ]
        var all: [Expectation] = failures.map { ($0, asking, $1) }
        for question in questions { all.append((.refusedHere(question), asking, .pairingRefused)) }
        // What the agent lacks.
        for question in questions.dropFirst() { all.append((.refusedHere(question), PairingOptions(), .pairingFailed)) }
        all.append((.notProtected, PairingOptions(), .pairingFailed))
        all.append((.refusedByPeer, handedOver, .pairingFailed))
        return all
    }

    private static let asking = PairingOptions(
        agent: PairingAgent(
            show: { _, _ in }, compare: { _, _ in true }, enter: { _ in nil }, confirm: { _ in true }))
    private static let handedOver = PairingOptions(
        agent: PairingAgent(outOfBand: PairingAgent.OutOfBandData(confirmation: secret, random: secret)))
    private static let secret = [UInt8](repeating: 7, count: 16)

    /// Two failures with the same code differ in their hints.
    @Test func everyFailureOfAPairingHasAHintOfItsOwn() {
        var seen: [String: PairingExchange.Failure] = [:]
        for (failure, options, code) in Self.expectations {
            let error = BLEError(failure, pairing: Self.peer, options, during: "pair")
            #expect(error.code == code, "\(error)")
            #expect(error.subject == "\(Self.peer)")
            guard let hint = error.hint else {
                Issue.record("\(error)")
                continue
            }
            let other = seen.updateValue(failure, forKey: "\(code) \(hint)")
            #expect(other == nil, "\(failure) and \(other.map { "\($0)" } ?? "")")
        }
    }

    /// Programs for iOS are notified of that by a code of its own, whatever the peer has refused before.
    @Test func onlyTheSilenceOfThePeerIsAnEncryptionTimeout() {
        let refusal = BLEError(
            .insufficientSecurity, during: "read fff1", because: "", attError: .insufficientAuthentication)
        for (failure, options, _) in Self.expectations {
            let error = BLEError(failure, pairing: Self.peer, options, during: "pair")
            let isPeersSilence = failure == .timedOut(nil)
            #expect(error.isEncryptionTimeout == isPeersSilence, "\(error)")
            #expect(error.hinting("").isEncryptionTimeout == isPeersSilence)
            let explained = refusal.explained(by: error)
            #expect(explained.isEncryptionTimeout == isPeersSilence)
            #expect(explained.attError == .insufficientAuthentication)
            #expect(error.explained(by: refusal).isEncryptionTimeout == isPeersSilence, "its own stays")
        }
    }

    private static let setups: [(ManagementSetup.Failure, BLEError.Code)] = [
        (.notPermitted, .notPermitted), (.adapterGone, .noAdapter), (.noLowEnergy, .unsupported),
        (.blocked, .blocked), (.powerUnchanged, .adapterDown),
        (.listRefused(.longTermKeys, .invalidParameters), .system), (.listTooLong(.longTermKeys, limit: 9), .tooLong),
        (.notManaged, .adapterDown), (.cannotPair, .pairingUnavailable), (.switchedOff, .adapterDown),
        (.bondableCleared, .adapterShared),
        (.command(ManagementCommandFailure(code: .setPowered, reason: .timeout)), .system),
    ]

    @Test func everyFailureOfTheManagementHasAHint() {
        for (failure, code) in Self.setups {
            let alone = BLEError(failure, adapter: "hci0", during: "pair")
            #expect(alone.code == code && alone.hint != nil && alone.subject == "hci0", "\(alone)")
            let pairing = BLEError(.notReady(failure), pairing: Self.peer, PairingOptions(), during: "pair")
            #expect(pairing.code == code && pairing.hint == alone.hint, "\(pairing)")
        }
    }

    private static let refusals: [(BondRefusal, BLEError.Code)] =
        [(.keyTooShort(7, minimum: 16), .keyTooShort)]
        + [
            .notForStorage, .noIdentity, .foreignKey, .noKey, .surplusKeys, .noCentralKey, .kind(.debug),
            .invalidSize(3), .longerThanItsSize, .zeroKey, .publishedKey, .levelBeyondKey, .bondExists, .weakerKind,
            .weakerSize, .weakerLevel, .full, .listIsFull, .otherAdapter, .identityKey(.zero),
        ].map { ($0, .bondNotStored) }

    @Test func everyBondThatIsNotStoredHasAHint() {
        for (refusal, code) in Self.refusals {
            let error = BLEError(refusal, bondWith: Self.peer, during: "store the bond")
            #expect(error.code == code && error.hint != nil && error.reason == "\(refusal)", "\(error)")
        }
    }
}

extension Adapter {
    fileprivate func assumeSecurityManagerIsOff() { security.coordinator.cannotPair() }

    /// As before, and no connect switches the adapter off and on for that.
    fileprivate func assumeSecurityManagerStaysOff() {
        assumeSecurityManagerIsOff()
        security.setUpEnded(BLEError(cannotPairWith: name, during: "connect"))
    }
}
