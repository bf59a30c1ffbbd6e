internal import BLECore
internal import BLELinux
internal import Logging

// The advertising sets of an adapter, and the tasks that start and stop them: the owner of the machine
// `AdvertiseSession`.
//
// Duties: create the machine once the controller is known; resume each task that starts or stops a set exactly once;
// report the states of each set to its listeners; follow what other programs advertise, as far as it is seen.
//
// Invariants
// - A task that starts a set is in `starting` until the machine has acknowledged the start; one that stops it is in
//   `stopping` until then. A set has an entry there while it is being stopped.
// - The machine knows when a command of this program is out for which the kernel disables sets: while a connect has
//   its turn, and while the kernel changes instances of this program or is set up.
// - The states of a set are in `states` from its start to its stop; `.stopped` is the last one.
// - Only the adapter uses it, on its event loop. It never acts on the controller: it returns actions.

/// The advertising sets of an adapter.
final class AdvertiseCoordinator {
    typealias SetID = AdvertiseSession.SetID
    typealias Action = AdvertiseSession.Action
    typealias States = EventBroadcaster<Advertisement.State>

    /// A set that was started.
    struct Started {
        let id: SetID
        let states: States
    }

    /// The number of states that wait for one listener; beyond it the oldest is dropped.
    static let stateCapacity = 64

    private let loop: EventLoop
    private var machine: AdvertiseSession?
    private var features: LEFeatures?
    private var commands: HCISupportedCommands?
    private let starts: Waiters<AdvertiseSession.StartFailure?>
    private var starting: [SetID: UInt64] = [:]
    private let stops: Waiters<HCICommandFailure?>
    private var stopping: [SetID: [UInt64]] = [:]
    private let pauses: Waiters<Void>
    private var states: [SetID: States] = [:]
    private(set) var setCount = 0
    private let handles: AdvertisingHandles
    private var others = OtherAdvertising()
    /// Whether a connect of this program has its turn.
    private var isConnecting = false
    /// Whether the kernel carries out a command of this program to its management interface.
    private var isManagementBusy = false

    init(on loop: EventLoop, reservingBy reserve: @escaping AdvertisingHandles.Reserve) {
        self.loop = loop
        handles = AdvertisingHandles(reserve)
        starts = Waiters(on: loop)
        stops = Waiters(on: loop)
        pauses = Waiters(on: loop)
    }

    /// Keeps what the controller can do.
    func use(_ features: LEFeatures, _ commands: HCISupportedCommands?) {
        self.features = features
        self.commands = commands
    }

    /// What the controller can do; `nil` before it was asked about its sets.
    var controller: AdvertiseSession.Controller? { machine?.controller }

    /// Whether the controller may have advertising sets, and must be asked about them.
    var mayHaveSets: Bool {
        features?.contains(.extendedAdvertising) ?? false && commands?.hasExtendedAdvertising ?? true
    }

    /// Begins to advertise with this controller.
    ///
    /// - Parameter isLegacy: Whether the controller has to be used as one without advertising sets, because the legacy
    ///   commands are in use on it.
    func begin(maximumSets: UInt8?, maximumDataLength: UInt16?, isLegacy: Bool) {
        guard machine == nil, var features else { return }
        if isLegacy { features.remove(.extendedAdvertising) }
        machine = AdvertiseSession(
            AdvertiseSession.Controller(
                features: features, commands: commands, maximumSets: maximumSets,
                maximumDataLength: maximumDataLength))
        noteOwnCommands()
    }

    var nextDeadline: BootInstant? { machine?.nextDeadline }

    /// Whether a set of this program is on air.
    var isOnAir: Bool { machine?.isOnAir ?? false }
    /// Whether a set of this program is on air at this moment.
    var isSurelyOnAir: Bool { machine?.isSurelyOnAir ?? false }
    /// Whether another program advertises, as far as its commands were seen.
    var othersAreOnAir: Bool { others.isOnAir }

    /// Tasks that wait.
    var outstanding: Int { starts.count + stops.count + pauses.count }

    /// The status of a set.
    func status(of id: SetID) -> AdvertiseSession.Status { machine?.status(of: id) ?? .stopped }

    // MARK: Tasks

    /// Starts a set, and waits until it is on air.
    ///
    /// - Returns: The set; `nil` for a task that was cancelled.
    func start(
        _ plan: AdvertisingPlan, of adapter: BluetoothAddress?, isolation: isolated (any Actor)? = #isolation,
        _ perform: ([Action]) -> Void
    ) async -> Result<Started, AdvertiseSession.StartFailure>? {
        var started: SetID?
        let states = States(
            capacity: Self.stateCapacity, beginningWith: Advertisement.State(AdvertiseSession.Status.starting))
        defer { releaseHandles() }
        let end = await starts.wait(isolation: isolation) { number in
            let others = adapter.map { handles.reserve(AdvertiseSession.handles, of: $0) } ?? []
            guard let (id, actions) = machine?.start(plan, avoiding: others, at: loop.now()) else {
                return .adapterDown
            }
            started = id
            starting[id] = number
            self.states[id] = states
            setCount += 1
            perform(actions)
            return nil
        }
        guard let started else {
            if case .cancelled = end { return nil }
            return .failure(.adapterDown)
        }
        starting[started] = nil
        switch end {
        case .resumed(nil): return .success(Started(id: started, states: states))
        case .resumed(let failure?):
            setCount -= 1
            self.states[started] = nil
            return .failure(failure)
        case .timedOut, .cancelled:
            setCount -= 1
            self.states[started] = nil
            perform(machine?.stop(started, at: loop.now()) ?? [])
            return nil
        }
    }

    /// Stops a set, and waits until it is off air, also in a cancelled task. Further calls wait for the same end.
    func stop(
        _ id: SetID, isolation: isolated (any Actor)? = #isolation, _ perform: ([Action]) -> Void
    ) async {
        let isFirst = stopping[id] == nil
        if isFirst {
            guard machine != nil, machine?.status(of: id) != .stopped else { return }
            stopping[id] = []
            setCount -= 1
            if let states = states.removeValue(forKey: id) {
                states.report(.stopped)
                states.finish()
            }
        }
        _ = await stops.wait(
            until: loop.now() + .seconds(10), interruption: .ignoresCancellation, isolation: isolation
        ) { number in
            guard stopping[id] != nil else { return .some(nil) }
            stopping[id]?.append(number)
            if isFirst { perform(machine?.stop(id, at: loop.now()) ?? []) }
            return nil
        }
        // There are some left if the first one has waited for as long as it may.
        stopped(id, nil)
        releaseHandles()
    }

    private func stopped(_ id: SetID, _ failure: HCICommandFailure?) {
        for number in stopping.removeValue(forKey: id) ?? [] { stops.resume(number, failure) }
    }

    /// Releases what no set uses, so that another program can start one, unless what killed programs have left is being
    /// removed for a start.
    private func releaseHandles() {
        if !starting.isEmpty, machine?.isSweeping ?? false { return }
        handles.release(except: machine?.usedHandles ?? [])
    }

    /// Takes all sets off air for a connection attempt, and waits for that.
    func pause(
        until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation, _ perform: ([Action]) -> Void
    ) async {
        isConnecting = true
        noteOwnCommands()
        guard setCount > 0 else { return }
        _ = await pauses.wait(until: deadline, isolation: isolation) { _ in
            perform(machine?.pause(at: loop.now()) ?? [])
            return nil
        }
    }

    func resume() -> [Action] {
        isConnecting = false
        noteOwnCommands()
        return machine?.resume(at: loop.now()) ?? []
    }

    /// Passes on whether the kernel carries out a command of this program to its management interface.
    func managementChanged(isBusy: Bool) {
        guard isBusy != isManagementBusy else { return }
        isManagementBusy = isBusy
        noteOwnCommands()
    }

    private func noteOwnCommands() {
        machine?.ownCommands(areOut: isConnecting || isManagementBusy, at: loop.now())
    }

    // MARK: What happens

    /// Takes an event of the machine.
    func happened(_ event: AdvertiseSession.Event) {
        switch event {
        case .started(let id):
            states[id]?.report(.on)
            if let number = starting[id] { starts.resume(number, nil) }
        case .failed(let id, let failure): if let number = starting[id] { starts.resume(number, failure) }
        case .stopped(let id, let failure): stopped(id, failure)
        case .paused: pauses.resumeAll()
        case .interrupted(let id, let pause): states[id]?.report(Advertisement.State(.paused(pause)))
        case .resumed(let id): states[id]?.report(.on)
        case .connected: break
        }
    }

    func commandFinished(_ opcode: HCIOpcode, _ failure: HCICommandFailure?) -> [Action] {
        if failure == nil { others.taken(by: opcode) }
        // What was to be removed after its task has ended may be removed now.
        defer { releaseHandles() }
        return machine?.commandFinished(failure, at: loop.now()) ?? []
    }

    /// Another program, or the kernel, sends a command.
    func received(_ foreign: HCICommandPacket) { others.received(foreign) }

    func foreignCompletion(_ opcode: HCIOpcode, _ status: HCIStatus?) -> [Action] {
        let handles = others.completed(opcode, status)
        return machine?.foreignCompletion(opcode, status, about: handles, at: loop.now()) ?? []
    }

    func received(_ event: LEAdvertisingSetTerminated) -> [Action] {
        others.ended(event.advertisingHandle)
        return machine?.received(event, at: loop.now()) ?? []
    }

    func received(_ event: LEConnectionComplete) -> [Action] {
        others.received(event)
        return machine?.received(event, at: loop.now()) ?? []
    }

    /// A central's link was accepted, whose beginning may not have been reported.
    func linkAccepted(_ handle: ConnectionHandle) { machine?.linkAccepted(handle, at: loop.now()) }

    func linkEnded(_ handle: ConnectionHandle) -> [Action] { machine?.linkEnded(handle, at: loop.now()) ?? [] }

    func adapterDown() -> [Action] {
        others = OtherAdvertising()
        // Sets that were still to be removed are forgotten.
        defer { releaseHandles() }
        return machine?.adapterDown() ?? []
    }

    func adapterUp() -> [Action] { machine?.adapterUp(at: loop.now()) ?? [] }

    func timePassed() -> [Action] { machine?.timePassed(loop.now()) ?? [] }
}

extension Adapter {
    func perform(_ actions: [AdvertiseSession.Action]) {
        for action in actions {
            switch action {
            case .send(let command): send(command, for: .advertise)
            case .notify(let event):
                logger.debug("advertising", metadata: ["adapter": "\(name)", "event": "\(event)"])
                advertiser.happened(event)
            }
        }
        armTimer()
        noteAdvertising()
    }

    /// Who advertises on the controller, as far as is known.
    var advertising: ScanSession.Advertising {
        if advertiser.isOnAir || instances.isOnAir { return .thisProgram }
        return advertiser.othersAreOnAir ? .others : .nobody
    }

    /// Passes on whether the kernel may disable advertising sets for this program.
    func noteManagement() {
        advertiser.managementChanged(isBusy: instances.hasCommandOut || coordinator.isSettingUp)
    }

    /// Passes on who advertises: some controllers do not scan meanwhile.
    func noteAdvertising() {
        noteManagement()
        let now = loop.now()
        let current = advertising
        recovery.advertisingChanged(current != .nobody, at: now)
        let actions = scan.advertisingChanged(
            current, isCertain: advertiser.isSurelyOnAir, areOthersOnAir: advertiser.othersAreOnAir, at: now)
        if !actions.isEmpty { perform(actions) }
    }

    /// Puts an advertisement on air, and keeps it there until `stopAdvertising`.
    ///
    /// - Throws: `BLEError` with the codes of `addSet` or `addInstance`.
    func advertise(
        _ advertisement: Advertisement, during operation: String
    ) async throws(BLEError) -> StartedAdvertisement {
        try await prepare(during: operation)
        switch advertisement.backEnd {
        case .automatic, .controller:
            let started = try await addSet(advertisement, during: operation)
            return StartedAdvertisement(id: .set(started.id), states: started.states)
        case .management:
            let started = try await addInstance(advertisement, during: operation)
            return StartedAdvertisement(id: .instance(started.id), states: started.states)
        }
    }

    /// Takes an advertisement off air.
    func stopAdvertising(_ id: StartedAdvertisement.ID) async {
        switch id {
        case .set(let setID):
            await advertiser.stop(setID) { perform($0) }
            watchPresence()
        case .instance(let instance): await removeInstance(instance)
        }
    }

    func advertisingState(of id: StartedAdvertisement.ID) -> Advertisement.State {
        switch id {
        case .set(let setID): Advertisement.State(advertiser.status(of: setID))
        case .instance(let instance): Advertisement.State(instances.status(of: instance))
        }
    }

    /// Puts an advertising set on air by commands to the controller.
    ///
    /// - Throws: `BLEError` with `.notPermitted` without CAP_NET_RAW, `.invalidArgument` for data that does not fit,
    ///   `.notSupported`, `.busy` (no advertising set is free, or the controller does not begin one beside links),
    ///   `.cancelled`.
    private func addSet(
        _ advertisement: Advertisement, during operation: String
    ) async throws(BLEError) -> AdvertiseCoordinator.Started {
        guard mayCommand else { throw notPermittedError(during: operation) }
        if advertiser.controller == nil { try await askAboutSets(during: operation) }
        guard let controller = advertiser.controller else { throw downError(during: operation) }
        if !controller.hasSets, instances.count > 0 { throw BLEError(oneAdvertiserOf: name, during: operation) }
        // Where it has just come back, its sets may still wait for the management.
        if presence == .up { perform(advertiser.adapterUp()) }
        let plan = try advertisement.plan(on: controller, traits.ownAddressType, address, name, during: operation)
        let result = await advertiser.start(plan, of: address) { perform($0) }
        watchPresence()
        switch result {
        case .success(let started)?: return started
        case .failure(let failure)?:
            throw BLEError(failure, adapter: name, links: linksUp.count, during: operation)
        case nil: throw cancelledError(during: operation)
        }
    }

    private func askAboutSets(during operation: String) async throws(BLEError) {
        var sets: UInt8?
        var length: UInt16?
        let isLegacy = scan.hasFallenBack
        if advertiser.mayHaveSets, !isLegacy {
            sets = try await askIfKnown(LEReadNumberOfSupportedAdvertisingSets(), during: operation)
            length = try await askIfKnown(LEReadMaximumAdvertisingDataLength(), during: operation)
        }
        advertiser.begin(maximumSets: sets, maximumDataLength: length, isLegacy: isLegacy)
    }
}

extension BLEError {
    /// - Parameter links: The number of links that are up on the adapter.
    fileprivate init(
        _ failure: AdvertiseSession.StartFailure, adapter: String, links: Int, during operation: String
    ) {
        switch failure {
        case .notSupported:
            self.init(
                .notSupported, subject: adapter, during: operation,
                because: "the controller has no extended advertising, or not this PHY",
                hint: "Leave out the extended PDUs.")
        case .noFreeSet(let limit):
            self.init(
                .busy, subject: adapter, during: operation,
                because: "the controller can have \(limit) advertisements, and all are in use",
                hint: "Stop one first.")
        case .adapterDown:
            self.init(
                .adapterDown, subject: adapter, during: operation, because: "the adapter was switched off or reset",
                hint: "Try again when it is on.")
        case .command(let failure) where links > 0 && failure.reportsBusy:
            // Row W40.
            self.init(
                .busy, subject: adapter, during: operation,
                because: "the controller does not begin to advertise with \(links) "
                    + "\(links == 1 ? "link" : "links") up: \(failure)",
                hint: "Disconnect a device first. An advertisement that began earlier waits for that by itself.",
                hciStatus: failure.status, origin: .adapter)
        case .command(let failure):
            self.init(
                .system, subject: adapter, during: operation, because: "the controller refused: \(failure)",
                hint: "Another program may advertise with it, or it may have no room for another link.",
                hciStatus: failure.status, origin: .adapter)
        case .stopped:
            self.init(.cancelled, subject: adapter, during: operation, because: "it was stopped")
        }
    }
}

extension HCICommandFailure {
    /// A Boolean value that indicates whether the controller may accept the command when it has less to do.
    fileprivate var reportsBusy: Bool {
        guard let status else { return false }
        return status == .commandDisallowed || status.reportsTooManyLinks
    }
}

/// An advertisement that was started, by either back end.
struct StartedAdvertisement {
    enum ID: Hashable, Sendable {
        case set(AdvertiseSession.SetID)
        case instance(InstanceSession.InstanceID)
    }

    let id: ID
    let states: AdvertiseCoordinator.States
}

/// The advertising handles, or numbers of instances, that this process has reserved on an adapter.
final class AdvertisingHandles {
    typealias Reserve = @Sendable (UInt8, BluetoothAddress) -> HandleClaim

    private let reserve: Reserve
    private var reserved: [UInt8: HeldReservation] = [:]

    init(_ reserve: @escaping Reserve) {
        self.reserve = reserve
    }

    /// Reserves those handles that no other process has; returns the others.
    func reserve(_ handles: some Sequence<UInt8>, of adapter: BluetoothAddress) -> Set<UInt8> {
        var others: Set<UInt8> = []
        for handle in handles where reserved[handle] == nil {
            switch reserve(handle, adapter) {
            case .reserved(let reservation): reserved[handle] = reservation
            case .taken: others.insert(handle)
            case .unknown: break
            }
        }
        return others
    }

    /// Releases the handles that are not in use.
    func release(except used: Set<UInt8>) {
        reserved = reserved.filter { used.contains($0.key) }
    }
}
