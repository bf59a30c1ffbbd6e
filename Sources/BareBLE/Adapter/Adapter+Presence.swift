internal import BLECore
internal import BLELinux
internal import Logging

extension Adapter {
    // MARK: Beginning

    /// Makes the adapter ready for use: finds it, opens its sockets and asks what the controller can do.
    ///
    /// - Throws: `BLEError` with `.unsupported`, `.noAdapter`, `.adapterDown`, `.blocked`, `.notPermitted`, `.busy`,
    ///   `.timedOut` (the controller does not respond), `.cancelled`.
    package func prepare(during operation: String, mayCyclePower: Bool = true) async throws(BLEError) {
        try await prepare(mayCyclePower: mayCyclePower, in: .unlimited(operation))
    }

    /// As `prepare(during:mayCyclePower:)`, for a call that waits for the kernel's management of the adapter until its
    /// deadline at most.
    func prepare(mayCyclePower: Bool = true, in context: CallContext) async throws(BLEError) {
        try await prepareController(in: context)
        try await manageFirst(mayCyclePower: mayCyclePower, in: context)
    }

    /// As `prepare`, without security.
    func prepareController(in context: CallContext) async throws(BLEError) {
        let operation = context.operation
        try find(during: operation)
        if presence == .down { try await awaitSetUp(in: context) }
        guard presence == .up else { throw downError(during: operation) }
        try await identify(during: operation)
        // It may have gone after the last response.
        guard presence == .up else { throw downError(during: operation) }
    }

    /// As `prepare`; switches the adapter and its LE side on first, where that is needed and the process may do it.
    package func ready(powerOn: Bool, during operation: String) async throws(BLEError) {
        try find(during: operation)
        try checkSharing(during: operation)
        if powerOn, let index = info?.index, let failure = await powerUp(index, during: operation) {
            throw BLEError(failure, subject: subject, during: operation)
        }
        monitor.keepPower(powerOn)
        guard presence == .up else { throw downError(during: operation) }
        try await identify(during: operation)
        guard presence == .up else { throw downError(during: operation) }
        if powerOn, mayCommand {
            // Adapters for LE alone refuse this, and do not need it.
            _ = await run(HCICommandPacket(HCIWriteLEHostSupport(isSupported: true)))
        }
        try await manageFirst(in: .unlimited(operation))
    }

    /// Switches the adapter on, if this process may.
    ///
    /// Also for an adapter that seems to be on: in its first two seconds that does not last.
    func powerUp(_ index: UInt16, during operation: String) async -> SystemCallError? {
        guard system.privileges().has(.netAdmin) else { return nil }
        if await powerUpManaged(during: operation) { return nil }
        let system = system
        // The kernel takes up to half a second; the loop continues meanwhile.
        let failure: SystemCallError?
        do throws(WorkFailure) {
            failure = try await loop.offload { () -> SystemCallError? in
                do throws(SystemCallError) {
                    try system.powerUp(index)
                    return nil
                } catch {
                    return error
                }
            }
        } catch {
            failure = SystemCallError(call: "pthread_create", errno: SystemCallError.tryAgain)
        }
        // The kernel's own set-up has passed through the socket too, a reset among it: read it before any query.
        commandsReadable()
        checkPresence()
        return failure
    }

    /// Finds the adapter and opens its sockets, unless that was done.
    func find(during operation: String) throws(BLEError) {
        // One that was lost is not new: scans are notified of its return.
        if hci.isOpen || presence == .gone {
            checkPresence()
            if hci.isOpen { return }
        }
        let all: [ControllerInfo]
        var subject = subject
        do throws(SystemCallError) {
            all = try system.list()
            if let found = all.first(where: { monitor.matches($0) }) {
                subject = found.name
                let isReturn = presence == .gone
                try open(found, among: all)
                if isReturn {
                    returned(found)
                    // The caller needs its state as it is now.
                    if found.isUp { cameUp() }
                }
                return
            }
        } catch {
            monitor.lookFailed()
            throw BLEError(error, subject: subject, during: operation)
        }
        throw noAdapterError(all, during: operation)
    }

    private func open(_ found: ControllerInfo, among all: [ControllerInfo]) throws(SystemCallError) {
        hci.open(try system.open(found.index), name: found.name, mayCommand: system.privileges().has(.netRaw))
        guard let (commands, reports) = hci.descriptors else { return }
        let failure =
            loop.onReadable(commands) { [weak self] in self?.assumeIsolated { $0.commandsReadable() } }
            ?? loop.onReadable(reports) { [weak self] in self?.assumeIsolated { $0.reportsReadable() } }
        if let failure {
            loop.unregister(commands)
            hci.close()
            throw failure
        }
        monitor.update(found)
        bonds.use(hardware: system.hardware(found))
        monitor.update(found.isUp ? .up : .down)
        if system.mayBeSuspended(found.name) {
            logger.notice(
                "the kernel may suspend the adapter in a scan, and reports are lost: `blescan doctor` has a remedy",
                metadata: ["adapter": "\(found.name)", "power/control": "auto"])
        }
        logger.debug("adapter opened", metadata: ["adapter": "\(found.name)", "address": "\(found.address)"])
        // One without an address gets it when it is switched on, or has a static random one.
        if found.address != .zero, !found.hasOwnAddress(among: all) {
            logger.warning(
                "other adapters have the same address: bonds and state, which are stored by it, fit them too",
                metadata: ["adapter": "\(found.name)", "address": "\(found.address)"])
        }
    }

    /// Asks what the controller can do; tasks that come meanwhile wait for the same responses.
    private func identify(during operation: String) async throws(BLEError) {
        guard await identification.awaitResponses() else { throw cancelledError(during: operation) }
        guard mayCommand, scan.controller == nil else { return }
        identification.beginAsking()
        var found: ControllerTraits?
        defer { identification.endAsking(found) }
        var features = try await ask(LEReadLocalFeatures(), during: operation)
        if features.contains(.coded), system.hasDefectiveCodedPHY(name) {
            features.remove(.coded)
            logger.info(
                "the controller's coded PHY is not used: it is known not to work", metadata: ["adapter": "\(name)"])
        }
        let commands = try await askIfKnown(HCIReadLocalSupportedCommands(), during: operation)
        let address = try await askIfKnown(HCIReadAddress(), during: operation)
        // A controller without an address of its own was given a static random one.
        let ownAddressType: AddressType = if address == .zero { .random } else { .public }
        let traits = ControllerTraits(
            ownAddressType: ownAddressType,
            hasExtendedConnect: commands?.hasExtendedConnect ?? features.contains(.extendedAdvertising),
            selectablePHYs: commands?.hasDefaultPHY == true ? features.phys : [])
        found = traits
        identification.use(features: features, commands: commands)
        setUpController(traits)
        advertiser.use(features, commands)
        scan.use(
            ScanSession.Controller(features: features, commands: commands, ownAddressType: ownAddressType),
            rearmsWhenSilent: recovery.policy.permits(.rescan))
        noteAdvertising()
    }

    /// As `ask`; `nil` from a controller that refuses the query or responds wrongly, as it would each time. Any other
    /// failure indicates nothing about the controller.
    func askIfKnown<Query: HCIQuery>(
        _ query: Query, during operation: String
    ) async throws(BLEError) -> Query.ReturnParameters? {
        do throws(HCICommandFailure) {
            return try await run(HCICommandPacket(query)).get().parameters(of: Query.self)
        } catch {
            switch error.reason {
            case .status, .malformed, .noResponse: return nil
            case .timeout, .queueFull, .cancelled, .adapterLost, .notSent:
                throw self.error(error, during: operation)
            }
        }
    }

    // MARK: Coming and going

    /// Looks at the adapter every two seconds while it is used, and while it is followed and the kernel announces
    /// nothing, or the last look has failed.
    func watchPresence() {
        let isLookedFor = followsByLooking()
        let isAdvertising = advertiser.setCount > 0 || instances.count > 0
        guard scan.hasScans || initiator.isBusy || isAdvertising || isLookedFor else {
            return monitor.stopTimer(loop)
        }
        monitor.startTimer(loop) { [weak self] in self?.assumeIsolated { $0.lookAgain() } }
    }

    /// Whether something follows the adapter's presence that the kernel does not announce.
    ///
    /// Advertising sets follow it too: centrals look for them from the moment at which the adapter is on again. So do
    /// centrals with bonds while it is off or away.
    private func followsByLooking() -> Bool {
        let isServing = advertiser.setCount > 0 || awaitsReturnForCentrals
        return monitor.followsByLooking(system, on: loop, isServing: isServing) { [weak self] in
            self?.assumeIsolated {
                $0.monitor.stopTimer($0.loop)
                $0.lookAgain()
            }
        }
    }

    private func lookAgain() {
        monitor.timerFired()
        monitor.lookBegins()
        checkPresence()
        if presence == .unknown { try? find(during: "wait for the adapter") }
        wake(monitor.waitersToResume)
        if monitor.isObserved { monitor.report(state) }
        watchPresence()
    }

    /// Compares what the kernel reports of the adapter with what is known here.
    func checkPresence() {
        if presence == .gone { return lookForReturn() }
        guard let index = info?.index else { return }
        do throws(SystemCallError) {
            let now = try system.info(index)
            guard isSame(now) else { return lost(.gone) }
            if now.isUp, presence == .down {
                // The kernel's reset of a controller that it switches on waits to be read: it is over.
                commandsReadable()
                if presence == .gone { return }
            }
            monitor.update(now)
            if now.isUp { cameUp() } else { lost(.down) }
        } catch {
            if error.meaning == .adapterGone { lost(.gone) } else { monitor.lookFailed() }
        }
    }

    /// Whether a look at the adapter's number has found this adapter, and not another one that has the number now.
    private func isSame(_ found: ControllerInfo) -> Bool {
        guard let known = info?.address, known != .zero, known != found.address else { return true }
        // A service of the system gives a controller with a default address its own, maybe after it was found here.
        // What is stored by the old one, as bonds are, must not follow.
        return known.isDefaultOfControllers && monitor.selector.matches(found) && !bonds.isOpen
    }

    /// Waits until the adapter is there and on, whatever its number is.
    ///
    /// - Returns: Whether it is; `false` to a cancelled task.
    package func awaitPresence() async -> Bool {
        while true {
            try? find(during: "wait for the adapter")
            if presence == .up { return true }
            let (wake, number) = await suspend {
                monitor.addWaiter($0)
                watchPresence()
            }
            monitor.removeWaiter(number)
            watchPresence()
            if case .cancelled = wake { return false }
        }
    }

    private func lookForReturn() {
        do throws(SystemCallError) {
            let all = try system.list()
            guard let found = all.first(where: { monitor.matches($0) }) else { return }
            try open(found, among: all)
            returned(found)
        } catch {
            monitor.lookFailed()
            logger.debug("an adapter that is away cannot be looked for", metadata: ["error": "\(error)"])
        }
    }

    /// An adapter that was gone is open again: what has waited for it continues once it is on.
    private func returned(_ found: ControllerInfo) {
        monitor.update(Presence.down)
        // What failed before it was pulled out need not fail again.
        security.setUpEnded(nil)
        useManagement(of: found.index)
        useInstances(of: found.index)
        // An adapter that is there was switched off on purpose; one that comes back is off by itself. One that a step
        // of recovery has left off is claimed before it is switched on, and tried again by that.
        if !found.isUp, restorePower() { return }
        if monitor.keepsPower {
            beginSwitchingOn(found.index, pause: PresenceMonitor.firstPowerPause)
        } else if found.isUp {
            cameUp()
        }
    }

    private func beginSwitchingOn(_ index: UInt16, pause: Duration) {
        monitor.stopPowerTimer(loop)
        Task(executorPreference: loop) { [weak self] in await self?.switchOn(index, pause: pause) }
    }

    /// Switches an adapter on that has come back. One that does not respond to the kernel may do so later: nobody else
    /// would try again.
    ///
    /// - Parameter pause: The pause before the next attempt, if this one fails.
    private func switchOn(_ index: UInt16, pause: Duration) async {
        guard let failure = await powerUp(index, during: "switch the adapter on"), isToBeSwitchedOn(index) else {
            return
        }
        switch failure.meaning {
        case .noResponse, .inUse, .outOfResources, .other: break
        // It would fail for the same reason.
        case .noBluetooth, .notPermitted, .adapterGone, .adapterDown, .blocked, .noAddress, .unconfigured: return
        }
        logger.warning(
            "an adapter that has come back could not be switched on",
            metadata: [
                "adapter": "\(name)", "reason": "\(failure)", "again in": "\(pause.components.seconds) s",
            ])
        monitor.startPowerTimer(loop, after: pause) { [weak self] in
            self?.assumeIsolated { $0.switchOnAgain(index, pause: min(pause * 2, PresenceMonitor.longestPowerPause)) }
        }
    }

    private func switchOnAgain(_ index: UInt16, pause: Duration) {
        checkPresence()
        guard isToBeSwitchedOn(index) else { return }
        beginSwitchingOn(index, pause: pause)
    }

    /// Whether an adapter that has come back is still to be switched on: it may have gone meanwhile, or be on, and the
    /// program may have asked for it as it is.
    private func isToBeSwitchedOn(_ index: UInt16) -> Bool {
        monitor.keepsPower && presence == .down && info?.index == index
    }

    private func cameUp() {
        guard presence != .up else { return }
        monitor.stopPowerTimer(loop)
        monitor.update(Presence.up)
        logger.debug("adapter is up", metadata: ["adapter": "\(name)"])
        recovery.adapterIsUp()
        wake(monitor.waitersToResume)
        monitor.report(.poweredOn)
        scan.notify(.adapterBack)
        setUpController(traits)
        perform(scan.adapterUp(at: loop.now()))
        advertiseAgain()
    }

    /// The adapter went down or away: what waits fails once, scans that have begun wait for its return.
    func lost(_ how: Presence) {
        let wasUp = presence == .up
        if how == .gone {
            closeSockets()
            monitor.stopPowerTimer(loop)
        }
        guard presence != how else { return }
        monitor.update(how)
        monitor.report(how == .gone ? .absent : .poweredOff)
        // Also where a step had left it off.
        recovery.adapterLost()
        watchPresence()
        guard wasUp else { return }
        logger.debug("adapter is \(how)", metadata: ["adapter": "\(name)"])
        monitor.countLoss()
        // Why links end is the adapter's loss, which their sockets report themselves.
        controllerReset()
        let error = downError(during: "scan")
        for starter in scan.starters { wake(starter, .failed(error)) }
        scan.notify(.adapterLost)
    }

    func closeSockets() {
        guard let (commands, reports) = hci.descriptors else { return }
        loop.unregister(commands)
        loop.unregister(reports)
        hci.close()
    }
}
