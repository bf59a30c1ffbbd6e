/// The settings of a scan: how to listen for advertisements, and which of them to report.
///
/// The defaults listen 30 ms of every 100 ms: enough to find an ordinary device within a second or two, while the
/// antenna, which a combo chip shares with Wi-Fi, is available to others most of the time.
///
/// Spec: Core Vol 4 Part E, 7.8.10 and 7.8.64.
public struct ScanSettings: Hashable, Sendable {
    /// The rule that invalid values violate.
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

    /// The treatment of repeated advertisements.
    public enum Duplicates: Hashable, Sendable {
        /// Report each one.
        case all
        /// Report a device's first one, and each whose data differs from the previous one.
        case changed
        /// Report a device's first one, each whose data differs, and otherwise at most one in this time.
        case every(Duration)
    }

    /// A Boolean value that indicates whether to request scan responses. This makes the host visible, and costs the
    /// devices energy.
    public let isActive: Bool
    /// The time between the starts of two scan windows, in units of 0.625 ms.
    package let intervalUnits: UInt16
    /// The length of a scan window, in units of 0.625 ms.
    package let windowUnits: UInt16
    /// The treatment of repeated advertisements.
    public var duplicates: Duplicates
    /// The least difference in dB between the strength of a repetition and the one reported last; `nil` for none. It
    /// applies to repetitions only: changed data is always reported, and with `.changed` there are no repetitions.
    public var rssiDelta: Int?
    /// A Boolean value that indicates whether the controller drops repeated advertisements before this host sees them.
    /// Some controllers then drop changed ones as well, and none reports signal strength over time: use it only if the
    /// host's time is short.
    public var filtersDuplicatesInController: Bool
    /// The PHYs to listen on: 1M, coded or both. Controllers without the coded PHY listen on 1M.
    public let phys: LEPHYs
    /// The devices to report.
    public var filter: ScanFilter

    /// Creates settings; times are rounded down to multiples of 0.625 ms.
    ///
    /// - Throws: `Invalid` if the specification does not allow the values, alone or together.
    public init(
        isActive: Bool = true, interval: Duration = .milliseconds(100), window: Duration = .milliseconds(30),
        duplicates: Duplicates = .changed, filtersDuplicatesInController: Bool = false, phys: LEPHYs = .le1M,
        filter: ScanFilter = .any, rssiDelta: Int? = nil
    ) throws(Invalid) {
        let allowed = Duration.microseconds(2500)...(.milliseconds(10_240))
        guard allowed.contains(interval) else { throw .interval }
        guard allowed.contains(window) else { throw .window }
        guard window <= interval else { throw .windowLongerThanInterval }
        guard !phys.isEmpty, phys.isSubset(of: [.le1M, .leCoded]) else { throw .phys }
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

    /// The time between the starts of two scan windows.
    public var interval: Duration { .microseconds(625 * Int64(intervalUnits)) }
    /// The length of a scan window.
    public var window: Duration { .microseconds(625 * Int64(windowUnits)) }

    /// Returns the same settings with another filter.
    public func matching(_ filter: ScanFilter) -> ScanSettings {
        var settings = self
        settings.filter = filter
        return settings
    }

    /// Returns the same settings with another treatment of repeated advertisements.
    public func duplicates(_ duplicates: Duplicates) -> ScanSettings {
        var settings = self
        settings.duplicates = duplicates
        return settings
    }

    /// Returns the same settings with another least difference in strength, in dB, between reported repetitions.
    public func rssiDelta(_ delta: Int?) -> ScanSettings {
        var settings = self
        settings.rssiDelta = delta
        return settings
    }

    /// Active, 30 ms of every 100 ms.
    public static let balanced = ScanSettings(isActive: true, intervalUnits: 160, windowUnits: 48)
    /// Passive, 30 ms of every 100 ms: invisible to others, and without scan responses.
    public static let passive = ScanSettings(isActive: false, intervalUnits: 160, windowUnits: 48)
    /// Active, all the time: finds devices soonest. Wi-Fi on the same antenna suffers.
    public static let lowLatency = ScanSettings(isActive: true, intervalUnits: 96, windowUnits: 96)
    /// Passive, 30 ms of every 300 ms, for machines whose Wi-Fi shares the antenna.
    public static let coexist = ScanSettings(isActive: false, intervalUnits: 480, windowUnits: 48)
    /// Active on the 1M and the coded PHY, 60 ms of every 200 ms.
    public static let longRange = ScanSettings(
        isActive: true, intervalUnits: 320, windowUnits: 96, phys: [.le1M, .leCoded])
}

/// The combined settings of the radio for one or several scans.
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

    /// Creates a plan that gives each of the scans at least what it requested: the largest share of time among them,
    /// every PHY, scan responses if one requests them, and the controller's filter only if all do. `nil` for no scans.
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
