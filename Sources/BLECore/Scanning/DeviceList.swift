// The devices that are present, derived from the events of a scan.
//
// Duties: keep one entry for each advertiser that the scan found and has not lost; keep pinned ones beyond that, as
// absent; report how the list differs from the previous report, however much happened meanwhile and however late the
// owner asks.
//
// Invariants:
// - An entry that is absent is pinned.
// - The list is bounded by the scan: a device that the scan's table evicts is reported as lost, and removed. Beyond
//   that only pinned devices remain, whose number the owner decides.
// - `departed` holds entries that were reported as present and are gone: never more than the list held at the last
//   report.
// - `changed` names the entries that may differ from the last report; whether they do is determined by the next one.
//   The cost of an advertising report, and of a change report, does not grow with the list.

/// Keeps a list of devices current.
package struct DeviceList {
    private struct Entry {
        var device: MonitoredDevice
        /// Orders the entries by their arrival.
        let number: UInt64
        var reportedPresent = false
        var reportedLevel: Proximity.Level?

        var differsFromReported: Bool { device.isPresent != reportedPresent || device.proximity.level != reportedLevel }
    }

    private let settings: Proximity.Settings
    private var entries: [AdvertiserID: Entry] = [:]
    private var departed: [AdvertiserID: Entry] = [:]
    private var lastNumber: UInt64 = 0
    /// Devices that stay in the list when they are gone.
    package private(set) var pinned: Set<PeerID> = []
    private var changed: Set<AdvertiserID> = []

    /// A Boolean value that indicates whether `takeChange` may have something to report.
    package var hasNews: Bool { !changed.isEmpty || !departed.isEmpty }
    /// The number of entries that the next `takeChange` examines.
    package var unreportedCount: Int { changed.count + departed.count }

    package init(_ settings: Proximity.Settings = Proximity.Settings()) {
        self.settings = settings
    }

    /// All devices in the list, in the order of their arrival.
    package var devices: [MonitoredDevice] { Self.inOrder(entries.values).map { $0.device } }

    /// The number of devices.
    package var count: Int { entries.count }

    /// Returns the entry of a device; for a device with several advertising sets, the one heard last.
    package func device(_ peer: PeerID) -> MonitoredDevice? {
        var newest: MonitoredDevice?
        for entry in entries.values where entry.device.scanResult.isFrom(peer) {
            guard let known = newest else {
                newest = entry.device
                continue
            }
            if entry.device.scanResult.lastSeen > known.scanResult.lastSeen { newest = entry.device }
        }
        return newest
    }

    /// Records that the scan found a device, or heard it again.
    package mutating func heard(_ scanResult: ScanResult) {
        guard var entry = entries[scanResult.id] ?? departed.removeValue(forKey: scanResult.id) else {
            lastNumber &+= 1
            var device = MonitoredDevice(scanResult: scanResult, isPresent: true, proximity: Proximity(settings))
            device.proximity.heard(scanResult.rssi, at: scanResult.lastSeen)
            entries[scanResult.id] = Entry(device: device, number: lastNumber)
            changed.insert(scanResult.id)
            return
        }
        if !entry.device.isPresent {
            // Its proximity before it left indicates nothing about its present one.
            entry.device.proximity = Proximity(settings)
            entry.device.isPresent = true
            changed.insert(scanResult.id)
        }
        entry.device.scanResult = scanResult
        if entry.device.proximity.heard(scanResult.rssi, at: scanResult.lastSeen) != nil {
            changed.insert(scanResult.id)
        }
        entries[scanResult.id] = entry
    }

    /// Records that the scan lost a device.
    package mutating func lost(_ scanResult: ScanResult) {
        guard var entry = entries[scanResult.id], entry.device.isPresent else { return }
        entry.device.scanResult = scanResult
        entry.device.isPresent = false
        changed.insert(scanResult.id)
        if isPinned(scanResult) {
            entries[scanResult.id] = entry
        } else {
            remove(entry)
        }
    }

    /// Keeps a device in the list from now on, present or not.
    package mutating func pin(_ peer: PeerID) {
        pinned.insert(peer)
    }

    /// Removes the pin of a device, which leaves the list once it is absent.
    package mutating func unpin(_ peer: PeerID) {
        guard pinned.remove(peer) != nil else { return }
        let gone = entries.values.filter {
            !$0.device.isPresent && $0.device.scanResult.isFrom(peer) && !isPinned($0.device.scanResult)
        }
        for entry in gone { remove(entry) }
    }

    /// Returns the difference from the last report; `nil` if there is none.
    package mutating func takeChange() -> DeviceListChange? {
        guard hasNews else { return nil }
        var change = DeviceListChange()
        var left = Array(departed.values)
        let differing = changed.compactMap { entries[$0] }.filter { $0.differsFromReported }
        departed = [:]
        changed = []
        for entry in Self.inOrder(differing) {
            let device = entry.device
            if device.isPresent != entry.reportedPresent {
                if device.isPresent { change.arrived.append(device) } else { left.append(entry) }
            } else if device.isPresent, device.proximity.level != entry.reportedLevel {
                change.moved.append(device)
            }
            var reported = entry
            reported.reportedPresent = device.isPresent
            reported.reportedLevel = device.proximity.level
            entries[device.scanResult.id] = reported
        }
        change.left = Self.inOrder(left).map { $0.device }
        return change.isEmpty ? nil : change
    }

    /// Whether the device is pinned by its address or by its identity.
    private func isPinned(_ scanResult: ScanResult) -> Bool {
        guard let peer = scanResult.peer else { return false }
        return pinned.contains(peer) || scanResult.identity.map(pinned.contains) ?? false
    }

    private mutating func remove(_ entry: Entry) {
        let id = entry.device.scanResult.id
        entries[id] = nil
        changed.remove(id)
        if entry.reportedPresent { departed[id] = entry }
    }

    private static func inOrder(_ entries: some Sequence<Entry>) -> [Entry] {
        entries.sorted { $0.number < $1.number }
    }
}
