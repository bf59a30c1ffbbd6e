internal import BLECore
internal import BLELinux

// The advertising instances of this program in the kernel, on one adapter, and the tasks that start and stop them: the
// owner of the machine `InstanceSession`.
//
// Duties: resume each task that starts or stops an instance exactly once; report the states of each instance to its
// listeners.
//
// Invariants
// - A task that starts an instance is in `starting` until the machine has acknowledged the start; one that stops it is
//   in `stopping` until then. An instance has an entry there while it is being stopped.
// - Only `AdvertisingInstances` uses it, on the event loop. It never sends a command: it returns actions.

/// The advertising instances of this program in the kernel.
final class InstanceCoordinator {
    typealias InstanceID = InstanceSession.InstanceID
    typealias Action = InstanceSession.Action
    typealias States = AdvertiseCoordinator.States

    /// An instance that was started.
    struct Started {
        let id: InstanceID
        let states: States
    }

    private let loop: EventLoop
    private var machine = InstanceSession()
    private let starts: Waiters<InstanceSession.StartFailure?>
    private var starting: [InstanceID: UInt64] = [:]
    private let stops: Waiters<Void>
    private var stopping: [InstanceID: [UInt64]] = [:]
    private let pauses: Waiters<Void>
    private var states: [InstanceID: States] = [:]
    /// The instances that are started or being started.
    private(set) var count = 0

    init(on loop: EventLoop) {
        self.loop = loop
        starts = Waiters(on: loop)
        stops = Waiters(on: loop)
        pauses = Waiters(on: loop)
    }

    var nextDeadline: BootInstant? { machine.nextDeadline }
    /// A Boolean value that indicates whether nothing runs and no command is out.
    var isResting: Bool { machine.isResting }
    /// A Boolean value that indicates whether an instance is on air.
    var isOnAir: Bool { machine.isOnAir }
    /// A Boolean value that indicates whether an instance is being started.
    var isStarting: Bool { !starting.isEmpty }
    /// The numbers of the instances that are not removed.
    var usedNumbers: Set<UInt8> { machine.usedNumbers }
    /// The numbers that nothing else may use: those of the instances, and those to be removed.
    var claimedNumbers: Set<UInt8> { machine.claimedNumbers }

    /// Tasks that wait.
    var outstanding: Int { starts.count + stops.count + pauses.count }

    /// The status of an instance.
    func status(of id: InstanceID) -> InstanceSession.Status { machine.status(of: id) }

    /// Returns a Boolean value that indicates whether centrals may connect by an instance.
    func isConnectable(_ id: InstanceID) -> Bool { machine.isConnectable(id) }

    // MARK: Tasks

    /// Starts an instance, and waits until it is on air.
    ///
    /// - Parameters:
    ///   - plan: The advertisement.
    ///   - kernel: What the kernel can have, as it was just read.
    ///   - reclaims: Whether what killed programs have left is removed.
    ///   - others: Returns the numbers that others have, once it starts.
    ///   - perform: Performs actions of the machine.
    /// - Returns: The instance; `nil` for a task that was cancelled.
    func start(
        _ plan: AdvertisingPlan, on kernel: ManagementAdvertisingFeatures, reclaims: Bool,
        isolation: isolated (any Actor)? = #isolation, avoiding others: () -> Set<UInt8>,
        perform: ([Action]) -> Void
    ) async -> Result<Started, InstanceSession.StartFailure>? {
        var started: InstanceID?
        let states = States(
            capacity: AdvertiseCoordinator.stateCapacity,
            beginningWith: Advertisement.State(InstanceSession.Status.starting))
        let end = await starts.wait(isolation: isolation) { number in
            let (id, actions) = machine.start(
                plan, on: kernel, avoiding: others(), reclaims: reclaims, at: loop.now())
            started = id
            starting[id] = number
            self.states[id] = states
            count += 1
            perform(actions)
            return nil
        }
        guard let started else { return nil }
        starting[started] = nil
        switch end {
        case .resumed(nil): return .success(Started(id: started, states: states))
        case .resumed(let failure?):
            count -= 1
            self.states[started] = nil
            return .failure(failure)
        case .timedOut, .cancelled:
            count -= 1
            self.states[started] = nil
            perform(machine.stop(started, at: loop.now()))
            return nil
        }
    }

    /// Stops an instance, and waits until it is removed, also in a cancelled task. Further calls wait for the same end.
    func stop(
        _ id: InstanceID, isolation: isolated (any Actor)? = #isolation, _ perform: ([Action]) -> Void
    ) async {
        let isFirst = stopping[id] == nil
        if isFirst {
            guard machine.status(of: id) != .stopped else { return }
            stopping[id] = []
            count -= 1
            if let states = states.removeValue(forKey: id) {
                states.report(.stopped)
                states.finish()
            }
        }
        _ = await stops.wait(
            until: loop.now() + .seconds(10), interruption: .ignoresCancellation, isolation: isolation
        ) { number in
            guard stopping[id] != nil else { return () }
            stopping[id]?.append(number)
            if isFirst { perform(machine.stop(id, at: loop.now())) }
            return nil
        }
        // There are some left if the first one has waited for as long as it may.
        stopped(id)
    }

    private func stopped(_ id: InstanceID) {
        for number in stopping.removeValue(forKey: id) ?? [] { stops.resume(number, ()) }
    }

    /// Removes all instances for a connection attempt, and waits for that.
    func pause(
        until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation, _ perform: ([Action]) -> Void
    ) async {
        guard count > 0 else { return }
        _ = await pauses.wait(until: deadline, isolation: isolation) { _ in
            perform(machine.pause(at: loop.now()))
            return nil
        }
    }

    func resume() -> [Action] { machine.resume(at: loop.now()) }

    // MARK: What happens

    /// Takes an event of the machine.
    func happened(_ event: InstanceSession.Event) {
        switch event {
        case .started(let id):
            states[id]?.report(.on)
            if let number = starting[id] { starts.resume(number, nil) }
        case .failed(let id, let failure): if let number = starting[id] { starts.resume(number, failure) }
        case .stopped(let id, _): stopped(id)
        case .paused: pauses.resumeAll()
        case .interrupted(let id, let pause):
            states[id]?.report(Advertisement.State(InstanceSession.Status.paused(pause)))
        case .resumed(let id): states[id]?.report(.on)
        }
    }

    func commandFinished(_ failure: ManagementCommandFailure?) -> [Action] {
        machine.commandFinished(failure, at: loop.now())
    }

    func received(_ event: ManagementEvent.Content) -> [Action] { machine.received(event, at: loop.now()) }

    /// The socket was lost: what has happened to the instances since then is not known.
    func interfaceLost() { machine.interfaceLost(at: loop.now()) }

    func adapterDown() -> [Action] { machine.adapterDown(at: loop.now()) }

    func adapterUp() -> [Action] { machine.adapterUp(at: loop.now()) }

    /// The adapter was unplugged.
    func adapterGone() -> [Action] { machine.adapterGone() }

    func timePassed() -> [Action] { machine.timePassed(loop.now()) }
}
