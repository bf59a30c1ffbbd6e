internal import BLECore
internal import BLELinux

/// Stores the caches of one peer: one at a time, and of those that wait only the newest. It continues after the end of
/// the link that it belongs to.
final class CacheWriter: Sendable {
    private struct State {
        var newest: GATTCache?
        var isStored: Bool
        var task: Task<Void, Never>?
    }

    private let loop: EventLoop
    private let store: @Sendable (GATTCache) async -> Bool
    private let state: Lock<State>

    /// Creates a writer.
    ///
    /// - Parameters:
    ///   - isStored: Whether what the link begins with is stored already.
    ///   - store: Stores a cache, and returns whether that has succeeded.
    init(on loop: EventLoop, isStored: Bool = true, _ store: @escaping @Sendable (GATTCache) async -> Bool) {
        self.loop = loop
        self.store = store
        state = Lock(State(isStored: isStored))
    }

    /// Whether the newest cache is stored: not while it is being written, and not after a write that has failed.
    var isStored: Bool { state.withLock { $0.isStored } }

    /// The task that stores; it ends when nothing waits any more. `nil`: nothing is being stored.
    var task: Task<Void, Never>? { state.withLock { $0.task } }

    /// Stores `cache`, unless a newer one replaces it first.
    func write(_ cache: GATTCache) {
        state.withLock { state in
            state.newest = cache
            state.isStored = false
            guard state.task == nil else { return }
            state.task = Task(executorPreference: loop) { await self.storeAll() }
        }
    }

    private func storeAll() async {
        while let cache = next() {
            let isStored = await store(cache)
            state.withLock { state in
                if state.newest == nil { state.isStored = isStored }
            }
        }
    }

    private func next() -> GATTCache? {
        state.withLock { state in
            if state.newest == nil { state.task = nil }
            return state.newest.take()
        }
    }
}
