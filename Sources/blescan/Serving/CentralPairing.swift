import ArgumentParser
import BLECore
import BareBLE

/// How `blescan serve` lets centrals pair.
enum CentralPairing: String, ExpressibleByArgument, CaseIterable, Sendable {
    /// With the user of the terminal.
    case ask
    /// With a passkey that is printed.
    case show
    /// With nothing to compare.
    case justWorks = "just-works"

    /// Returns the options of the pairings.
    ///
    /// - Parameters:
    ///   - message: Prints a line for the user of the terminal.
    ///   - passkey: Prints a passkey that is to be entered at a central.
    func options(
        message: @escaping @Sendable (String) -> Void, passkey: @escaping @Sendable (PeerID, Passkey) -> Void
    ) -> CentralPairingOptions {
        switch self {
        case .justWorks: return .justWorks
        case .show:
            return CentralPairingOptions(agent: PairingAgent(show: { passkey($0, $1) }), require: .legacyPasskey)
        case .ask:
            var agent = PairingRequest(passkey: nil, note: message).options.agent
            agent.confirm = { peer in await Self.ask("Pair with \(peer), with nothing to compare? [y/n] ") }
            return CentralPairingOptions(
                agent: agent,
                replace: { bond in
                    await Self.ask("\(bond.peer) has a bond, and pairs again. Replace the bond? [y/n] ")
                })
        }
    }

    private static func ask(_ question: String) async -> Bool {
        let line = await TerminalLine.ask(question)
        return ["y", "yes"].contains(line?.filter { !$0.isWhitespace }.lowercased())
    }
}
