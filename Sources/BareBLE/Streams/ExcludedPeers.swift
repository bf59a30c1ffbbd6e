public import BLECore
internal import BLELinux

/// Devices that running scans leave out; it may change at any moment, from any task.
///
/// From its insertion on nothing more of a device is handed on, not even what was waiting already, and no `.lost`. One that is
/// taken out again is `.found` anew. The set keeps the 4,096 devices inserted last: addresses on air change all the time.
public final class ExcludedPeers: Sendable {
    private let state: Lock<RecentPeers>

    /// A set with these devices.
    public init(_ peers: [PeerID] = []) {
        var recent = RecentPeers()
        for peer in peers { recent.insert(peer) }
        state = Lock(recent)
    }

    /// The devices left out, in the order of their insertion.
    public var peers: [PeerID] { state.withLock { $0.peers } }

    /// Whether a device is left out.
    public func contains(_ peer: PeerID) -> Bool { state.withLock { $0.contains(peer) } }

    /// Leaves a device out from now on.
    public func insert(_ peer: PeerID) { state.withLock { _ = $0.insert(peer) } }

    /// Lets a device through again.
    public func remove(_ peer: PeerID) { state.withLock { $0.remove(peer) } }

    /// Lets everybody through again.
    public func removeAll() { state.withLock { $0.removeAll() } }
}
