public import BLECore

/// An event of bonds or of the security of links.
public enum SecurityEvent: Hashable, Sendable {
    /// A pairing has made this bond, which is on the disk.
    case bonded(Bond)
    /// A link to a bonded peer was encrypted with the key of its bond, before its first byte.
    case encrypted(PeerID)
    /// The peer did not accept the key of its bond, which is kept and marked; in this process alone where the disk
    /// could not be written, which the log reports.
    case bondRejected(PeerID)
    /// Stored bonds could not be read and were set aside: connects to their peers fail with `.unusableState` where the
    /// lines that were set aside show whose they are, and know of no bond otherwise. Each later run reports that too,
    /// as long as the file that they were moved to is there. The error has the code `.unusableState`; its subject is
    /// the file, and its hint names the place of the bonds now.
    case bondsDamaged(BLEError)
    /// A peer without a bond has asked for security, and was refused by the kernel.
    case securityRequested(PeerID)
    /// A pairing was refused that no call of this program has begun: a peer, or a local program, requested it.
    case pairingRefused(PeerID)
    /// The kernel did not have the key of a bond any more; the keys of all bonds are loaded again.
    case keysLoadedAgain(PeerID)
    /// Another program has changed the security of the adapter.
    case otherManager
    /// This number of events was dropped because they were not consumed.
    case dropped(Int)
}

/// The events of bonds and security, from the moment when `Central.securityEvents` was read.
///
/// Events that come before the iteration wait for the first iterator; a further one of the same sequence begins at its
/// creation. At most 64 wait; beyond that the oldest are dropped, and `.dropped` counts them. `next()` throws
/// `BLEError` with `.busy` while another task waits for the next event of this iterator. The sequence does not end by
/// itself.
public typealias SecurityEventSequence = BLESequence<SecurityEvent>

extension Central {
    /// The events of bonds and security, beginning when the property is read.
    public nonisolated var securityEvents: SecurityEventSequence {
        adapter.securityEvents.events(losses: .before { .dropped($0) })
    }
}
