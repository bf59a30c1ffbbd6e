import BLECore
import BareBLE

/// A gate under random steps, with a plain book of who is where. What is random: who comes and for what, from inside which lease,
/// who arrives, who leaves, who gives up, and when everything is cleared.
struct CallGateRun {
    private var gate = CallGate()
    private var numbers: SeededNumbers
    private var lastTicket: CallGate.Ticket = 0
    private var lastRoom: UInt64 = 0
    /// Everybody who waits, with what they want and from where.
    private var waiting: [CallGate.Ticket: (entry: CallGate.Entry, rooms: [CallGate.Room])] = [:]
    private var calls: [[CallGate.Room]] = []
    /// Those that are admitted and have not arrived.
    private var coming: [(ticket: CallGate.Ticket, rooms: [CallGate.Room])] = []
    /// Who has arrived last, for each place that calls were made from.
    private var lastArrived: [[CallGate.Room]: CallGate.Ticket] = [:]
    /// Leases that are held, each with the rooms that it is in, itself last.
    private var leases: [[CallGate.Room]] = []
    private(set) var complaints: [String] = []

    init(seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &numbers) {
        case 0..<35: come()
        case 35..<60: arrive()
        case 60..<80: leave()
        case 80..<90: closeLease()
        case 90..<98: giveUp()
        default: obey(gate.clear())
        }
        check()
    }

    /// Everybody goes; then the gate must be open and nobody left waiting.
    mutating func finish() {
        for _ in 0..<10_000 where !coming.isEmpty || !calls.isEmpty || !leases.isEmpty {
            arrive()
            calls.isEmpty ? closeLease() : leave()
            check()
        }
        if !waiting.isEmpty { complaints.append("\(waiting.count) wait for ever") }
        if !gate.enterFreely() { complaints.append("the gate stays shut") }
    }

    private mutating func come() {
        lastTicket += 1
        let rooms = Bool.random(using: &numbers) ? [] : leases.randomElement(using: &numbers) ?? []
        var entry = CallGate.Entry.call
        if Int.random(in: 0..<4, using: &numbers) == 0 {
            lastRoom += 1
            let isPatient = Int.random(in: 0..<4, using: &numbers) > 0
            let room = CallGate.Room(number: lastRoom)
            entry = Bool.random(using: &numbers) ? .turn(room) : .lease(room, others: isPatient ? .waiting : .failFast)
        }
        switch gate.enter(lastTicket, as: entry, from: rooms) {
        case .admitted: admitted(lastTicket, entry, rooms)
        case .waits: waiting[lastTicket] = (entry, rooms)
        case .refused: break
        }
    }

    private mutating func admitted(
        _ ticket: CallGate.Ticket, _ entry: CallGate.Entry, _ rooms: [CallGate.Room]
    ) {
        switch entry {
        case .call: coming.append((ticket, rooms))
        case .lease(let room, _), .turn(let room): leases.append(rooms + [room])
        case .last: complaints.append("nobody was the last")
        }
    }

    /// The runtime resumes whomever it likes.
    private mutating func arrive() {
        guard let index = coming.indices.randomElement(using: &numbers) else { return }
        let (ticket, rooms) = coming.remove(at: index)
        if let last = lastArrived[rooms], last > ticket { complaints.append("\(ticket) arrived behind \(last)") }
        lastArrived[rooms] = ticket
        calls.append(rooms)
        obey(gate.arrive(rooms))
        obey(gate.begin(from: rooms))
    }

    private mutating func leave() {
        guard let index = calls.indices.randomElement(using: &numbers) else { return }
        obey(gate.leave(calls.remove(at: index)))
    }

    /// An inner one before the outer, as in a program; tasks that were left behind are among the calls.
    private mutating func closeLease() {
        guard let index = leases.indices.filter({ !isOuter(leases[$0]) }).randomElement(using: &numbers) else { return }
        let rooms = leases.remove(at: index)
        if let room = rooms.last { obey(gate.close(room: room)) }
    }

    private func isOuter(_ rooms: [CallGate.Room]) -> Bool {
        leases.contains { $0.count > rooms.count && $0.starts(with: rooms) }
    }

    private mutating func giveUp() {
        guard let ticket = waiting.keys.sorted().randomElement(using: &numbers) else { return }
        obey(gate.withdraw(ticket, .cancelled))
        if waiting[ticket] != nil { complaints.append("\(ticket) still waits after it has given up") }
    }

    private mutating func obey(_ actions: [CallGate.Action]) {
        for action in actions {
            switch action {
            case .admit(let ticket):
                guard let (entry, rooms) = waiting.removeValue(forKey: ticket) else {
                    complaints.append("\(ticket) was admitted and does not wait")
                    continue
                }
                admitted(ticket, entry, rooms)
            case .refuse(let ticket, _):
                if waiting.removeValue(forKey: ticket) == nil { complaints.append("\(ticket) was refused twice") }
            }
        }
    }

    /// Of two leases that are held one is inside the other, whatever else is random.
    private mutating func check() {
        let count = calls.count + coming.count
        if gate.callCount != count { complaints.append("\(gate.callCount) calls, not \(count)") }
        for lease in leases {
            for other in leases where other != lease {
                let alive = Set(leases.compactMap(\.last))
                let (one, two) = (lease.filter(alive.contains), other.filter(alive.contains))
                if !one.starts(with: two), !two.starts(with: one) { complaints.append("\(one) beside \(two)") }
            }
        }
    }
}
