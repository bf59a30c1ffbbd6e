internal import BLECore
internal import BLELinux

/// Stores what is known of one peer: one cache at a time, and of those that wait only the newest. It goes on when the link
/// that it belongs to is gone.
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

    /// What stores; it is over when nothing waits any more. `nil`: nothing is being stored.
    var task: Task<Void, Never>? { state.withLock { $0.task } }

    /// Stores `cache`, unless a newer one comes before its turn.
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
