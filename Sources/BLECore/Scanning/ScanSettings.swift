/// How to listen for advertisements, and which of them to hand on.
///
/// The defaults listen 30 ms of every 100 ms: enough to find an ordinary device within a second or two, and it leaves
/// the antenna, which a combo chip shares with Wi-Fi, most of the time to others.
///
/// Spec: Core Vol 4 Part E, 7.8.10 and 7.8.64.
public struct ScanSettings: Hashable, Sendable {
    /// Which rule the values break.
    public enum Invalid: Error, Hashable, Sendable {
        /// The interval is outside 2.5 ms to 10.24 s.
        case interval
        /// The window is outside 2.5 ms to 10.24 s.
        case window
        /// The window is longer than the interval.
        case windowLongerThanInterval
        /// Neither the 1M nor the coded PHY is chosen, or one that cannot carry primary advertisements.
        case phys
    }

    /// What to do with advertisements that repeat.
    public enum Duplicates: Hashable, Sendable {
        /// Hand on each one.
        case all
        /// Hand on a device's first, and each that says something else than before.
        case changed
        /// Hand on a device's first, each that says something else, and otherwise at most one in this time.
        case every(Duration)
    }

    /// Whether to ask devices for their scan response. It makes this host visible, and costs the devices energy.
    public let isActive: Bool
    /// From one window's start to the next, in units of 0.625 ms.
    package let intervalUnits: UInt16
    /// How long to listen each time, in units of 0.625 ms.
    package let windowUnits: UInt16
    /// What to do with advertisements that repeat.
    public var duplicates: Duplicates
    /// By how many dB the strength of a repetition has to differ from what was handed on last; `nil` for any strength. It holds
    /// back repetitions only: what says something else is always handed on, and under `.changed` there are none.
    public var rssiDelta: Int?
    /// Whether the controller leaves out repeated advertisements before this host sees them. Some controllers then leave
    /// out changed ones as well, and none gives a signal strength over time: off unless the host's time is short.
    public var filtersDuplicatesInController: Bool
    /// The PHYs to listen on: 1M, coded or both. Controllers without the coded PHY listen on 1M.
    public let phys: LEPHYs
    /// Which devices to hand on.
    public var filter: ScanFilter

    /// Describes a scan; times are rounded down to multiples of 0.625 ms.
    ///
    /// - Throws: `Invalid` when the specification does not allow the values, alone or together.
    public init(
        isActive: Bool = true, interval: Duration = .milliseconds(100), window: Duration = .milliseconds(30),
        duplicates: Duplicates = .changed, filtersDuplicatesInController: Bool = false, phys: LEPHYs = .le1M,
        filter: ScanFilter = .any, rssiDelta: Int? = nil
    ) throws(Invalid) {
        let allowed = Duration.microseconds(2500)...(.milliseconds(10_240))
        guard allowed.contains(interval) else { throw .interval }
        guard allowed.contains(window) else { throw .window }
        guard window <= interval else { throw .windowLongerThanInterval }
        guard !phys.isEmpty, phys.isSubset(of: [.le1M, .coded]) else { throw .phys }
        self.init(
            isActive: isActive, intervalUnits: interval.units(of: 625_000), windowUnits: window.units(of: 625_000),
            duplicates: duplicates, phys: phys)
        self.filtersDuplicatesInController = filtersDuplicatesInController
        self.filter = filter
        self.rssiDelta = rssiDelta
    }

    private init(
        isActive: Bool, intervalUnits: UInt16, windowUnits: UInt16, duplicates: Duplicates = .changed,
        phys: LEPHYs = .le1M
    ) {
        self.isActive = isActive
        self.intervalUnits = intervalUnits
        self.windowUnits = windowUnits
        self.duplicates = duplicates
        self.filtersDuplicatesInController = false
        self.phys = phys
        self.filter = .any
    }

    /// From one window's start to the next.
    public var interval: Duration { .microseconds(625 * Int64(intervalUnits)) }
    /// How long to listen each time.
    public var window: Duration { .microseconds(625 * Int64(windowUnits)) }

    /// The same scan with another filter.
    public func matching(_ filter: ScanFilter) -> ScanSettings {
        var settings = self
        settings.filter = filter
        return settings
    }

    /// The same scan with another rule for repeated advertisements.
    public func duplicates(_ duplicates: Duplicates) -> ScanSettings {
        var settings = self
        settings.duplicates = duplicates
        return settings
    }

    /// The same scan that hands on a repetition only when the strength differs by so many dB from what was handed on last.
    public func rssiDelta(_ delta: Int?) -> ScanSettings {
        var settings = self
        settings.rssiDelta = delta
        return settings
    }

    /// Active, 30 ms of every 100 ms.
    public static let balanced = ScanSettings(isActive: true, intervalUnits: 160, windowUnits: 48)
    /// Passive, 30 ms of every 100 ms: nobody notices, and there are no scan responses.
    public static let passive = ScanSettings(isActive: false, intervalUnits: 160, windowUnits: 48)
    /// Active, all the time: finds devices soonest. Wi-Fi on the same antenna suffers.
    public static let lowLatency = ScanSettings(isActive: true, intervalUnits: 96, windowUnits: 96)
    /// Passive, 30 ms of every 300 ms, for machines whose Wi-Fi shares the antenna.
    public static let coexist = ScanSettings(isActive: false, intervalUnits: 480, windowUnits: 48)
    /// Active on the 1M and the coded PHY, 60 ms of every 200 ms.
    public static let longRange = ScanSettings(
        isActive: true, intervalUnits: 320, windowUnits: 96, phys: [.le1M, .coded])
}

/// What the radio has to do for one or several scans.
package struct ScanPlan: Hashable, Sendable {
    package var isActive: Bool
    package var interval: UInt16
    package var window: UInt16
    package var phys: LEPHYs
    package var filtersDuplicates: Bool

    package init(_ settings: ScanSettings) {
        isActive = settings.isActive
        interval = settings.intervalUnits
        window = settings.windowUnits
        phys = settings.phys
        filtersDuplicates = settings.filtersDuplicatesInController
    }

    /// A plan under which each of the scans gets at least what it asked for: the largest share of time among them, every
    /// PHY, scan responses if one wants them, and the controller's filter only if all do. `nil` for no scans.
    package init?(covering scans: some Sequence<ScanSettings>) {
        var plan: ScanPlan?
        for settings in scans {
            let other = ScanPlan(settings)
            guard var merged = plan else {
                plan = other
                continue
            }
            merged.isActive = merged.isActive || other.isActive
            merged.phys.formUnion(other.phys)
            merged.filtersDuplicates = merged.filtersDuplicates && other.filtersDuplicates
            if UInt32(other.window) * UInt32(merged.interval) > UInt32(merged.window) * UInt32(other.interval) {
                merged.interval = other.interval
                merged.window = other.window
            }
            plan = merged
        }
        guard let plan else { return nil }
        self = plan
    }
}
