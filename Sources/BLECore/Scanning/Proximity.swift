// Estimates proximity from signal strength. The strength jumps by ten decibels and more while nothing moves, and
// devices advertise anything from fifty times a second to once in ten seconds, so it is smoothed over time and not
// over reports: between two reports it is interpolated linearly, and what lies one half-life back counts half. Ten
// reports in a second weigh as much as one.
//
// Levels have hysteresis: one is reached at its threshold and is left only some decibels below it.
//
// Invariants:
// - Smoothing a stretch in one piece or in several has the same result, which makes it independent of the rate.
// - A level changes at most once a report.
// - Strengths are compared as received. Devices send with different power; thresholds are for one kind of device.

/// The proximity of a device, estimated from the signal strength of its reports.
///
/// `heard(_:at:)` takes the strength of each report, and `level` is the result. `Central.monitor` keeps one value for
/// each device.
public struct Proximity: Hashable, Sendable {
    /// A level of proximity; the nearer is the greater.
    public enum Level: Hashable, Comparable, Sendable, CaseIterable {
        /// Weaker than near.
        case far
        /// In the same room, with thresholds that fit it.
        case near
        /// Beside the antenna.
        case immediate
    }

    /// The thresholds of the levels, and the smoothing of the strength.
    public struct Settings: Hashable, Sendable {
        /// The smoothed strength from which a device is near, in dBm.
        public var near: Double
        /// The smoothed strength from which a device is beside the antenna, in dBm.
        public var immediate: Double
        /// The distance below its threshold at which a level is left, in dB.
        public var hysteresis: Double
        /// The time after which a strength counts half. Zero or less disables smoothing.
        public var halfLife: Duration

        /// Creates settings; the defaults suit a device that sends at 0 dBm, and an antenna in the open.
        public init(
            near: Double = -70, immediate: Double = -45, hysteresis: Double = 6, halfLife: Duration = .seconds(2)
        ) {
            self.near = near
            self.immediate = immediate
            self.hysteresis = hysteresis
            self.halfLife = halfLife
        }
    }

    /// The thresholds of the levels, and the smoothing of the strength.
    public let settings: Settings
    /// The level of proximity; `nil` before a strength was heard.
    public private(set) var level: Level?
    /// The smoothed strength in dBm; `nil` before one was heard.
    public private(set) var strength: Double?
    private var last: Sample?
    private var sum = 0.0
    private var weight = 0.0

    private struct Sample: Hashable {
        let strength: Double
        let moment: BootInstant
    }

    /// Creates a value to which nothing has been reported.
    public init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// Records the strength of a report, in dBm; a report without one changes nothing.
    ///
    /// - Returns: The new level, if it has changed.
    @discardableResult
    public mutating func heard(_ rssi: Int8?, at now: BootInstant) -> Level? {
        guard let rssi else { return nil }
        let smoothed = smooth(Double(rssi), at: now)
        strength = smoothed
        let next = level(after: smoothed)
        if next == level { return nil }
        level = next
        return next
    }

    private mutating func smooth(_ new: Double, at now: BootInstant) -> Double {
        defer { last = Sample(strength: new, moment: now) }
        guard let last, settings.halfLife > .zero else { return new }
        let kept = kept(after: now - last.moment)
        sum = sum * kept + (1 - kept) * (last.strength + new) / 2
        weight = weight * kept + (1 - kept)
        return weight > 0 ? sum / weight : new
    }

    private func level(after strength: Double) -> Level {
        let reached = plainLevel(strength)
        guard let level else { return reached }
        if reached > level { return reached }
        return min(level, plainLevel(strength + max(0, settings.hysteresis)))
    }

    private func plainLevel(_ strength: Double) -> Level {
        strength >= settings.immediate ? .immediate : strength >= settings.near ? .near : .far
    }

    /// Returns what remains of a weight of one after a time: 2 to the power of minus the number of half-lives.
    private func kept(after time: Duration) -> Double {
        guard time > .zero else { return 1 }
        let halfLives = Double(time.saturatedNanoseconds) / Double(settings.halfLife.saturatedNanoseconds)
        // Also false for NaN: a half-life shorter than a nanosecond counts as none.
        guard halfLives < 62 else { return 0 }
        let whole = Int(halfLives)
        return Self.power(ofHalf: halfLives - Double(whole)) / Double(1 << whole)
    }

    /// Returns 2 to the power of `-exponent`, for 0 to 1, by the series of the exponential function, which this module
    /// lacks.
    private static func power(ofHalf exponent: Double) -> Double {
        let x = -exponent * 0.693_147_180_559_945_3
        var term = 1.0
        var sum = 1.0
        for index in 1...14 {
            term *= x / Double(index)
            sum += term
        }
        return sum
    }
}
