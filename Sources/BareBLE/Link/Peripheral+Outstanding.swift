// What waits, counted: for tests of what is left behind when a link or a call has ended.

extension Peripheral {
    /// Calls, tasks and subscriptions that wait for something of this link.
    package var outstanding: Int {
        waiters.count + scheduler.outstanding + endWaiters.count + peerDatabase.outstanding
            + subscriptionHub.outstanding + channels.count
    }
}

extension Adapter {
    /// Tasks that wait for this adapter, and commands that are out.
    package var outstanding: Int {
        waiting.count + hci.unfinishedCommands + initiator.waitingConnects + (initiator.isBusy ? 1 : 0)
    }
}
