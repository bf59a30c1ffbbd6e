import BLECore
import BLELinux
import TestSupport
import Testing

@testable import BareBLE

/// What the application decides about centrals that pair. `PairingResponderTests` has the sequences,
/// `CentralPairingCoordinatorTests` the packets, and Tests/VM/guest/test_serving.py the kernel.
@Suite struct CentralPairingTests {
    private static let central = PeerID("C6:55:44:33:22:11/random")!
    private static let bond = Bond(RecordedBonds.first, adapter: BluetoothAddress(rawValue: 0x0011_2233_4455))

    @Test func justWorksIsAcceptedOnlyIfTheOptionsAllowIt() async {
        let silent = CentralPairingOptions(agent: PairingAgent(show: { _, _ in }))
        #expect(await silent.reply(to: .justWorks, about: Self.central, replacing: nil) == .no)
        #expect(
            await CentralPairingOptions.justWorks.reply(to: .justWorks, about: Self.central, replacing: nil) == .yes)
        for isRight in [true, false] {
            var options = CentralPairingOptions.justWorks
            options.agent.confirm = { $0 == Self.central && isRight }
            let reply = await options.reply(to: .justWorks, about: Self.central, replacing: nil)
            #expect(reply == (isRight ? .yes : .no))
        }
    }

    /// The user is not asked about a pairing that the application does not want.
    @Test func theReplacementOfABondIsAskedFirst() async {
        let shown = Lock(0)
        var options = CentralPairingOptions(agent: PairingAgent(show: { _, _ in shown.withLock { $0 += 1 } }))
        let question = PairingExchange.Question.show(123_456)
        #expect(await options.reply(to: question, about: Self.central, replacing: Self.bond) == .no)
        options.replace = { _ in false }
        #expect(await options.reply(to: question, about: Self.central, replacing: Self.bond) == .no)
        #expect(shown.withLock { $0 } == 0)
        options.replace = { $0 == Self.bond }
        #expect(await options.reply(to: question, about: Self.central, replacing: Self.bond) == .yes)
        #expect(shown.withLock { $0 } == 1)
    }

    @Test func optionsThatAcceptNothingAreRefused() async throws {
        try await ServerBench.run { bench in
            let none = await #expect(throws: BLEError.self) {
                try await bench.local.allowPairing(CentralPairingOptions(agent: .justWorks))
            }
            #expect(none?.code == .invalidArgument && none?.hint?.contains("acceptsUnconfirmed") == true)
            var agent = PairingAgent(show: { _, _ in })
            let values = [UInt8](repeating: 1, count: 16)
            agent.outOfBand = PairingAgent.OutOfBandData(confirmation: values, random: values)
            let options = CentralPairingOptions(agent: agent)
            let foreign = await #expect(throws: BLEError.self) { try await bench.local.allowPairing(options) }
            #expect(foreign?.code == .invalidArgument)
            #expect(await !bench.local.allowsPairing)
            // Nothing to refuse.
            await bench.local.refusePairing()
        }
    }

    @Test func eachFailureHasAHint() {
        let failures: [(PairingResponder.Failure, BLEError.Code)] = [
            (.bondExists, .pairingRefused), (.tooManyFailures, .pairingRefused), (.busy, .busy),
            (.tooManyUnconfirmed, .pairingRefused), (.identityConnected, .pairingFailed),
            (.pairing(.refusedByPeer), .pairingRefused), (.pairing(.refusedHere(.justWorks)), .pairingRefused),
            (.pairing(.wrongPasskey), .wrongPasskey), (.pairing(.passkeyNotEntered), .pairingRefused),
            (.pairing(.numberRejected), .pairingRefused),
            (.pairing(.timedOut(nil)), .timedOut), (.pairing(.timedOut(.enter)), .timedOut),
            (.pairing(.linkLost), .disconnected),
            (.pairing(.notProtected), .pairingFailed), (.pairing(.keyTooShort(7)), .keyTooShort),
        ]
        let options = CentralPairingOptions(agent: PairingAgent(show: { _, _ in }))
        for (failure, code) in failures {
            let error = BLEError(failure, pairingOf: Self.central, options)
            #expect(error.code == code && error.hint != nil && error.subject == "\(Self.central)", "\(error)")
            // Those of a pairing that this side begins name the peer's pairing mode.
            #expect(error.hint?.contains("pairing mode") == false, "\(error)")
            #expect(error.hint?.contains("`PairingOptions") == false, "\(error)")
            if case .pairing(let reason) = failure {
                #expect((error.origin == .peer) == reason.isRefusalByPeer, "\(error)")
            }
        }
    }
}
