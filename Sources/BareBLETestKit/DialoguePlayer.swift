// Plays the server's side of a dialogue as a state machine: the client's PDU in, the server's actions out.
//
// Invariants:
// - Each PDU of the client is compared with the next `<` line, byte for byte; the first difference ends the dialogue.
//   If the rules permit reordering, the matching line is moved to the front together with its response.
// - Between two `<` lines, the server acts in the order of the file.
// - In patient mode, PDUs that the client sends during a wait are handled after it: a client may be faster than the
//   recorded one, and the server's lines still keep their order.

internal import BLECore

/// The result of a dialogue.
public struct DialogueReport: Hashable, Sendable, CustomStringConvertible {
    /// A difference from the file.
    public enum Difference: Hashable, Sendable {
        /// The client sent another PDU than this line.
        case unexpected(line: Int, expected: [UInt8], got: [UInt8])
        /// The client sent a PDU after the last line that expects one.
        case surplus(got: [UInt8])
        /// The client disconnected although this line was expected.
        case ended(line: Int, expected: [UInt8])
    }

    /// The first difference, if any.
    public var difference: Difference?
    /// The number of lines played.
    public var playedSteps: Int
    /// The number of lines in the file.
    public var allSteps: Int

    /// A Boolean value that indicates whether the whole file was played without a difference.
    public var isComplete: Bool { difference == nil && playedSteps == allSteps }

    /// A message such as "line 12: expected 0a0300, got 0a0400".
    public var description: String {
        switch difference {
        case .unexpected(let line, let expected, let got):
            "line \(line): expected \(Hex.encode(expected)), got \(Hex.encode(got))"
        case .surplus(let got): "after the last line: got \(Hex.encode(got))"
        case .ended(let line, let expected):
            "line \(line): expected \(Hex.encode(expected)), but the client disconnected"
        case .none: "\(playedSteps) of \(allSteps) lines played"
        }
    }
}

/// An action for the owner of the player, in order.
enum DialogueAction: Hashable {
    case send([UInt8])
    /// Wait, then call `waited`.
    case wait(Duration)
    case disconnect
}

struct DialoguePlayer: Sendable {
    /// The deviations that a player tolerates.
    struct Rules: Hashable, Sendable {
        /// True to defer PDUs that arrive during a wait until its end.
        var isPatient = false
        /// The permitted reordering, or `nil` for none.
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

    /// Handles the start of the link: the server's lines before the client's first are due.
    mutating func begin() -> [DialogueAction] {
        proceed()
    }

    /// Handles a PDU of the client.
    mutating func received(_ pdu: [UInt8]) -> [DialogueAction] {
        guard difference == nil else { return [] }
        if rules.isPatient, isWaiting {
            early.append(pdu)
            return []
        }
        guard let step = due, case .sent(let expected) = step.event else {
            difference = .surplus(got: pdu)
            return [.disconnect]
        }
        guard pdu == expected || bringForward(pdu) else {
            difference = .unexpected(line: step.line, expected: expected, got: pdu)
            return [.disconnect]
        }
        position += 1
        return proceed()
    }

    /// Handles the end of a wait.
    mutating func waited() -> [DialogueAction] {
        isWaiting = false
        var actions = proceed()
        while !early.isEmpty, !isWaiting { actions += received(early.removeFirst()) }
        return actions
    }

    /// Handles the end of the client's connection.
    mutating func ended() {
        // PDUs deferred during a wait were sent nevertheless.
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
            case .linkLost: actions.append(.disconnect)
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

// MARK: - Reordering

extension DialoguePlayer {
    /// Moves a later line with this PDU to the front, together with its response, if the lines before it permit that.
    private mutating func bringForward(_ pdu: [UInt8]) -> Bool {
        guard let order = rules.order else { return false }
        for index in steps.indices.dropFirst(position) {
            guard case .sent(let recorded) = steps[index].event else { continue }
            if recorded == pdu {
                let block = [index] + response(to: index)
                let moved = block.compactMap { steps.indices.contains($0) ? steps[$0] : nil }
                for index in block.reversed() { steps.remove(at: index) }
                steps.insert(contentsOf: moved, at: position)
                return true
            }
            guard order.mayPass(pdu, recorded) else { return false }
        }
        return false
    }

    /// Returns the indices of the response to the line at `index` and of the wait before it; empty if there is none.
    private func response(to index: Int) -> [Int] {
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
