import BLECore
import TestSupport

/// A gate under random steps, with a plain record of where each call is. What is random: which calls come, from inside
/// which exclusive access, which arrive, leave or give up, and when everything is cleared.
struct OperationGateRun: ~Copyable {
    private var gate = OperationGate()
    private var numbers: SeededNumbers
    private var lastTicket: OperationGate.Ticket = 0
    private var lastScope: UInt64 = 0
    /// The calls that wait, with what they request and from where.
    private var waiting: [OperationGate.Ticket: (entry: OperationGate.Entry, scopes: [OperationGate.Scope])] = [:]
    private var calls: [[OperationGate.Scope]] = []
    /// Those that are admitted and have not arrived.
    private var coming: [(ticket: OperationGate.Ticket, scopes: [OperationGate.Scope])] = []
    /// The call that has arrived last, for each place that calls were made from.
    private var lastArrived: [[OperationGate.Scope]: OperationGate.Ticket] = [:]
    /// The exclusive accesses that are held, each with the scopes that it is in, itself last.
    private var exclusives: [[OperationGate.Scope]] = []
    private(set) var complaints: [String] = []

    init(seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &numbers) {
        case 0..<35: come()
        case 35..<60: arrive()
        case 60..<80: leave()
        case 80..<90: closeExclusive()
        case 90..<98: giveUp()
        default: obey(gate.clear())
        }
        check()
    }

    /// All calls end; then the gate must be open, and none may wait.
    mutating func finish() {
        for _ in 0..<10_000 where !coming.isEmpty || !calls.isEmpty || !exclusives.isEmpty {
            arrive()
            calls.isEmpty ? closeExclusive() : leave()
            check()
        }
        if !waiting.isEmpty { complaints.append("\(waiting.count) wait forever") }
        if !gate.enterFreely() { complaints.append("the gate stays shut") }
    }

    private mutating func come() {
        lastTicket += 1
        let scopes = Bool.random(using: &numbers) ? [] : exclusives.randomElement(using: &numbers) ?? []
        var entry = OperationGate.Entry.call
        if Int.random(in: 0..<4, using: &numbers) == 0 {
            lastScope += 1
            let isPatient = Int.random(in: 0..<4, using: &numbers) > 0
            let scope = OperationGate.Scope(number: lastScope)
            entry =
                Bool.random(using: &numbers)
                ? .turn(scope) : .exclusive(scope, others: isPatient ? .wait : .fail)
        }
        switch gate.enter(lastTicket, as: entry, from: scopes) {
        case .admitted: admitted(lastTicket, entry, scopes)
        case .waits: waiting[lastTicket] = (entry, scopes)
        case .refused: break
        }
    }

    private mutating func admitted(
        _ ticket: OperationGate.Ticket, _ entry: OperationGate.Entry, _ scopes: [OperationGate.Scope]
    ) {
        switch entry {
        case .call: coming.append((ticket, scopes))
        case .exclusive(let scope, _), .turn(let scope): exclusives.append(scopes + [scope])
        case .last: complaints.append("nobody was the last")
        }
    }

    /// The runtime resumes tasks in any order.
    private mutating func arrive() {
        guard let index = coming.indices.randomElement(using: &numbers) else { return }
        let (ticket, scopes) = coming.remove(at: index)
        if let last = lastArrived[scopes], last > ticket { complaints.append("\(ticket) arrived after \(last)") }
        lastArrived[scopes] = ticket
        calls.append(scopes)
        obey(gate.arrive(scopes))
        obey(gate.begin(from: scopes))
    }

    private mutating func leave() {
        guard let index = calls.indices.randomElement(using: &numbers) else { return }
        obey(gate.leave(calls.remove(at: index)))
    }

    /// An inner one before the outer, as in a program; tasks that were left behind are among the calls.
    private mutating func closeExclusive() {
        guard let index = exclusives.indices.filter({ !isOuter(exclusives[$0]) }).randomElement(using: &numbers) else {
            return
        }
        let scopes = exclusives.remove(at: index)
        if let scope = scopes.last { obey(gate.close(scope: scope)) }
    }

    private func isOuter(_ scopes: [OperationGate.Scope]) -> Bool {
        exclusives.contains { $0.count > scopes.count && $0.starts(with: scopes) }
    }

    private mutating func giveUp() {
        guard let ticket = waiting.keys.sorted().randomElement(using: &numbers) else { return }
        obey(gate.withdraw(ticket, .cancelled))
        if waiting[ticket] != nil { complaints.append("\(ticket) still waits after it has given up") }
    }

    private mutating func obey(_ actions: [OperationGate.Action]) {
        for action in actions {
            switch action {
            case .admit(let ticket):
                guard let (entry, scopes) = waiting.removeValue(forKey: ticket) else {
                    complaints.append("\(ticket) was admitted and does not wait")
                    continue
                }
                admitted(ticket, entry, scopes)
            case .refuse(let ticket, _):
                if waiting.removeValue(forKey: ticket) == nil { complaints.append("\(ticket) was refused twice") }
            }
        }
    }

    /// Of two exclusives that are held one is inside the other, whatever else is random.
    private mutating func check() {
        let count = calls.count + coming.count
        if gate.callCount != count { complaints.append("\(gate.callCount) calls, not \(count)") }
        for exclusive in exclusives {
            for other in exclusives where other != exclusive {
                let alive = Set(exclusives.compactMap(\.last))
                let (one, two) = (exclusive.filter(alive.contains), other.filter(alive.contains))
                if !one.starts(with: two), !two.starts(with: one) { complaints.append("\(one) beside \(two)") }
            }
        }
    }
}
