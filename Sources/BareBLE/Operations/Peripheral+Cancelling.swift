internal import BLECore
internal import BLELinux

extension Peripheral {
    /// The time at which a link that this program disconnects ends.
    public enum DisconnectMode: Hashable, Sendable {
        /// At once. Pending and waiting calls fail with `.disconnected`.
        case now
        /// After the pending operations. Later calls fail with `.disconnecting`. Calls to the controller and not to the
        /// peer are not waited for: signal strength, connection parameters, PHYs.
        case afterPendingOperations

        /// The former name of `afterPendingOperations`.
        @available(*, deprecated, renamed: "afterPendingOperations")
        public static var afterQueue: DisconnectMode { .afterPendingOperations }
    }
}

/// The former name of `Peripheral.DisconnectMode`.
@available(*, deprecated, renamed: "Peripheral.DisconnectMode")
public typealias DisconnectMode = Peripheral.DisconnectMode

extension Peripheral {
    /// Fails every pending or waiting call, once, with `.cancelled`; the link and the subscriptions stay.
    ///
    /// Requests that had not been sent are never sent. The peer's response to a sent request is awaited and discarded
    /// before the next request. Later calls are not affected. A holder of exclusive access keeps it, and loses its
    /// current call. Iterating over values, ending a subscription and channels are not calls in this sense, nor are
    /// calls to the controller: `rssi()`, `phy()`, connection parameters and changes of them; those are cancelled with
    /// their tasks. If a call was rediscovering the peer's changed services, these stay unknown; subscriptions end
    /// then, as by any change.
    public func cancelAll() {
        guard end == nil else { return }
        scheduler.clear()
        link.cancelCalls(happened)
        scheduler.stopWaitingForUpgrades()
        peerDatabase.resumeWaiters(false)
        write(subscriptionHub.cancelPending())
        interruptCollectors()
    }
}
