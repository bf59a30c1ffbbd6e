// What one scan hands on, of everything that is heard. Several scans share one radio and one table; each has its own filter
// and its own rule for repetitions, so each has its own gate.
//
// A device passes for the first time as `found`, when it matches the filter for the first time, which may be long after it
// was first heard: its name may come only with the scan response. A change that was held back, because the device was too
// weak at that moment, is handed on with the next report that passes.

/// Decides for one scan which reports are handed on.
package struct ScanGate {
    /// How a report is handed on.
    package enum Verdict: Hashable, Sendable {
        /// For the first time, or for the first time since the device was lost.
        case found
        /// Again.
        case updated
    }

    private struct Passed {
        var lastPassed: BootInstant
        var lastHeard: BootInstant
        var owesChange = false
    }

    /// The filter and the rules.
    package let settings: ScanSettings
    private var passed: [AdvertiserID: Passed] = [:]

    package init(_ settings: ScanSettings) {
        self.settings = settings
    }

    /// How many devices have passed and are not lost.
    package var count: Int { passed.count }

    /// How a report is to be handed on, from the device's entry after it was recorded; `nil` when it is not.
    package mutating func admit(_ sighting: Sighting, _ change: Sighting.Change, at now: BootInstant) -> Verdict? {
        guard var known = passed[sighting.id] else {
            guard settings.filter.matches(sighting) else { return nil }
            passed[sighting.id] = Passed(lastPassed: now, lastHeard: now)
            return .found
        }
        known.lastHeard = now
        if change != .same { known.owesChange = true }
        defer { passed[sighting.id] = known }
        let isDue =
            switch settings.duplicates {
            case .all: true
            case .changed: known.owesChange
            case .every(let pause): known.owesChange || now - known.lastPassed >= pause
            }
        guard isDue, settings.filter.matches(sighting) else { return nil }
        known.owesChange = false
        known.lastPassed = now
        return .updated
    }

    /// Who has passed before and has not been heard since a moment; from then on unknown here.
    package mutating func lost(silentSince moment: BootInstant) -> [AdvertiserID] {
        var lost: [AdvertiserID] = []
        for (id, known) in passed where known.lastHeard < moment { lost.append(id) }
        for id in lost { passed[id] = nil }
        return lost
    }

    /// Forgets a device that the table no longer has room for; answers whether it had passed.
    package mutating func forget(_ id: AdvertiserID) -> Bool {
        passed.removeValue(forKey: id) != nil
    }
}
