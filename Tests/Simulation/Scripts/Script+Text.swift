// The text form of a script, one thing a line; `#` opens a comment.
//
//     seed 42
//     adapter bluetooth5
//     linkLimit 3 fails 9
//     dataLoss 0 receivedEvery 10
//     recovery rescan
//     peer honest
//     length 10000
//     at 1500 step 3 read 0 2 0 limit 500

import BLECore
import BareBLETestKit

extension Script {
    /// Where a text is no script.
    struct Malformed: Error, CustomStringConvertible {
        let line: Int
        var description: String { "line \(line) is no line of a script" }
    }

    var text: String {
        var lines = ["seed \(seed)"]
        lines += adapters.map { "adapter \($0)" }
        lines += linkLimits.map(\.text)
        lines += dataLosses.map(\.text)
        lines.append("recovery \(recovery)")
        lines += peers.map { "peer \($0.rawValue)" }
        lines += neighbours.map { "neighbour \($0)" }
        lines += security.map { "security \($0)" }
        lines.append("length \(length)")
        for step in steps {
            lines.append(
                "at \(step.time) step \(step.number) \(step.verb.rawValue) \(step.subject) \(step.first) "
                    + "\(step.second) limit \(step.limit)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    init(text: String) throws(Malformed) {
        self.init(seed: 0, adapters: [])
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.prefix { $0 != "#" }.split(separator: " ").map(String.init)
            guard !words.isEmpty else { continue }
            guard read(words) else { throw Malformed(line: index + 1) }
        }
    }

    /// An hour, in milliseconds: a world is meant to end while somebody waits for it.
    private static let times = 0...3_600_000

    private mutating func read(_ words: [String]) -> Bool {
        switch (words[0], words.count) {
        case ("seed", 2):
            guard let seed = UInt64(words[1]) else { return false }
            self.seed = seed
        case ("adapter", 2):
            guard Self.adapterNames.contains(words[1]) else { return false }
            adapters.append(words[1])
        case ("linkLimit", 4):
            guard let limit = LinkLimit(words[1], words[2], words[3]) else { return false }
            linkLimits.append(limit)
        case ("dataLoss", 4):
            guard let loss = DataLoss(words[1], words[2], words[3]) else { return false }
            dataLosses.append(loss)
        case ("recovery", 2):
            guard let limit = Self.recoveryLimits.first(where: { "\($0)" == words[1] }) else { return false }
            recovery = limit
        case ("peer", 2):
            guard let kind = PeerKind(rawValue: words[1]) else { return false }
            peers.append(kind)
        case ("neighbour", 2):
            guard let adapter = Int(words[1]), adapter >= 0 else { return false }
            neighbours.append(adapter)
        case ("security", 2):
            guard let adapter = Int(words[1]), adapter >= 0 else { return false }
            security.append(adapter)
        case ("length", 2):
            guard let length = Int(words[1]), Self.times.contains(length) else { return false }
            self.length = length
        case ("at", 10):
            guard let verb = Verb(rawValue: words[4]), let time = Int(words[1]), let number = Int(words[3]),
                let subject = Int(words[5]), let first = Int(words[6]), let second = Int(words[7]),
                let limit = Int(words[9]), Self.times.contains(time)
            else { return false }
            steps.append(
                Step(
                    number: number, time: time, verb: verb, subject: subject, first: first, second: second,
                    limit: limit))
        default: return false
        }
        return true
    }
}

extension Script.LinkLimit {
    fileprivate var text: String {
        switch reaction {
        case .fails(let status): "linkLimit \(links) fails \(status.rawValue)"
        case .refuses(let status): "linkLimit \(links) refuses \(status.rawValue)"
        case .neverCompletes: "linkLimit \(links) stalls 0"
        }
    }

    fileprivate init?(_ links: String, _ reaction: String, _ status: String) {
        guard let links = Int(links), (1...16).contains(links), let number = UInt8(status) else { return nil }
        switch reaction {
        case "fails": self.init(links: links, reaction: .fails(HCIStatus(rawValue: number)))
        case "refuses": self.init(links: links, reaction: .refuses(HCIStatus(rawValue: number)))
        case "stalls" where number == 0: self.init(links: links, reaction: .neverCompletes)
        default: return nil
        }
    }
}

extension Script.DataLoss {
    fileprivate var text: String {
        let number =
            switch loss {
            case .received: 0
            case .receivedEvery(let period), .reordersEvery(let period): period
            case .sentBeyond(let count): count
            }
        return "dataLoss \(adapter) \(kind) \(number)"
    }

    fileprivate init?(_ adapter: String, _ kind: String, _ number: String) {
        guard let adapter = Int(adapter), adapter >= 0, let number = Int(number), (0...1000).contains(number) else {
            return nil
        }
        switch kind {
        case "received" where number == 0: self.init(adapter: adapter, loss: .received)
        case "receivedEvery" where number > 1: self.init(adapter: adapter, loss: .receivedEvery(number))
        case "reordersEvery" where number > 1: self.init(adapter: adapter, loss: .reordersEvery(number))
        case "sentBeyond" where number > 0: self.init(adapter: adapter, loss: .sentBeyond(number))
        default: return nil
        }
    }
}
