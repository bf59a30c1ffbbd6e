import BLECore
import BLELinux
import BareBLE
import BareBLECrypto
import BareBLETestKit
import TestSupport
import Testing

/// The program in Pairing.md, with a lock on a virtual radio, and a terminal whose user types what the lock shows.
///
/// In real time: the program reads its terminal on a thread of its own.
@Suite(.timeLimit(.minutes(5))) struct RealTimePairingProgramTests {
    private let radio = VirtualRadio()
    private let folder: Folder
    private let address = Lock("")
    private let typed = Lock<[String]>([])
    private let printed = Lock<[String]>([])
    private let failure = Lock<BLEError.Code?>(nil)
    private let status = Lock<Int32>(0)

    init() throws {
        folder = try Folder()
    }

    // What the program uses of its surroundings.

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private func Central(_ configuration: Configuration) -> BareBLE.Central {
        BareBLE.Central(configuration, radio: radio)
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private func BondStore(directory: String) throws(BLEError) -> BareBLE.BondStore {
        try BareBLE.BondStore(directory: folder.path)
    }

    private struct Arguments {
        let arguments: [String]
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private var CommandLine: Arguments { Arguments(arguments: ["program", address.withLock { $0 }]) }

    private func print(_ items: Any...) {
        let line = items.map { "\($0)" }.joined(separator: " ")
        printed.withLock { $0.append(line) }
        if let error = items.first as? BLEError { failure.withLock { $0 = error.code } }
    }

    private func exit(_ status: Int32) {
        self.status.withLock { $0 = status }
    }

    private func readLine() -> String? {
        typed.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    private func program() async {
        // in: Sources/BareBLE/BareBLE.docc/Pairing.md
        do {
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: try BondStore(directory: "/var/lib/door"))
            configuration.addressHash = { $0.hash }
            let central = Central(configuration)
            try await central.ready(powerOn: true)
            let agent = PairingAgent(
                show: { peer, passkey in print("Enter \(passkey) at \(peer).") },
                compare: { peer, number in await ask("Does \(peer) show \(number)? (y/n)") == "y" },
                enter: { peer in Passkey(await ask("Passkey of \(peer):")) })
            let lock = try await central.connect(CommandLine.arguments[1])
            print("Paired:", try await lock.pair(PairingOptions(agent: agent, require: .authenticated)).peer)
        } catch {
            print(error)
            exit(1)
        }
        // out
    }

    // in: Sources/BareBLE/BareBLE.docc/Pairing.md
    func ask(_ question: String) async -> String {
        print(question)
        return await Task.detached { readLine() ?? "" }.value
    }
    // out

    private func run(_ security: VirtualSecurity, typing lines: [String]) async throws -> VirtualPeripheral {
        let device = await radio.add(SecurityBench.described(security))
        let id = try #require(await radio.id(of: device))
        address.withLock { $0 = "\(id)" }
        typed.withLock { $0 = lines }
        await program()
        return device
    }

    private func expectPaired() {
        #expect(printed.withLock { $0.last } == "Paired: \(address.withLock { $0 })")
        #expect(status.withLock { $0 } == 0)
    }

    @Test func thePasskeyOfALockIsTyped() async throws {
        let lock = try await run(VirtualSecurity(capability: .displayOnly, passkey: 12_345), typing: ["012345"])
        expectPaired()
        #expect(await lock.isBonded)
        #expect(printed.withLock { $0.first } == "Passkey of \(address.withLock { $0 }):")
    }

    @Test func aComparisonIsConfirmed() async throws {
        let lock = try await run(VirtualSecurity(capability: .displayYesNo), typing: ["y"])
        expectPaired()
        #expect(await lock.isBonded)
        #expect(printed.withLock { $0.first }?.hasSuffix("? (y/n)") == true)
    }

    @Test func aWrongPasskeyIsNotPairedWith() async throws {
        let security = VirtualSecurity(capability: .displayOnly, passkey: 12_345)
        let lock = try await run(security, typing: ["54321"])
        #expect(failure.withLock { $0 } == .wrongPasskey)
        #expect(status.withLock { $0 } == 1)
        // The question and the error.
        #expect(printed.withLock { $0.count } == 2)
        #expect(await !lock.isBonded)
    }
}
