// What a call waits for while it listens to a characteristic: one value, several as one, several, or silence.
//
// Duties
// - Takes every value that arrives for it, in wire order, and knows when it has what it wants.
// - Takes nothing that was read before the request was written to the link: that cannot be its response.
// - Knows when the peer has been silent for too long, or long enough; and when all of it has taken too long.
//
// Invariants
// - It ends once. What comes after that is not looked at.
// - Values that come before the peer has confirmed the request count, for many peers send them first; the silence is measured
//   from the confirmation on.
// - A value without bytes adds nothing to a reply in pieces, so it counts as silence: a peer cannot prolong a reply with nothing.
// - What was collected can still be read when it is not enough.

/// The values that one call collects. A pure value.
package struct ResponseCollector {
    package enum Goal: Sendable {
        /// One value of which this is true.
        case match(@Sendable ([UInt8]) -> Bool)
        /// All values as one.
        case assemble(ReplyFraming)
        /// All values, each by itself.
        case collect(ResponseCount)
        /// No value for the idle time.
        case silence
    }

    package enum Outcome: Hashable, Sendable {
        /// This value matched.
        case matched([UInt8])
        /// These are the values in a row.
        case assembled([UInt8])
        /// These are the values.
        case collected([[UInt8]])
        /// The peer is silent.
        case silent
        /// More came than was expected.
        case tooMuch
        /// Nothing more came.
        case idle
        /// It took too long in all.
        case timedOut
    }

    private enum State {
        case armed
        /// The request is being written.
        case asked
        case waiting(heard: BootInstant)
        case over(Outcome)
    }

    private let goal: Goal
    /// How long the peer may be silent; for silence, how long it must be.
    private let idleTime: Duration?
    private let deadline: BootInstant?
    private var state = State.armed
    /// What has been assembled, or collected in a row.
    package private(set) var bytes: [UInt8] = []
    private var values: [[UInt8]] = []
    /// How many values have come.
    package private(set) var count = 0

    package init(_ goal: Goal, idleTime: Duration? = nil, deadline: BootInstant? = nil) {
        self.goal = goal
        self.idleTime = idleTime
        self.deadline = deadline
    }

    /// What it ended with; `nil` while it goes on.
    package var outcome: Outcome? {
        if case .over(let outcome) = state { outcome } else { nil }
    }

    /// When `timePassed` must be called next.
    package var nextDeadline: BootInstant? {
        switch state {
        case .armed, .asked: return deadline
        case .waiting(let heard):
            let idle = idleTime.map { heard + $0 }
            guard let idle, let deadline else { return idle ?? deadline }
            return min(idle, deadline)
        case .over: return nil
        }
    }

    /// A packet of the request has been written: what comes from here on counts. What came before the last one of them, or what a
    /// failed attempt has brought, does not.
    package mutating func asked() {
        switch state {
        case .over(.silent), .over(.idle), .over(.timedOut): return
        case .armed, .asked, .waiting, .over(.matched), .over(.assembled), .over(.collected), .over(.tooMuch): break
        }
        bytes = []
        values = []
        count = 0
        state = .asked
    }

    /// The peer has confirmed the request, or there is none to confirm.
    package mutating func confirmed(at now: BootInstant) {
        guard case .asked = state else { return }
        state = .waiting(heard: now)
        if case .assemble(let framing) = goal, case .length(0) = framing.measure { state = .over(.assembled([])) }
        if case .collect(let count) = goal, case .exactly(0) = count.measure { state = .over(.collected([])) }
    }

    /// A value has come.
    package mutating func received(_ value: [UInt8], at now: BootInstant) {
        if case .armed = state { return }
        if case .over = state { return }
        count += 1
        switch goal {
        case .match(let matches):
            heard(at: now)
            if matches(value) { state = .over(.matched(value)) }
        case .assemble(let framing):
            if value.isEmpty { return }
            heard(at: now)
            bytes += value
            if let outcome = assembled(framing.measure) { state = .over(outcome) }
        case .collect(let count):
            heard(at: now)
            bytes += value
            values.append(value)
            if let outcome = collected(count.measure, last: value) { state = .over(outcome) }
        case .silence:
            heard(at: now)
        }
    }

    private func collected(_ measure: ResponseCount.Measure, last value: [UInt8]) -> Outcome? {
        switch measure {
        case .exactly(let count): return values.count >= count ? .collected(values) : nil
        case .until(let limit, let isLast):
            if isLast(value) { return .collected(values) }
            return values.count >= limit ? .tooMuch : nil
        }
    }

    private mutating func heard(at now: BootInstant) {
        if case .waiting = state { state = .waiting(heard: now) }
    }

    private func assembled(_ measure: ReplyFraming.Measure) -> Outcome? {
        switch measure {
        case .length(let length):
            if bytes.count > length { return .tooMuch }
            return bytes.count == length ? .assembled(bytes) : nil
        case .until(let limit, let isComplete):
            if bytes.count > limit { return .tooMuch }
            return isComplete(bytes) ? .assembled(bytes) : nil
        }
    }

    /// It is `now`.
    package mutating func timePassed(_ now: BootInstant) {
        if case .over = state { return }
        if case .waiting(let heard) = state, let idleTime, heard + idleTime <= now {
            if case .silence = goal { state = .over(.silent) } else { state = .over(.idle) }
        } else if let deadline, deadline <= now {
            state = .over(.timedOut)
        }
    }
}
