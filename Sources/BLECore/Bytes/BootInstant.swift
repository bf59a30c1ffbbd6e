/// A moment on the boot-time clock: nanoseconds since the machine started, suspend included.
///
/// The core never asks for the time; it is handed `now`, so tests and simulations own the clock.
public struct BootInstant: Hashable, Comparable, Sendable {
    /// Nanoseconds since the machine started.
    public var nanoseconds: Int64

    /// The moment `nanoseconds` after the machine started.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The moment at which the clock began.
    public static let zero = BootInstant(nanoseconds: 0)

    /// The moment `duration` later; it saturates at the ends of the clock.
    public func advanced(by duration: Duration) -> BootInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
        guard overflow else { return BootInstant(nanoseconds: sum) }
        return BootInstant(nanoseconds: duration < .zero ? .min : .max)
    }

    /// The time from this moment to `other`; negative when `other` is earlier.
    public func duration(to other: BootInstant) -> Duration {
        .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
    }

    /// Whether the left moment is the earlier one.
    public static func < (left: BootInstant, right: BootInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The moment `duration` later.
    public static func + (moment: BootInstant, duration: Duration) -> BootInstant {
        moment.advanced(by: duration)
    }

    /// The time that passed from the right moment to the left one.
    public static func - (left: BootInstant, right: BootInstant) -> Duration {
        right.duration(to: left)
    }
}

extension Duration {
    /// Whole nanoseconds; durations beyond ±292 years become the nearest value that fits.
    package var saturatedNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        if carried { return seconds < 0 ? .min : .max }
        return sum
    }
}
