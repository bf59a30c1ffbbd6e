internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter pairs: it performs what `SecurityCoordinator` returns, with the disk, the agent and the link.

/// What a pairing needs besides the machine.
struct PairingContext {
    let peer: PeerID
    /// The descriptor of the link's socket, while `isUp`.
    let descriptor: Int32
    let options: PairingOptions
    /// Asks the agent.
    var asking: Task<Void, Never>?
    /// The bond that was stored.
    var stored: BondRecord?
    /// Why it was not.
    var storeFailure: BLEError?
}

extension Adapter {
    // MARK: Management

    /// How long it may take to put the adapter under management, a change of its power included.
    private static let managementTimeout: Duration = .seconds(40)

    /// Puts the adapter under management and loads its bonds, unless that was done.
    ///
    /// - Throws: `BLEError` with `.notSupported` without a `SecurityConfiguration`, `.notPermitted`, `.timedOut`,
    ///   `.adapterDown`, `.noAdapter`, `.blocked`, `.cancelled`, and the codes of `BondStore`.
    @discardableResult
    func manage(
        during operation: String, mayCyclePower: Bool = true
    ) async throws(BLEError) -> ManagementSetup.Managed {
        try await prepareController(during: operation)
        return try await setUp(during: operation, mayCyclePower: mayCyclePower)
    }

    /// As `manage`, for an adapter that may be off: it is switched on. By the management interface alone: an adapter that is
    /// switched on by HCIDEVUP soon after it was plugged in stays on without the kernel's Security Manager.
    private func setUp(
        during operation: String, mayCyclePower: Bool
    ) async throws(BLEError) -> ManagementSetup.Managed {
        guard let configuration = securityConfiguration else {
            throw BLEError(
                .notSupported, subject: name, during: operation, because: "pairing is not configured",
                hint: "Set `Configuration.security`.")
        }
        try await openBonds(configuration, during: operation)
        try openManagement(during: operation)
        let plan = ManagementSetup.Plan(powersOn: true, mayCyclePower: mayCyclePower && !links.hasLinks)
        let (wake, number) = await suspend(until: loop.now() + Self.managementTimeout) { number in
            perform(security.manage(plan, number))
        }
        security.stopWaiting(number)
        switch wake {
        case .managed(.success(let managed)):
            // Its power may have changed.
            commandsReadable()
            checkPresence()
            guard presence == .up else { throw downError(during: operation) }
            return managed
        case .managed(.failure(let failure)): throw BLEError(failure, adapter: name, during: operation)
        case .cancelled: throw cancelledError(during: operation)
        default:
            throw BLEError(
                .timedOut, subject: name, during: operation,
                because: "the kernel did not put the adapter under management")
        }
    }

    /// Puts the adapter under management before its first use, where security is configured: later its links are in the
    /// way. What needs no security works without.
    ///
    /// - Parameter mayCyclePower: Whether the adapter may be switched off and on for that: not where links are up that
    ///   another program has made.
    func manageFirst(during operation: String, mayCyclePower: Bool = true) async throws(BLEError) {
        guard securityConfiguration != nil, !security.isManaged, !hasNoManagement else { return }
        do throws(BLEError) {
            try await manage(during: operation, mayCyclePower: mayCyclePower)
        } catch {
            if error.code == .cancelled { throw error }
            hasNoManagement = true
            warnOfNoManagement(error)
        }
        guard presence == .up else { throw downError(during: operation) }
    }

    /// Switches the adapter on under the kernel's management, where security is configured.
    ///
    /// - Returns: Whether it is on; otherwise it has to be switched on without.
    func powerUpManaged(during operation: String) async -> Bool {
        guard securityConfiguration != nil, !hasNoManagement else { return false }
        do throws(BLEError) {
            _ = try await setUp(during: operation, mayCyclePower: true)
            return true
        } catch {
            // The next use tries again.
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

    private func openManagement(during operation: String) throws(BLEError) {
        guard let index = info?.index else { throw downError(during: operation) }
        if security.isOpen { return useManagement(of: index) }
        do throws(SystemCallError) {
            security.open(try system.openManagement(), adapter: index)
            guard let descriptor = security.descriptor else { return }
            let failure = loop.onReadable(descriptor) { [weak self] in
                self?.assumeIsolated { $0.managementReadable() }
            }
            if let failure {
                perform(security.close())
                throw failure
            }
            if system.runsBluetoothd() { perform(security.foundOtherManager()) }
        } catch {
            throw BLEError(error, subject: name, during: operation)
        }
    }

    /// The adapter is there again, perhaps with another index.
    func useManagement(of index: UInt16) {
        // That it was away may not be read yet.
        managementReadable()
        perform(security.use(adapter: index))
    }

    func managementReadable() {
        security.readable { perform($0) }
    }

    /// Stops the management of the adapter, with the adapter itself.
    func closeManagement() {
        if let descriptor = security.descriptor { loop.letGo(descriptor) }
        perform(security.close())
    }

    // MARK: Bonds

    /// Opens the bonds on the disk, unless that was done.
    func openBonds(_ configuration: SecurityConfiguration, during operation: String) async throws(BLEError) {
        guard bondStore == nil else { return }
        guard let address, address != .zero else { throw downError(during: operation) }
        let bonds = configuration.bonds
        let (store, contents) = try await onDisk(during: operation) {
            () throws(BLEError) -> (OpenBondStore, OpenBondStore.Contents) in
            let store = try bonds.open(adapter: address)
            return (store, try store.load())
        }
        // Another task may have opened them meanwhile; then this one failed with `.busy`.
        bondStore = store
        if let damage = contents.damage {
            logger.warning("bonds were damaged", metadata: ["adapter": "\(name)", "reason": "\(damage)"])
        }
        use(contents.records)
    }

    /// The bonds are these from now on.
    func use(_ records: [BondRecord]) {
        security.use(records)
        var keys: [PeerID: Secret128] = [:]
        for record in records { keys[record.identity] = record.resolvingKey?.key }
        setIdentityKeys(keys, addressHash)
    }

    /// Runs work that blocks for as long as the disk takes.
    func onDisk<Value: Sendable>(
        during operation: String, _ work: @Sendable @escaping () throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        let result: Result<Value, BLEError>
        do throws(WorkFailure) {
            result = try await disk.run(on: loop) { () -> Result<Value, BLEError> in
                do throws(BLEError) { return .success(try work()) } catch { return .failure(error) }
            }
        } catch {
            throw .noRoom(during: operation)
        }
        return try result.get()
    }

    /// The bonds of this adapter.
    package func bonds() async throws(BLEError) -> [Bond] {
        guard let configuration = securityConfiguration else { return [] }
        try find(during: "list the bonds")
        try await openBonds(configuration, during: "list the bonds")
        guard let address else { return [] }
        let shared = BondRules.sharedIdentityKeys(of: security.records)
        return security.records.map { Bond($0, adapter: address, sharedKeys: shared) }
    }

    /// Removes a bond: from the disk, from the kernel, and the link.
    package func forgetBond(with peer: PeerID) async throws(BLEError) {
        let operation = "forget the bond"
        guard let configuration = securityConfiguration else { return }
        try find(during: operation)
        try await openBonds(configuration, during: operation)
        guard let store = bondStore else { return }
        let identity = identity(of: peer) ?? peer
        use(
            try await onDisk(during: operation) { () throws(BLEError) -> [BondRecord] in
                _ = try store.forget(identity)
                return try store.load().records
            })
        try await manage(during: operation)
        perform(security.unpair(identity))
    }

    // MARK: Pairing

    /// Pairs with a peer over its link.
    ///
    /// - Parameter descriptor: The descriptor of the link's socket.
    package func pair(
        _ peer: PeerID, descriptor: Int32, _ options: PairingOptions
    ) async throws(BLEError) -> Bond {
        let operation = "pair"
        let deadline = loop.now() + options.timeout
        let managed = try await manage(during: operation)
        guard managed.canPair == true else { throw BLEError(cannotPairWith: name, during: operation) }
        let identity = identity(of: peer) ?? peer
        let record = security.record(of: identity)
        if let record, let bond = try keep(record, options.replacing) { return bond }
        // The kernel has the link under the identity if it had the key of private addresses when the link came up.
        let kernelName = identity != peer && hasLink(to: identity) ? identity : peer
        let demand = PairingExchange.Demand(
            peer: kernelName, onAir: peer, capability: options.agent.capability,
            outOfBand: options.agent.outOfBand?.values,
            level: max(options.require.level, record?.level ?? .encrypted),
            minimumKeySize: UInt8(clamping: max(7, securityConfiguration?.minimumKeySize ?? 16)),
            hasBond: record != nil, replacesKey: record != nil,
            otherBonds: Set(security.records.map { $0.identity }).subtracting([identity]),
            followsEncryption: mayCommand, deadline: deadline)
        while security.isPairing {
            let (wake, number) = await suspend(until: deadline) { security.awaitTurn($0) }
            security.stopWaiting(number)
            if case .cancelled = wake { throw cancelledError(during: operation) }
            if case .timedOut = wake {
                throw BLEError(
                    .timedOut, subject: "\(peer)", during: operation, because: "another peer is being paired")
            }
        }
        let interruption = WaitInterruption.handled { [weak self] number, _ in
            self?.assumeIsolated { $0.perform($0.security.cancelPairing(number)) }
        }
        let (wake, _) = await suspend(interruption: interruption) { number in
            pairing = PairingContext(peer: peer, descriptor: descriptor, options: options)
            perform(security.pair(demand, number))
        }
        defer { pairing = nil }
        switch wake {
        case .paired(.success):
            guard let stored = pairing?.stored, let address else { throw cancelledError(during: operation) }
            return Bond(stored, adapter: address)
        case .paired(.failure(let failure)):
            // Without a Security Manager the kernel reports a success, and does nothing.
            if case .notEncrypted = failure { security.cannotPair() }
            if case .notStored = failure, let reason = pairing?.storeFailure { throw reason }
            // Whoever replies to the kernel first decides, and bluetoothd without an agent refuses at once.
            if case .refusedByPeer = failure, security.hasOtherManager {
                throw BLEError(pairingSharedWithOthers: peer, during: operation)
            }
            throw BLEError(failure, pairing: peer, options, during: operation)
        default:
            throw cancelledError(during: operation)
        }
    }

    /// Returns the bond that is kept, or `nil` if it may be replaced.
    private func keep(_ record: BondRecord, _ replacement: BondReplacement) throws(BLEError) -> Bond? {
        guard let address else { return nil }
        let isRejected = if case .rejected = record.state { true } else { false }
        switch replacement {
        case .always: return nil
        case .lostByPeer: return isRejected ? nil : Bond(record, adapter: address)
        case .never:
            guard isRejected else { return Bond(record, adapter: address) }
            throw BLEError(bondRejectedBy: record.identity, during: "pair")
        }
    }

    // MARK: What the coordinator returns

    func perform(_ actions: [SecurityCoordinator.Action]) {
        for action in actions {
            switch action {
            case .managed(let waiter, let result): wake(waiter, .managed(result))
            case .listsLoaded(let waiter, let failure): wake(waiter, .listsLoaded(failure))
            case .paired(let waiter, let result): wake(waiter, .paired(result))
            case .turn(let waiter): wake(waiter)
            case .ask(let question, let number): ask(question, number)
            case .readSecurity: readSecurity()
            case .store(let outcome): store(outcome)
            case .stopAsking:
                pairing?.asking?.cancel()
                pairing?.asking = nil
            case .refused(let peer):
                logger.debug(
                    "a pairing was refused", metadata: ["adapter": "\(name)", "peer": "\(peer.map { "\($0)" } ?? "-")"])
                guard let peer else { continue }
                // A connect whose key the kernel does not have made it pair.
                for waiter in security.encryptionWaiters { wake(waiter, .keyMissing(peer)) }
                securityEvents.report(.pairingRefused(peer))
            case .requested(let peer):
                securityEvents.report(.securityRequested(peer))
            case .madeBondable:
                logger.warning(
                    "every peer may bond with the adapter, by another program or by a failed command",
                    metadata: ["adapter": "\(name)"])
                securityEvents.report(.otherManager)
            case .wasBondable:
                logger.warning(
                    "the adapter was bondable: another program manages it, or has done so",
                    metadata: ["adapter": "\(name)"])
                securityEvents.report(.otherManager)
            case .otherManager:
                logger.warning(
                    "bluetoothd manages the adapter too: it refuses pairings, and removes the keys of bonds",
                    metadata: ["adapter": "\(name)"])
                securityEvents.report(.otherManager)
            case .secureConnectionsOff:
                logger.warning(
                    "another program has switched LE Secure Connections off: later pairings are legacy ones",
                    metadata: ["adapter": "\(name)"])
                securityEvents.report(.otherManager)
            case .privacyOn:
                logger.warning(
                    "another program has given the adapter private addresses: pairing may fail",
                    metadata: ["adapter": "\(name)"])
                securityEvents.report(.otherManager)
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
        guard let context = pairing else { return }
        let agent = context.options.agent
        let peer = context.peer
        context.asking?.cancel()
        pairing?.asking = Task(executorPreference: loop) { [weak self] in
            let reply = await agent.reply(to: question, about: peer)
            guard !Task.isCancelled else { return }
            await self?.replied(reply, to: number)
        }
    }

    private func replied(_ reply: PairingExchange.Reply, to number: UInt64) {
        perform(security.replied(reply, to: number))
    }

    private func readSecurity() {
        let found = pairing.flatMap { try? system.security($0.descriptor) }
        perform(security.securityRead(found))
    }

    private func store(_ outcome: PairingExchange.Outcome) {
        guard let store = bondStore, let context = pairing, let configuration = securityConfiguration else {
            return perform(security.stored(false))
        }
        let record = BondRecord(outcome, name: context.options.name, bondedAt: configuration.timeOfDay())
        let replaced = context.options.replacing == .never ? nil : outcome.identity
        let minimum = configuration.minimumKeySize
        Task(executorPreference: loop) { [weak self] in await self?.store(record, in: store, replaced, minimum) }
    }

    private func store(_ record: BondRecord, in store: OpenBondStore, _ replaced: PeerID?, _ minimum: Int) async {
        do throws(BLEError) {
            let (stored, records) = try await onDisk(during: "store the bond") {
                () throws(BLEError) -> (BondRecord, [BondRecord]) in
                let stored = try store.save(record, isForStorage: true, replacing: replaced, minimumKeySize: minimum)
                return (stored, try store.load().records)
            }
            pairing?.stored = stored
            use(records)
            if let address { securityEvents.report(.bonded(Bond(stored, adapter: address))) }
            perform(security.stored(true))
        } catch {
            pairing?.storeFailure = error
            perform(security.stored(false))
        }
    }
}

extension BondRecord {
    /// The bond that a pairing has made.
    init(_ outcome: PairingExchange.Outcome, name: String?, bondedAt: UInt64) {
        self.init(
            identity: outcome.identity, name: name, keys: outcome.longTermKeys,
            identityKey: outcome.identityResolvingKey.map { .key($0.key) } ?? .none, level: outcome.level,
            method: outcome.method, bondedAt: bondedAt, lastEncryptedAt: bondedAt,
            signing: outcome.signatureKey.map { Signing(key: $0.key, counter: 0) })
    }
}
