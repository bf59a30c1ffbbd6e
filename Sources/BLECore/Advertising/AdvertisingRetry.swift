/// The failures and disturbances of one advertisement in a row, and the pauses that they cause: each is twice the one
/// before.
///
/// Both back ends, `AdvertiseSession` and `InstanceSession`, count by it.
package struct AdvertisingRetry {
    private var attempts = 0

    /// A Boolean value that indicates whether a start has failed so often that it fails for good.
    var isExhausted: Bool { attempts >= Self.startAttempts }

    /// Counts a failure or a disturbance, and returns the pause after it.
    ///
    /// - Parameter first: The pause after the first one in a row.
    mutating func nextPause(first: Duration = Self.firstPause) -> Duration {
        let pause = first * (1 << min(attempts, 9))
        attempts += 1
        return min(pause, Self.longestPause)
    }

    /// Begins a new row: pauses are short again.
    mutating func reset() { attempts = 0 }

    /// Begins a new row if the advertisement, which is on air no more, was there for a long time.
    mutating func reset(afterOnAirFor time: Duration) {
        if time >= Self.healthy { reset() }
    }

    /// After how long on air pauses are short again.
    package static let healthy: Duration = .seconds(10)
    /// The first pause after a failure.
    static let firstPause: Duration = .milliseconds(500)
    /// The longest pause before a retry.
    static let longestPause: Duration = .seconds(30)
    /// The number of failures after which a start fails.
    package static let startAttempts = 3
}
