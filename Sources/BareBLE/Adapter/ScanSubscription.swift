package import BLECore

// One scan of an adapter, among those that share the radio: its gate, and the closure that receives what passes.
//
// Invariants
// - A scan receives on the event loop, in the order of the reports, and from the moment that it was added.
// - A device is reported as lost at most once after it was found, also where the table had no room for it.

/// Names one scan of an adapter.
package struct ScanID: Hashable, Sendable {
    let number: UInt64
}

/// A delivery to a scan, on the event loop, in order.
package enum ScanDelivery: Hashable, Sendable {
    /// A device that matches was heard for the first time, or again after it was lost.
    case found(ScanResult)
    /// A device that was found sends something else, or is due again by the scan's rule for repetitions.
    case updated(ScanResult)
    /// A device that was found has not been heard for as long as the scan asked for, or the table had no room for it
    /// any more.
    case lost(ScanResult)
    /// Something happened to the scan itself; it continues by itself.
    case notice(ScanNotice)
}

/// An event of a scan that does not end it.
package enum ScanNotice: Hashable, Sendable {
    /// The adapter went down, was unplugged or was reset; the scan continues when it is back.
    case adapterLost
    /// The adapter is back.
    case adapterBack
    /// Another program or the kernel changed the scan; it is re-armed.
    case disturbed
    /// The scan was re-armed.
    case resumed
    /// No report with data came for this time, 90 s or 30 s where much was heard before, so many times in a row; the
    /// scan is re-armed each time, unless nothing is to be done.
    case stalled(count: Int, after: Duration)
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
    mutating func take(_ scanResult: ScanResult, _ change: ScanResult.Change, at now: BootInstant, listened: Duration) {
        if isExcluded(scanResult) {
            _ = gate.forget(scanResult.id)
            return
        }
        switch gate.admit(scanResult, change, at: now, listened: listened) {
        case .found?: receive(.found(scanResult))
        case .updated?: receive(.updated(scanResult))
        case nil: return
        }
    }

    /// The table has no room for a device any more.
    mutating func forget(_ scanResult: ScanResult) {
        if gate.forget(scanResult.id), !isExcluded(scanResult) { receive(.lost(scanResult)) }
    }

    /// Reports the devices that have been silent for too long and are not connected.
    mutating func reportLosses(listened: Duration, linked: Set<PeerID>, _ known: (AdvertiserID) -> ScanResult?) {
        guard let lostAfter else { return }
        for id in gate.lost(silentFor: lostAfter, listened: listened, linked: linked) {
            guard let scanResult = known(id), !isExcluded(scanResult) else { continue }
            receive(.lost(scanResult))
        }
    }

    private func isExcluded(_ scanResult: ScanResult) -> Bool {
        excluded?.contains(scanResult) ?? false
    }
}
