import BLECore
import BareBLE
import BareBLECrypto
import BareBLETestKit
import TestSupport
import Testing

/// The Swift in Pairing.md.
@Suite(.virtualTime, .timeLimit(.minutes(5))) struct PairingSampleTests {
    private func begin() async throws {
        // in: Sources/BareBLE/BareBLE.docc/Pairing.md
        var configuration = Configuration()
        configuration.security = SecurityConfiguration(bonds: try BondStore(directory: "/var/lib/logger"))
        configuration.addressHash = { $0.hash }  // import BareBLECrypto
        let central = Central(configuration)
        try await central.ready(powerOn: true)
        let lock = try await central.connect("C4:11:22:33:44:55/random")
        let bond = try await lock.pair()
        // out
        _ = bond
    }

    private func pair(_ lock: Peripheral, ask: @escaping @Sendable (String) async -> String) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Pairing.md
        let agent = PairingAgent(
            show: { peer, passkey in print("Enter \(passkey) at \(peer).") },
            compare: { peer, number in await ask("Does \(peer) show \(number)? (y/n)") == "y" },
            enter: { peer in Passkey(await ask("Passkey that \(peer) shows:")) })
        try await lock.pair(PairingOptions(agent: agent, require: .authenticated))
        // out
    }

    private func pairWithPrintedPasskey(_ lock: Peripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/Pairing.md
        if let passkey = Passkey("123456") {
            let bond = try await lock.pair(PairingOptions(agent: .passkey(passkey), require: .authenticated))
            print(bond.peer)  // the identity: store this text, and connect to it later
        }
        // out
    }

    private func replace(_ central: Central, _ id: PeerID) async throws -> Peripheral {
        // in: Sources/BareBLE/BareBLE.docc/Pairing.md
        let options = ConnectOptions(security: .pairing(PairingOptions(replacing: .lostByPeer)))
        let lock = try await central.connect(id, options)
        // out
        return lock
    }

    private func sign(_ configuration: Configuration, _ central: Central) async throws {
        var configuration = configuration
        // in: Sources/BareBLE/BareBLE.docc/Pairing.md
        configuration.writeSignature = { $0.code }  // import BareBLECrypto
        let meter = try await central.connect("C4:11:22:33:44:55/random", ConnectOptions(security: .none))
        try await meter.writeSigned([1], to: 0x2A9F)
        // out
    }

    private func allowPairing(_ peripheral: LocalPeripheral) async throws {
        // in: Sources/BareBLE/BareBLE.docc/PeripheralRole.md
        let agent = PairingAgent(show: { central, passkey in print("Enter \(passkey) at \(central).") })
        let events = peripheral.events
        try await peripheral.allowPairing(
            CentralPairingOptions(agent: agent, require: .authenticated), for: .seconds(60))
        for try await event in events {
            if case .paired(_, let bond) = event { print("bonded with \(bond.peer)") }
        }
        // out
    }

    @Test func theVirtualLockOfThePageIsPairedWith() async throws {
        try await VirtualTime.run { _ in
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            // in: Sources/BareBLE/BareBLE.docc/Pairing.md
            let radio = VirtualRadio()
            await radio.add(.lock)
            let central = Central(configuration, radio: radio)
            let lock = try await central.connect(toFirst: .any).peripheral
            // out
            try await pair(lock) { _ in "123456" }
            #expect(await lock.security.isAuthenticated)
            await lock.disconnect()
        }
    }

    @Test func aPrintedPasskeyPairs() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(capability: .displayOnly, passkey: 123_456))
            let lock = try await bench.central.connect(bench.id)
            try await pairWithPrintedPasskey(lock)
            #expect(await lock.security.isAuthenticated)
            await lock.disconnect()
        }
    }

    /// Two runs of a program with one directory of bonds, each with a radio of its own.
    @Test func aNewRadiosLockRejectsTheBondOfAnEarlierRun() async {
        await VirtualTime.run { _ in
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: .inMemory)
            for isFirst in [true, false] {
                let radio = VirtualRadio()
                await radio.add(.lock)
                let central = Central(configuration, radio: radio)
                do {
                    let lock = try await central.connect(toFirst: .any).peripheral
                    #expect(isFirst)
                    try await pair(lock) { _ in "123456" }
                    await lock.disconnect()
                } catch {
                    #expect(!isFirst && (error as? BLEError)?.code == .bondRejected)
                }
            }
        }
    }

    @Test func theAgentOfThePageAuthenticates() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time, VirtualSecurity(capability: .displayOnly, passkey: 123_456))
            let lock = try await bench.central.connect(bench.id)
            try await pair(lock) { _ in "123456" }
            #expect(await lock.security.isAuthenticated)
            await lock.disconnect()
        }
    }

    @Test func aLostBondIsReplacedAsDocumented() async throws {
        try await VirtualTime.run { time in
            let bench = try await SecurityBench(time)
            try await bench.pair()
            await bench.device.forgetBonds()
            let rejected = await #expect(throws: BLEError.self) { _ = try await bench.central.connect(bench.id) }
            #expect(rejected?.code == .bondRejected)
            for remedy in ["Central.forgetBond(with:)", "PairingOptions(replacing: .lostByPeer)"] {
                #expect(rejected?.hint?.contains(remedy) == true)
            }
            let lock = try await replace(bench.central, bench.id)
            #expect(try await lock.read(0xFFF1) == [7])
            #expect(try await bench.central.bonds().first?.rejectedSince == nil)
            await lock.disconnect()
        }
    }
}
