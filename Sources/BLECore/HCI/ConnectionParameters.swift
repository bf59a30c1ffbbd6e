/// The interval, the peripheral latency and the supervision timeout of a link.
///
/// Values are stored in the specification's units, so that reading them back returns what is sent: intervals are
/// multiples of 1.25 ms, the timeout of 10 ms.
///
/// Spec: Core Vol 4 Part E, 7.8.12; Vol 6 Part B, 4.5.2.
public struct ConnectionParameters: Hashable, Sendable {
    /// The rule of the specification that the values violate.
    public enum Invalid: Error, Hashable, Sendable {
        /// An interval is outside 7.5 ms to 4 s.
        case interval
        /// The latency is outside 0 to 499 events.
        case latency
        /// The supervision timeout is outside 100 ms to 32 s.
        case supervisionTimeout
        /// The supervision timeout does not exceed 2 x (1 + latency) x the maximum interval.
        case supervisionTimeoutTooShort
    }

    /// The minimum interval, in units of 1.25 ms.
    package let intervalMin: UInt16
    /// The maximum interval, in units of 1.25 ms.
    package let intervalMax: UInt16
    /// The peripheral latency: the number of consecutive connection events that the peripheral may skip.
    public let latency: UInt16
    /// The supervision timeout, in units of 10 ms.
    package let timeout: UInt16

    /// Creates connection parameters; times are rounded down to whole units.
    ///
    /// - Throws: `Invalid` if the specification does not allow the values, alone or in combination.
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

    /// The minimum and maximum interval.
    public var interval: ClosedRange<Duration> {
        let low = Duration.microseconds(1250 * Int64(intervalMin))
        return low...max(low, .microseconds(1250 * Int64(intervalMax)))
    }

    /// The time without a packet from the other side after which the link is lost.
    public var supervisionTimeout: Duration { .milliseconds(10 * Int64(timeout)) }

    /// 30 to 50 ms, no latency, 5 s: leaves airtime to Wi-Fi on combo chips with a shared antenna.
    public static let balanced = ConnectionParameters(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 500)
    /// 7.5 to 15 ms, no latency, 5 s: the lowest response times, at the cost of the peer's battery.
    public static let fast = ConnectionParameters(intervalMin: 6, intervalMax: 12, latency: 0, timeout: 500)
    /// 100 to 125 ms, latency 2, 6 s: for links that idle for hours.
    public static let lowPower = ConnectionParameters(intervalMin: 80, intervalMax: 100, latency: 2, timeout: 600)
}

extension Duration {
    /// Returns the number of whole units of `nanoseconds`, clamped to 0 through 65,535.
    package func units(of nanoseconds: Int64) -> UInt16 {
        guard nanoseconds > 0, self > .zero else { return 0 }
        return UInt16(clamping: saturatedNanoseconds / nanoseconds)
    }
}
