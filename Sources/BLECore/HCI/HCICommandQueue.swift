// The queue of commands to one controller.
//
// Duties: one command is out at a time; the others wait in order. The response to the one that is out finishes it and
// lets the next go. A command without a response within 2 s fails and makes room: the kernel gives up on it at the same
// time.
//
// Invariants:
// - Every ticket ends exactly once, in a `finish` action.
// - A response counts only when a command with its opcode is out. Any other belongs to the kernel or to another program
//   on the same adapter (row H12) and is handed on as `foreign`; so is a response that comes after its time-out.
//   Another program's response to the very command that is out cannot be distinguished from ours; a sender of state
//   changes has to look at what happens, not only at the response.
// - The controller's credits are obeyed, but not forever: a controller that stays at zero for 2 s is asked all the
//   same, because the event that gave the credit back may have been lost on an overflowing socket.
// - A cancelled command that is out keeps its place until its response comes; only its caller is released. A missing
//   response is reported all the same: the controller is silent, whether or not a caller waits.
//
// The queue never acts: it returns what to do, in order. The owner of the socket also owns the queue.

/// Keeps one HCI command out at a time and matches responses to it.
package struct HCICommandQueue: ~Copyable {
    /// Names one command that was put in.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// An action for the owner to take now.
    package enum Action: Hashable, Sendable {
        /// Write this command to the socket.
        case send(HCICommandPacket)
        /// Report the result to the owner of the ticket. A Command Status is a completion that returns its status.
        case finish(Ticket, Result<HCICommandComplete, HCICommandFailure>)
        /// Another program's command has its response; no status where that holds none.
        case foreign(HCIOpcode, HCIStatus?)
        /// A command whose caller has stopped waiting had no response.
        case noResponse(HCIOpcode)
    }

    private struct Entry {
        let ticket: Ticket
        let packet: HCICommandPacket
    }

    private enum State {
        /// Nothing is out; the next command may go when there is a credit.
        case free
        /// Commands wait, and the controller has no room for one; it is asked all the same at `until`.
        case starved(until: BootInstant)
        /// A command is out. Its ticket is gone when its caller has stopped waiting.
        case waiting(Ticket?, HCIOpcode, until: BootInstant)
    }

    private var state = State.free
    private var entries: [Entry] = []
    private var lastNumber: UInt64 = 0
    private var hasCredit = true

    package init() {}

    /// The number of commands that wait after the one that is out.
    package var count: Int { entries.count }

    /// When `timePassed` is to be called at the latest.
    package var nextDeadline: BootInstant? {
        switch state {
        case .free: nil
        case .starved(let until): until
        case .waiting(_, _, let until): until
        }
    }

    /// Puts a command in; the ticket may be finished already among the actions.
    package mutating func enqueue(_ packet: HCICommandPacket, at now: BootInstant) -> (Ticket, [Action]) {
        lastNumber &+= 1
        let ticket = Ticket(number: lastNumber)
        guard entries.count < Self.capacity else {
            return (ticket, [.finish(ticket, .failure(HCICommandFailure(opcode: packet.opcode, reason: .queueFull)))])
        }
        entries.append(Entry(ticket: ticket, packet: packet))
        return (ticket, advance(at: now))
    }

    /// A Command Complete was read.
    package mutating func received(_ complete: HCICommandComplete, at now: BootInstant) -> [Action] {
        credit(complete.credits)
        guard complete.opcode != .none else { return advance(at: now) }
        guard case .waiting(let ticket, complete.opcode, _) = state else {
            let foreign = Action.foreign(complete.opcode, complete.status)
            // After a reset the owner fails everything that waits: none of it may go out before.
            if complete.opcode == .reset, complete.status == .success { return [foreign] }
            return [foreign] + advance(at: now)
        }
        state = .free
        guard let ticket else { return advance(at: now) }
        if let status = complete.status, !status.isSuccess {
            let failure = HCICommandFailure(opcode: complete.opcode, reason: .status(status))
            return [.finish(ticket, .failure(failure))] + advance(at: now)
        }
        return [.finish(ticket, .success(complete))] + advance(at: now)
    }

    /// A Command Status was read.
    package mutating func received(_ status: HCICommandStatus, at now: BootInstant) -> [Action] {
        received(
            HCICommandComplete(
                credits: status.credits, opcode: status.opcode, returnParameters: [status.status.rawValue]), at: now)
    }

    /// Releases the owner of a command; one that was not sent yet never will be.
    package mutating func cancel(_ ticket: Ticket, at now: BootInstant) -> [Action] {
        if let index = entries.firstIndex(where: { $0.ticket == ticket }) {
            let opcode = entries.remove(at: index).packet.opcode
            if entries.isEmpty, case .starved = state { state = .free }
            return [.finish(ticket, .failure(HCICommandFailure(opcode: opcode, reason: .cancelled)))]
        }
        guard case .waiting(ticket, let opcode, let until) = state else { return [] }
        state = .waiting(nil, opcode, until: until)
        return [.finish(ticket, .failure(HCICommandFailure(opcode: opcode, reason: .cancelled)))]
    }

    /// Cancels the command with this opcode that was not sent yet; one that is out is left alone.
    package mutating func withdraw(_ opcode: HCIOpcode, at now: BootInstant) -> [Action] {
        guard let entry = entries.first(where: { $0.packet.opcode == opcode }) else { return [] }
        return cancel(entry.ticket, at: now)
    }

    /// The packet that was to be sent last could not be written: its command fails, the next one may try.
    package mutating func notSent(errno: Int32, at now: BootInstant) -> [Action] {
        guard case .waiting(let ticket, let opcode, _) = state else { return [] }
        state = .free
        guard let ticket else { return advance(at: now) }
        let failure = HCICommandFailure(opcode: opcode, reason: .notSent(errno: errno))
        return [.finish(ticket, .failure(failure))] + advance(at: now)
    }

    /// The time is `now`: ends what has waited too long.
    package mutating func timePassed(_ now: BootInstant) -> [Action] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        switch state {
        case .free:
            return []
        case .starved:
            state = .free
            hasCredit = true
            return advance(at: now)
        case .waiting(let ticket, let opcode, _):
            state = .free
            hasCredit = true
            guard let ticket else { return [.noResponse(opcode)] + advance(at: now) }
            let failure = HCICommandFailure(opcode: opcode, reason: .timeout)
            return [.finish(ticket, .failure(failure))] + advance(at: now)
        }
    }

    /// The adapter is gone, switched off or was reset: everything fails once, and the queue is empty.
    package mutating func adapterLost() -> [Action] {
        var actions: [Action] = []
        if case .waiting(let ticket?, let opcode, _) = state {
            actions.append(.finish(ticket, .failure(HCICommandFailure(opcode: opcode, reason: .adapterLost))))
        }
        for entry in entries {
            let failure = HCICommandFailure(opcode: entry.packet.opcode, reason: .adapterLost)
            actions.append(.finish(entry.ticket, .failure(failure)))
        }
        state = .free
        entries = []
        hasCredit = true
        return actions
    }

    private mutating func credit(_ credits: UInt8) {
        hasCredit = credits > 0
    }

    private mutating func advance(at now: BootInstant) -> [Action] {
        switch state {
        case .waiting: return []
        case .free, .starved: break
        }
        guard let next = entries.first else {
            state = .free
            return []
        }
        guard hasCredit else {
            if case .free = state { state = .starved(until: now + Self.commandTimeout) }
            return []
        }
        entries.removeFirst()
        state = .waiting(next.ticket, next.packet.opcode, until: now + Self.commandTimeout)
        return [.send(next.packet)]
    }

    /// The time that a controller may take to respond, and to return a credit.
    package static let commandTimeout: Duration = .seconds(2)
    /// The number of commands that may wait: all links of a controller may be ended at once.
    package static let capacity = 96
}
