internal import BLECore
internal import BLELinux

// What an adapter has of the kernel's advertising instances: a socket of the management interface for them, and what
// uses it. Each part has an owner of its own, whose state is private:
//
// | owner | what it owns |
// |---|---|
// | `ManagementChannel` | the socket, the queue of commands, what each command was sent for |
// | `InstanceCoordinator` | the instances of this program, and the tasks that start and stop them |
// | `PairingAddressKeeper` | the address that the kernel pairs with, what is known of the instances of other |
// | | programs, and the tasks that wait for that address |
// | `AdvertisingHandles` | the numbers of instances that this process has reserved, among those with this library |
//
// Duties: open the socket with the first use; send what the owners return, in order, and pass responses and events to
// them; have the tasks wait that read which instances there are; reserve the numbers of instances, and keep those of
// the coordinator and of the keeper apart.
//
// Invariants
// - The socket is not that of `SecurityCoordinator`, which an adapter without security does not have, and which may be
//   closed while instances are on air.
// - The owners do not know one another.
// - Only the adapter uses it, on its event loop. The adapter watches the descriptor, and serves the deadline.

/// The kernel's advertising instances, as one adapter uses them.
final class AdvertisingInstances {
    typealias InstanceID = InstanceSession.InstanceID

    private let channel: ManagementChannel
    private let coordinator: InstanceCoordinator
    private let keeper: PairingAddressKeeper
    private let numbers: AdvertisingHandles
    private let reads: Waiters<Result<ManagementAdvertisingFeatures, ManagementCommandFailure>>
    private var deadlineChanged: @Sendable () -> Void = {}

    init(on loop: EventLoop, reservingBy reserve: @escaping AdvertisingHandles.Reserve) {
        channel = ManagementChannel { loop.now() }
        coordinator = InstanceCoordinator(on: loop)
        keeper = PairingAddressKeeper(on: loop)
        numbers = AdvertisingHandles(reserve)
        reads = Waiters(on: loop)
    }

    /// Calls a closure whenever `nextDeadline` or `hasCommandOut` may have changed.
    func onDeadlineChange(_ body: @escaping @Sendable () -> Void) { deadlineChanged = body }

    var isOpen: Bool { channel.isOpen }
    /// A Boolean value that indicates whether nothing is on air, under way, or still to be removed.
    var isResting: Bool { coordinator.isResting && keeper.isResting }
    /// A Boolean value that indicates whether an instance of this program is on air.
    var isOnAir: Bool { coordinator.isOnAir }
    /// The instances of this program that are started or being started.
    var count: Int { coordinator.count }
    /// Why the kernel may pair with another address than the adapter's own one.
    var addressFailure: AdvertisingAddressReset.Failure? { keeper.failure }
    /// The descriptor, to be watched while the socket is open.
    var descriptor: Int32? { channel.descriptor }

    var nextDeadline: BootInstant? {
        [coordinator.nextDeadline, keeper.nextDeadline, channel.nextDeadline].compactMap(\.self).min()
    }

    /// A Boolean value that indicates whether a command on this socket has no response yet.
    var hasCommandOut: Bool { channel.unfinishedCommands > 0 }

    /// Tasks that wait, and commands that are out.
    var outstanding: Int {
        reads.count + coordinator.outstanding + keeper.outstanding + channel.unfinishedCommands
    }

    /// The status of an instance.
    func status(of id: InstanceID) -> InstanceSession.Status { coordinator.status(of: id) }

    // MARK: The socket

    /// Opens the socket for the adapter with this index.
    func open(_ socket: consuming ManagementSocket, adapter: UInt16) {
        channel.open(socket, adapter: adapter)
    }

    /// Closes the socket, which must not be watched any more. Instances stay, and are added again once it is open.
    func close() {
        let events = channel.close()
        coordinator.interfaceLost()
        keeper.eventsMissed()
        perform(events)
        deadlineChanged()
    }

    /// The adapter is there again, perhaps with another index.
    func use(adapter index: UInt16) {
        guard channel.isOpen, channel.adapter != index else { return }
        let events = channel.use(adapter: index)
        perform(keeper.adapterReturned())
        perform(coordinator.adapterGone())
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
    ) async -> Result<InstanceCoordinator.Started, InstanceSession.StartFailure>? {
        defer { releaseNumbers() }
        return await coordinator.start(plan, on: kernel, reclaims: reclaims, isolation: isolation) {
            let others = adapter.map { numbers.reserve(InstanceSession.ownNumbers(of: kernel), of: $0) } ?? []
            // The kernel does not list all, and adding one that is there replaces it.
            return others.union(keeper.usedNumbers).union(reclaims ? [] : keeper.numbersUnlisted(by: kernel))
        } perform: {
            perform($0)
        }
    }

    /// Stops an instance, and waits until it is removed, also in a cancelled task. Further calls wait for the same end.
    func stop(_ id: InstanceID, isolation: isolated (any Actor)? = #isolation) async {
        await coordinator.stop(id, isolation: isolation) { perform($0) }
    }

    /// Removes all instances for a connection attempt, and waits for that.
    func pause(until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation) async {
        await coordinator.pause(until: deadline, isolation: isolation) { perform($0) }
    }

    func resume() { perform(coordinator.resume()) }

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
        guard keeper.keep(adapter, on: kernel, own: coordinator.usedNumbers) else { return }
        // Also in a task that was cancelled: centrals may pair by now.
        resetAddressIfDue()
        await keeper.awaitRest(isolation: isolation)
    }

    /// The kernel may pair with any address from now on.
    func releaseAddress() { keeper.release() }

    private func resetAddressIfDue() {
        let actions = keeper.begin { kernel, adapter in
            let others = numbers.reserve(InstanceSession.ownNumbers(of: kernel), of: adapter)
            return others.union(coordinator.claimedNumbers)
        }
        if let actions {
            perform(actions)
        } else if keeper.nextDeadline != nil {
            deadlineChanged()
        }
    }

    /// Releases the numbers that are not in use, once no instance is being started.
    private func releaseNumbers() {
        if !coordinator.isStarting {
            numbers.release(except: coordinator.claimedNumbers.union(keeper.usedNumbers))
        }
    }

    // MARK: What happens

    func adapterDown() { perform(coordinator.adapterDown()) }

    func adapterUp() { perform(coordinator.adapterUp()) }

    func timePassed() {
        perform(channel.timePassed())
        perform(coordinator.timePassed())
        perform(keeper.timePassed())
        resetAddressIfDue()
    }

    private func perform(_ events: [ManagementChannel.Event]) {
        for event in events {
            switch event {
            case .finished(.instance, let command, let result):
                if command == .removeAdvertising, let number = Self.removedNumber(result) {
                    keeper.removedByThisProgram(number)
                }
                perform(coordinator.commandFinished(Self.failure(result)))
            case .finished(.address, .readAdvertisingFeatures, let result):
                perform(keeper.featuresRead(Self.features(result), own: coordinator.usedNumbers))
            case .finished(.address, _, let result): perform(keeper.commandFinished(Self.failure(result)))
            case .finished(.task(let number), _, let result):
                reads.resume(number, Self.features(result))
                deadlineChanged()
            case .finished: break
            case .received(let content):
                keeper.received(content)
                perform(coordinator.received(content))
            case .removed:
                perform(keeper.adapterGone())
                perform(coordinator.adapterGone())
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
            case .notify(let event):
                noteAddress(event)
                coordinator.happened(event)
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

    /// An instance that is not connectable changes the address that the kernel pairs with.
    private func noteAddress(_ event: InstanceSession.Event) {
        switch event {
        case .started(let id), .resumed(let id):
            if !coordinator.isConnectable(id) { keeper.randomInstanceAdded() }
        case .failed, .interrupted, .stopped, .paused: break
        }
    }

    private static func failure(
        _ result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) -> ManagementCommandFailure? {
        if case .failure(let failure) = result { failure } else { nil }
    }

    private static func removedNumber(
        _ result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) -> UInt8? {
        try? result.get().response(to: ManagementRemoveAdvertising.self)
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
