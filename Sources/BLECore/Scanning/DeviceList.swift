// Who is here now, from what a scan hands on.
//
// Duties: keep one entry for each advertiser that the scan found and has not lost; keep pinned ones beyond that, as absent; say
// how the list differs from what was told last, however much happened meanwhile and however late it is asked.
//
// Invariants:
// - An entry that is absent is pinned.
// - The list is bounded by the scan: what the scan's table has no room for is told as lost, and goes. Beyond that stay only
//   pinned devices, which is the owner's number.
// - `departed` holds entries that were told as here and are gone: never more than the list held when it was told last.
// - `changed` names the entries that may differ from what was told; that they do is found out when it is asked. What a report
//   costs, and what an answer costs, does not grow with the list.

/// Keeps a list of devices current.
package struct DeviceList {
    private struct Entry {
        var device: MonitoredDevice
        /// In which order they came.
        let number: UInt64
        var toldPresent = false
        var toldLevel: Proximity.Level?

        var differsFromTold: Bool { device.isPresent != toldPresent || device.proximity.level != toldLevel }
    }

    private let settings: Proximity.Settings
    private var entries: [AdvertiserID: Entry] = [:]
    private var departed: [AdvertiserID: Entry] = [:]
    private var lastNumber: UInt64 = 0
    /// Devices that stay in the list when they are gone.
    package private(set) var pinned: Set<PeerID> = []
    private var changed: Set<AdvertiserID> = []

    /// Whether `takeChange` may have something to report.
    package var hasNews: Bool { !changed.isEmpty || !departed.isEmpty }
    /// How many entries the next `takeChange` looks at.
    package var unreportedCount: Int { changed.count + departed.count }

    package init(_ settings: Proximity.Settings = Proximity.Settings()) {
        self.settings = settings
    }

    /// Everybody in the list, in the order in which they came.
    package var devices: [MonitoredDevice] { Self.inOrder(entries.values).map { $0.device } }

    /// How many of them there are.
    package var count: Int { entries.count }

    /// The entry of a device; where it advertises several sets, the one heard last.
    package func device(_ peer: PeerID) -> MonitoredDevice? {
        var newest: MonitoredDevice?
        for entry in entries.values where entry.device.peer == peer {
            guard let known = newest else {
                newest = entry.device
                continue
            }
            if entry.device.sighting.lastSeen > known.sighting.lastSeen { newest = entry.device }
        }
        return newest
    }

    /// The scan found a device, or heard it again.
    package mutating func heard(_ sighting: Sighting) {
        guard var entry = entries[sighting.id] ?? departed.removeValue(forKey: sighting.id) else {
            lastNumber &+= 1
            var device = MonitoredDevice(sighting: sighting, isPresent: true, proximity: Proximity(settings))
            device.proximity.heard(sighting.rssi, at: sighting.lastSeen)
            entries[sighting.id] = Entry(device: device, number: lastNumber)
            changed.insert(sighting.id)
            return
        }
        if !entry.device.isPresent {
            // What it was like before it went says nothing of where it is now.
            entry.device.proximity = Proximity(settings)
            entry.device.isPresent = true
            changed.insert(sighting.id)
        }
        entry.device.sighting = sighting
        if entry.device.proximity.heard(sighting.rssi, at: sighting.lastSeen) != nil { changed.insert(sighting.id) }
        entries[sighting.id] = entry
    }

    /// The scan lost a device.
    package mutating func lost(_ sighting: Sighting) {
        guard var entry = entries[sighting.id], entry.device.isPresent else { return }
        entry.device.sighting = sighting
        entry.device.isPresent = false
        changed.insert(sighting.id)
        if let peer = sighting.peer, pinned.contains(peer) {
            entries[sighting.id] = entry
        } else {
            remove(entry)
        }
    }

    /// Keeps a device in the list from now on, present or not.
    package mutating func pin(_ peer: PeerID) {
        pinned.insert(peer)
    }

    /// Keeps a device in the list no longer than it is here.
    package mutating func unpin(_ peer: PeerID) {
        guard pinned.remove(peer) != nil else { return }
        let gone = entries.values.filter { $0.device.peer == peer && !$0.device.isPresent }
        for entry in gone { remove(entry) }
    }

    /// How the list differs from what was told last; `nil` when it does not.
    package mutating func takeChange() -> DeviceListChange? {
        guard hasNews else { return nil }
        var change = DeviceListChange()
        var left = Array(departed.values)
        let differing = changed.compactMap { entries[$0] }.filter { $0.differsFromTold }
        departed = [:]
        changed = []
        for entry in Self.inOrder(differing) {
            let device = entry.device
            if device.isPresent != entry.toldPresent {
                if device.isPresent { change.arrived.append(device) } else { left.append(entry) }
            } else if device.isPresent, device.proximity.level != entry.toldLevel {
                change.moved.append(device)
            }
            var told = entry
            told.toldPresent = device.isPresent
            told.toldLevel = device.proximity.level
            entries[device.sighting.id] = told
        }
        change.left = Self.inOrder(left).map { $0.device }
        return change.isEmpty ? nil : change
    }

    private mutating func remove(_ entry: Entry) {
        let id = entry.device.sighting.id
        entries[id] = nil
        changed.remove(id)
        if entry.toldPresent { departed[id] = entry }
    }

    private static func inOrder(_ entries: some Sequence<Entry>) -> [Entry] {
        entries.sorted { $0.number < $1.number }
    }
}
