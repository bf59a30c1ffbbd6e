// Decides what one scan reports. Several scans share one radio and one table; each has its own filter and its own rule
// for repetitions, so each has its own gate.
//
// A device is reported as `found` when it first matches the filter, which may be long after it was first heard: its
// name may come only with the scan response. A change that was held back, because the device was too weak at that
// moment, is reported with the next report that passes. Changes always pass; the rule for repetitions and the least
// difference in strength hold back repetitions only.

/// Decides for one scan which reports are passed on.
package struct ScanGate {
    /// The kind of event for a report.
    package enum Verdict: Hashable, Sendable {
        /// The first one, or the first one since the device was lost.
        case found
        /// A later one.
        case updated
    }

    private struct Passed {
        var lastPassed: BootInstant
        /// The reading of the `ListeningClock`.
        var lastHeard: Duration
        var lastRSSI: Int8?
        var owesChange = false
    }

    /// The filter and the rules.
    package let settings: ScanSettings
    private var passed: [AdvertiserID: Passed] = [:]

    package init(_ settings: ScanSettings) {
        self.settings = settings
    }

    /// The number of devices that have passed and are not lost.
    package var count: Int { passed.count }

    /// Returns the kind of event for a report, from the device's entry after it was recorded; `nil` for none.
    ///
    /// `listened` is the reading of the `ListeningClock` at `now`.
    package mutating func admit(
        _ scanResult: ScanResult, _ change: ScanResult.Change, at now: BootInstant, listened: Duration
    ) -> Verdict? {
        guard var known = passed[scanResult.id] else {
            guard settings.filter.matches(scanResult) else { return nil }
            passed[scanResult.id] = Passed(lastPassed: now, lastHeard: listened, lastRSSI: scanResult.rssi)
            return .found
        }
        known.lastHeard = listened
        if change != .same { known.owesChange = true }
        defer { passed[scanResult.id] = known }
        let isDue = known.owesChange || mayRepeat(known, scanResult.rssi, at: now)
        guard isDue, settings.filter.matches(scanResult) else { return nil }
        known.owesChange = false
        known.lastPassed = now
        known.lastRSSI = scanResult.rssi ?? known.lastRSSI
        return .updated
    }

    /// Returns the devices that have passed before and have been silent for so long while the radio listened, the one
    /// silent for longest first, and forgets them.
    ///
    /// A peer in `linked` is present, though it need not advertise: its silence counts from the last call that named
    /// it.
    package mutating func lost(
        silentFor limit: Duration, listened: Duration, linked: Set<PeerID> = []
    ) -> [AdvertiserID] {
        if !linked.isEmpty {
            let present = passed.keys.filter { id in id.peer.map { linked.contains($0) } ?? false }
            for id in present { passed[id]?.lastHeard = listened }
        }
        var lost: [(id: AdvertiserID, lastHeard: Duration)] = []
        for (id, known) in passed where listened - known.lastHeard > limit { lost.append((id, known.lastHeard)) }
        lost.sort { ($0.lastHeard, $0.id.place) < ($1.lastHeard, $1.id.place) }
        for (id, _) in lost { passed[id] = nil }
        return lost.map { $0.id }
    }

    /// Forgets a device, so that it can be found again; returns whether it had passed.
    package mutating func forget(_ id: AdvertiserID) -> Bool {
        passed.removeValue(forKey: id) != nil
    }

    private func mayRepeat(_ known: Passed, _ rssi: Int8?, at now: BootInstant) -> Bool {
        switch settings.duplicates {
        case .all: break
        case .changed: return false
        case .every(let pause): guard now - known.lastPassed >= pause else { return false }
        }
        guard let delta = settings.rssiDelta else { return true }
        guard let rssi else { return false }
        guard let last = known.lastRSSI else { return true }
        return abs(Int(rssi) - Int(last)) >= delta
    }
}

extension AdvertiserID {
    /// A fixed order, so that devices heard at the same time are always reported in the same order.
    fileprivate var place: UInt64 {
        UInt64(peer?.type.rawValue ?? 0xFF) << 56 | (peer?.address.rawValue ?? 0) << 8 | UInt64(sid ?? 0xFF)
    }
}
