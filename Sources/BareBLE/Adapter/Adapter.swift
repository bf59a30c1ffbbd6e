package import BLECore
package import BLELinux
package import Logging

// One adapter in use. The actor is the face: it finds the adapter, follows its presence, makes it ready, and lets tasks
// wait. Everything else has an owner of its own, whose state is private; the actor performs the actions that the owners
// return.
//
// | owner | what it owns |
// |---|---|
// | `HCIChannel` | the raw sockets, the queue of commands, what each command was sent for, the trace |
// | `ScanCoordinator` | the scan session, the scans, the table of devices, the assembler of reports, what buffers |
// | | have dropped |
// | `ConnectionInitiator` | the connection attempt, its cancel, the turns of connects, the number of links that there |
// | | can be, and the tasks that wait for these |
// | `ControllerIdentification` | what the controller can do, whether it is being asked, which events it has to send, |
// | | and the PHYs that it prefers |
// | `LinkTable` (BLECore) | one entry for each connection handle |
// | `RecoveryCoordinator` | the steps that make a silent adapter receive again, and the sequences that report them |
// | `AdvertiseCoordinator` | the advertising session, and the tasks that start and stop its sets |
// | `AdvertisingInstances` | a management socket for the kernel's advertising instances, the numbers that are |
// | | reserved of them, the tasks that start and stop them, and the address that the kernel pairs with |
// | `LinkAcceptor` | the listening socket, and the accepted links that a connect has to claim |
// | `AdapterSecurity` | the bonds, the pairings, the management interface, the keys that the kernel has, and their |
// | | events |
// | `PresenceMonitor` | which adapter this is, how it is, what follows that, the kernel's announcements of changes, |
// | | and the log of problems |
// | `Waiters` | the tasks that wait for any of these |
//
// Duties
// - Several scans share one radio: the session runs a plan that covers them all, and each has its own gate.
// - Connects take turns. Where commands may be sent, the scan makes way for a connect and continues after it.
// - The adapter may go down, be reset or be unplugged at any time. What waits then fails once; scans live through it
//   and continue when the adapter is back, which is looked for by its address, because its number may be another one.
// - The reason that the controller gives for the end of a link is kept for the owner of the link.
//
// Invariants
// - All state belongs to the event loop's thread; a readable descriptor enters the actor without a hop.
// - An owner's actions are performed in the order in which it returns them, after the call that returned them.

/// Scans and connects through one adapter of this machine.
package actor Adapter {
    /// The presence of the adapter.
    package enum Presence: Hashable, Sendable {
        /// Not looked for yet.
        case unknown
        /// On.
        case up
        /// There, but switched off.
        case down
        /// It was there, and is not any more.
        case gone
    }

    nonisolated let loop: EventLoop
    let system: AdapterSystem
    let hci: HCIChannel
    let security: AdapterSecurity
    let scan = ScanCoordinator()
    let initiator: ConnectionInitiator
    let identification: ControllerIdentification
    let acceptor: LinkAcceptor
    let advertiser: AdvertiseCoordinator
    let instances: AdvertisingInstances
    let recovery: RecoveryCoordinator
    let monitor: PresenceMonitor
    var links = LinkTable()
    let waiting: Waiters<Wake>
    private var timer = DeadlineTimer()

    /// The event loop: all of the actor's code runs there.
    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds the loop, so the reference stays good. Handlers of the loop and other actors on it are inside
        // this actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// An adapter that is looked for with its first use.
    package init(
        _ selector: AdapterSelector, loop: EventLoop, logger: Logger,
        trace: (@Sendable (TracedHCIPacket) -> Void)? = nil, security: SecurityConfiguration? = nil,
        addressHash: AddressResolver.Hash? = nil, recovery: RecoveryPolicy = .rescan, maximumLinks: Int? = nil,
        preferredPHYs: LEPHYs? = nil,
        system: AdapterSystem = .kernel
    ) {
        self.loop = loop
        monitor = PresenceMonitor(selector, logger: logger)
        self.system = system
        waiting = Waiters(on: loop)
        initiator = ConnectionInitiator(on: loop, maximumLinks: maximumLinks)
        identification = ControllerIdentification(on: loop, preferring: preferredPHYs)
        acceptor = LinkAcceptor(on: loop, logger: logger)
        advertiser = AdvertiseCoordinator(on: loop, reservingBy: system.reserveHandle)
        instances = AdvertisingInstances(on: loop, reservingBy: system.reserveHandle)
        self.recovery = RecoveryCoordinator(recovery)
        hci = HCIChannel(trace: trace) { loop.now() }
        self.security = AdapterSecurity(security, addressHash: addressHash, on: loop, logger: logger)
        self.security.bonds.onChange { [weak self] areKeysLate in
            self?.assumeIsolated { $0.bondsChanged(areKeysLate: areKeysLate) }
        }
        initiator.onActions { [weak self] actions in
            self?.assumeIsolated {
                $0.perform(actions)
                $0.watchPresence()
            }
        }
    }

    isolated deinit {
        timer.cancel(on: loop)
        monitor.end(on: loop)
        acceptor.end()
        closeSockets()
        security.stopManagementTimer(on: loop)
        closeManagement()
        closeInstances()
    }

    /// The adapter's name in messages.
    package var name: String { monitor.name }

    /// What a failure is about; `nil` before an adapter has been found, where none was named.
    var subject: String? { monitor.subject }

    var logger: Logger { monitor.logger }

    /// The bonds of this adapter.
    var bonds: BondedDevices { security.bonds }
    /// Keeps the adapter able to pair, and pairs.
    var coordinator: SecurityCoordinator { security.coordinator }
    nonisolated var securityEvents: EventBroadcaster<SecurityEvent> { security.events }
    /// Counts what the buffers of scans have dropped.
    var droppedEvents: DropCounter { scan.droppedEvents }

    /// What is known of the controller, or is safe to assume.
    var traits: ControllerTraits { identification.traits }
    /// A Boolean value that indicates whether the controller is known to connect on secondary channels.
    package var hasExtendedConnect: Bool { traits.hasExtendedConnect }

    /// The adapter's address, once it has been found.
    package var address: BluetoothAddress? { info?.address }

    /// The presence of the adapter, as far as is known.
    package var presence: Presence { monitor.presence }

    var info: ControllerInfo? { monitor.info }

    /// Whether this process may send commands to the controller.
    var mayCommand: Bool { hci.mayCommand }
}

// MARK: - Time

extension Adapter {
    /// Sets the one timer to the earliest deadline of the owners; one that is too early does no harm.
    func armTimer() {
        let deadlines = [
            hci.nextDeadline, scan.nextDeadline, initiator.nextDeadline, coordinator.nextDeadline,
            security.encryption.nextDeadline, advertiser.nextDeadline, instances.nextDeadline, recovery.nextDeadline,
        ]
        timer.arm(for: deadlines.compactMap(\.self).min(), on: loop) { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { $0.timePassed() }
            }
        }
    }

    /// Sets the timer to the earliest deadline, also if that is later than the one before: a step of recovery may have
    /// been due in half an hour, and would wake an idle program.
    func resetTimer() {
        timer.cancel(on: loop)
        armTimer()
    }

    private func timePassed() {
        timer.fired()
        let now = loop.now()
        perform(hci.timePassed())
        perform(scan.timePassed(now, linked: links.peers))
        perform(initiator.timePassed())
        perform(coordinator.timePassed())
        perform(security.encryption.timePassed())
        perform(advertiser.timePassed())
        instancesTimePassed()
        // An adapter that a step has left off does not listen before the next run: nothing makes way then.
        let isListening = presence != .up || scan.isListening && !initiator.isBusy
        let makesWay = presence == .up && initiator.isBusy
        perform(recovery.timePassed(now, isListening: isListening, makesWay: makesWay))
        if recovery.takePowerUpDeadline(now) { restorePower() }
    }
}

// MARK: - What the owners return

extension Adapter {
    func perform(_ events: [HCIChannel.Event]) {
        for event in events {
            switch event {
            case .finished(let purpose, let result): commandFinished(purpose, result)
            case .foreignCommand(let command?):
                identification.received(command)
                initiator.received(command)
                advertiser.received(command)
            case .foreignCommand(nil): break
            case .foreign(let opcode, let status): foreignCompletion(opcode, status)
            case .received(let event): received(event)
            case .data(let data): dataSeen(data)
            case .lost(let presence): lost(presence)
            }
        }
        armTimer()
    }

    func perform(_ actions: [ScanCoordinator.Action]) {
        for action in actions {
            switch action {
            case .send(let command): send(command, for: .scan)
            case .resume(let waiter): wake(waiter)
            case .fail(let waiter, let failure): wake(waiter, .failed(error(failure)))
            case .log(let event):
                logger.debug("scan", metadata: ["adapter": "\(name)", "event": "\(event)"])
                switch event {
                case .stalled(_, let time):
                    perform(recovery.silent(for: time, at: loop.now()))
                    // No step follows that could end it.
                    if !recovery.policy.permits(.rescan), !scan.hasHeard { monitor.reportSilence() }
                case .refused(let time, let isNews): scanRefused(for: time, isNews: isNews)
                case .refusedWhileAdvertising(let time, let isNews):
                    scanRefusedWhileAdvertising(for: time, isNews: isNews)
                case .started: perform(recovery.scanAccepted(at: loop.now()))
                case .disturbed, .unable, .scanBusy, .paused, .ended: break
                }
                logWarnings()
            }
        }
        armTimer()
    }

    func perform(_ actions: [ConnectionInitiator.Action]) {
        for action in actions {
            switch action {
            case .send(let command): send(command, for: .connect)
            case .withdraw(let opcode): perform(hci.withdraw(opcode))
            case .disconnect(let handle, let peer):
                // Connects wait for links by the names that these are filed under.
                links.disconnecting(handle, from: identity(of: peer) ?? peer)
                send(HCICommandPacket(HCIDisconnect(handle: handle)), for: .none)
            }
        }
        armTimer()
    }

    private func commandFinished(
        _ purpose: HCIChannel.Purpose, _ result: Result<HCICommandComplete, HCICommandFailure>
    ) {
        let failure: HCICommandFailure?
        let opcode: HCIOpcode
        switch result {
        case .success(let complete): (opcode, failure) = (complete.opcode, nil)
        case .failure(let reason): (opcode, failure) = (reason.opcode, reason)
        }
        switch purpose {
        case .none: break
        case .eventMask(let command):
            identification.finished(command, failure)
            if let failure {
                logger.info(
                    "the controller did not take an event mask",
                    metadata: ["adapter": "\(name)", "failure": "\(failure)"])
            }
        case .scan: perform(scan.commandFinished(failure, at: loop.now()))
        case .connect: perform(initiator.commandFinished(opcode, failure))
        case .advertise: perform(advertiser.commandFinished(opcode, failure))
        // An update that the controller has accepted ends with its event.
        case .update(let key): if let failure { wake(links.updateFailed(key, failure)) }
        case .encryption(let number): perform(security.encryption.commandFinished(number, failure))
        case .task(let waiter): wake(waiter, .finished(result))
        }
        if failure?.reason == .timeout { perform(recovery.commandTimedOut(at: loop.now())) }
        if failure == nil || failure?.status != nil {
            perform(recovery.responded(at: loop.now()))
            perform(initiator.controllerResponded(opcode))
            perform(identification.controllerResponded())
        }
    }

    private func foreignCompletion(_ opcode: HCIOpcode, _ status: HCIStatus?) {
        let now = loop.now()
        if opcode == .reset, status == .success {
            logger.debug("the controller was reset by another program", metadata: ["adapter": "\(name)"])
            // The kernel resets it as well when it switches it on.
            if presence == .up { monitor.countReset() }
            // A kernel that did not reset it itself keeps links that the controller has dropped: nothing would ever
            // arrive on them again, and no event would end them.
            for handler in controllerReset() { handler(nil) }
            identification.controllerReset()
            // While it is being switched on, the kernel is not done yet.
            if presence == .up {
                setUpController(traits)
                perform(scan.adapterUp(at: now))
                // Otherwise the advertisements are on air again when that has ended.
                if !security.isManagingForCentrals { resumeAdvertising() }
            }
            return
        }
        if let command = identification.completed(opcode, status, isSetUp: presence == .up, at: now) {
            logger.info(
                "another program has switched events off that are needed; they are on again",
                metadata: ["adapter": "\(name)"])
            perform([command])
        }
        perform(initiator.foreignCompletion(opcode, status))
        perform(scan.foreignCompletion(opcode, status, at: now))
        noteManagement()
        perform(advertiser.foreignCompletion(opcode, status))
    }

    /// Has the controller send the events that are needed, and prefer the PHYs that links may use; a reset ends both.
    func setUpController(_ traits: ControllerTraits) {
        perform(identification.eventCommands())
        if let command = identification.phyCommand(for: traits) { send(command, for: .none) }
    }

    /// Sends the commands of the event masks.
    func perform(_ commands: [HCICommandPacket]) {
        for command in commands { send(command, for: .eventMask(command)) }
    }

    /// Whatever the controller was doing has ended.
    ///
    /// - Returns: What the owners of links are to be notified by, where nothing else reports the loss.
    @discardableResult
    func controllerReset() -> [LinkTable.LossHandler] {
        perform(hci.adapterLost())
        perform(scan.adapterDown(at: loop.now()))
        perform(advertiser.adapterDown())
        instances.adapterDown()
        perform(initiator.adapterLost())
        acceptor.controllerReset()
        // The controller has no link any more.
        if case .suspectedLink(let peer) = recovery.reason {
            perform(recovery.linkNotSuspected(to: peer, at: loop.now()))
        }
        let (waiters, handlers) = links.controllerReset()
        perform(security.encryption.controllerReset())
        wake(waiters)
        updatePins()
        logWarnings()
        return handlers
    }
}

// MARK: - Commands and events

extension Adapter {
    /// Sends a command when its turn comes, and waits for its response: 2 s at most from then on, and not beyond
    /// `deadline`.
    func run(
        _ command: HCICommandPacket, until deadline: BootInstant? = nil
    ) async -> Result<HCICommandComplete, HCICommandFailure> {
        var ticket: HCICommandQueue.Ticket?
        let (wake, _) = await suspend(until: deadline) { ticket = send(command, for: .task($0)) }
        if case .finished(let result) = wake { return result }
        if let ticket { perform(hci.cancel(ticket)) }
        let isLate = if case .timedOut = wake { true } else { false }
        return .failure(HCICommandFailure(opcode: command.opcode, reason: isLate ? .timeout : .cancelled))
    }

    /// Sends a query, and reads its response.
    func ask<Query: HCIQuery>(_ query: Query, during operation: String) async throws(BLEError) -> Query.ReturnParameters
    {
        do throws(HCICommandFailure) {
            return try await run(HCICommandPacket(query)).get().parameters(of: Query.self)
        } catch {
            throw self.error(error, during: operation)
        }
    }

    @discardableResult
    func send(_ command: HCICommandPacket, for purpose: HCIChannel.Purpose) -> HCICommandQueue.Ticket {
        let (ticket, events) = hci.send(command, for: purpose)
        perform(events)
        return ticket
    }

    /// Reads responses, and the ends of links.
    func commandsReadable() {
        hci.readCommands { perform($0) }
        logWarnings()
    }

    /// Reads reports, and the beginnings and updates of links.
    func reportsReadable() {
        let now = loop.now()
        hci.readReports { event in
            switch event {
            case .received(.advertisingReports(let batch)):
                scan.received(batch, at: now)
                if batch.reports.contains(where: { !$0.payload.isEmpty }) { perform(recovery.heard(at: now)) }
            case .received(.connectionComplete(let complete)):
                // At the other socket the end of the last link with this handle may wait, and that of this one.
                if complete.status.isSuccess {
                    hci.passData(false)
                    commandsReadable()
                }
                links.began(complete)
                if complete.status.isSuccess { acceptor.began(complete) }
                if complete.status.isSuccess { perform(security.encryption.linkBegan(complete.handle)) }
                perform(initiator.received(complete))
                perform(advertiser.received(complete))
            case .received(.advertisingSetTerminated(let event)): perform(advertiser.received(event))
            case .received(.connectionUpdateComplete(let complete)): wake(links.updated(complete))
            case .received(.phyUpdateComplete(let complete)): wake(links.updated(complete))
            case .received: break
            case .data(let data): dataSeen(data)
            case .lost, .finished, .foreign, .foreignCommand: perform([event])
            }
        }
        logWarnings()
    }

    private func dataSeen(_ data: LinkData) {
        links.dataSeen(on: data.handle, needsResponse: data.needsResponse, needsEncryption: data.needsEncryption)
    }

    /// The controller has no link with this handle any more; its peer, if it was one of this program.
    func linkEnded(_ handle: ConnectionHandle, _ peer: PeerID?, _ reason: HCIStatus) {
        updatePins()
        acceptor.ended(handle)
        perform(scan.linkEnded(at: loop.now()))
        perform(advertiser.linkEnded(handle))
        perform(security.encryption.linkEnded(handle, reason))
        if let peer {
            if !isPairingCentral(peer, besides: handle) { perform(coordinator.linkEnded(peer)) }
            bonds.linkEnded(peer, at: loop.now())
        }
        wake(links.encryptionWaiters(of: handle))
    }

    /// An event of the socket for commands that is no response.
    private func received(_ event: HCIEvent) {
        switch event {
        case .disconnectionComplete(let end):
            let peer = links.peer(of: end.handle)
            wake(links.ended(end, at: loop.now()))
            if end.status.isSuccess { linkEnded(end.handle, peer, end.reason) }
        case .encryptionChange(let change):
            let waiters = links.received(change, at: hci.arrival)
            perform(security.encryption.received(change))
            for waiter in waiters { wake(waiter, .encryption(change.status)) }
            if let peer = links.peer(of: change.handle), change.status.isSuccess {
                perform(coordinator.encryptionChanged(change.isEncrypted, of: peer))
            }
            links.encryptionHandler(of: change.handle)?(change.status.isSuccess && change.isEncrypted)
        case .encryptionKeyRefresh(let refresh):
            if !refresh.status.isSuccess { links.encryptionEnded(refresh.handle) }
            perform(security.encryption.received(refresh))
            links.encryptionHandler(of: refresh.handle)?(refresh.status.isSuccess)
        case .connectionComplete(let complete):
            perform(initiator.received(complete))
        default: break
        }
    }
}
