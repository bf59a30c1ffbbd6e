import BareBLE
import BareBLECrypto
import Glibc

/// A program for the kernel tests that is neither a daemon nor a tool: one process that does one thing often, for long,
/// over its own end, or with the privileges that it is given.
///
///     link-trials cycles COUNT PAUSE PEER     connects and disconnects so often
///     link-trials idle PEER...                one session and one subscription for each, and nothing else
///     link-trials execute AFTER TIMES PEER    follows heart rates; after AFTER of them it executes itself again, with the link
///     link-trials store AFTER PEER            the same, with the link in the service manager's store, and ends
///     link-trials serve-handed NUMBER         serves a value that begins with the number, from what the service manager has; ends
///                                             at a line of its input
///     link-trials rights PEER PSM             says which features of a link it may use
///     link-trials roles PEER...               `idle`, `serve` and a scan in one process
///     link-trials serve                       is a peripheral that does what its central writes to it
///     link-trials serve management            the same, and the kernel advertises
///     link-trials serve BONDS HOW             the same, and its centrals may pair
///
/// `execute` and `store` continue with the link that they are handed. Each line that they write says one thing; the
/// tests read them.
@main
enum LinkTrials {
    static func main() {
        do {
            try Central.serve { central in
                try await run(Array(CommandLine.arguments.dropFirst()), central)
            }
        } catch {
            fail("\(error)", 1)
        }
    }

    private static func run(_ words: [String], _ central: Central) async throws {
        switch (words.first, words.count) {
        case ("cycles", 4):
            try await RepeatedVisits(count: number(words[1]), pause: number(words[2]), peer: peer(words[3])).run()
        case ("idle", 2...): try await IdleTrial(peers: words.dropFirst().map(peer)).run(central)
        case ("execute", 4...5):
            let trial = HandOverTrial(central: central, after: number(words[1]), peer: peer(words[3]))
            try await trial.execute(times: number(words[2]), handed: words.dropFirst(4).first)
        case ("store", 3):
            try await HandOverTrial(central: central, after: number(words[1]), peer: peer(words[2])).store()
        case ("serve-handed", 2):
            try await HandedServeTrial(central: central, run: UInt8(clamping: number(words[1]))).serve()
        case ("rights", 3):
            try await RightsTrial(peer: peer(words[1]), psm: UInt16(clamping: number(words[2]))).run()
        case ("roles", 2...): try await RolesTrial(peers: words.dropFirst().map(peer)).run(central)
        case ("serve", 1): try await ServeTrial(central: central).run()
        case ("serve", 2) where words[1] == "management":
            try await ServeTrial(central: central, backEnd: .management).run()
        case ("serve", 3):
            guard let pairing = ServeTrial.pairing(words[2]) else { fail("not so paired: \(words[2])", 64) }
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: try BondStore(directory: words[1]))
            (configuration.addressHash, configuration.databaseHash) = ({ $0.hash }, { $0.hash })
            configuration.writeSignature = { $0.code }
            let bonding = Central(configuration)
            try await bonding.run { try await ServeTrial(central: bonding, pairing: pairing).run() }
        default: fail("not so called: \(words)", 64)
        }
    }

    static func say(_ line: String) {
        print(line)
        // The reader of a pipe needs the line now.
        fflush(nil)
    }

    static func fail(_ reason: String, _ status: Int32) -> Never {
        say("failed \(reason)")
        exit(status)
    }

    private static func number(_ word: String) -> Int {
        guard let number = Int(word), number >= 0 else { fail("no number: \(word)", 64) }
        return number
    }

    private static func peer(_ word: String) -> PeerID {
        guard let peer = PeerID(word) else { fail("no peer: \(word)", 64) }
        return peer
    }
}
