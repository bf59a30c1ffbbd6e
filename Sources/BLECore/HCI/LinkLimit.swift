// How many links a controller can have: no command reads it, and the maximum of some is small (row W49).
//
// Invariants
// - What the program has configured is never exceeded.
// - What was learnt from a refusal is a guess: the refusal may have had another cause. A connect beyond it waits some
//   seconds for the end of a link, and is attempted all the same. A link that comes up beyond it shows that it was
//   wrong.

/// The number of links that a controller can have, as configured and as learnt.
package struct LinkLimit: ~Copyable {
    /// The advice to a connect.
    package enum Advice: Hashable, Sendable {
        /// There is room, as far as is known.
        case proceed
        /// Wait for the end of a link for so long at most, then connect all the same.
        case wait(Duration)
        /// Wait for the end of a link; without one the connect fails.
        case full(limit: Int)
    }

    private let configured: Int?
    private var learnt: Int?

    package init(_ configured: Int? = nil) {
        self.configured = configured.map { max(1, $0) }
    }

    /// A Boolean value that indicates whether there is a limit, as far as is known.
    package var isKnown: Bool { configured != nil || learnt != nil }

    /// Returns the advice for initiating another link beside those that are up.
    package func advice(links: Int) -> Advice {
        if let configured, links >= configured { return .full(limit: configured) }
        if let learnt, links >= learnt { return .wait(Self.waitingTime) }
        return .proceed
    }

    /// The controller has refused another link as one too many.
    package mutating func refused(beside links: Int) {
        // Where none is up, the limit is not that of links.
        if links > 0 { learnt = links }
    }

    /// A link has come up beside others.
    package mutating func held(beside links: Int) {
        if let learnt, links >= learnt { self.learnt = links + 1 }
    }

    /// The time for which a connect waits for the end of a link before it is attempted beyond what was learnt.
    package static let waitingTime: Duration = .seconds(4)
}

// MARK: - The wait of a connect

extension LinkLimit {
    /// The room for one more link at the controller.
    package enum Room: Hashable, Sendable {
        /// There is room, or the connect has waited for it long enough.
        case free
        /// It is only guessed to be missing, so the connect does not wait longer than this.
        case missing(until: BootInstant)
        /// As many links are up as may be.
        case full(limit: Int)
    }

    /// The wait of one connect for room.
    package struct Wait: Sendable {
        /// When the connect waits no longer where room is only guessed to be missing; `nil` before it was.
        private var deadline: BootInstant?

        package init() {}

        /// Returns whether there is room, and begins to wait where there seems to be none.
        ///
        /// - Parameter limit: When the connect itself ends.
        package mutating func room(by advice: Advice, at now: BootInstant, until limit: BootInstant?) -> Room {
            switch advice {
            case .proceed: return .free
            case .full(let most): return .full(limit: most)
            case .wait(let time):
                let end = deadline ?? min(now + time, limit ?? now + time)
                deadline = end
                return end <= now ? .free : .missing(until: end)
            }
        }
    }
}
