import BLECore
import BLELinux
import BareBLE

/// The events of one run, in their order, and whether they keep the rules.
///
/// Everything is on one thread, so the order of the events is that of the run.
final class OrderBook: Sendable {
    enum Event: Hashable {
        /// A task makes a call; the calls of an exclusive access name it.
        case began(call: Int, task: Int, access: Int?)
        /// The call's one packet is given to the link.
        case sent(call: Int)
        case responded(call: Int, with: [UInt8])
        case failed(call: Int, BLEError.Code)
        case accessBegan(Int)
        case accessEnded(Int)
        case aboutToCancel
        case everythingCancelled
        case streamEnded
        case disconnectTold
    }

    private let events = Lock<[Event]>([])
    private let lastNumber = Lock(-1)

    func note(_ event: Event) {
        events.withLock { $0.append(event) }
    }

    func nextNumber() -> Int {
        lastNumber.withLock { number in
            number += 1
            return number
        }
    }

    /// The handle that call `number` reads or writes.
    static func handle(_ number: Int) -> AttributeHandle { AttributeHandle(3 + 2 * number) }

    /// The value there, and the value to write.
    static func value(_ number: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8), 0xCA]
    }

    /// A packet on the wire; those of subscriptions and discovery are no call's.
    func traced(_ pdu: TracedPDU, below limit: Int) {
        guard pdu.isOutgoing, pdu.bytes.count >= 3, [0x0A, 0x12, 0x52].contains(pdu.bytes[0]) else { return }
        let number = (Int(pdu.bytes[1]) | Int(pdu.bytes[2]) << 8) - 3
        if number >= 0, number.isMultiple(of: 2), number / 2 < limit { note(.sent(call: number / 2)) }
    }

    // MARK: The rules

    /// The violations of the run; empty if there are none.
    func complaints() -> [String] {
        var complaints: [String] = []
        var began: [Int: (task: Int, access: Int?)] = [:]
        var sent: Set<Int> = []
        var over: Set<Int> = []
        var candidates: Set<Int> = []
        var given: Set<Int> = []
        var lastSent: [Int: Int] = [:]
        var held: [Int] = []
        var pendingAtLoss: Set<Int>?
        for event in events.withLock({ $0 }) {
            switch event {
            case .began(let call, let task, let access):
                began[call] = (task, access)
            case .sent(let call):
                guard let (task, access) = began[call] else {
                    complaints.append("\(call) was sent before it was called")
                    continue
                }
                if !sent.insert(call).inserted { complaints.append("\(call) was sent twice") }
                if over.contains(call) { complaints.append("\(call) was sent after its end") }
                if given.contains(call) { complaints.append("\(call) was sent after all was cancelled") }
                if let last = lastSent[task], last > call { complaints.append("\(call) was sent after \(last)") }
                lastSent[task] = call
                if let holder = held.last, access != holder {
                    complaints.append("\(call) passed exclusive access \(holder)")
                }
            case .responded(let call, let value):
                if !over.insert(call).inserted { complaints.append("\(call) ended twice") }
                if !sent.contains(call) { complaints.append("\(call) has a response and was never sent") }
                if !value.isEmpty, value != Self.value(call) { complaints.append("\(call) got \(value)") }
                pendingAtLoss?.remove(call)
            case .failed(let call, let code):
                if !over.insert(call).inserted { complaints.append("\(call) ended twice") }
                if ![.cancelled, .timedOut, .disconnected].contains(code) {
                    complaints.append("\(call) failed with \(code)")
                }
                if code == .disconnected, pendingAtLoss == nil { pendingAtLoss = Set(began.keys).subtracting(over) }
                pendingAtLoss?.remove(call)
            case .accessBegan(let access): held.append(access)
            case .accessEnded: held.removeLast()
            case .aboutToCancel: candidates = Set(began.keys)
            case .everythingCancelled: given = candidates
            case .streamEnded:
                if pendingAtLoss?.isEmpty == false { complaints.append("a stream ended before \(pendingAtLoss ?? [])") }
            case .disconnectTold:
                if pendingAtLoss?.isEmpty == false {
                    complaints.append("the end was told before \(pendingAtLoss ?? [])")
                }
            }
        }
        let unfinished = Set(began.keys).subtracting(over)
        if !unfinished.isEmpty { complaints.append("\(unfinished.sorted()) never ended") }
        return complaints + endComplaints()
    }

    /// Streams end before the end of the link is reported.
    private func endComplaints() -> [String] {
        let ends = events.withLock { $0 }.filter { $0 == .streamEnded || $0 == .disconnectTold }
        return ends.last == .disconnectTold && ends.filter { $0 == .streamEnded }.count == 2
            ? [] : ["the link's end was told as \(ends)"]
    }

    /// The number of calls that succeeded and failed: a run without any proves nothing.
    func counts() -> (responded: Int, failed: Int, accesses: Int) {
        events.withLock { events in
            events.reduce(into: (0, 0, 0)) { counts, event in
                switch event {
                case .responded: counts.0 += 1
                case .failed: counts.1 += 1
                case .accessBegan: counts.2 += 1
                default: break
                }
            }
        }
    }
}
