// Plays the server's side of a dialogue as a value: the client's PDU in, what the server does next out.
//
// Invariants
// - Each PDU of the client is compared with the next `<` line, byte for byte; the first that differs ends the play.
// - Between two `<` lines everything the server does comes in the order of the file.

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
    private let steps: [Dialogue.Step]
    private var position = 0
    private(set) var difference: DialogueReport.Difference?

    init(_ dialogue: Dialogue) {
        steps = dialogue.steps
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
        guard let step = due, case .sent(let expected) = step.event else {
            difference = .surplus(got: pdu)
            return [.hangUp]
        }
        guard pdu == expected else {
            difference = .unexpected(line: step.line, expected: expected, got: pdu)
            return [.hangUp]
        }
        position += 1
        return proceed()
    }

    /// A wait is over.
    mutating func waited() -> [DialogueAction] {
        proceed()
    }

    /// The client hung up.
    mutating func ended() {
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
                return actions + [.wait(duration)]
            }
            position += 1
        }
        return actions
    }
}

extension Dialogue.Event {
    fileprivate var isClients: Bool {
        if case .sent = self { return true }
        return false
    }
}
