/// An instant on the boot-time clock, in nanoseconds since boot, including time in suspend.
///
/// The core never reads a clock; `now` is passed in, so tests and simulations control time.
public struct BootInstant: Hashable, Comparable, Sendable {
    /// Nanoseconds since boot.
    public var nanoseconds: Int64

    /// Creates an instant from nanoseconds since boot.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The start of the clock.
    public static let zero = BootInstant(nanoseconds: 0)

    /// Returns the instant `duration` later, saturating at the ends of the clock.
    public func advanced(by duration: Duration) -> BootInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
        guard overflow else { return BootInstant(nanoseconds: sum) }
        return BootInstant(nanoseconds: duration < .zero ? .min : .max)
    }

    /// Returns the time from this instant to `other`; negative if `other` is earlier.
    public func duration(to other: BootInstant) -> Duration {
        .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
    }

    /// Returns a Boolean value that indicates whether the left instant is earlier.
    public static func < (left: BootInstant, right: BootInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Returns the instant `duration` later.
    public static func + (moment: BootInstant, duration: Duration) -> BootInstant {
        moment.advanced(by: duration)
    }

    /// Returns the time from the right instant to the left one.
    public static func - (left: BootInstant, right: BootInstant) -> Duration {
        right.duration(to: left)
    }
}

extension Duration {
    /// The duration in whole nanoseconds, saturating at about ±292 years.
    package var saturatedNanoseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000)
    }
}
