// Silence counts only while the radio listens. It does not listen while a connection is being initiated, while the
// adapter is away, or before a disturbed scan is set up again; this clock stands still meanwhile, so that such times
// do not look like the silence of every device. The owner leaves out the time in which the machine slept, which it
// notices only afterwards.

/// Counts the time in which reports could be heard.
package struct ListeningClock: Hashable, Sendable {
    private var total = Duration.zero
    private var since: BootInstant?

    package init() {}

    /// Sets whether the radio listens from now on.
    package mutating func set(isListening: Bool, at now: BootInstant) {
        if isListening == (since != nil) { return }
        total = reading(at: now)
        since = isListening ? now : nil
    }

    /// Does not count the time between two moments, for which `reading(at:)` was not called yet.
    package mutating func leaveOut(from begin: BootInstant, to end: BootInstant) {
        guard since != nil else { return }
        total = reading(at: begin)
        since = end
    }

    /// Returns the total time for which the radio has listened.
    package func reading(at now: BootInstant) -> Duration {
        guard let since else { return total }
        return total + max(.zero, now - since)
    }
}
