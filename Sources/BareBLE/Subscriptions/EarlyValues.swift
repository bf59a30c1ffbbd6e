internal import BLECore
internal import BLELinux

// Owns the values that came before their first subscription on a link.
//
// A bonded peer keeps its client configurations, and may send as soon as the link is encrypted: a scale sends the
// weight that woke it up. A program that has just started has not subscribed by then.
//
// Invariants
// - Only values of handles that no sequence has been subscribed to on this link are here, in the order of arrival.
// - The number of values is bounded; the oldest is dropped.

/// The values that a peer has sent before the first subscription to them.
struct EarlyValues {
    /// The number of values that are kept.
    static let capacity = 64
    /// The time for which a value is kept: as long as a transaction may take.
    static let lifetime: Duration = .seconds(30)

    /// Whether the peer is known to keep its configurations.
    private var isKeeping = false
    private var values: [ReceivedValue] = []
    private var subscribed: Set<AttributeHandle> = []

    /// The peer has proved that it has the bond, and with it the configurations of earlier links.
    mutating func begin() { isKeeping = true }

    /// Keeps a value that nobody is subscribed to.
    ///
    /// - Returns: The number of values that have been dropped, this one or older ones.
    mutating func keep(_ value: ReceivedValue) -> Int {
        guard isKeeping, !subscribed.contains(value.handle) else { return 1 }
        values.append(value)
        guard values.count > Self.capacity else { return 0 }
        values.removeFirst()
        return 1
    }

    /// Takes the values for the first sequence that is subscribed to `handle`; those that are too old are dropped.
    mutating func take(_ handle: AttributeHandle, at now: BootInstant) -> (values: [ReceivedValue], dropped: Int) {
        subscribed.insert(handle)
        let all = values.filter { $0.handle == handle }
        values.removeAll { $0.handle == handle }
        let fresh = all.filter { now < $0.time + Self.lifetime }
        return (fresh, all.count - fresh.count)
    }

    /// Takes values back, for a sequence that did not begin: the next one is the first.
    ///
    /// - Returns: The number of values that have been dropped, these or later ones.
    mutating func putBack(_ taken: [ReceivedValue], of handle: AttributeHandle) -> Int {
        subscribed.remove(handle)
        values = (taken + values).sorted { $0.time < $1.time }
        let excess = max(0, values.count - Self.capacity)
        values.removeFirst(excess)
        return excess
    }

    /// Drops the values of attributes that have changed.
    ///
    /// - Returns: The number of values that have been dropped.
    mutating func drop(in range: ClosedRange<AttributeHandle>) -> Int {
        let before = values.count
        values.removeAll { range.contains($0.handle) }
        return before - values.count
    }
}
