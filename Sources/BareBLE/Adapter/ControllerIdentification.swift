internal import BLECore
internal import BLELinux

// What a controller can do, and what follows from that: which events it has to send (`EventMasks`), and which PHYs it
// is to prefer.
//
// Duties: have one task ask the controller while the others wait for the same responses; keep what it has found; know
// the commands that set the controller up.
//
// Invariants
// - One task asks at a time, and ends that in every case: with the traits, or without, and then the next one asks.
// - Before the traits are known, what every controller can do is assumed.
// - It never sends: it returns commands, in order. Those of event masks come back by `finished` or
//   `controllerResponded`.

/// What the adapter has to know of its controller.
struct ControllerTraits: Sendable {
    var ownAddressType = AddressType.public
    var hasExtendedConnect = false
    /// The PHYs of which it can prefer some; empty where it cannot.
    var selectablePHYs: LEPHYs = []
}

/// What is known of a controller, whether a task asks it now, and how it is set up.
// Unchecked: only the loop's thread touches its state.
final class ControllerIdentification: @unchecked Sendable {
    private enum State {
        case unknown
        case asking
        case known(ControllerTraits)
    }

    private var state = State.unknown
    private let waiters: Waiters<Void>
    private var masks = EventMasks()
    /// The PHYs that links may use; `nil` leaves the choice to the controllers.
    private let preferredPHYs: LEPHYs?

    init(on loop: EventLoop, preferring preferredPHYs: LEPHYs?) {
        waiters = Waiters(on: loop)
        self.preferredPHYs = preferredPHYs
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
    // MARK: Setup

    /// The command that sets the PHYs that links may use, as far as the controller can prefer them; a reset ends that.
    func phyCommand(for traits: ControllerTraits) -> HCICommandPacket? {
        let phys = preferredPHYs?.intersection(traits.selectablePHYs) ?? []
        return phys.isEmpty ? nil : HCICommandPacket(LESetDefaultPHY(phys))
    }

    /// How many commands of other programs, which had switched events off, were followed by one of this program.
    var maskRepeatCount: Int { masks.repeatCount }

    /// The events that are needed are known now.
    func use(features: LEFeatures, commands: HCISupportedCommands?) {
        masks.use(features: features, commands: commands)
    }

    /// The commands that switch the events on that are needed.
    ///
    /// - Parameter isSilent: Whether the controller reports nothing.
    func eventCommands(isSilent: Bool = false) -> [HCICommandPacket] { masks.commands(isSilent: isSilent) }

    /// One of these commands has its response, or failed for the reason given.
    func finished(_ command: HCICommandPacket, _ failure: HCICommandFailure?) { masks.finished(command, failure) }

    /// The controller has responded to a command, of whatever owner; returns the commands to send again.
    func controllerResponded() -> [HCICommandPacket] { masks.controllerResponded() }

    /// The controller was reset by another program.
    func controllerReset() { masks.controllerReset() }

    /// Another program, or the kernel, sends a command.
    func received(_ foreign: HCICommandPacket) { masks.received(foreign) }

    /// The command of another program, or of the kernel, has its response;
    /// returns the one that switches events on again.
    func completed(
        _ foreign: HCIOpcode, _ status: HCIStatus?, isSetUp: Bool, at now: BootInstant
    ) -> HCICommandPacket? {
        masks.completed(foreign, status, isSetUp: isSetUp, at: now)
    }
}
