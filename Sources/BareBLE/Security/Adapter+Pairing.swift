internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter pairs: it performs what `SecurityCoordinator` returns, with the disk, the agent and the link.

extension Adapter {
    private var coordinator: SecurityCoordinator { security.coordinator }

    // MARK: Management

    /// How long it may take to put the adapter under management, a change of its power included.
    private static let managementTimeout: Duration = .seconds(40)

    /// Puts the adapter under management and loads its bonds, unless that was done.
    ///
    /// - Parameter limit: When the caller waits no longer, if that is earlier than the kernel and the disk may take.
    /// - Throws: `BLEError` with `.notSupported` without a `SecurityConfiguration`, `.notPermitted`, `.timedOut`,
    ///   `.adapterDown`, `.noAdapter`, `.blocked`, `.cancelled`, and the codes of `BondStore`.
    @discardableResult
    func manage(
        during operation: String, mayCyclePower: Bool = true, until limit: BootInstant? = nil
    ) async throws(BLEError) -> ManagementSetup.Managed {
        try await prepareController(during: operation)
        return try await setUp(during: operation, mayCyclePower: mayCyclePower, until: limit)
    }

    /// Waits for the end of a setup that is under way: it may have switched the adapter off for a moment.
    func awaitSetUp(during operation: String) async throws(BLEError) {
        guard coordinator.isSettingUp else { return }
        let (wake, number) = await suspend(until: loop.now() + Self.managementTimeout) { number in
            // It requests nothing: what the setup has switched off, it switches on again.
            perform(coordinator.manage(ManagementSetup.Plan(powersOn: false), number))
        }
        coordinator.stopWaiting(number)
        if case .cancelled = wake { throw cancelledError(during: operation) }
        commandsReadable()
        checkPresence()
    }

    /// As `manage`, for an adapter that may be off: it is switched on. By the management interface alone: an adapter
    /// that is switched on by HCIDEVUP soon after it was plugged in stays on without the kernel's Security Manager.
    private func setUp(
        during operation: String, mayCyclePower: Bool, until limit: BootInstant? = nil
    ) async throws(BLEError) -> ManagementSetup.Managed {
        guard security.isConfigured else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "pairing is not configured",
                hint: "Set `Configuration.security`.")
        }
        try checkSharing(during: operation)
        try await openBonds(during: operation, until: limit)
        try openManagement(during: operation)
        let plan = ManagementSetup.Plan(powersOn: true, mayCyclePower: mayCyclePower && !links.hasLinks)
        let deadline = loop.now() + Self.managementTimeout
        let (wake, number) = await suspend(until: limit.map { min($0, deadline) } ?? deadline) { number in
            perform(coordinator.manage(plan, number))
        }
        coordinator.stopWaiting(number)
        switch wake {
        case .managed(.success(let managed)):
            // Its power may have changed.
            commandsReadable()
            checkPresence()
            guard presence == .up else { throw downError(during: operation) }
            coordinator.setUpEnded(nil)
            return managed
        case .managed(.failure(let failure)): throw BLEError(failure, adapter: name, during: operation)
        case .cancelled: throw cancelledError(during: operation)
        default:
            throw BLEError(
                .timedOut, subject: name, during: operation,
                because: "the kernel did not put the adapter under management",
                hint: "Unplug the adapter and plug it in again. `dmesg` shows what the kernel reports.")
        }
    }

    /// Puts the adapter under management before its first use, where security is configured: later its links are in the
    /// way. What needs no security works without.
    ///
    /// - Parameters:
    ///   - mayCyclePower: Whether the adapter may be switched off and on for that: not where links are up that another
    ///     program has made.
    ///   - limit: When the caller waits no longer.
    func manageFirst(
        during operation: String, mayCyclePower: Bool = true, until limit: BootInstant? = nil
    ) async throws(BLEError) {
        guard security.isConfigured, coordinator.setUpFailure == nil else { return }
        // One that is managed and cannot pair can be helped where it has no links.
        if coordinator.isManaged, coordinator.canPair == true || links.hasLinks || !mayCyclePower { return }
        do throws(BLEError) {
            try await openBonds(during: operation, until: limit)
        } catch {
            if error.code == .cancelled { throw error }
            // A connect fails for the same reason. The next use tries again.
            return
        }
        do throws(BLEError) {
            try await manage(during: operation, mayCyclePower: mayCyclePower, until: limit)
        } catch {
            if error.code == .cancelled { throw error }
            // That says nothing about the adapter: the next use waits for it again.
            if let limit, limit <= loop.now() { throw error }
            coordinator.setUpEnded(error)
            warnOfNoManagement(error)
            // It was switched off for that, and why it is not on again is the cause.
            if presence == .down { throw error }
        }
        guard presence == .up else { throw downError(during: operation) }
    }

    /// Puts an adapter that came back under management again where centrals are served: nothing that this program calls
    /// would, and until then the kernel has no keys for their links.
    func manageForCentrals() {
        guard security.centrals.host != nil, security.isConfigured, !coordinator.isManaged, !coordinator.isSettingUp
        else {
            return
        }
        Task(executorPreference: loop) { [weak self] in await self?.manageOrWarn(during: "serve centrals") }
    }

    private func manageOrWarn(during operation: String) async {
        do throws(BLEError) {
            try await manage(during: operation)
        } catch {
            warnOfNoManagement(error)
        }
    }

    /// Switches the adapter on under the kernel's management, where security is configured.
    ///
    /// - Returns: Whether it is on; otherwise it has to be switched on without.
    func powerUpManaged(during operation: String) async -> Bool {
        guard security.isConfigured else { return false }
        do throws(BLEError) {
            _ = try await setUp(during: operation, mayCyclePower: true)
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

    private func openManagement(during operation: String) throws(BLEError) {
        guard let index = info?.index else { throw downError(during: operation) }
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
            throw BLEError(error, subject: name, during: operation)
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

    // MARK: Bonds

    /// Opens the bonds and reads them, unless that was done.
    func openBonds(during operation: String, until limit: BootInstant? = nil) async throws(BLEError) {
        guard security.isConfigured, !bonds.isOpen else { return }
        guard let address, address != .zero else { throw downError(during: operation) }
        guard let damage = try await bonds.open(adapter: address, during: operation, until: limit) else { return }
        security.report(.bondsDamaged(damage))
    }

    /// Finds the adapter and reads its bonds.
    func readBonds(during operation: String) async throws(BLEError) {
        try find(during: operation)
        try await openBonds(during: operation)
    }

    /// The bonds are other ones from now on.
    func bondsChanged() {
        var keys: [PeerID: Secret128] = [:]
        for record in bonds.records { keys[record.identity] = record.resolvingKey?.key }
        if !keys.isEmpty, security.addressHash == nil {
            logger.warning(
                "bonded devices with private addresses are not recognized: `Configuration.addressHash` is not set",
                metadata: ["adapter": "\(name)"])
        }
        setIdentityKeys(keys, security.addressHash)
        let lists = BondRules.keyLists(of: bonds.records, adapter: bonds.hardware)
        for omission in bonds.newOmissions(lists.omissions) {
            let consequence =
                switch omission.part {
                case .bond: "a bond cannot be used: connects to its peer fail"
                case .identityKey: "the kernel does not recognize the private addresses of a bonded peer"
                case .peripheralKey: "the kernel is not given the key of a bond for links that the peer initiates"
                }
            logger.warning(
                "\(consequence)", metadata: ["peer": "\(omission.identity)", "reason": "\(omission.reason)"])
        }
    }

    /// The bonds of this adapter.
    package func bonds() async throws(BLEError) -> [Bond] {
        guard security.isConfigured else { return [] }
        try await readBonds(during: "list the bonds")
        guard let address else { return [] }
        let shared = BondRules.sharedIdentityKeys(of: bonds.records)
        return bonds.records.map { Bond($0, adapter: address, sharedKeys: shared) }
    }

    private static let forgetting = "forget the bond"

    /// Removes a bond: from the disk, from the kernel, and the link.
    ///
    /// - Returns: Why the kernel may keep the key, if it may.
    package func forgetBond(with peer: PeerID) async throws(BLEError) -> BLEError? {
        let operation = Self.forgetting
        guard security.isConfigured else { return nil }
        try await readBonds(during: operation)
        let identity = identity(of: peer) ?? peer
        security.pairing.forget(identity)
        try await bonds.forget(identity, during: operation)
        _ = coordinator.takeRejection(by: identity)
        // The bond is gone, whatever follows.
        var refusal: BLEError?
        do throws(BLEError) {
            try await removeKeys(of: identity, during: operation)
        } catch {
            refusal = error
            let level: Logger.Level = error.code == .notPermitted ? .notice : .warning
            logger.log(
                level: level, "the kernel may keep the key of a forgotten bond until keys are loaded again",
                metadata: ["adapter": "\(name)", "peer": "\(identity)", "reason": "\(error)"])
        }
        // Without a key in the kernel that has not ended the link.
        for handle in links.handles(of: identity) { await disconnect(handle) }
        if Task.isCancelled { throw cancelledError(during: operation) }
        return refusal
    }

    private func removeKeys(of identity: PeerID, during operation: String) async throws(BLEError) {
        try await manage(during: operation)
        let (wake, number) = await suspend { number in perform(coordinator.unpair(identity, number)) }
        coordinator.stopWaiting(number)
        if case .failed(let error) = wake { throw error }
    }

    // MARK: Pairing

    /// Pairs with a peer over its link.
    ///
    /// - Parameter descriptor: The descriptor of the link's socket.
    func pair(
        _ link: LinkIdentity, descriptor: Int32, _ options: PairingOptions
    ) async throws(BLEError) -> Bond {
        let operation = "pair"
        let peer = link.peer
        let deadline = loop.now() + options.timeout
        let managed = try await manage(during: operation, until: deadline)
        guard managed.canPair != false else { throw BLEError(cannotPairWith: name, during: operation) }
        let interruption = WaitInterruption.handled { [weak self] number, _ in
            self?.assumeIsolated { $0.perform($0.coordinator.cancelPairing(number)) }
        }
        coordinator.pairingRequested()
        defer { coordinator.pairingRequestEnded() }
        while true {
            // It may have been bonded while another pairing ran.
            if let bond = try bondToKeep(with: link, descriptor: descriptor, options) { return bond }
            guard !coordinator.isPairing else {
                let (wake, number) = await suspend(until: deadline) { number in
                    if coordinator.isPairing { coordinator.awaitTurn(number) } else { self.wake(number) }
                }
                coordinator.stopWaiting(number)
                if case .cancelled = wake { throw cancelledError(during: operation) }
                if case .timedOut = wake {
                    throw BLEError(
                        .timedOut, subject: "\(peer)", during: operation, because: "another peer is being paired",
                        hint: "Pair again after that, or allow more time.")
                }
                continue
            }
            let demand = demand(for: link, options, until: deadline)
            var isBegun = false
            let (wake, _) = await suspend(interruption: interruption) { number in
                // Other jobs may have run since the look above.
                guard !coordinator.isPairing else { return self.wake(number) }
                isBegun = true
                security.pairing.begin(
                    PairingContext(
                        waiter: number, peer: peer, identity: identity(of: peer) ?? peer, link: link,
                        descriptor: descriptor, options: options))
                perform(coordinator.pair(demand, number))
            }
            switch wake {
            case .paired(.success(let stored)):
                guard let stored, let address else { throw cancelledError(during: operation) }
                return Bond(stored, adapter: address)
            case .paired(.failure(let failure)):
                throw error(failure, pairing: peer, options)
            case .resumed where !isBegun: continue
            default: throw cancelledError(during: operation)
            }
        }
    }

    /// What is demanded of a pairing with the peer of a link.
    private func demand(
        for link: LinkIdentity, _ options: PairingOptions, until deadline: BootInstant
    ) -> PairingExchange.Demand {
        let identity = identity(of: link.peer) ?? link.peer
        let record = bonds.record(of: identity)
        return PairingExchange.Demand(
            peer: kernelName(of: link) ?? link.peer, onAir: link.peer, capability: options.agent.capability,
            outOfBand: options.agent.outOfBand?.values,
            level: max(options.require.level, record?.level ?? .encrypted),
            minimumKeySize: UInt8(clamping: max(7, bonds.configuration?.minimumKeySize ?? 16)),
            hasBond: record != nil, replacedBond: record?.identity,
            otherBonds: Set(bonds.records.map { $0.identity }).subtracting([identity]),
            followsEncryption: mayCommand, deadline: deadline)
    }

    /// Returns the bond that makes a pairing unnecessary; `nil` if there is none, or it may be replaced.
    ///
    /// - Throws: `BLEError` with `.bondRejected`; `.pairingFailed` for a bond that is weaker than required, and where
    ///   the link is not encrypted with its key.
    private func bondToKeep(
        with link: LinkIdentity, descriptor: Int32, _ options: PairingOptions
    ) throws(BLEError) -> Bond? {
        guard let address, let record = bonds.record(of: identity(of: link.peer) ?? link.peer) else { return nil }
        let isRejected = if case .rejected = record.state { true } else { false }
        if options.replacing != .always, !record.isFor(adapter: bonds.hardware) {
            throw BLEError(unusableBondWith: record.identity, .otherAdapter, during: "pair")
        }
        switch options.replacing {
        case .always: return nil
        case .lostByPeer: if isRejected { return nil }
        case .never: if isRejected { throw BLEError(bondRejectedBy: record.identity, during: "pair") }
        }
        try checkStrength(of: record, options.require, during: "pair")
        guard linkSecurity(of: link, descriptor).isEncrypted else {
            throw BLEError(
                .pairingFailed, subject: "\(link.peer)", during: "pair",
                because: "there is a bond, and this link was made without it",
                hint: "Connect again: the link is encrypted with the key of the bond then.")
        }
        return Bond(record, adapter: address)
    }

    /// - Throws: `BLEError` with `.pairingFailed` for a bond that is weaker than required.
    func checkStrength(
        of record: BondRecord, _ required: RequiredSecurity, during operation: String
    ) throws(BLEError) {
        guard record.level < required.level else { return }
        throw BLEError(
            .pairingFailed, subject: "\(record.identity)", during: operation,
            because: "there is a bond, and its key is weaker than required",
            hint: "Pair again with `replacing: .always`, or forget the bond first.")
    }

    /// The error for a pairing that has failed.
    private func error(_ failure: PairingFailure, pairing peer: PeerID, _ options: PairingOptions) -> BLEError {
        if let reason = failure.storeFailure, case .notStored = failure.reason { return reason }
        // Whoever replies to the kernel first decides, and bluetoothd without an agent refuses at once.
        if failure.reason.isRefusalByPeer, coordinator.hasOtherManager {
            return BLEError(pairingSharedWithOthers: peer, during: "pair")
        }
        return BLEError(failure.reason, pairing: peer, options, during: "pair")
    }

    // MARK: What the coordinator returns

    func perform(_ actions: [SecurityCoordinator.Action]) {
        for action in actions {
            switch action {
            case .managed(let waiter, let result): wake(waiter, .managed(result))
            case .listsLoaded(let waiter, let failure): wake(waiter, .listsLoaded(failure))
            case .paired(let waiter, let result): paired(waiter, result)
            case .unpaired(let waiter, let failure):
                let error = failure.map { BLEError(.command($0), adapter: name, during: Self.forgetting) }
                wake(waiter, error.map { .failed($0) } ?? .resumed)
            case .turn(let waiter): wake(waiter)
            case .ask(let question, let number): ask(question, number)
            case .readSecurity: readSecurity()
            case .store(let outcome): store(outcome)
            case .stopAsking: security.pairing.stopAsking()
            case .askAboutCentral(let question, let client, let number): ask(question, about: client, number)
            case .stopAskingAboutCentral: security.centrals.stopAsking()
            case .readCentralSecurity(let client): readSecurity(of: client)
            case .storeCentral(let outcome, let client): store(outcome, of: client)
            case .centralPaired(let client, let result): centralPaired(client, result)
            case .centralRefused(let client, let failure): centralRefused(client, failure)
            case .disconnectCentral: disconnectPairingCentral()
            case .permissionEnded: logPermissionEnd()
            case .rested(let waiter, nil): wake(waiter)
            case .rested(let waiter, let failure?):
                wake(waiter, .failed(BLEError(failure, adapter: name, during: "allow pairing")))
            case .restFailed(let failure): logRestFailure(BLEError(failure, adapter: name, during: "allow pairing"))
            case .changedByOthers(let change):
                logger.warning("\(change.words)", metadata: ["adapter": "\(name)"])
                security.report(.otherManager)
            case .refused(let peer):
                logger.debug(
                    "a pairing was refused", metadata: ["adapter": "\(name)", "peer": "\(peer.map { "\($0)" } ?? "-")"])
                guard let peer else { continue }
                // A connect whose key the kernel does not have made it pair.
                let identity = identity(of: peer) ?? peer
                for waiter in links.encryptionWaiters { wake(waiter, .keyMissing(identity)) }
                security.report(.pairingRefused(peer))
                _ = securityRefused(withCentral: peer)
                logRefusal(ofCentral: peer)
            case .requested(let peer):
                // It may be the response to a request of this side.
                if securityRefused(withCentral: peer) { continue }
                coordinator.countSecurityRequest()
                security.report(.securityRequested(peer))
                logRefusal(ofCentral: peer)
            case .encrypt(let command, let number): send(HCICommandPacket(command), for: .encryption(number))
            case .withdrawEncryption: perform(hci.withdraw(.leEnableEncryption))
            case .encrypted(let waiter, let result):
                if case .success(let use) = result { links.encrypted(use.handle, keySize: use.keySize) }
                wake(waiter, .encrypted(result))
            case .lost(let errno):
                logger.debug("the management interface is gone", metadata: ["adapter": "\(name)", "errno": "\(errno)"])
                closeManagement()
            }
        }
        armTimer()
    }

    private func ask(_ question: PairingExchange.Question, _ number: UInt64) {
        guard let context = security.pairing.context else { return }
        let agent = context.options.agent
        let peer = context.peer
        security.pairing.stopAsking()
        let task = Task(executorPreference: loop) { [weak self] in
            let reply = await agent.reply(to: question, about: peer)
            guard !Task.isCancelled else { return }
            await self?.replied(reply, to: number)
        }
        security.pairing.ask(by: task)
    }

    private func replied(_ reply: PairingExchange.Reply, to number: UInt64) {
        perform(coordinator.replied(reply, to: number))
    }

    private func paired(_ waiter: UInt64, _ result: Result<PairingExchange.Outcome, PairingExchange.Failure>) {
        let rest = security.pairing.end(waiter)
        // Without a Security Manager the kernel reports a success, and does nothing.
        if case .failure(.notEncrypted) = result, let link = rest?.context.link, links.isCurrent(link) {
            coordinator.cannotPair()
        }
        wake(
            waiter,
            .paired(
                result.map { _ in rest?.stored }
                    .mapError { PairingFailure(reason: $0, storeFailure: rest?.storeFailure) }))
    }

    private func readSecurity() {
        // The end of the link may not be read yet; the socket's security is noise after it.
        commandsReadable()
        guard let context = security.pairing.context, links.isCurrent(context.link) else {
            return perform(coordinator.securityRead(nil))
        }
        perform(coordinator.securityRead(try? system.security(context.descriptor)))
    }

    private func store(_ outcome: PairingExchange.Outcome) {
        guard let context = security.pairing.context, let configuration = bonds.configuration else {
            return perform(coordinator.stored(false))
        }
        if security.pairing.isForgotten(outcome.identity) {
            let reason = BLEError(
                .bondNotStored, subject: "\(outcome.identity)", during: "pair",
                because: "the bond was forgotten while it was being made", hint: "Pair again.")
            _ = security.pairing.stored(.failure(reason), for: context.waiter)
            return perform(coordinator.stored(false))
        }
        let record = BondRecord(outcome, name: context.options.name, bondedAt: configuration.timeOfDay())
        // Not the bond of any identity that the peer may claim.
        let replaced = context.options.replacing == .never ? nil : context.identity
        Task(executorPreference: loop) { [weak self] in
            await self?.store(record, replacing: replaced, for: context.waiter)
        }
    }

    private func store(_ record: BondRecord, replacing replaced: PeerID?, for waiter: UInt64) async {
        do throws(BLEError) {
            let stored = try await bonds.save(record, replacing: replaced, during: "store the bond")
            if let address { security.report(.bonded(Bond(stored, adapter: address))) }
            guard security.pairing.stored(.success(stored), for: waiter) else { return }
            perform(coordinator.stored(true))
        } catch {
            guard security.pairing.stored(.failure(error), for: waiter) else { return }
            perform(coordinator.stored(false))
        }
    }
}

extension SecurityCoordinator.ForeignChange {
    /// The change and its consequence, for the log.
    fileprivate var words: String {
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
        }
    }
}

/// Why a pairing has failed.
struct PairingFailure: Error {
    let reason: PairingExchange.Failure
    /// Why its bond was not stored.
    let storeFailure: BLEError?
}

extension BondRecord {
    /// The bond that a pairing has made.
    init(_ outcome: PairingExchange.Outcome, name: String?, bondedAt: UInt64) {
        self.init(
            identity: outcome.identity, name: name, keys: outcome.longTermKeys,
            identityKey: outcome.identityResolvingKey.map { .key($0.key) } ?? .none, level: outcome.level,
            method: outcome.method, bondedAt: bondedAt, lastEncryptedAt: bondedAt,
            signing: outcome.signatureKey.map { Signing(key: $0.key, counter: 0) },
            peerSigning: outcome.peerSignatureKey.map { Signing(key: $0.key, counter: 0) })
    }
}
