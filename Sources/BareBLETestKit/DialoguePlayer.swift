// Plays the server's side of a dialogue as a value: the client's PDU in, what the server does next out.
//
// Invariants
// - Each PDU of the client is compared with the next `<` line, byte for byte; the first that differs ends the play. Where the
//   rules let one pass another, its line is moved to the front, its answer with it.
// - Between two `<` lines everything the server does comes in the order of the file.
// - In a patient play what the client sends during a wait is looked at after it: a client of today may be quicker than the one
//   that was recorded, and the server's lines keep their places all the same.

internal import BLECore

/// How a dialogue went.
public struct DialogueReport: Hashable, Sendable, CustomStringConvertible {
    /// What differed from the file.
    public enum Difference: Hashable, Sendable {
        /// The client sent another PDU than this line has.
        case unexpected(line: Int, expected: [UInt8], got: [UInt8])
        /// The client sent something behind the last line that asks for it.
        case surplus(got: [UInt8])
        /// The client hung up when this line was due.
        case ended(line: Int, expected: [UInt8])
    }

    /// The first difference; `nil` when there was none.
    public var difference: Difference?
    /// How many lines were played.
    public var playedSteps: Int
    /// How many lines the file has.
    public var allSteps: Int

    /// Whether the whole file was played without a difference.
    public var isComplete: Bool { difference == nil && playedSteps == allSteps }

    /// A sentence such as "line 12: expected 0a0300, got 0a0400".
    public var description: String {
        switch difference {
        case .unexpected(let line, let expected, let got):
            "line \(line): expected \(Hex.encode(expected)), got \(Hex.encode(got))"
        case .surplus(let got): "behind the last line: got \(Hex.encode(got))"
        case .ended(let line, let expected): "line \(line): expected \(Hex.encode(expected)), but the client hung up"
        case .none: "\(playedSteps) of \(allSteps) lines played"
        }
    }
}

/// What the player wants done, in this order.
enum DialogueAction: Hashable {
    case send([UInt8])
    /// To be followed by `waited`.
    case wait(Duration)
    case hangUp
}

struct DialoguePlayer: Sendable {
    /// What a player puts up with.
    struct Rules: Hashable, Sendable {
        /// Whether a PDU that comes during a wait is kept until its end.
        var isPatient = false
        /// What may pass what; `nil`: nothing.
        var order: RequestOrder?
    }

    private let rules: Rules
    private var steps: [Dialogue.Step]
    private var position = 0
    private var isWaiting = false
    private var early: [[UInt8]] = []
    private(set) var difference: DialogueReport.Difference?

    init(_ dialogue: Dialogue, _ rules: Rules = Rules()) {
        steps = dialogue.steps
        self.rules = rules
    }

    var report: DialogueReport {
        DialogueReport(difference: difference, playedSteps: position, allSteps: steps.count)
    }

    var isOver: Bool { difference != nil || position == steps.count }

    /// The link is open: lines of the server that stand before the client's first are due.
    mutating func begin() -> [DialogueAction] {
        proceed()
    }

    /// The client sent a PDU.
    mutating func received(_ pdu: [UInt8]) -> [DialogueAction] {
        guard difference == nil else { return [] }
        if rules.isPatient, isWaiting {
            early.append(pdu)
            return []
        }
        guard let step = due, case .sent(let expected) = step.event else {
            difference = .surplus(got: pdu)
            return [.hangUp]
        }
        guard pdu == expected || bringForward(pdu) else {
            difference = .unexpected(line: step.line, expected: expected, got: pdu)
            return [.hangUp]
        }
        position += 1
        return proceed()
    }

    /// A wait is over.
    mutating func waited() -> [DialogueAction] {
        isWaiting = false
        var actions = proceed()
        while !early.isEmpty, !isWaiting { actions += received(early.removeFirst()) }
        return actions
    }

    /// The client hung up.
    mutating func ended() {
        // What came during a wait was sent all the same.
        while difference == nil, isWaiting, !early.isEmpty { _ = waited() }
        guard difference == nil, let step = steps.dropFirst(position).first(where: { $0.event.isClients }),
            case .sent(let expected) = step.event
        else { return }
        difference = .ended(line: step.line, expected: expected)
    }

    private var due: Dialogue.Step? { steps.dropFirst(position).first }

    private mutating func proceed() -> [DialogueAction] {
        var actions: [DialogueAction] = []
        while let step = due {
            switch step.event {
            case .sent: return actions
            case .received(let pdu): actions.append(.send(pdu))
            case .linkLost: actions.append(.hangUp)
            case .wait(let duration):
                position += 1
                isWaiting = true
                return actions + [.wait(duration)]
            }
            position += 1
        }
        return actions
    }
}

// MARK: - Another order

extension DialoguePlayer {
    /// Moves a later line with this PDU, and what answers it, to the front, if it may pass the lines before it.
    private mutating func bringForward(_ pdu: [UInt8]) -> Bool {
        guard let order = rules.order else { return false }
        for index in steps.indices.dropFirst(position) {
            guard case .sent(let recorded) = steps[index].event else { continue }
            if recorded == pdu {
                let block = [index] + answer(to: index)
                let moved = block.compactMap { steps.indices.contains($0) ? steps[$0] : nil }
                for index in block.reversed() { steps.remove(at: index) }
                steps.insert(contentsOf: moved, at: position)
                return true
            }
            guard order.mayPass(pdu, recorded) else { return false }
        }
        return false
    }

    /// Where the answer to the line at `index` stands, with the wait before it; nothing for a line that has none.
    private func answer(to index: Int) -> [Int] {
        guard case .sent(let pdu) = steps[index].event, ATTOpcode(rawValue: pdu.first ?? 0).isRequest else { return [] }
        var wait: Int?
        for index in steps.indices.dropFirst(index + 1) {
            switch steps[index].event {
            case .received(let pdu) where ATTOpcode(rawValue: pdu.first ?? 0).isResponse:
                return [wait, index].compactMap(\.self)
            case .wait: wait = index
            case .sent(let pdu) where ATTOpcode(rawValue: pdu.first ?? 0).isRequest: return []
            case .sent, .received: wait = nil
            case .linkLost: return []
            }
        }
        return []
    }
}

extension Dialogue.Event {
    fileprivate var isClients: Bool {
        if case .sent = self { return true }
        return false
    }
}
