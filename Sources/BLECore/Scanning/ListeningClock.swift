// Silence is what a device did not say while somebody listened. The radio does not listen while it calls a peer, while the
// adapter is away, or before a disturbed scan is set up again; a clock that stands still meanwhile keeps such times from
// looking like the silence of everybody around.

/// Counts the time in which reports could be heard.
package struct ListeningClock: Hashable, Sendable {
    private var total = Duration.zero
    private var since: BootInstant?

    package init() {}

    /// Says whether the radio listens from now on.
    package mutating func set(isListening: Bool, at now: BootInstant) {
        if isListening == (since != nil) { return }
        total = reading(at: now)
        since = isListening ? now : nil
    }

    /// For how long the radio has listened in all.
    package func reading(at now: BootInstant) -> Duration {
        guard let since else { return total }
        return total + max(.zero, now - since)
    }
}
