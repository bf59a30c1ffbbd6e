internal import BLECore
internal import BLELinux
internal import Logging

// The advertising instances of an adapter in the kernel's management interface, and the tasks that start and stop them:
// the owner of the machine `InstanceSession`, and of a socket of its own for it. `AdvertisingAddressReset`, which has
// the kernel pair with the public address, uses the same socket.
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
    private var addressReset = AdvertisingAddressReset()
    /// The adapter's own address, while the kernel is to pair with that.
    private var keptAddress: BluetoothAddress?
    private let reads: Waiters<Result<ManagementAdvertisingFeatures, ManagementCommandFailure>>
    private let starts: Waiters<InstanceSession.StartFailure?>
    private var starting: [InstanceID: UInt64] = [:]
    private let stops: Waiters<Void>
    private var stopping: [InstanceID: [UInt64]] = [:]
    private let pauses: Waiters<Void>
    private let resets: Waiters<Void>
    private var states: [InstanceID: States] = [:]
    private let numbers: AdvertisingHandles
    private var deadlineChanged: @Sendable () -> Void = {}
    /// The instances that are started or being started.
    private(set) var count = 0
    /// Why the kernel may pair with another address than the adapter's own one.
    private(set) var addressFailure: AdvertisingAddressReset.Failure?

    init(on loop: EventLoop, reservingBy reserve: @escaping AdvertisingHandles.Reserve) {
        self.loop = loop
        channel = ManagementChannel { loop.now() }
        numbers = AdvertisingHandles(reserve)
        reads = Waiters(on: loop)
        starts = Waiters(on: loop)
        stops = Waiters(on: loop)
        pauses = Waiters(on: loop)
        resets = Waiters(on: loop)
    }

    /// Calls a closure whenever `nextDeadline` may have changed.
    func onDeadlineChange(_ body: @escaping @Sendable () -> Void) { deadlineChanged = body }

    var isOpen: Bool { channel.isOpen }
    /// A Boolean value that indicates whether nothing is on air, under way, or still to be removed.
    var isResting: Bool { machine.isResting && addressReset.isResting }
    /// A Boolean value that indicates whether an instance of this program is on air.
    var isOnAir: Bool { machine.isOnAir }
    /// The descriptor, to be watched while the socket is open.
    var descriptor: Int32? { channel.descriptor }

    var nextDeadline: BootInstant? {
        [machine.nextDeadline, addressReset.nextDeadline, channel.nextDeadline].compactMap(\.self).min()
    }

    /// Tasks that wait, and commands that are out.
    var outstanding: Int {
        reads.count + starts.count + stops.count + pauses.count + resets.count + channel.unfinishedCommands
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
        addressReset.eventsMissed()
        perform(events)
        deadlineChanged()
    }

    /// The adapter is there again, perhaps with another index.
    func use(adapter index: UInt16) {
        guard channel.isOpen, channel.adapter != index else { return }
        let events = channel.use(adapter: index)
        perform(addressReset.adapterGone(at: loop.now()))
        perform(machine.adapterGone())
        perform(events)
        // Other programs may have added instances before it was found: those events were dropped.
        addressReset.eventsMissed()
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
                plan, on: kernel, avoiding: others.union(addressReset.usedNumbers), reclaims: reclaims, at: loop.now())
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
        releaseAddress()
        guard addressReset.keep(on: kernel, own: machine.usedNumbers, at: loop.now()) else { return }
        keptAddress = adapter
        // Also in a task that was cancelled: centrals may pair by now.
        resetAddressIfDue()
        // It may have been released before this task waits.
        _ = await resets.wait(isolation: isolation) { _ in addressReset.isResting ? () : nil }
    }

    /// The kernel may pair with any address from now on.
    func releaseAddress() {
        addressReset.release()
        keptAddress = nil
        addressFailure = nil
        resets.resumeAll()
    }

    private func resetAddressIfDue() {
        let now = loop.now()
        guard addressReset.isDue(at: now), let kernel = addressReset.kernel, let keptAddress else {
            if addressReset.nextDeadline != nil { deadlineChanged() }
            return
        }
        let others = numbers.reserve(InstanceSession.ownNumbers(of: kernel), of: keptAddress)
        perform(addressReset.begin(avoiding: others.union(machine.claimedNumbers), at: now))
    }

    /// Releases the numbers that are not in use, once no instance is being started.
    private func releaseNumbers() {
        if starting.isEmpty {
            numbers.release(except: machine.claimedNumbers.union(addressReset.usedNumbers))
        }
    }

    // MARK: What happens

    func adapterDown() { perform(machine.adapterDown(at: loop.now())) }

    func adapterUp() { perform(machine.adapterUp(at: loop.now())) }

    func timePassed() {
        perform(channel.timePassed())
        perform(machine.timePassed(loop.now()))
        perform(addressReset.timePassed(loop.now()))
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
                perform(addressReset.featuresRead(Self.features(result), own: machine.usedNumbers, at: loop.now()))
            case .finished(.address, _, let result):
                if case .failure(let failure) = result {
                    perform(addressReset.commandFinished(failure, at: loop.now()))
                } else {
                    perform(addressReset.commandFinished(nil, at: loop.now()))
                }
            case .finished(.task(let number), _, let result): reads.resume(number, Self.features(result))
            case .finished: break
            case .received(let content):
                addressReset.received(content)
                perform(machine.received(content, at: loop.now()))
            case .removed:
                perform(addressReset.adapterGone(at: loop.now()))
                addressFailure = nil
                // A run that waits for its time does not come.
                resets.resumeAll()
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
            case .finish(let failure):
                addressFailure = failure
                resets.resumeAll()
            }
        }
        releaseNumbers()
        deadlineChanged()
    }

    /// One that is not connectable has changed the address that the kernel pairs with.
    private func instanceAdded(_ id: InstanceID) {
        if !machine.isConnectable(id) { addressReset.randomInstanceAdded() }
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

// MARK: - The adapter

extension Adapter {
    /// Has the kernel advertise until `stopAdvertising`.
    ///
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_ADMIN, `.invalidArgument` for data that does not fit,
    ///   `.notSupported`, `.busy` (no instance is free), `.cancelled`, and the codes of `prepare`.
    func addInstance(
        _ advertisement: Advertisement, during operation: String
    ) async throws(BLEError) -> InstanceCoordinator.Started {
        try openInstances(during: operation)
        let features = await instances.readFeatures()
        let kernel: ManagementAdvertisingFeatures
        switch features {
        case .success(let found)?: kernel = found
        case .failure(let failure)?: throw BLEError(failure, advertisingOn: name, during: operation)
        case nil: throw cancelledError(during: operation)
        }
        if !kernel.hasSets, advertiser.setCount > 0 { throw BLEError(oneAdvertiserOf: name, during: operation) }
        // Where it has just come back, its instances may still wait for the management.
        if presence == .up { instances.adapterUp() }
        let plan = try advertisement.plan(on: kernel, name, during: operation)
        let result = await instances.start(plan, on: kernel, of: address, reclaims: !system.runsBluetoothd())
        watchPresence()
        switch result {
        case .success(let started)?: return started
        case .failure(let failure)?: throw BLEError(failure, adapter: name, links: linksUp.count, during: operation)
        case nil: throw cancelledError(during: operation)
        }
    }

    /// Serves the deadline; a socket that was lost and could not be opened again is opened first.
    func instancesTimePassed() {
        if !instances.isResting, !instances.isOpen { try? openInstances(during: "advertise") }
        instances.timePassed()
    }

    /// Removes an instance.
    func removeInstance(_ id: InstanceSession.InstanceID) async {
        // A socket that was lost would fail the removal.
        try? openInstances(during: "stop advertising")
        await instances.stop(id)
        watchPresence()
    }

    /// Has the kernel pair with the adapter's own address, where centrals may pair: an advertising instance of any
    /// program may have made it another one. `AdvertisingAddressReset` has the reason.
    ///
    /// - Parameter settings: The adapter's settings: with private addresses, the kernel pairs with these.
    func keepPairingAddress(_ settings: ManagementSettings) async {
        guard traits.ownAddressType == .public, !settings.contains(.privacy), let address else { return }
        let obstacle: String
        do throws(BLEError) {
            try openInstances(during: "let centrals pair")
            // Centrals may pair by now: a cancellation comes too late.
            let features = await instances.readFeatures(interruption: .ignoresCancellation)
            switch features {
            case .success(let kernel)?:
                guard allowsCentralPairing else { return }
                await instances.keepAddress(of: address, on: kernel)
                guard let failure = instances.addressFailure else { return }
                obstacle = "\(failure)"
            case .failure(let failure)?: obstacle = "\(failure)"
            case nil: return
            }
        } catch {
            obstacle = "\(error)"
        }
        logger.warning(
            "pairings fail if an advertisement of another program has changed the address that the kernel pairs with",
            metadata: ["adapter": "\(name)", "reason": "\(obstacle)"])
    }

    private func openInstances(during operation: String) throws(BLEError) {
        guard let index = info?.index else { throw downError(during: operation) }
        if instances.isOpen { return useInstances(of: index) }
        instances.onDeadlineChange { [weak self] in
            self?.assumeIsolated {
                $0.armTimer()
                $0.noteAdvertising()
            }
        }
        do throws(SystemCallError) {
            instances.open(try system.openManagement(), adapter: index)
            guard let descriptor = instances.descriptor else { return }
            let failure = loop.onReadable(descriptor) { [weak self] in
                self?.assumeIsolated { $0.instancesReadable() }
            }
            if let failure {
                instances.close()
                throw failure
            }
        } catch {
            throw BLEError(error, subject: name, during: operation)
        }
    }

    /// The adapter is there again, perhaps with another index.
    func useInstances(of index: UInt16) {
        // That it was away may not be read yet.
        instancesReadable()
        instances.use(adapter: index)
    }

    private func instancesReadable() {
        if instances.read() {
            closeInstances()
            // Without advertisements, the deadline of the address has it opened.
            guard instances.count > 0 else { return }
            logger.warning("the management interface was lost: it is opened again", metadata: ["adapter": "\(name)"])
            try? openInstances(during: "advertise")
        }
    }

    /// Closes the socket; the instances stay.
    func closeInstances() {
        if let descriptor = instances.descriptor { loop.unregister(descriptor) }
        instances.close()
    }
}

extension BLEError {
    /// The controller has one advertiser, and the other back end uses it.
    init(oneAdvertiserOf adapter: String, during operation: String) {
        self.init(
            .busy, subject: adapter, during: operation,
            because: "the controller has one advertiser, which an advertisement with another back end uses",
            hint: "Give all advertisements the same `Advertisement.backEnd`.")
    }

    /// - Parameter links: The number of links that are up on the adapter.
    init(_ failure: InstanceSession.StartFailure, adapter: String, links: Int, during operation: String) {
        switch failure {
        case .notSupported:
            self.init(
                .notSupported, subject: adapter, during: operation,
                because: "the kernel cannot advertise so with this controller",
                hint:
                    "The kernel may be too old, or the controller lacks extended PDUs or the PHY. Where one PHY is LE "
                    + "Coded, both must be.")
        case .noFreeInstance(let limit):
            self.init(
                .busy, subject: adapter, during: operation,
                because: "the kernel can have \(limit) advertising instances, and all are in use",
                hint: "Stop one first. `btmgmt clr-adv` removes those of all programs.")
        case .adapterDown:
            self.init(
                .adapterDown, subject: adapter, during: operation, because: "the adapter was switched off or reset",
                hint: "Try again when it is on.")
        case .command(let failure) where links > 0 && failure.mayBeDueToLinks:
            self.init(
                .busy, subject: adapter, during: operation,
                because: "the kernel does not begin to advertise with \(links) \(links == 1 ? "link" : "links") up: "
                    + "\(failure)",
                hint: "Disconnect a device first. An advertisement that began earlier waits for that by itself.",
                origin: .adapter)
        case .command(let failure): self.init(failure, advertisingOn: adapter, during: operation)
        case .stopped:
            self.init(.cancelled, subject: adapter, during: operation, because: "it was stopped")
        }
    }

    fileprivate init(_ failure: ManagementCommandFailure, advertisingOn adapter: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch failure.status {
            case .permissionDenied:
                (
                    .notPermitted,
                    "this process lacks CAP_NET_ADMIN, which the kernel demands for its advertising instances",
                    Self.managementCapability
                )
            case .unknownCommand, .notSupported:
                (
                    .notSupported, "the kernel does not advertise with this adapter: \(failure)",
                    "Use `Advertisement.BackEnd.controller`."
                )
            case .noResources:
                (
                    .busy, "there is no room for another advertising instance: \(failure)",
                    "Stop an advertisement first, of this or of another program."
                )
            case .notPowered, .rejected:
                (.adapterDown, "the adapter or its Low Energy is switched off: \(failure)", "Try again when it is on.")
            case .blocked:
                (.blocked, "the adapter is blocked by rfkill", "Unblock it: `rfkill unblock bluetooth`.")
            case .invalidIndex:
                (.noAdapter, "the adapter is not there any more", "Plug it in again, or choose another one.")
            default:
                switch failure.reason {
                case .timeout:
                    (.timedOut, "the kernel did not respond in time", "Unplug the adapter and plug it in again.")
                case .adapterLost:
                    (.noAdapter, "the adapter is not there any more", "Plug it in again, or choose another one.")
                default:
                    (
                        .system, "the kernel refused to advertise: \(failure)",
                        "`blescan doctor` examines the adapter; `dmesg` shows what the kernel reports."
                    )
                }
            }
        self.init(code, subject: adapter, during: operation, because: reason, hint: hint, origin: .adapter)
    }
}

extension ManagementCommandFailure {
    /// A Boolean value that indicates whether the kernel may accept the command when there are fewer links.
    ///
    /// What the kernel itself refuses beside links is Rejected with advertising sets, and otherwise Invalid Parameters.
    /// A controller refuses with Command Disallowed, which becomes Busy, or with a status for too many links.
    fileprivate var mayBeDueToLinks: Bool {
        guard let status else { return false }
        return status == .rejected || status == .invalidParameters || status == .busy || status == .noResources
    }
}
