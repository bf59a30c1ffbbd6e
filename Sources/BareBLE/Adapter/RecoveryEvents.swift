public import BLECore

/// An event of the recovery of an adapter that has stopped reporting or responding.
public enum RecoveryEvent: Hashable, Sendable {
    /// A step begins.
    case began(RecoveryPolicy.Step, because: RecoveryPolicy.Reason)
    /// A step could not be taken, or did not succeed; the next one follows, if one is permitted.
    ///
    /// The error's code is `.notPermitted`, `.busy` (links of other programs are up, another program takes a step, or
    /// the helper program has taken too many or takes no request), `.timedOut` (the helper program did not respond),
    /// `.blocked`, `.notSupported` (the adapter has no such part), `.noAdapter` (it did not come back), `.system`.
    case failed(RecoveryPolicy.Step, BLEError)
    /// The adapter works again, so long after the trouble was noticed. The step is the one that was taken last; `nil`
    /// where none had an effect.
    case recovered(by: RecoveryPolicy.Step?, after: Duration)
    /// No permitted step had an effect, or none is permitted that could help. Steps that end links begin again after
    /// `next`; `nil` where none is permitted.
    /// It takes a person then: to permit more, to unplug the adapter and plug it in,
    /// or to switch the machine off and on.
    case exhausted(because: RecoveryPolicy.Reason, next: Duration?)
    /// This number of events was dropped because they were not consumed.
    case dropped(Int)
}

/// The events of recovery, from the moment when `Central.recoveryEvents` was read.
///
/// Events that come before the iteration wait for the first iterator; a further one of the same sequence begins at its
/// creation. At most 64 wait; beyond that the oldest are dropped, and `.dropped` counts them. `next()` throws
/// `BLEError` with `.busy` while another task waits for the next event of this iterator. The sequence does not end by
/// itself.
public typealias RecoveryEventSequence = BLESequence<RecoveryEvent>

extension Central {
    /// The events of recovery, beginning when the property is read.
    ///
    /// What is done is decided by `Configuration.recovery`.
    public nonisolated var recoveryEvents: RecoveryEventSequence {
        adapter.recovery.events.events(losses: .before { .dropped($0) })
    }
}
