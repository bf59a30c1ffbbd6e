package import BLECore

/// Names one scan of an adapter.
package struct ScanID: Hashable, Sendable {
    let number: UInt64
}

/// What a scan receives, on the event loop, in order.
package enum ScanDelivery: Hashable, Sendable {
    /// A device that matches was heard for the first time, or again after it was lost.
    case found(Sighting)
    /// A device that was found sends something else, or is due again by the scan's rule for repetitions.
    case updated(Sighting)
    /// A device that was found has not been heard for as long as the scan asked for, or the table had no room for it any more.
    case lost(Sighting)
    /// Something happened to the scan itself; it goes on without help.
    case notice(ScanNotice)
}

/// What may happen to a scan without ending it.
package enum ScanNotice: Hashable, Sendable {
    /// The adapter went down, was unplugged or was reset; the scan goes on when it is back.
    case adapterLost
    /// The adapter is back.
    case adapterBack
    /// Another program or the kernel changed the scan; it is re-armed.
    case disturbed
    /// The scan was re-armed.
    case resumed
    /// No report with data came for 90 s, so many times in a row; the scan is re-armed each time.
    case stalled(count: Int)
    /// The scan could not be armed; it is retried after the pause.
    case retrying(HCICommandFailure?, after: Duration)
}

/// One scan of several that share an adapter.
struct ScanSubscription {
    let id: ScanID
    var gate: ScanGate
    let lostAfter: Duration?
    /// The peers left out at the moment, besides those that the filter leaves out.
    let excluded: ExcludedPeers?
    /// The peers that keep a place in the table whatever else is on air, besides those that the filter looks for.
    let pinned: @Sendable () -> Set<PeerID>
    let receive: @Sendable (ScanDelivery) -> Void
    /// The task that waits for the scan to begin.
    var starter: UInt64?

    /// All peers that keep a place in the table for this scan.
    var wanted: Set<PeerID> {
        let filter = gate.settings.filter
        var wanted = filter.peers.union(pinned())
        for address in filter.addresses {
            wanted.insert(PeerID(address: address, type: .public))
            wanted.insert(PeerID(address: address, type: .random))
        }
        return wanted
    }

    /// Hands a report on, if the gate lets it through.
    mutating func take(_ sighting: Sighting, _ change: Sighting.Change, at now: BootInstant, listened: Duration) {
        if isExcluded(sighting) {
            _ = gate.forget(sighting.id)
            return
        }
        switch gate.admit(sighting, change, at: now, listened: listened) {
        case .found?: receive(.found(sighting))
        case .updated?: receive(.updated(sighting))
        case nil: return
        }
    }

    /// The table has no room for a device any more.
    mutating func forget(_ sighting: Sighting) {
        if gate.forget(sighting.id), !isExcluded(sighting) { receive(.lost(sighting)) }
    }

    /// Reports the devices that have been silent for too long and are not connected.
    mutating func reportLosses(listened: Duration, linked: Set<PeerID>, _ known: (AdvertiserID) -> Sighting?) {
        guard let lostAfter else { return }
        for id in gate.lost(silentFor: lostAfter, listened: listened, linked: linked) {
            guard let sighting = known(id), !isExcluded(sighting) else { continue }
            receive(.lost(sighting))
        }
    }

    private func isExcluded(_ sighting: Sighting) -> Bool {
        guard let excluded, let peer = sighting.peer else { return false }
        return excluded.contains(peer)
    }
}
