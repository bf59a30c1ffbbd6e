public import BLECore
internal import BLELinux

/// A set of devices that running scans leave out; it may change at any moment, from any task.
///
/// From its insertion on, a device is no longer reported: neither results that already wait nor `.lost`. A device that
/// is removed from the set is reported as `.found` again. The set keeps the 4,096 devices inserted last, because
/// addresses on air change all the time. Exclude a device that has a `ScanResult.identity` by that.
public final class ExcludedPeers: Sendable {
    private let state: Lock<RecentPeers>

    /// Creates a set with these devices.
    public init(_ peers: [PeerID] = []) {
        var recent = RecentPeers()
        for peer in peers { recent.insert(peer) }
        state = Lock(recent)
    }

    /// The excluded devices, in the order of their insertion.
    public var peers: [PeerID] { state.withLock { $0.peers } }

    /// Returns a Boolean value that indicates whether a device is excluded.
    public func contains(_ peer: PeerID) -> Bool { state.withLock { $0.contains(peer) } }

    /// Returns whether the device is excluded, by the address that it advertises with or by its identity.
    func contains(_ scanResult: ScanResult) -> Bool {
        guard let peer = scanResult.peer else { return false }
        return contains(peer) || scanResult.identity.map(contains) ?? false
    }

    /// Excludes a device from now on.
    public func insert(_ peer: PeerID) { state.withLock { _ = $0.insert(peer) } }

    /// Includes a device again.
    public func remove(_ peer: PeerID) { state.withLock { $0.remove(peer) } }

    /// Includes all devices again.
    public func removeAll() { state.withLock { $0.removeAll() } }
}
