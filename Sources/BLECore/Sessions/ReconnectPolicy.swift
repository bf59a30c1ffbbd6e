/// Whether, and when, a session connects again after a link was lost or could not be made.
public enum ReconnectPolicy: Hashable, Sendable {
    /// Not at all: the first failure, and the first loss, is the last.
    case never
    /// After pauses that double from `initial` to `max`, so many times.
    ///
    /// `jitter` spreads each pause evenly over that share of it to either side, 0 for not at all, so that many hubs do not call
    /// in step; no pause is longer than `max`. `attempts` is how many connects may fail in a row, `nil` for any number. Both start
    /// over when a link has proven itself.
    case backoff(
        initial: Duration = .seconds(1), max: Duration = .seconds(60), jitter: Double = 0.2, attempts: Int? = nil)
    /// A function of the program's own is asked each time.
    case custom
}

extension ReconnectPolicy {
    /// The pause before the next connect; `nil` when there is to be none.
    ///
    /// - Parameters:
    ///   - failures: How many connects have failed in a row.
    ///   - number: Which pause in a row it is, from 1.
    ///   - chance: A random number, which decides about the jitter.
    package func pause(afterFailures failures: Int, number: Int, chance: UInt64) -> Duration? {
        switch self {
        case .never, .custom:
            return nil
        case .backoff(let initial, let max, let jitter, let attempts):
            if let attempts, failures >= attempts { return nil }
            let longest = Swift.max(max.saturatedNanoseconds, 0)
            let pause = Self.doubled(initial.saturatedNanoseconds, times: number - 1, upTo: longest)
            return .nanoseconds(Swift.min(longest, Self.spread(pause, jitter, chance)))
        }
    }

    private static func doubled(_ initial: Int64, times: Int, upTo longest: Int64) -> Int64 {
        var pause = min(max(initial, 0), longest)
        guard pause > 0, times > 0 else { return pause }
        for _ in 0..<min(times, 63) {
            let (double, overflow) = pause.multipliedReportingOverflow(by: 2)
            if overflow || double >= longest { return longest }
            pause = double
        }
        return pause
    }

    /// Somewhere in `pause ± pause * jitter`; in the middle for half of the greatest chance.
    private static func spread(_ pause: Int64, _ jitter: Double, _ chance: UInt64) -> Int64 {
        // The comparison is false for what is no number.
        guard jitter > 0 else { return pause }
        let share = Double(chance >> 11) / Double(UInt64(1) << 53)
        let shift = Double(pause) * min(jitter, 1) * (share * 2 - 1)
        guard let whole = Int64(exactly: shift.rounded()) else { return pause }
        let (sum, overflow) = pause.addingReportingOverflow(whole)
        return overflow ? pause : max(sum, 0)
    }
}
