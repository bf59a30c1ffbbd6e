internal import BLECore
internal import BLELinux

/// When a link ends that this program wants to end.
public enum DisconnectMode: Hashable, Sendable {
    /// At once. Calls that are under way or wait fail with `.disconnected`.
    case now
    /// When the calls made before are over. Those that are made later fail with `.disconnecting`. What is asked of the controller and not
    /// of the peer is not waited for: signal strength, connection parameters, PHYs.
    case afterQueue
}

extension Peripheral {
    /// Fails every call that waits or is under way, once, with `.cancelled`; the link and the subscriptions stay.
    ///
    /// What had not been sent is never sent. The peer's answer to a request that was under way is awaited and discarded before
    /// the next request is sent. Calls that are made behind this one are as any others. Who holds the link by `exclusively` keeps
    /// it, and loses the call that it is in. Iterating over values, ending a subscription and channels are no calls here, nor is what is asked
    /// of the controller: `rssi()`, `phy()`, connection parameters and changes of them; who gives those up cancels their tasks. A call that
    /// was finding out how the peer's services have changed leaves them unknown; subscriptions end then, as by any change.
    public func cancelAll() {
        guard end == nil else { return }
        scheduler.clear()
        // From the last one on, so that none of them gets its turn when another one goes.
        for waiter in waiters.reversed() where waiter.isOfCall {
            perform(client.cancel(waiter.id, at: loop.now()))
        }
        scheduler.stopWaitingForUpgrades()
        resumeSettling(false)
        let starting = listeners.filter { $0.value.starter != nil }.keys.sorted { $0.number < $1.number }
        for id in starting { giveUp(id, .operation(.cancelled)) }
        endGatherings()
    }
}
