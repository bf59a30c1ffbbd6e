// A deadline is served late after the machine or this program has slept, and time that was slept is no silence.
//
// A machine that is busy may serve each deadline late. So a delay is taken for a sleep a few times in a row alone, with
// nothing heard in between: otherwise silence would never be noticed, and no step of recovery be taken.

/// Notices by the deadlines of its owner that the machine or this program has slept.
package struct SleepWatch: Sendable {
    /// The number of deadlines in a row that were served late, with nothing heard in between.
    private var lateDeadlines = 0

    package init() {}

    /// A deadline is served.
    ///
    /// - Returns: Whether the machine or this program has slept since, as far as that is believed.
    package mutating func hasSlept(since deadline: BootInstant, at now: BootInstant) -> Bool {
        guard now - deadline >= Self.delay else {
            lateDeadlines = 0
            return false
        }
        lateDeadlines = min(lateDeadlines + 1, Self.limit + 1)
        return lateDeadlines <= Self.limit
    }

    /// A report with data has come.
    package mutating func heard() { lateDeadlines = 0 }

    /// How late a deadline is served at least after a sleep.
    package static let delay: Duration = .seconds(10)
    /// The number of deadlines in a row whose delay is taken for a sleep.
    package static let limit = 3
}
