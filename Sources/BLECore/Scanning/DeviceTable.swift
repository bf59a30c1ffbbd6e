// The advertisers in range, newest last.
//
// Duties: one entry for each advertiser, that is, address, type of address and advertising set, however often its data
// changes and whether its advertisement or its scan response is heard first (row A11). A device whose private address
// was resolved has one entry, under its identity, and with the address of its newest report. Return for each report
// what it changed. Keep memory bounded whatever is on air (row A12).
//
// Invariants:
// - There are never more than `capacity` entries. One more evicts the entry that was silent for longest and is not
//   pinned; if all are pinned the newcomer is refused. Both are counted.
// - The payloads of all entries together have at most `payloadLimit` bytes, which old kinds of advertisements never
//   reach; longer ones evict in the same way. Only those of pinned entries, and of the newest, may go beyond.
// - Entries are threaded on a list in the order in which they were heard last; a report moves its entry to the end in
//   constant time.
// - A place is valid until its entry is evicted or expires; nothing keeps one beyond the call that returned it.

/// The table of known advertisers.
package struct DeviceTable: ~Copyable {
    /// The index of an entry, valid until the table next changes.
    package typealias Place = Int

    /// The effect of a report.
    package struct Outcome: Hashable, Sendable {
        /// The advertiser's entry.
        package let place: Place
        /// The change that the report made.
        package let change: ScanResult.Change
        /// The entries that it took the room or the place of; nearly always none, or one.
        package let evicted: [ScanResult]
    }

    private struct Entry {
        var scanResult: ScanResult
        var gaps = Gaps()
        var lastAdvertisement: BootInstant?
        var older = DeviceTable.none
        var newer = DeviceTable.none
    }

    private var entries: [Entry] = []
    private var free: [Place] = []
    private var places: [AdvertiserID: Place] = [:]
    private var oldest = DeviceTable.none
    private var newest = DeviceTable.none
    private let capacity: Int
    /// The payload bytes of all entries.
    private var payload = 0
    /// Devices, by address or identity, whose entries are neither evicted nor expire, because a scan filters by their
    /// address, or they are connected.
    private var pinned: Set<PeerID> = []
    /// The number of entries that were evicted.
    package private(set) var evictions = 0
    /// The number of newcomers' reports refused because every entry is pinned.
    package private(set) var refusals = 0

    package init(capacity: Int = DeviceTable.capacity) {
        self.capacity = max(1, capacity)
    }

    /// The number of known advertisers.
    package var count: Int { places.count }

    /// The entry at a place that was just returned.
    package subscript(place: Place) -> ScanResult { entries[place].scanResult }

    /// The entry of an advertiser.
    package subscript(id: AdvertiserID) -> ScanResult? {
        places[id].map { entries[$0].scanResult }
    }

    /// All entries, the one heard last first.
    package var scanResults: [ScanResult] {
        var result: [ScanResult] = []
        result.reserveCapacity(count)
        var place = newest
        while place != Self.none {
            result.append(entries[place].scanResult)
            place = entries[place].older
        }
        return result
    }

    /// Returns the number of advertisers heard since a moment.
    package func count(heardSince moment: BootInstant) -> Int {
        var count = 0
        var place = newest
        while place != Self.none, entries[place].scanResult.lastSeen >= moment {
            count += 1
            place = entries[place].older
        }
        return count
    }

    /// Returns the newest entry of a device, by its address on air or its identity, whichever advertising set it came
    /// from.
    package func newest(of peer: PeerID) -> ScanResult? {
        var place = newest
        while place != Self.none {
            if entries[place].scanResult.isFrom(peer) { return entries[place].scanResult }
            place = entries[place].older
        }
        return nil
    }

    /// Pins the entries of devices, by address or identity, and no others from now on:
    /// they are neither evicted nor expire.
    package mutating func pin(_ peers: Set<PeerID>) { pinned = peers }

    /// Records a whole report; returns `nil` if there is no room for its advertiser.
    ///
    /// - Parameter identity: The identity of the device, if its address was resolved.
    package mutating func record(
        _ report: AdvertisingReport, of identity: PeerID? = nil, at now: BootInstant
    ) -> Outcome? {
        let id = AdvertiserID(peer: identity ?? report.peer, sid: report.sid)
        var evicted: [ScanResult] = []
        if identity != nil, let former = removeFormer(AdvertiserID(report)) { evicted.append(former) }
        let place: Place
        if let known = places[id] {
            place = known
            unlink(place)
        } else {
            if places.count >= capacity {
                guard let gone = evict() else {
                    refusals &+= 1
                    return nil
                }
                evicted.append(gone)
            }
            place = add(Entry(scanResult: ScanResult(id: id, at: now)))
            places[id] = place
        }
        append(place)
        payload -= entries[place].scanResult.payloadLength
        let change = entries[place].scanResult.take(report, at: now)
        payload += entries[place].scanResult.payloadLength
        while payload > Self.payloadLimit, let gone = evict(before: place) { evicted.append(gone) }
        if !report.isScanResponse { measure(place, at: now) }
        return Outcome(place: place, change: change, evicted: evicted)
    }

    /// Removes advertisers that have been silent since a moment; pinned ones stay.
    package mutating func expire(olderThan moment: BootInstant) -> [ScanResult] {
        var lost: [ScanResult] = []
        var place = oldest
        while place != Self.none, entries[place].scanResult.lastSeen < moment {
            let next = entries[place].newer
            if !isPinned(place) {
                lost.append(entries[place].scanResult)
                remove(place)
            }
            place = next
        }
        return lost
    }

    /// Removes the devices whose private address was resolved to an identity that fulfils a condition.
    package mutating func remove(identities isGone: (PeerID) -> Bool) -> [ScanResult] {
        var removed: [ScanResult] = []
        var place = oldest
        while place != Self.none {
            let next = entries[place].newer
            let scanResult = entries[place].scanResult
            if let identity = scanResult.identity, isGone(identity) {
                removed.append(scanResult)
                remove(place)
            }
            place = next
        }
        return removed
    }

    /// The maximum number of advertisers.
    package static let capacity = 4096
    /// The maximum of payload bytes: 256 for each advertiser, where a legacy advertisement and its response have 62.
    package static let payloadLimit = capacity * 256
    private static let none = -1
}

extension DeviceTable {
    private func isPinned(_ place: Place) -> Bool {
        let scanResult = entries[place].scanResult
        guard let peer = scanResult.peer else { return false }
        return pinned.contains(peer) || scanResult.identity.map(pinned.contains) ?? false
    }

    /// Removes the entry that a device had under its private address, before that was resolved.
    private mutating func removeFormer(_ id: AdvertiserID) -> ScanResult? {
        guard let place = places[id] else { return nil }
        let former = entries[place].scanResult
        remove(place)
        return former
    }

    private mutating func measure(_ place: Place, at now: BootInstant) {
        defer { entries[place].lastAdvertisement = now }
        guard let last = entries[place].lastAdvertisement else { return }
        guard let median = entries[place].gaps.add(now - last) else { return }
        entries[place].scanResult.interval = median
    }

    /// Removes the one silent for longest among those that are not pinned and were heard before `last`.
    private mutating func evict(before last: Place = none) -> ScanResult? {
        var place = oldest
        while place != Self.none, place != last, isPinned(place) { place = entries[place].newer }
        guard place != Self.none, place != last else { return nil }
        let gone = entries[place].scanResult
        remove(place)
        evictions &+= 1
        return gone
    }

    private mutating func add(_ entry: Entry) -> Place {
        guard let place = free.popLast() else {
            entries.append(entry)
            return entries.count - 1
        }
        entries[place] = entry
        return place
    }

    private mutating func remove(_ place: Place) {
        unlink(place)
        places[entries[place].scanResult.id] = nil
        payload -= entries[place].scanResult.payloadLength
        // The payloads are released at once; the slot waits for the next newcomer.
        entries[place].scanResult.advertisement = nil
        entries[place].scanResult.scanResponse = nil
        free.append(place)
    }

    private mutating func append(_ place: Place) {
        entries[place].older = newest
        entries[place].newer = Self.none
        if newest == Self.none { oldest = place } else { entries[newest].newer = place }
        newest = place
    }

    private mutating func unlink(_ place: Place) {
        let older = entries[place].older
        let newer = entries[place].newer
        if older == Self.none { oldest = newer } else { entries[older].newer = newer }
        if newer == Self.none { newest = older } else { entries[newer].older = older }
    }
}

extension ScanResult {
    /// Records a report; returns its effect. The very first report is `new`.
    fileprivate mutating func take(_ report: AdvertisingReport, at now: BootInstant) -> Change {
        let known = report.isScanResponse ? scanResponse : advertisement
        let sender = report.peer
        let isSame =
            sender == peer && known?.payload == report.payload && known?.properties == report.properties
        let change: Change = count == 0 ? .new : isSame ? .same : .changed
        peer = sender
        if report.isScanResponse {
            scanResponse = report
        } else {
            advertisement = report
        }
        rssi = report.rssi
        if let strength = report.rssi {
            let value = Double(strength)
            averageRSSI = averageRSSI.map { $0 + (value - $0) / 4 } ?? value
        }
        lastSeen = now
        count &+= 1
        return change
    }
}

/// The last eight gaps between a device's advertisements.
///
/// A controller may report one advertisement from each of the three channels; gaps that are shorter than the
/// specification allows between two advertisements are therefore ignored. After a long silence the device may use
/// another interval.
private struct Gaps {
    private var microseconds = SIMD8<UInt32>()
    private var count = 0
    private var next = 0

    /// Adds a gap; returns the median if the gap counts.
    mutating func add(_ gap: Duration) -> Duration? {
        guard gap >= .milliseconds(15), gap <= .seconds(60) else { return nil }
        microseconds[next] = UInt32(clamping: gap.saturatedNanoseconds / 1000)
        next = (next + 1) & 7
        count = min(count + 1, 8)
        return .microseconds(Int64(median))
    }

    private var median: UInt32 {
        var sorted = microseconds
        for end in 1..<max(count, 1) {
            var index = end
            while index > 0, sorted[index] < sorted[index - 1] {
                let value = sorted[index]
                sorted[index] = sorted[index - 1]
                sorted[index - 1] = value
                index -= 1
            }
        }
        return sorted[(count - 1) / 2]
    }
}
