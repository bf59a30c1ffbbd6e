internal import BLECore
internal import BLELinux
internal import Logging

extension Adapter {
    /// How often a lost or switched-off adapter is looked for, and one in use looked at.
    private static let presencePause: Duration = .seconds(2)

    // MARK: Beginning

    /// Makes the adapter ready for use: finds it, opens its sockets and asks what the controller can do.
    ///
    /// - Throws: `BLEError` with `.unsupported`, `.noAdapter`, `.adapterDown`, `.blocked`, `.notPermitted`, `.busy`,
    ///   `.timedOut` (the controller does not answer), `.cancelled`.
    package func prepare(during operation: String) async throws(BLEError) {
        try find(during: operation)
        guard presence == .up else { throw downError(during: operation) }
        try await identify(during: operation)
        // It may have gone behind the last answer.
        guard presence == .up else { throw downError(during: operation) }
    }

    /// As `prepare`; where the adapter is off, or its LE side may be, switches both on first, if the process may.
    package func ready(powerOn: Bool, during operation: String) async throws(BLEError) {
        try find(during: operation)
        if powerOn, let index = info?.index, let failure = await powerUp(index) {
            throw BLEError(failure, subject: subject, during: operation)
        }
        keepsPower = powerOn
        guard presence == .up else { throw downError(during: operation) }
        try await identify(during: operation)
        guard presence == .up else { throw downError(during: operation) }
        if powerOn, mayCommand {
            // Adapters for LE alone refuse this, and need it not.
            _ = await run(HCICommandPacket(HCIWriteLEHostSupport(isSupported: true)))
        }
    }

    /// Switches the adapter on, if this process may.
    ///
    /// Also for an adapter that looks on: in its first two seconds that does not last.
    private func powerUp(_ index: UInt16) async -> SystemCallError? {
        guard system.privileges().has(.netAdmin) else { return nil }
        let system = system
        // The kernel takes up to half a second; the loop goes on meanwhile.
        let failure: SystemCallError?
        do throws(WorkFailure) {
            failure = try await loop.elsewhere { () -> SystemCallError? in
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
        // The kernel's own set-up has passed through the socket too, a reset among it: behind us before we ask anything.
        commandsReadable()
        checkPresence()
        return failure
    }

    /// Finds the adapter and opens its sockets, unless that was done.
    func find(during operation: String) throws(BLEError) {
        // One that was lost is not as new: scans are told of its return.
        if sockets != nil || presence == .gone {
            checkPresence()
            if sockets != nil { return }
        }
        let all: [ControllerInfo]
        var subject = subject
        do throws(SystemCallError) {
            all = try system.list()
            if let found = all.first(where: isWanted) {
                subject = found.name
                let isReturn = presence == .gone
                try open(found)
                if isReturn {
                    returned(found)
                    // Who has called wants to know how it is now.
                    if found.isUp { cameUp() }
                }
                return
            }
        } catch {
            throw BLEError(error, subject: subject, during: operation)
        }
        throw noAdapterError(all, during: operation)
    }

    private func isWanted(_ candidate: ControllerInfo) -> Bool {
        // Once an adapter is in use it stays the one, whatever its number becomes.
        if let address, address != .zero { return candidate.address == address }
        return selector.matches(candidate)
    }

    private func open(_ found: ControllerInfo) throws(SystemCallError) {
        let opened = try system.open(found.index)
        let commands = opened.commands.descriptor
        let reports = opened.reports.descriptor
        let failure =
            loop.onReadable(commands) { [weak self] in self?.assumeIsolated { $0.commandsReadable() } }
            ?? loop.onReadable(reports) { [weak self] in self?.assumeIsolated { $0.reportsReadable() } }
        if let failure {
            loop.letGo(commands)
            throw failure
        }
        sockets = consume opened
        info = found
        presence = found.isUp ? .up : .down
        mayCommand = system.privileges().has(.netRaw)
        logger.debug("adapter opened", metadata: ["adapter": "\(found.name)", "address": "\(found.address)"])
    }

    /// Asks what the controller can do; those who come meanwhile wait for the same answers.
    private func identify(during operation: String) async throws(BLEError) {
        while isIdentifying {
            let (wake, _) = await suspend { identificationWaiters.append($0) }
            if wake == .cancelled { throw cancelledError(during: operation) }
        }
        guard mayCommand, session == nil else { return }
        isIdentifying = true
        defer {
            isIdentifying = false
            for waiter in identificationWaiters { wake(waiter) }
            identificationWaiters = []
        }
        let features = try await ask(LEReadLocalFeatures(), during: operation)
        let commands = try await askIfKnown(HCIReadLocalSupportedCommands(), during: operation)
        let address = try await askIfKnown(HCIReadAddress(), during: operation)
        // A controller without an address of its own was given a static random one.
        if let address { ownAddressType = address == .zero ? .random : .public }
        hasExtendedConnect = features.contains(.extendedAdvertising) && commands?.hasExtendedConnect ?? true
        session = ScanSession(
            ScanSession.Controller(features: features, commands: commands, ownAddressType: ownAddressType))
    }

    /// As `ask`; `nil` from a controller that refuses the query or answers it wrongly, as it would each time. What else goes wrong
    /// says nothing of the controller.
    private func askIfKnown<Query: HCIQuery>(
        _ query: Query, during operation: String
    ) async throws(BLEError) -> Query.Answer? {
        do throws(HCICommandFailure) {
            return try await run(HCICommandPacket(query)).get().answer(to: Query.self)
        } catch {
            switch error.reason {
            case .status, .malformed, .noAnswer: return nil
            case .timeout, .queueFull, .cancelled, .adapterLost, .notSent:
                throw self.error(error, during: operation)
            }
        }
    }

    // MARK: Coming and going

    /// Looks at the adapter, as often as somebody depends on it.
    func watchPresence() {
        let isNeeded =
            !subscriptions.isEmpty || call != nil || !presenceWaiters.isEmpty || !stateObservers.isEmpty
        guard isNeeded else {
            if let presenceTimer { loop.cancel(presenceTimer) }
            presenceTimer = nil
            return
        }
        guard presenceTimer == nil else { return }
        presenceTimer = loop.schedule(at: loop.now() + Self.presencePause) { [weak self] in
            self?.assumeIsolated { adapter in
                adapter.presenceTimer = nil
                adapter.checkPresence()
                if adapter.presence == .unknown { try? adapter.find(during: "wait for the adapter") }
                adapter.presenceChanged()
                if !adapter.stateObservers.isEmpty { adapter.tellState(adapter.state) }
                adapter.watchPresence()
            }
        }
    }

    /// Compares what the kernel says of the adapter with what is known here.
    func checkPresence() {
        if presence == .gone { return lookForReturn() }
        guard let index = info?.index else { return }
        do throws(SystemCallError) {
            let now = try system.info(index)
            guard now.address == info?.address || info?.address == .zero else { return lost(.gone) }
            info = now
            if now.isUp { cameUp() } else { lost(.down) }
        } catch {
            if error.meaning == .adapterGone { lost(.gone) }
        }
    }

    /// Waits until the adapter is there and on, whatever its number is; answers whether it is, or `false` to a cancelled task.
    package func awaitPresence() async -> Bool {
        while true {
            try? find(during: "wait for the adapter")
            if presence == .up { return true }
            let (wake, number) = await suspend {
                presenceWaiters.append($0)
                watchPresence()
            }
            presenceWaiters.removeAll { $0 == number }
            watchPresence()
            if wake == .cancelled { return false }
        }
    }

    private func presenceChanged() {
        guard presence == .up else { return }
        for waiter in presenceWaiters { wake(waiter) }
    }

    private func lookForReturn() {
        guard let found = try? system.list().first(where: isWanted) else { return }
        do throws(SystemCallError) {
            try open(found)
            returned(found)
        } catch {
            logger.debug("adapter is back, but cannot be opened", metadata: ["error": "\(error)"])
        }
    }

    /// An adapter that was gone is open again: what has waited for it goes on once it is on.
    private func returned(_ found: ControllerInfo) {
        presence = .down
        // Somebody switched off an adapter that is there; one that comes back is off by itself.
        if keepsPower {
            Task(executorPreference: loop) { _ = await self.powerUp(found.index) }
        } else if found.isUp {
            cameUp()
        }
    }

    private func cameUp() {
        guard presence != .up else { return }
        presence = .up
        logger.debug("adapter is up", metadata: ["adapter": "\(name)"])
        presenceChanged()
        tellState(.poweredOn)
        tellAll(.adapterBack)
        performSession { $0.adapterUp(at: $1) }
    }

    /// The adapter went down or away: what waits fails once, scans that have begun wait for its return.
    func lost(_ how: Presence) {
        let wasUp = presence == .up
        if how == .gone { letGoOfSockets() }
        guard presence != how else { return }
        presence = how
        tellState(how == .gone ? .absent : .poweredOff)
        guard wasUp else { return }
        logger.debug("adapter is \(how)", metadata: ["adapter": "\(name)"])
        counted.losses += 1
        controllerReset()
        failStarters(downError(during: "scan"))
        tellAll(.adapterLost)
    }

    /// Whatever the controller was doing has ended.
    func controllerReset() {
        perform(queue.adapterLost())
        performSession { session, _ in session.adapterDown() }
        performCall { call, _ in call.adapterLost() }
        leftCallEnded()
        // Their reason is the adapter's loss, which the sockets tell by themselves.
        links = [:]
        lossHandlers = [:]
        linkedPeers = [:]
        endingLinks = []
        allLinkUpdatesEnded()
        updatePins()
        tellTroubles()
    }

    func letGoOfSockets() {
        guard let commands = sockets?.commands.descriptor, let reports = sockets?.reports.descriptor else { return }
        loop.letGo(commands)
        loop.letGo(reports)
        counted.droppedByKernel += kernelDrops
        sockets = nil
    }
}
