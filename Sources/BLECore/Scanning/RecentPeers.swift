/// A bounded set of devices that drops the one inserted first when it is full.
///
/// Private addresses change every few minutes, so an unbounded set would grow for as long as the program runs.
package struct RecentPeers {
    private var members: Set<PeerID> = []
    private var order: [PeerID] = []
    private let capacity: Int

    package init(capacity: Int = DeviceTable.capacity) {
        self.capacity = max(1, capacity)
    }

    /// The devices, in the order of their insertion.
    package var peers: [PeerID] { order }

    package func contains(_ peer: PeerID) -> Bool { members.contains(peer) }

    /// Inserts a device; returns the one that was dropped for it.
    @discardableResult
    package mutating func insert(_ peer: PeerID) -> PeerID? {
        guard members.insert(peer).inserted else { return nil }
        order.append(peer)
        guard order.count > capacity else { return nil }
        let oldest = order.removeFirst()
        members.remove(oldest)
        return oldest
    }

    package mutating func remove(_ peer: PeerID) {
        guard members.remove(peer) != nil else { return }
        order.removeAll { $0 == peer }
    }

    package mutating func removeAll() {
        members = []
        order = []
    }
}
