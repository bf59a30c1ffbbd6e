import BareBLE
import Synchronization

/// The options of `pair`, as words of a test.
///
/// | word | meaning |
/// |---|---|
/// | `show`, `compare`, `enter`, `confirm` | the agent has this closure |
/// | `reply=yes`, `reply=no`, `reply=PASSKEY` | its reply; without it the command `reply` gives it |
/// | `require=encrypted`, `=legacyPasskey`, `=authenticated` | what must be achieved |
/// | `replacing=never`, `=lostByPeer`, `=always` | which bond may be replaced |
/// | `oob=CONFIRMATION,RANDOM` | what came from the peer in another way, hexadecimal |
/// | `name=NAME`, `timeout=SECONDS` | as in `PairingOptions` |
struct PairingWords {
    private var closures: Set<Substring> = []
    private var values: [Substring: String] = [:]

    private struct NotAWord: Error {
        let word: String
    }

    init(_ words: some Sequence<String>) throws {
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1)
            if parts.count == 2 {
                values[parts[0]] = String(parts[1])
            } else if ["show", "compare", "enter", "confirm"].contains(word) {
                closures.insert(word[...])
            } else {
                throw NotAWord(word: word)
            }
        }
    }

    func options(_ replies: Replies) throws -> PairingOptions {
        var options = PairingOptions(agent: try agent(replies))
        options.require =
            try one(
                "require",
                [
                    "encrypted": .encrypted, "legacyPasskey": .legacyPasskey, "authenticated": .authenticated,
                ]) ?? options.require
        options.replacing =
            try one(
                "replacing",
                [
                    "never": .never, "lostByPeer": .lostByPeer, "always": .always,
                ]) ?? options.replacing
        options.name = values["name"]
        if let seconds = values["timeout"].flatMap({ Int($0) }) { options.timeout = .seconds(seconds) }
        return options
    }

    private func one<Value>(_ key: Substring, _ names: [String: Value]) throws -> Value? {
        guard let word = values[key] else { return nil }
        guard let value = names[word] else { throw NotAWord(word: word) }
        return value
    }

    private func agent(_ replies: Replies) throws -> PairingAgent {
        let fixed = values["reply"]
        @Sendable func reply(_ question: String) async -> String {
            PairingTrials.say("asked \(question)")
            if let fixed { return fixed }
            return await replies.next()
        }
        var agent = PairingAgent()
        if closures.contains("show") {
            agent.show = { _, passkey in PairingTrials.say("asked show \(passkey)") }
        }
        if closures.contains("compare") {
            agent.compare = { _, number in await reply("compare \(number)") == "yes" }
        }
        if closures.contains("enter") {
            agent.enter = { _ in Passkey(await reply("enter")) }
        }
        if closures.contains("confirm") {
            agent.confirm = { _ in await reply("confirm") == "yes" }
        }
        if let text = values["oob"] {
            let parts = text.split(separator: ",").map(String.init)
            guard parts.count == 2,
                let data = PairingAgent.OutOfBandData(
                    confirmation: try Hex.decode(parts[0]), random: try Hex.decode(parts[1]))
            else { throw NotAWord(word: text) }
            agent.outOfBand = data
        }
        return agent
    }
}

/// The replies of the test to the agent's questions, in the order in which they are given.
final class Replies: Sendable {
    private struct State {
        var given: [String] = []
        var waiting: [(number: Int, continuation: CheckedContinuation<String, Never>)] = []
        var count = 0
    }

    private let state = Mutex(State())

    func give(_ reply: String) {
        let first = state.withLock { state -> CheckedContinuation<String, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
            state.given.append(reply)
            return nil
        }
        first?.resume(returning: reply)
    }

    /// Waits for the next reply; "no" for a question whose pairing has ended.
    func next() async -> String {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let reply = state.withLock { state -> String? in
                    if Task.isCancelled { return "no" }
                    guard state.given.isEmpty else { return state.given.removeFirst() }
                    state.waiting.append((number, continuation))
                    return nil
                }
                if let reply { continuation.resume(returning: reply) }
            }
        } onCancel: {
            let mine = state.withLock { state -> CheckedContinuation<String, Never>? in
                let index = state.waiting.firstIndex { $0.number == number }
                return index.map { state.waiting.remove(at: $0).continuation }
            }
            mine?.resume(returning: "no")
        }
    }
}
