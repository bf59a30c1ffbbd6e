/// Whether a central keeps its restoration state, and what keeps it: from `restore` to `suspend`.
final class StatePersistence {
    private enum State {
        case notRestored
        /// With the keeper, once the store is open; `nil` without a store.
        case restored(StateKeeper?)
    }

    private var state = State.notRestored
    private var hasNoticedMissingRestore = false

    /// Persists the state; `nil` if nothing does.
    var keeper: StateKeeper? {
        if case .restored(let keeper) = state { keeper } else { nil }
    }

    /// The state is restored; `false` if it was before.
    func beginRestoring() -> Bool {
        guard case .notRestored = state else { return false }
        state = .restored(nil)
        return true
    }

    /// The store could not be opened: the state may be restored by another call.
    func restoringFailed() { state = .notRestored }

    /// The store is open.
    func use(_ keeper: StateKeeper) { state = .restored(keeper) }

    /// Nothing is kept from now on, until the state is restored again.
    func end() { state = .notRestored }

    /// Returns whether nothing is kept because the state was not restored; `true` once.
    func noticeMissingRestore() -> Bool {
        guard case .notRestored = state, !hasNoticedMissingRestore else { return false }
        hasNoticedMissingRestore = true
        return true
    }
}
