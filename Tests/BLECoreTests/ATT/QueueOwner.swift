import BLECore

/// A queue with an owner that performs its actions, and records them.
final class QueueOwner {
    private var queue: ATTQueue
    private var lastID: UInt64 = 0

    var now = BootInstant(nanoseconds: 1_000_000_000)
    /// Whether the socket takes packets.
    var takesPackets = true
    /// What the system says to every packet, instead of taking it.
    var refusal: Int32?
    /// Everything written, in hexadecimal digits.
    private(set) var sent: [String] = []
    private(set) var finished: [RequestID: Result<[UInt8], ATTFailure>] = [:]
    private(set) var finishedOrder: [RequestID] = []
    private(set) var delivered: [String] = []
    private(set) var closed: ATTQueue.CloseReason?
    /// Whatever must never happen.
    private(set) var wrongs: [String] = []

    init(mtu: UInt16 = 23, _ change: (inout ATTQueue.Limits) -> Void = { _ in }) {
        var limits = ATTQueue.Limits()
        change(&limits)
        queue = ATTQueue(limits: limits, mtu: mtu)
    }

    var mtu: UInt16 { queue.mtu }
    var count: Int { queue.count }
    var isClosed: Bool { queue.isClosed }
    var statistics: ATTStatistics { queue.statistics }
    var contradictions: Int { queue.contradictions }
    var nextDeadline: BootInstant? { queue.nextDeadline }

    @discardableResult func enqueue(_ hex: String, within time: Duration? = nil) -> RequestID {
        lastID += 1
        let id = RequestID(lastID)
        perform(queue.enqueue(bytes(hex), id: id, deadline: time.map { now + $0 }, at: now))
        return id
    }

    func receive(_ hex: String) { perform(queue.received(bytes(hex), at: now)) }
    func cancel(_ id: RequestID) { perform(queue.cancel(id, at: now)) }
    func lose(_ code: Int32 = 104) { perform(queue.linkLost(code)) }

    func becomeWritable() {
        takesPackets = true
        perform(queue.writable(at: now))
    }

    /// Lets time pass without a timer.
    func wait(_ time: Duration) { now = now + time }

    /// Lets time pass, and the timer fire.
    func pass(_ time: Duration) {
        wait(time)
        perform(queue.timePassed(now))
    }

    /// The result of an operation: digits for a packet, a description for a failure.
    func result(_ id: RequestID) -> String? {
        switch finished[id] {
        case nil: nil
        case .success(let pdu): Hex.encode(pdu)
        case .failure(.refused(let error)): "refused \(Hex.encode([error.code.rawValue]))"
        case .failure(.malformed): "malformed"
        case .failure(.timedOut): "timed out"
        case .failure(.cancelled): "cancelled"
        case .failure(.queueFull): "queue full"
        case .failure(.tooLong(let mtu)): "longer than \(mtu)"
        case .failure(.unsendable(let code)): "unsendable \(code)"
        case .failure(.closed(let reason)): "closed: \(reason)"
        }
    }

    private func bytes(_ hex: String) -> [UInt8] { (try? Hex.decode(hex)) ?? [] }

    private func perform(_ actions: ATTActions) {
        let all = Array(actions)
        for (index, action) in all.enumerated() {
            switch action {
            case .finish(let id, let result):
                if finished.updateValue(result, forKey: id) != nil { wrongs.append("\(id) finished twice") }
                finishedOrder.append(id)
            case .deliver(let handle, let value, let kind):
                delivered.append("\(kind) \(handle) \(Hex.encode(value))")
            case .send(let pdu):
                if index != all.count - 1 { wrongs.append("send was not the last action") }
                if closed != nil { wrongs.append("sent after the end") }
                if let refusal {
                    perform(queue.refused(refusal, at: now))
                } else if takesPackets {
                    sent.append(Hex.encode(pdu))
                    perform(queue.sent(at: now))
                } else {
                    queue.blocked()
                }
            case .close(let reason):
                if index != all.count - 1 { wrongs.append("close was not the last action") }
                if closed != nil { wrongs.append("closed twice") }
                closed = reason
            }
        }
    }
}
