internal import BLECore
internal import BLELinux

// Owns the values that came before their first subscription on a link.
//
// A bonded peer keeps its client configurations, and may send as soon as the link is encrypted: a scale sends the
// weight that woke it up. A program that has just started has not subscribed by then.
//
// Invariants
// - Only values of handles that no sequence has been subscribed to on this link are here, in the order of arrival. A
//   subscription that has failed does not count.
// - No subscriber receives a value twice, also if its subscription is retried.
// - The number of values is bounded; the oldest is dropped.

/// The values that a peer has sent before the first subscription to them.
struct EarlyValues {
    /// The number of values that are kept.
    static let capacity = 64
    /// The time for which a value is kept: as long as a transaction may take.
    static let lifetime: Duration = .seconds(30)

    /// A value, with the subscribers that have received it although their subscriptions have failed.
    struct Entry {
        let value: ReceivedValue
        var receivers: Set<Subscriptions.ID> = []
    }

    /// Whether the peer is known to keep its configurations.
    private var isKeeping = false
    private var entries: [Entry] = []
    private var subscribed: Set<AttributeHandle> = []

    /// The peer has proved that it has the bond, and with it the configurations of earlier links.
    mutating func begin() { isKeeping = true }

    /// Keeps a value that nobody is subscribed to.
    ///
    /// - Returns: The number of values that have been dropped, this one or older ones.
    mutating func keep(_ value: ReceivedValue) -> Int {
        guard isKeeping, !subscribed.contains(value.handle) else { return 1 }
        entries.append(Entry(value: value))
        guard entries.count > Self.capacity else { return 0 }
        entries.removeFirst()
        return 1
    }

    /// Takes the values for the first sequence that is subscribed to `handle`; those that are too old are dropped.
    ///
    /// - Returns: The values with the number of dropped ones that `id` has not received; `nil` if a sequence has been
    ///   subscribed before.
    mutating func take(
        _ handle: AttributeHandle, for id: Subscriptions.ID, at now: BootInstant
    ) -> (entries: [Entry], dropped: Int)? {
        guard subscribed.insert(handle).inserted else { return nil }
        let all = entries.filter { $0.value.handle == handle }
        entries.removeAll { $0.value.handle == handle }
        let fresh = all.filter { now < $0.value.time + Self.lifetime }
        let dropped = all.count { now >= $0.value.time + Self.lifetime && !$0.receivers.contains(id) }
        return (fresh, dropped)
    }

    /// Takes values back, for a sequence that did not begin: the next one is the first.
    ///
    /// - Returns: The number of values that have been dropped, these or later ones.
    mutating func putBack(_ taken: [Entry], of handle: AttributeHandle) -> Int {
        subscribed.remove(handle)
        entries = (taken + entries).sorted { $0.value.time < $1.value.time }
        let excess = max(0, entries.count - Self.capacity)
        entries.removeFirst(excess)
        return excess
    }

    /// Drops the values of attributes that have changed.
    ///
    /// - Returns: The number of values that have been dropped.
    mutating func drop(in range: ClosedRange<AttributeHandle>) -> Int {
        let before = entries.count
        entries.removeAll { range.contains($0.value.handle) }
        return before - entries.count
    }
}
