internal import Synchronization

/// Counts what several buffers have dropped, from any thread.
final class DropCounter: Sendable {
    private let total = Atomic(0)

    /// The number of elements dropped so far.
    var count: Int { total.load(ordering: .relaxed) }

    func add(_ count: Int) { total.wrappingAdd(count, ordering: .relaxed) }
}
