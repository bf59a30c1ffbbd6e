import BLECore
import BLELinux
import BareBLE

/// A pairing that the command line asks for.
///
/// Its agent asks on the terminal. Without one it can only enter a passkey of the command line. It never pretends that
/// there is nobody to ask: a peer that shows a passkey would be paired without protection, and refuse its values.
struct PairingRequest: Sendable {
    private static let usualTimeout: Duration = .seconds(25)

    private let passkey: Passkey?
    private let isTerminal: Bool
    private let ask: @Sendable (String) async -> String?
    private let note: @Sendable (String) -> Void
    /// Whether a passkey was asked for, and none was returned.
    private let lacksPasskey = Lock(false)
    private(set) var options: PairingOptions

    /// - Parameters:
    ///   - passkey: The one of the command line.
    ///   - isTerminal: Whether there is a user to ask.
    ///   - ask: Prints a question, and returns the line that the user types.
    ///   - note: Prints a line for the user.
    init(
        passkey: Passkey?, require: PairingOptions.RequiredSecurity = .encrypted, name: String? = nil,
        timeout: Duration? = nil,
        isTerminal: Bool = TerminalLine.isPossible,
        ask: @escaping @Sendable (String) async -> String? = { await TerminalLine.ask($0) },
        note: @escaping @Sendable (String) -> Void = { Console.note($0) }
    ) {
        self.passkey = passkey
        self.isTerminal = isTerminal
        self.ask = ask
        self.note = note
        options = PairingOptions(require: require, name: name, timeout: timeout ?? Self.usualTimeout)
        options.agent = agent { "\($0)" }
    }

    /// Pairs, unless there is a bond.
    ///
    /// - Throws: `BLEError`, with the option that helps.
    func pair(_ peripheral: Peripheral, _ peer: PeerArgument) async throws(BLEError) -> Bond {
        Console.progress.update("\(peer): pairing")
        var options = options
        // Nobody has typed the address of a virtual device.
        if case .demo = peer { options.agent = agent { _ in peer.description } }
        do throws(BLEError) {
            return try await peripheral.pair(options)
        } catch {
            throw advised(error, peer)
        }
    }

    private func advised(_ error: BLEError, _ peer: PeerArgument) -> BLEError {
        let lacksPasskey = lacksPasskey.withLock(\.self)
        if lacksPasskey, !isTerminal {
            // The peer has refused nothing: the command line lacks the passkey.
            let option = VirtualPeer(peer)?.passkey.map { "--passkey \($0)" } ?? "--passkey"
            return BLEError(
                .invalidArgument, subject: error.subject, during: error.operation,
                because: "the peer shows a passkey, and there is no terminal to ask for it",
                hint: "Give it with \(option), or run this in a terminal.")
        }
        switch error.code {
        case .pairingRefused where lacksPasskey:
            return error.with(
                reason: "no passkey was entered",
                hint: "Run it again, and type what the peer shows, or give --passkey DIGITS.")
        case .pairingRefused where VirtualPeer(peer)?.isProtected == false:
            return error.with(hint: "Of the virtual devices only demo:lock pairs.")
        case .wrongPasskey where passkey != nil:
            return error.with(hint: "Check --passkey: the peer shows it, or it is printed on the peer.")
        case .pairingFailed where options.require != .encrypted:
            return error.with(hint: "Without --require it is paired as well as it can be.")
        case .keyTooShort:
            return error.with(hint: "Such a key protects nothing, and was not kept.")
        default:
            return error
        }
    }

    // MARK: The agent

    /// Returns the agent; `name` returns what its questions call the peer.
    private func agent(_ name: @escaping @Sendable (PeerID) -> String) -> PairingAgent {
        let lacksPasskey = lacksPasskey
        if let passkey { return .passkey(passkey) }
        guard isTerminal else {
            return PairingAgent(enter: { _ in
                lacksPasskey.withLock { $0 = true }
                return nil
            })
        }
        return PairingAgent(
            show: { [note] peer, passkey in note("Enter \(passkey) on \(name(peer)).") },
            compare: { [ask] peer, number in
                let line = await ask("Does \(name(peer)) show \(number) too? [y/n] ")
                return ["y", "yes"].contains(line?.filter { !$0.isWhitespace }.lowercased())
            },
            enter: { [ask] peer in
                // It is a part of the question, because messages may have a queue of their own.
                var advice = ""
                while let line = await ask(advice + "Passkey that \(name(peer)) shows: ") {
                    let word = line.filter { !$0.isWhitespace }
                    if word.isEmpty { break }
                    if let passkey = Passkey(word) { return passkey }
                    advice = "A passkey has up to six digits; an empty line ends the pairing. "
                }
                // A question that is withdrawn, as after a refusal of the peer, was not left unanswered.
                if !Task.isCancelled { lacksPasskey.withLock { $0 = true } }
                return nil
            })
    }
}
