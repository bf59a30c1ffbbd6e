/// The policy by which a session reconnects after a link was lost or could not be made.
public enum ReconnectPolicy: Hashable, Sendable {
    /// Does not reconnect: the first failure or loss ends the session.
    case never
    /// Reconnects after pauses that double from `initial` to `max`.
    ///
    /// `jitter` varies each pause evenly by up to that fraction in either direction, 0 for not at all, so that many
    /// hubs do not connect in step; no pause is longer than `max`. `attempts` is the number of connects that may fail
    /// in a row, `nil` for any number. Both counts start over after a stable link.
    case backoff(
        initial: Duration = .seconds(1), max: Duration = .seconds(60), jitter: Double = 0.2, attempts: Int? = nil)
    /// Calls a function of the program each time.
    case custom
}

extension ReconnectPolicy {
    /// Returns the pause before the next connect; `nil` for no further connect.
    ///
    /// - Parameters:
    ///   - failures: The number of connects that have failed in a row.
    ///   - number: The number of the pause in a row, from 1.
    ///   - chance: A random number for the jitter.
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

    /// Returns a pause within `pause ± pause * jitter`; the middle for half of the greatest chance.
    private static func spread(_ pause: Int64, _ jitter: Double, _ chance: UInt64) -> Int64 {
        // The comparison is false for NaN.
        guard jitter > 0 else { return pause }
        let share = Double(chance >> 11) / Double(UInt64(1) << 53)
        let shift = Double(pause) * min(jitter, 1) * (share * 2 - 1)
        guard let whole = Int64(exactly: shift.rounded()) else { return pause }
        let (sum, overflow) = pause.addingReportingOverflow(whole)
        return overflow ? pause : max(sum, 0)
    }
}
