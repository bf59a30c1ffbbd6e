/// How often the two sides of a link meet, and how long one may be missing.
///
/// Values are kept in the units of the specification, so what is read back is what goes on air: intervals are
/// multiples of 1.25 ms, the time-out of 10 ms.
///
/// Spec: Core Vol 4 Part E, 7.8.12; Vol 6 Part B, 4.5.2.
public struct ConnectionParameters: Hashable, Sendable {
    /// Which rule of the specification the values break.
    public enum Invalid: Error, Hashable, Sendable {
        /// An interval is outside 7.5 ms to 4 s.
        case interval
        /// The latency is outside 0 to 499 events.
        case latency
        /// The supervision time-out is outside 100 ms to 32 s.
        case supervisionTimeout
        /// The time-out is not longer than two longest waits: 2 x (1 + latency) x the longest interval.
        case supervisionTimeoutTooShort
    }

    /// The shortest interval, in units of 1.25 ms.
    package let intervalMin: UInt16
    /// The longest interval, in units of 1.25 ms.
    package let intervalMax: UInt16
    /// How many meetings in a row the peripheral may skip.
    public let latency: UInt16
    /// The supervision time-out, in units of 10 ms.
    package let timeout: UInt16

    /// Asks for an interval between two bounds, rounded down to whole units.
    ///
    /// - Throws: `Invalid` when the specification does not allow the values, alone or together.
    public init(
        interval: ClosedRange<Duration>, latency: Int = 0, supervisionTimeout: Duration
    ) throws(Invalid) {
        guard interval.lowerBound >= .microseconds(7500), interval.upperBound <= .seconds(4) else { throw .interval }
        guard (0...499).contains(latency) else { throw .latency }
        guard supervisionTimeout >= .milliseconds(100), supervisionTimeout <= .seconds(32) else {
            throw .supervisionTimeout
        }
        guard supervisionTimeout > interval.upperBound * (2 * (1 + latency)) else { throw .supervisionTimeoutTooShort }
        self.init(
            intervalMin: interval.lowerBound.units(of: 1_250_000),
            intervalMax: interval.upperBound.units(of: 1_250_000),
            latency: UInt16(truncatingIfNeeded: latency), timeout: supervisionTimeout.units(of: 10_000_000))
    }

    package init(intervalMin: UInt16, intervalMax: UInt16, latency: UInt16, timeout: UInt16) {
        self.intervalMin = intervalMin
        self.intervalMax = intervalMax
        self.latency = latency
        self.timeout = timeout
    }

    /// The interval's bounds.
    public var interval: ClosedRange<Duration> {
        let low = Duration.microseconds(1250 * Int64(intervalMin))
        return low...max(low, .microseconds(1250 * Int64(intervalMax)))
    }

    /// How long the link lives without hearing the other side.
    public var supervisionTimeout: Duration { .milliseconds(10 * Int64(timeout)) }

    /// 30 to 50 ms, no latency, 5 s: easy on the antenna that a combo chip shares with Wi-Fi.
    public static let balanced = ConnectionParameters(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 500)
    /// 7.5 to 15 ms, no latency, 5 s: quickest answers, at the cost of the peer's battery.
    public static let fast = ConnectionParameters(intervalMin: 6, intervalMax: 12, latency: 0, timeout: 500)
    /// 100 to 125 ms, the peripheral may skip 2 meetings, 6 s: for links that idle for hours.
    public static let lowPower = ConnectionParameters(intervalMin: 80, intervalMax: 100, latency: 2, timeout: 600)
}

extension Duration {
    /// Whole units of `nanoseconds` in this time; between 0 and 65,535.
    package func units(of nanoseconds: Int64) -> UInt16 {
        guard nanoseconds > 0, self > .zero else { return 0 }
        return UInt16(clamping: saturatedNanoseconds / nanoseconds)
    }
}
