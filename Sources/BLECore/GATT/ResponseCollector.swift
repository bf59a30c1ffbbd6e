// The values that a call waits for while it listens to a characteristic: one, several joined, several, or none for a
// time.
//
// Duties
// - Takes every value that arrives for it, in wire order, and detects when it is complete.
// - Ignores everything that was read before the request was written to the link: that cannot be its response.
// - Detects when the peer has been silent for too long, or long enough; and when all of it has taken too long.
//
// Invariants
// - Once it has ended it ignores what comes, unless a further packet of the request begins it again: what came before
//   that packet was no response.
// - Values that come before the peer has confirmed the request count, because many peers send them first; the silence
//   is measured from the confirmation on.
// - An empty value adds nothing to a reply in pieces, so it counts as silence: a peer cannot prolong a reply with
//   empty values.
// - The collected values can still be read when they are too few.

/// The values that one call collects. A pure value.
package struct ResponseCollector {
    package enum Goal: Sendable {
        /// The first value for which this returns `true`.
        case match(@Sendable ([UInt8]) -> Bool)
        /// All values, joined.
        case assemble(ReplyFraming)
        /// All values, each by itself.
        case collect(ResponseCount)
        /// No value for the idle time.
        case silence
    }

    package enum Outcome: Hashable, Sendable {
        /// This value matched.
        case matched([UInt8])
        /// The values, joined.
        case assembled([UInt8])
        /// These are the values.
        case collected([[UInt8]])
        /// The peer is silent.
        case silent
        /// More values came than expected.
        case tooMuch
        /// No more values came.
        case idle
        /// The whole took too long.
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
    /// The longest allowed silence of the peer; for `silence`, the required one.
    private let idleTime: Duration?
    private let deadline: BootInstant?
    private var state = State.armed
    /// The bytes that were joined, or collected in a row.
    package private(set) var bytes: [UInt8] = []
    private var values: [[UInt8]] = []
    /// The number of values that have come.
    package private(set) var count = 0

    package init(_ goal: Goal, idleTime: Duration? = nil, deadline: BootInstant? = nil) {
        self.goal = goal
        self.idleTime = idleTime
        self.deadline = deadline
    }

    /// The outcome; `nil` while it is still collecting.
    package var outcome: Outcome? {
        if case .over(let outcome) = state { outcome } else { nil }
    }

    /// The time of the next required call of `timePassed`.
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

    /// A packet of the request has been written: values from here on count. Values that came before the last packet,
    /// or during a failed attempt, do not.
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

    /// Called when the peer has confirmed the request, or if there is none to confirm.
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

    /// Called when time has passed.
    package mutating func timePassed(_ now: BootInstant) {
        if case .over = state { return }
        if case .waiting(let heard) = state, let idleTime, heard + idleTime <= now {
            if case .silence = goal { state = .over(.silent) } else { state = .over(.idle) }
        } else if let deadline, deadline <= now {
            state = .over(.timedOut)
        }
    }
}
