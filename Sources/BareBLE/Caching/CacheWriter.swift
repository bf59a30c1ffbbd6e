internal import BLECore
internal import BLELinux

/// Stores the caches of one peer: one at a time, and of those that wait only the newest. It continues after the end of
/// the link that it belongs to.
final class CacheWriter: Sendable {
    private struct State {
        var newest: GATTCache?
        var task: Task<Void, Never>?
    }

    private let loop: EventLoop
    private let store: @Sendable (GATTCache) async -> Void
    private let state = Lock(State())

    init(on loop: EventLoop, _ store: @escaping @Sendable (GATTCache) async -> Void) {
        self.loop = loop
        self.store = store
    }

    /// The task that stores; it ends when nothing waits any more. `nil`: nothing is being stored.
    var task: Task<Void, Never>? { state.withLock { $0.task } }

    /// Stores `cache`, unless a newer one replaces it first.
    func write(_ cache: GATTCache) {
        state.withLock { state in
            state.newest = cache
            guard state.task == nil else { return }
            state.task = Task(executorPreference: loop) { await self.storeAll() }
        }
    }

    private func storeAll() async {
        while let cache = next() { await store(cache) }
    }

    private func next() -> GATTCache? {
        state.withLock { state in
            if state.newest == nil { state.task = nil }
            return state.newest.take()
        }
    }
}
