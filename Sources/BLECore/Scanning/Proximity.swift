// How near a device is, as far as its strength tells. Strength jumps by ten decibels and more while nobody moves, and devices
// advertise anything from fifty times a second to once in ten, so the strength is smoothed over time and not over reports:
// between two reports it is taken to run straight from one to the other, and what lies one half-life back counts half.
// Ten reports in a second weigh as much as one.
//
// Levels have hysteresis: one is reached at its threshold and is left only some decibels below it.
//
// Invariants:
// - Smoothing a stretch in one piece or in several comes to the same, which is what makes it independent of the rate.
// - A level changes at most once a report.
// - Strengths are compared as received. Devices send with different power; thresholds are for one kind of device.

/// How near one device is, from the strengths at which it was heard.
///
/// A value for as many devices as are of interest: `heard(_:at:)` takes each report's strength, and `level` says what comes of
/// it. `Central.monitor` keeps one for each device.
public struct Proximity: Hashable, Sendable {
    /// Near or far; the nearer is the greater.
    public enum Level: Hashable, Comparable, Sendable, CaseIterable {
        /// Weaker than near.
        case far
        /// In the room, with thresholds that fit it.
        case near
        /// Beside the antenna.
        case immediate
    }

    /// Where the levels begin, and how much strengths are smoothed.
    public struct Settings: Hashable, Sendable {
        /// From which smoothed strength on a device is near, in dBm.
        public var near: Double
        /// From which smoothed strength on a device is beside the antenna, in dBm.
        public var immediate: Double
        /// How far below its threshold the strength falls before a level is left, in dB.
        public var hysteresis: Double
        /// After which time a strength counts half. Zero or less takes each strength as it comes.
        public var halfLife: Duration

        /// Levels and smoothing; the defaults suit a device that sends at 0 dBm, and an antenna in the open.
        public init(
            near: Double = -70, immediate: Double = -45, hysteresis: Double = 6, halfLife: Duration = .seconds(2)
        ) {
            self.near = near
            self.immediate = immediate
            self.hysteresis = hysteresis
            self.halfLife = halfLife
        }
    }

    /// Where the levels begin, and how much strengths are smoothed.
    public let settings: Settings
    /// How near the device is; `nil` before a strength was heard.
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

    /// Nothing heard yet.
    public init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// Takes the strength of a report, in dBm; one without a strength changes nothing.
    ///
    /// - Returns: The level, if it is another one now.
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

    /// What is left of a weight of one after a time: 2 to the power of minus the number of half-lives.
    private func kept(after time: Duration) -> Double {
        guard time > .zero else { return 1 }
        let halfLives = Double(time.saturatedNanoseconds) / Double(settings.halfLife.saturatedNanoseconds)
        // Also false for what is no number: a half-life shorter than a nanosecond counts as none.
        guard halfLives < 62 else { return 0 }
        let whole = Int(halfLives)
        return Self.power(ofHalf: halfLives - Double(whole)) / Double(1 << whole)
    }

    /// 2 to the power of `-exponent`, for 0 to 1: the series of e to the power of x, which nothing here offers otherwise.
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
