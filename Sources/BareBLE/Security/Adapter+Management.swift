internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter is put under management: it opens and reads the kernel's management interface, which
// `SecurityCoordinator` has, and decides what follows where that fails.

extension Adapter {
    /// How long it may take to put the adapter under management, a change of its power included.
    private static let managementTimeout: Duration = .seconds(40)
    /// The pauses before a management interface that was lost is opened again; they double.
    private static let firstLossPause: Duration = .seconds(1)
    private static let longestLossPause: Duration = .seconds(300)

    /// Puts the adapter under management and loads its bonds, unless that was done.
    ///
    /// - Throws: `BLEError` with `.notSupported` without a `SecurityConfiguration`, `.notPermitted`, `.timedOut`,
    ///   `.adapterDown`, `.noAdapter`, `.blocked`, `.cancelled`, and the codes of `BondStore`.
    @discardableResult
    func manage(mayCyclePower: Bool = true, in context: CallContext) async throws(BLEError) -> ManagementSetup.Managed {
        try await prepareController(in: context)
        return try await setUp(mayCyclePower: mayCyclePower, in: context)
    }

    /// Waits for the end of a setup that is under way: it may have switched the adapter off for a moment.
    ///
    /// - Throws: `BLEError` with `.timedOut` if the adapter is not on at the deadline, `.cancelled`.
    func awaitSetUp(in context: CallContext) async throws(BLEError) {
        guard coordinator.isSettingUp else { return }
        let operation = context.operation
        let limit = context.deadline(or: loop.now() + Self.managementTimeout)
        let (wake, number) = await suspend(until: limit) { number in
            // It requests nothing: what the setup has switched off, it switches on again.
            perform(coordinator.manage(ManagementSetup.Plan(powersOn: false), number, isBystander: true))
        }
        coordinator.stopWaiting(number)
        if case .cancelled = wake { throw cancelledError(during: operation) }
        commandsReadable()
        checkPresence()
        if case .timedOut = wake, presence != .up { throw setUpTimedOutError(in: context) }
    }

    /// As `manage`, for an adapter that may be off: it is switched on. By the management interface alone: an adapter
    /// that is switched on by HCIDEVUP soon after it was plugged in stays on without the kernel's Security Manager.
    private func setUp(mayCyclePower: Bool, in context: CallContext) async throws(BLEError) -> ManagementSetup.Managed {
        let operation = context.operation
        guard security.isConfigured else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "pairing is not configured",
                hint: "Set `Configuration.security`.")
        }
        try checkSharing(during: operation)
        try await openBonds(in: context)
        try openManagement(in: context)
        let plan = ManagementSetup.Plan(
            powersOn: true, mayCyclePower: mayCyclePower && !links.hasLinks,
            canPair: security.canStillPair(losses: monitor.losses))
        let limit = context.deadline(or: loop.now() + Self.managementTimeout)
        let (wake, number) = await suspend(until: limit) { number in
            perform(coordinator.manage(plan, number))
        }
        coordinator.stopWaiting(number)
        switch wake {
        case .managed(.success(let managed)):
            // Its power may have changed.
            commandsReadable()
            checkPresence()
            guard presence == .up else { throw downError(during: operation) }
            security.setUpEnded(nil)
            return managed
        case .managed(.failure(let failure)): throw BLEError(failure, adapter: name, during: operation)
        case .cancelled: throw cancelledError(during: operation)
        default: throw setUpTimedOutError(in: context)
        }
    }

    private func setUpTimedOutError(in context: CallContext) -> BLEError {
        BLEError(
            .timedOut, subject: name, during: context.operation,
            because: "the kernel did not put the adapter under management",
            hint: "Unplug the adapter and plug it in again. `dmesg` shows what the kernel reports.")
    }

    /// Puts the adapter under management before its first use, where security is configured: later its links are in the
    /// way. What needs no security works without.
    ///
    /// - Parameter mayCyclePower: Whether the adapter may be switched off and on for that: not where links are up that
    ///   another program has made.
    func manageFirst(mayCyclePower: Bool = true, in context: CallContext) async throws(BLEError) {
        guard security.isConfigured, security.setUpFailure == nil else { return }
        // One that is managed and cannot pair can be helped where it has no links.
        if coordinator.isManaged, coordinator.canPair == true || links.hasLinks || !mayCyclePower { return }
        do throws(BLEError) {
            try await openBonds(in: context)
        } catch {
            if error.code == .cancelled { throw error }
            // It may have gone meanwhile.
            guard presence == .up else { throw downError(during: context.operation) }
            // A connect fails for the same reason. The next use tries again.
            return
        }
        do throws(BLEError) {
            try await manage(mayCyclePower: mayCyclePower, in: context)
        } catch {
            if error.code == .cancelled { throw error }
            // That is no failure of the adapter: the next use waits for it again, until the setup has failed.
            if context.isOver(at: loop.now()) { throw error }
            setUpFailed(error)
            // It was switched off for that, and why it is not on again is the cause.
            if presence == .down { throw error }
        }
        guard presence == .up else { throw downError(during: context.operation) }
    }

    /// The next use goes on without management.
    func setUpFailed(_ error: BLEError) {
        security.setUpEnded(error)
        warnOfNoManagement(error)
    }

    /// Whether the centrals that are served may have bonds.
    private var servesBondedCentrals: Bool { security.centrals.host != nil && security.isConfigured }

    /// Whether centrals with bonds are served, and the adapter is off or away: until it is under management again the
    /// kernel has no keys for their links, and nothing that this program calls looks for it.
    var awaitsReturnForCentrals: Bool { servesBondedCentrals && presence != .up }

    /// Has the advertisements of an adapter that came back on air again. Where centrals with bonds are served, that
    /// waits until the adapter is under management, or cannot be: a central that finds its key missing may forget its
    /// bond.
    func advertiseAgain() {
        guard servesBondedCentrals, !coordinator.isManaged else { return resumeAdvertising() }
        guard !security.isManagingForCentrals else { return }
        security.setManagingForCentrals(true)
        Task(executorPreference: loop) { [weak self] in await self?.manageAndAdvertise() }
    }

    private func manageAndAdvertise() async {
        let losses = monitor.losses
        await manageOrWarn(in: .unlimited("serve centrals"))
        // It may have gone and come back meanwhile, and what has failed was the setup of the adapter as it was before.
        // Once: a setup may switch the adapter off by itself.
        if !coordinator.isManaged, presence == .up, monitor.losses != losses {
            await manageOrWarn(in: .unlimited("serve centrals"))
        }
        security.setManagingForCentrals(false)
        if presence == .up { resumeAdvertising() }
    }

    /// Has the advertisements of both back ends on air again.
    func resumeAdvertising() {
        perform(advertiser.adapterUp())
        instances.adapterUp()
    }

    private func manageOrWarn(mayCyclePower: Bool = true, in context: CallContext) async {
        do throws(BLEError) {
            try await manage(mayCyclePower: mayCyclePower, in: context)
        } catch {
            warnOfNoManagement(error)
        }
    }

    /// The management interface is lost. Where centrals with bonds are served it is opened again: without it none can
    /// pair, and nothing that this program calls would open it. Any other use opens it itself.
    func managementLost() {
        security.managementLost(losses: monitor.losses)
        closeManagement()
        // What is being opened again is tried again where that fails.
        if !security.isReopeningManagement { manageCentralsAgain(after: Self.firstLossPause) }
    }

    private func manageCentralsAgain(after pause: Duration) {
        guard servesBondedCentrals else { return }
        security.scheduleManagement(at: loop.now() + pause, on: loop) { [weak self] in
            self?.assumeIsolated { $0.beginManagingCentralsAgain(pause) }
        }
    }

    private func beginManagingCentralsAgain(_ pause: Duration) {
        security.managementTimerFired()
        // The return of an adapter has its own way.
        guard servesBondedCentrals, presence == .up, !coordinator.isManaged, !security.isReopeningManagement else {
            return
        }
        security.setReopeningManagement(true)
        Task(executorPreference: loop) { [weak self] in await self?.manageCentralsNow(pause) }
    }

    private func manageCentralsNow(_ pause: Duration) async {
        // The power stays as it is: a central may just connect.
        await manageOrWarn(mayCyclePower: false, in: .unlimited("serve centrals"))
        security.setReopeningManagement(false)
        if !coordinator.isManaged { manageCentralsAgain(after: min(pause * 2, Self.longestLossPause)) }
    }

    /// Switches the adapter on under the kernel's management, where security is configured.
    ///
    /// - Returns: Whether it is on; otherwise it has to be switched on without.
    func powerUpManaged(during operation: String) async -> Bool {
        guard security.isConfigured else { return false }
        do throws(BLEError) {
            _ = try await setUp(mayCyclePower: true, in: .unlimited(operation))
            return true
        } catch {
            // Another use tries again.
            if error.code != .cancelled { warnOfNoManagement(error) }
            return false
        }
    }

    private func warnOfNoManagement(_ error: BLEError) {
        let consequence = mayCommand ? "encrypted by commands to the controller" : "not connected"
        // Without the right to it, that is as it was set up.
        let level: Logger.Level = error.code == .notPermitted && mayCommand ? .notice : .warning
        logger.log(
            level: level, "the adapter is not under management: no pairing, and bonded peers are \(consequence)",
            metadata: ["adapter": "\(name)", "reason": "\(error)"])
    }

    /// Refuses what needs security beside another program that manages the adapter, where that is configured.
    ///
    /// - Throws: `BLEError` with `.adapterShared`.
    func checkSharing(during operation: String) throws(BLEError) {
        guard bonds.configuration?.sharing == .exclusive, system.runsBluetoothd() else { return }
        throw BLEError(
            .adapterShared, subject: name, during: operation,
            because: "bluetoothd manages the adapter too, and `SecurityConfiguration.sharing` is `.exclusive`",
            hint: "End it: `systemctl stop bluetooth`.")
    }

    private func openManagement(in context: CallContext) throws(BLEError) {
        guard let index = info?.index else { throw downError(during: context.operation) }
        if coordinator.isOpen { return useManagement(of: index) }
        do throws(SystemCallError) {
            coordinator.open(try system.openManagement(), adapter: index)
            guard let descriptor = coordinator.descriptor else { return }
            let failure = loop.onReadable(descriptor) { [weak self] in
                self?.assumeIsolated { $0.managementReadable() }
            }
            if let failure {
                perform(coordinator.close())
                throw failure
            }
            if system.runsBluetoothd() { perform(coordinator.foundOtherManager()) }
        } catch {
            throw BLEError(error, subject: name, during: context.operation)
        }
    }

    /// The adapter is there again, perhaps with another index.
    func useManagement(of index: UInt16) {
        // That it was away may not be read yet.
        managementReadable()
        perform(coordinator.use(adapter: index))
    }

    func managementReadable() {
        coordinator.readable { perform($0) }
        logWarnings()
    }

    /// Stops the management of the adapter, with the adapter itself.
    func closeManagement() {
        if let descriptor = coordinator.descriptor { loop.unregister(descriptor) }
        perform(coordinator.close())
    }
}

extension SecurityCoordinator.ForeignChange {
    /// The change and its consequence, for the log.
    var words: String {
        switch self {
        case .bondableCleared(isSetAgain: true):
            "another program has made the adapter not bondable, so that no central could pair: it is set again"
        case .bondableCleared(isSetAgain: false):
            "other programs keep making the adapter not bondable: no central can pair for up to a minute"
        case .madeBondable: "every peer may bond with the adapter, by another program or by a failed command"
        case .wasBondable: "the adapter was bondable: another program manages it, or has done so"
        case .otherManager: "bluetoothd manages the adapter too: it refuses pairings, and removes the keys of bonds"
        case .secureConnectionsOff:
            "another program has switched LE Secure Connections off: they are switched on again before a pairing"
        case .privacyOn: "another program has given the adapter private addresses: pairing may fail"
        case .keyRemoved: "another program has removed the key of a bonded peer from the kernel: it is loaded again"
        }
    }
}
