internal import BLECore
internal import BLELinux

/// What the adapter has to know of its controller.
struct ControllerTraits: Sendable {
    var ownAddressType = AddressType.public
    var hasExtendedConnect = false
    /// The PHYs of which it can prefer some; empty where it cannot.
    var selectablePHYs: LEPHYs = []
}

/// What is known of a controller, and whether a task asks it now.
// Unchecked: only the loop's thread touches its state.
final class ControllerIdentification: @unchecked Sendable {
    private enum State {
        case unknown
        case asking
        case known(ControllerTraits)
    }

    private var state = State.unknown
    private let waiters: Waiters<Void>

    init(on loop: EventLoop) {
        waiters = Waiters(on: loop)
    }

    /// What is known of the controller, or is safe to assume.
    var traits: ControllerTraits {
        if case .known(let traits) = state { traits } else { ControllerTraits() }
    }

    /// The number of tasks that wait for responses to another one.
    var waitingTasks: Int { waiters.count }

    /// Waits until no task asks the controller.
    ///
    /// - Returns: `false` to a cancelled task.
    func awaitResponses() async -> Bool {
        while case .asking = state {
            let end = await waiters.wait { _ in
                // Other jobs may have run since the look above.
                if case .asking = state { return nil }
                return ()
            }
            if case .cancelled = end { return false }
        }
        return true
    }

    /// The controller has refused the extended connect that it lists, as unknown.
    func lacksExtendedConnect() {
        guard case .known(var traits) = state else { return }
        traits.hasExtendedConnect = false
        state = .known(traits)
    }

    /// A task asks the controller: call `endAsking` when it has the responses, or failed.
    func beginAsking() { state = .asking }

    /// The task that asks has the responses, or has failed.
    func endAsking(_ found: ControllerTraits?) {
        state = found.map { .known($0) } ?? .unknown
        waiters.resumeAll()
    }
}
