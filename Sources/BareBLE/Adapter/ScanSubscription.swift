package import BLECore

/// Names one scan of an adapter.
package struct ScanID: Hashable, Sendable {
    let number: UInt64
}

/// What a scan is told, on the event loop, in order.
package enum ScanDelivery: Hashable, Sendable {
    /// A device that matches was heard for the first time, or again after it was lost.
    case found(Sighting)
    /// A device that was found says something else, or its turn has come by the scan's rule for repetitions.
    case updated(Sighting)
    /// A device that was found has not been heard for as long as the scan asked for, or there was no room to go on with it.
    case lost(Sighting)
    /// Something happened to the scan itself; it goes on by itself.
    case notice(ScanNotice)
}

/// What may happen to a scan without ending it.
package enum ScanNotice: Hashable, Sendable {
    /// The adapter went down, was unplugged or was reset; the scan goes on when it is back.
    case adapterLost
    /// The adapter is back.
    case adapterBack
    /// Another program or the kernel changed the scan; it is set up again.
    case disturbed
    /// The scan was set up again.
    case resumed
    /// No report with data came for 90 s, so many times in a row; the scan is set up again each time.
    case stalled(count: Int)
    /// The scan could not be set up; it is tried again after the pause.
    case retrying(HCICommandFailure?, after: Duration)
}

/// One scan of several that share an adapter.
struct ScanSubscription {
    var gate: ScanGate
    let lostAfter: Duration?
    let receive: @Sendable (ScanDelivery) -> Void
    /// The task that waits for the scan to begin.
    var starter: UInt64?
}
