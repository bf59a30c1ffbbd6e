internal import BLECore
internal import BLELinux

// The advertising instances of an adapter in the kernel's management interface, and the tasks that start and stop them:
// the owner of the machine `InstanceSession`, and of a socket of its own for it. `PairingAddressKeeper`, which has the
// kernel pair with the public address, uses the same socket.
//
// Duties: open the socket with the first use; resume each task that starts or stops an instance exactly once; report
// the states of each instance to its listeners; reserve the numbers of instances among processes with this library, and
// between the two machines.
//
// Invariants
// - The socket is not that of `SecurityCoordinator`, which an adapter without security does not have, and which may be
//   closed while instances are on air.
// - A task that starts an instance is in `starting` until the machine has acknowledged the start; one that stops it is
//   in `stopping` until then. An instance has an entry there while it is being stopped.
// - Only the adapter uses it, on its event loop. The adapter watches the descriptor, and serves the deadline.

/// The advertising instances of an adapter.
final class InstanceCoordinator {
    typealias InstanceID = InstanceSession.InstanceID
    typealias States = AdvertiseCoordinator.States

    /// An instance that was started.
    struct Started {
        let id: InstanceID
        let states: States
    }

    private let loop: EventLoop
    private let channel: ManagementChannel
    private var machine = InstanceSession()
    private let keeper: PairingAddressKeeper
    private let reads: Waiters<Result<ManagementAdvertisingFeatures, ManagementCommandFailure>>
    private let starts: Waiters<InstanceSession.StartFailure?>
    private var starting: [InstanceID: UInt64] = [:]
    private let stops: Waiters<Void>
    private var stopping: [InstanceID: [UInt64]] = [:]
    private let pauses: Waiters<Void>
    private var states: [InstanceID: States] = [:]
    private let numbers: AdvertisingHandles
    private var deadlineChanged: @Sendable () -> Void = {}
    /// The instances that are started or being started.
    private(set) var count = 0

    init(on loop: EventLoop, reservingBy reserve: @escaping AdvertisingHandles.Reserve) {
        self.loop = loop
        channel = ManagementChannel { loop.now() }
        numbers = AdvertisingHandles(reserve)
        reads = Waiters(on: loop)
        starts = Waiters(on: loop)
        stops = Waiters(on: loop)
        pauses = Waiters(on: loop)
        keeper = PairingAddressKeeper(on: loop)
    }

    /// Calls a closure whenever `nextDeadline` may have changed.
    func onDeadlineChange(_ body: @escaping @Sendable () -> Void) { deadlineChanged = body }

    var isOpen: Bool { channel.isOpen }
    /// A Boolean value that indicates whether nothing is on air, under way, or still to be removed.
    var isResting: Bool { machine.isResting && keeper.isResting }
    /// A Boolean value that indicates whether an instance of this program is on air.
    var isOnAir: Bool { machine.isOnAir }
    /// Why the kernel may pair with another address than the adapter's own one.
    var addressFailure: AdvertisingAddressReset.Failure? { keeper.failure }
    /// The descriptor, to be watched while the socket is open.
    var descriptor: Int32? { channel.descriptor }

    var nextDeadline: BootInstant? {
        [machine.nextDeadline, keeper.nextDeadline, channel.nextDeadline].compactMap(\.self).min()
    }

    /// Tasks that wait, and commands that are out.
    var outstanding: Int {
        reads.count + starts.count + stops.count + pauses.count + keeper.outstanding + channel.unfinishedCommands
    }

    /// The status of an instance.
    func status(of id: InstanceID) -> InstanceSession.Status { machine.status(of: id) }

    // MARK: The socket

    /// Opens the socket for the adapter with this index.
    func open(_ socket: consuming ManagementSocket, adapter: UInt16) {
        channel.open(socket, adapter: adapter)
    }

    /// Closes the socket, which must not be watched any more. Instances stay, and are added again once it is open.
    func close() {
        let events = channel.close()
        machine.interfaceLost(at: loop.now())
        keeper.eventsMissed()
        perform(events)
        deadlineChanged()
    }

    /// The adapter is there again, perhaps with another index.
    func use(adapter index: UInt16) {
        guard channel.isOpen, channel.adapter != index else { return }
        let events = channel.use(adapter: index)
        perform(keeper.adapterReturned())
        perform(machine.adapterGone())
        perform(events)
        // Other programs may have added instances before it was found: those events were dropped.
        keeper.eventsMissed()
        deadlineChanged()
    }

    /// Reads what waits at the socket.
    ///
    /// - Returns: Whether the socket is lost: stop watching it, and close it.
    func read() -> Bool {
        var isLost = false
        channel.read { events in
            for event in events {
                if case .lost = event { isLost = true }
            }
            perform(events)
        }
        if !isLost { resetAddressIfDue() }
        return isLost
    }

    // MARK: Tasks

    /// Reads what instances the kernel can have, and which it has.
    ///
    /// - Returns: `nil` for a task that was cancelled, where that ends the wait.
    func readFeatures(
        interruption: WaitInterruption = .ends, isolation: isolated (any Actor)? = #isolation
    ) async -> Result<ManagementAdvertisingFeatures, ManagementCommandFailure>? {
        let end = await reads.wait(interruption: interruption, isolation: isolation) { number in
            perform(channel.send(ManagementReadAdvertisingFeatures(), for: .task(number)).events)
            deadlineChanged()
            return nil
        }
        switch end {
        case .resumed(let result): return result
        case .timedOut, .cancelled: return nil
        }
    }

    /// Starts an instance, and waits until it is on air.
    ///
    /// - Parameters:
    ///   - plan: The advertisement.
    ///   - kernel: What the kernel can have, as it was just read.
    ///   - adapter: The adapter's address.
    ///   - reclaims: Whether what killed programs have left is removed.
    /// - Returns: The instance; `nil` for a task that was cancelled.
    func start(
        _ plan: AdvertisingPlan, on kernel: ManagementAdvertisingFeatures, of adapter: BluetoothAddress?,
        reclaims: Bool,
        isolation: isolated (any Actor)? = #isolation
    ) async -> Result<Started, InstanceSession.StartFailure>? {
        var started: InstanceID?
        let states = States(
            capacity: AdvertiseCoordinator.stateCapacity,
            beginningWith: Advertisement.State(InstanceSession.Status.starting))
        defer { releaseNumbers() }
        let end = await starts.wait(isolation: isolation) { number in
            let own = InstanceSession.ownNumbers(of: kernel)
            let others = adapter.map { numbers.reserve(own, of: $0) } ?? []
            let (id, actions) = machine.start(
                plan, on: kernel, avoiding: others.union(keeper.usedNumbers), reclaims: reclaims, at: loop.now())
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
    func stop(_ id: InstanceID, isolation: isolated (any Actor)? = #isolation) async {
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
    func pause(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async {
        guard count > 0 else { return }
        _ = await pauses.wait(until: deadline, isolation: isolation) { _ in
            perform(machine.pause(at: loop.now()))
            return nil
        }
    }

    func resume() { perform(machine.resume(at: loop.now())) }

    /// Has the kernel pair with the adapter's own address from now on, until `releaseAddress`, and waits until it does,
    /// or cannot: `addressFailure` has the reason.
    ///
    /// - Parameters:
    ///   - adapter: The adapter's address, a public one.
    ///   - kernel: What the kernel can have, as it was just read.
    func keepAddress(
        of adapter: BluetoothAddress, on kernel: ManagementAdvertisingFeatures,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        guard keeper.keep(adapter, on: kernel, own: machine.usedNumbers) else { return }
        // Also in a task that was cancelled: centrals may pair by now.
        resetAddressIfDue()
        await keeper.awaitRest(isolation: isolation)
    }

    /// The kernel may pair with any address from now on.
    func releaseAddress() { keeper.release() }

    private func resetAddressIfDue() {
        let actions = keeper.begin { kernel, adapter in
            let others = numbers.reserve(InstanceSession.ownNumbers(of: kernel), of: adapter)
            return others.union(machine.claimedNumbers)
        }
        if let actions {
            perform(actions)
        } else if keeper.nextDeadline != nil {
            deadlineChanged()
        }
    }

    /// Releases the numbers that are not in use, once no instance is being started.
    private func releaseNumbers() {
        if starting.isEmpty {
            numbers.release(except: machine.claimedNumbers.union(keeper.usedNumbers))
        }
    }

    // MARK: What happens

    func adapterDown() { perform(machine.adapterDown(at: loop.now())) }

    func adapterUp() { perform(machine.adapterUp(at: loop.now())) }

    func timePassed() {
        perform(channel.timePassed())
        perform(machine.timePassed(loop.now()))
        perform(keeper.timePassed())
        resetAddressIfDue()
    }

    private func perform(_ events: [ManagementChannel.Event]) {
        for event in events {
            switch event {
            case .finished(.instance, _, let result):
                if case .failure(let failure) = result {
                    perform(machine.commandFinished(failure, at: loop.now()))
                } else {
                    perform(machine.commandFinished(nil, at: loop.now()))
                }
            case .finished(.address, .readAdvertisingFeatures, let result):
                perform(keeper.featuresRead(Self.features(result), own: machine.usedNumbers))
            case .finished(.address, _, let result):
                if case .failure(let failure) = result {
                    perform(keeper.commandFinished(failure))
                } else {
                    perform(keeper.commandFinished(nil))
                }
            case .finished(.task(let number), _, let result): reads.resume(number, Self.features(result))
            case .finished: break
            case .received(let content):
                keeper.received(content)
                perform(machine.received(content, at: loop.now()))
            case .removed:
                perform(keeper.adapterGone())
                perform(machine.adapterGone())
            // The adapter looks for its own by the address, and closes what is lost.
            case .added, .lost: break
            }
        }
    }

    private func perform(_ actions: [InstanceSession.Action]) {
        for action in actions {
            switch action {
            case .send(.remove(let command)): perform(channel.send(command, for: .instance).events)
            case .send(.setParameters(let command)): perform(channel.send(command, for: .instance).events)
            case .send(.setData(let command)): perform(channel.send(command, for: .instance).events)
            case .notify(let event): happened(event)
            }
        }
        // What is removed later frees its number as well.
        releaseNumbers()
        deadlineChanged()
    }

    private func perform(_ actions: [AdvertisingAddressReset.Action]) {
        for action in actions {
            switch action {
            case .send(.add(let command)): perform(channel.send(command, for: .address).events)
            case .send(.remove(let command)): perform(channel.send(command, for: .address).events)
            case .readFeatures: perform(channel.send(ManagementReadAdvertisingFeatures(), for: .address).events)
            case .finish(let failure): keeper.finished(failure)
            }
        }
        releaseNumbers()
        deadlineChanged()
    }

    /// One that is not connectable has changed the address that the kernel pairs with.
    private func instanceAdded(_ id: InstanceID) {
        if !machine.isConnectable(id) { keeper.randomInstanceAdded() }
    }

    private func happened(_ event: InstanceSession.Event) {
        switch event {
        case .started(let id):
            instanceAdded(id)
            states[id]?.report(.on)
            if let number = starting[id] { starts.resume(number, nil) }
        case .failed(let id, let failure): if let number = starting[id] { starts.resume(number, failure) }
        case .stopped(let id, _): stopped(id)
        case .paused: pauses.resumeAll()
        case .interrupted(let id, let pause):
            states[id]?.report(Advertisement.State(InstanceSession.Status.paused(pause)))
        case .resumed(let id):
            instanceAdded(id)
            states[id]?.report(.on)
        }
    }

    private static func features(
        _ result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) -> Result<ManagementAdvertisingFeatures, ManagementCommandFailure> {
        do throws(ManagementCommandFailure) {
            return .success(try result.get().response(to: ManagementReadAdvertisingFeatures.self))
        } catch {
            return .failure(error)
        }
    }
}
