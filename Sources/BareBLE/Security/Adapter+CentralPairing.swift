internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter lets centrals pair: it performs what `SecurityCoordinator` returns about them, with the disk, the
// agent and the owner of their links.

extension Adapter {
    private var centrals: CentralPairings { security.centrals }

    /// How long the kernel may take to accept pairings.
    private static let permissionTimeout: Duration = .seconds(10)

    /// Serves the centrals of an owner: their pairings are passed to it.
    func servePairings(for owner: ObjectIdentifier, _ host: CentralPairings.Host) {
        // The permission of one that has gone without a stop.
        if !centrals.isServing(owner) {
            instances.releaseAddress()
            perform(coordinator.refuseCentrals())
        }
        centrals.begin(for: owner, host)
        coordinator.findCentrals { [weak self] peer in self?.assumeIsolated { $0.servedCentral(peer) } }
        watchPresence()
    }

    /// Lets the centrals of an owner pair.
    ///
    /// - Throws: `BLEError` with `.busy`, `.timedOut`, `.cancelled`, `.pairingUnavailable`, and the codes of `manage`.
    func allowCentralPairing(
        _ options: CentralPairingOptions, for owner: ObjectIdentifier, until end: BootInstant?,
        during operation: String
    ) async throws(BLEError) {
        let managed = try await manage(in: .unlimited(operation))
        guard managed.canPair != false else { throw BLEError(cannotPairWith: name, during: operation) }
        guard centrals.isServing(owner) else { throw cancelledError(during: operation) }
        let allowance = centrals.allow(options)
        let permission = PairingResponder.Permission(
            capability: options.agent.capability, level: options.require.level,
            minimumKeySize: UInt8(clamping: max(7, bonds.configuration?.minimumKeySize ?? 16)),
            mayReplaceBonds: options.replace != nil,
            acceptsUnconfirmed: options.acceptsUnconfirmed && options.agent.confirm == nil, timeout: options.timeout,
            end: end)
        let (wake, number) = await suspend(until: loop.now() + Self.permissionTimeout) { number in
            perform(coordinator.allowCentralPairing(permission, number))
        }
        coordinator.stopWaiting(number)
        switch wake {
        case .resumed:
            // It was withdrawn meanwhile: by `refuseCentrals`, or with a later call that has taken its place.
            let isOver = end.map { $0 <= loop.now() } ?? false
            guard allowsCentralPairing || isOver && centrals.isLast(allowance) else {
                throw BLEError(
                    .cancelled, subject: name, during: operation, because: "the permission to pair was withdrawn")
            }
            logger.debug("centrals may pair", metadata: ["adapter": "\(name)"])
            await keepPairingAddress(managed.settings)
        case .failed(let error):
            withdraw(allowance, of: owner)
            throw error
        case .cancelled:
            withdraw(allowance, of: owner)
            throw cancelledError(during: operation)
        default:
            withdraw(allowance, of: owner)
            throw BLEError(
                .timedOut, subject: name, during: operation,
                because: "the kernel did not accept the settings of pairing in 10 s", hint: "Call it again.")
        }
    }

    /// Withdraws a permission that the kernel does not follow, unless a later one has taken its place.
    private func withdraw(_ allowance: UInt64, of owner: ObjectIdentifier) {
        if centrals.isLast(allowance) { refuseCentrals(of: owner) }
    }

    /// Lets no central of an owner pair any more; a pairing that runs ends, unless it is to be kept.
    func refuseCentrals(of owner: ObjectIdentifier, keepingCurrent: Bool = false) {
        guard centrals.isServing(owner) else { return }
        instances.releaseAddress()
        perform(coordinator.refuseCentrals(keepingCurrent: keepingCurrent))
    }

    /// Whether the central on a link pairs.
    func isPairingCentral(on link: LinkIdentity) -> Bool { centrals.pairing?.link == link }

    /// Whether a central pairs, or waits to, on another link than the one with this handle: an earlier link of a
    /// central that was lost ends later than its next one begins.
    func isPairingCentral(_ peer: PeerID, besides handle: ConnectionHandle) -> Bool {
        guard let link = centrals.pairing?.link ?? coordinator.centralLink, link.peer == peer, let own = link.handle
        else { return false }
        return own != handle && links.isCurrent(link)
    }

    /// Waits while the bond of a central of an owner is being stored, for as long as its disk may take.
    func centralStored(of owner: ObjectIdentifier) async {
        guard centrals.isServing(owner), coordinator.isStoringCentral else { return }
        // A program that ends is often a cancelled task.
        let (_, number) = await suspend(
            until: loop.now() + BondedDevices.storageTime, interruption: .ignoresCancellation
        ) { number in
            if coordinator.isStoringCentral { coordinator.awaitTurn(number) } else { wake(number) }
        }
        coordinator.stopWaiting(number)
    }

    /// Ends the service of the centrals of an owner.
    func stopServingPairings(for owner: ObjectIdentifier) {
        guard centrals.isServing(owner) else { return }
        instances.releaseAddress()
        perform(coordinator.refuseCentrals())
        centrals.end()
        watchPresence()
    }

    /// Whether centrals may pair now.
    var allowsCentralPairing: Bool { coordinator.allowsCentralPairing }

    /// The central whose link the kernel has under a name, for the machine.
    private func servedCentral(_ peer: PeerID) -> PairingResponder.Client? {
        guard let served = centrals.host?.find(peer), links.isCurrent(served.link) else { return nil }
        let identity = identity(of: peer) ?? peer
        return PairingResponder.Client(
            peer: peer, onAir: served.link.peer, link: served.link, hasBond: bonds.record(of: identity) != nil,
            otherBonds: Set(bonds.records.map { $0.identity }).subtracting([identity]),
            followsEncryption: mayCommand && served.link.handle != nil,
            // The kernel passes that event also to a process without CAP_NET_RAW.
            followsEnd: served.link.handle != nil)
    }

    // MARK: Security Requests

    /// Has the kernel send a Security Request to the central of a link, unless that pairs already.
    ///
    /// - Throws: `BLEError` with `.notBonded`, `.insufficientSecurity`, `.disconnected`, `.pairingUnavailable`,
    ///   `.system`, and the codes of `manage`.
    func requestSecurity(
        of link: LinkIdentity, _ required: PairingOptions.RequiredSecurity, in context: CallContext
    ) async throws(BLEError) {
        let operation = context.operation
        let managed = try await manage(in: context)
        guard managed.canPair != false else { throw BLEError(cannotPairWith: name, during: operation) }
        guard let info, links.isCurrent(link), let kernelName = kernelName(of: link) else {
            throw BLEError(
                .disconnected, subject: "\(link.peer)", during: operation, because: "the link has ended")
        }
        if centrals.pairing?.link == link { return }
        try checkIsProven(link, required, in: context)
        if try isEncrypted(link, kernelName, required, in: context) { return }
        try checkMayBeSecured(link, required, in: context)
        do throws(SystemCallError) {
            try system.requestSecurity(info.address, traits.ownAddressType, kernelName)
        } catch {
            throw BLEError(
                .system, subject: "\(link.peer)", during: operation, because: "\(error.call) failed",
                hint: error.adapterRemedy, errorNumber: error.errno)
        }
    }

    /// Whether a link is encrypted, so that the kernel would open a channel in place of a Security Request.
    ///
    /// - Throws: `BLEError` with `.insufficientSecurity` if no other key will encrypt the link.
    private func isEncrypted(
        _ link: LinkIdentity, _ kernelName: PeerID, _ required: PairingOptions.RequiredSecurity,
        in context: CallContext
    ) throws(BLEError) -> Bool {
        guard let served = centrals.host?.find(kernelName), served.link == link else { return false }
        let found = linkSecurity(of: link, served.descriptor)
        guard found.isEncrypted, !found.satisfies(required) else { return found.isEncrypted }
        throw BLEError(
            .insufficientSecurity, subject: served.central.name, during: context.operation,
            because: "the link is encrypted with a key that is worth less than what is required",
            hint: "Let the central pair for a better key, and require as much in `CentralPairingOptions`.")
    }

    /// Checks that the key of a link can be known, where that matters.
    private func checkIsProven(
        _ link: LinkIdentity, _ required: PairingOptions.RequiredSecurity, in context: CallContext
    ) throws(BLEError) {
        guard required != .encrypted, centrals.isUnproven(link) else { return }
        throw BLEError(
            .insufficientSecurity, subject: "\(link.peer)", during: context.operation,
            because: "a pairing has failed on this link, which uses no bond until it ends",
            hint: "Disconnect the central, and request security of its next link.")
    }

    /// Checks whether the central of a link can reach a security: with its bond, or by a pairing.
    private func checkMayBeSecured(
        _ link: LinkIdentity, _ required: PairingOptions.RequiredSecurity, in context: CallContext
    ) throws(BLEError) {
        let record = bonds.record(of: identity(of: link.peer) ?? link.peer)
        if let record, record.level < required.level || (required == .authenticated && !record.isAuthenticated) {
            throw BLEError(
                .insufficientSecurity, subject: "\(link.peer)", during: context.operation,
                because: "its bond is worth less than what is required",
                hint: "Forget the bond, and let the central pair again.")
        }
        guard record == nil, !coordinator.allowsCentralPairing else { return }
        throw BLEError(
            .notBonded, subject: "\(link.peer)", during: context.operation,
            because: "\(nameAndAddress) has no bond with it, and centrals may not pair",
            hint: "Call `LocalPeripheral.allowPairing` before the central connects. \(BLEError.whereBondsAre)")
    }

    /// The central of a link has refused to pair, or was refused; returns whether security was requested of it.
    func securityRefused(withCentral peer: PeerID) -> Bool {
        guard let host = centrals.host, let served = host.find(peer) else { return false }
        let error =
            coordinator.allowsCentralPairing
            ? BLEError(
                .pairingRefused, subject: served.central.name, during: "request security",
                because: "the central refused to pair", hint: "Pair at the central.", origin: .peer)
            : BLEError(
                .notBonded, subject: served.central.name, during: "request security",
                because: "it has refused, or has lost its bond, and centrals may not pair",
                hint: "Call `LocalPeripheral.allowPairing` with options that may replace its bond.")
        return host.securityRefused(served.central, error)
    }

    // MARK: What the coordinator returns

    func ask(_ question: PairingExchange.Question, about client: PairingResponder.Client, _ number: UInt64) {
        guard let served = centrals.host?.find(client.peer), let options = centrals.begin(served) else {
            return perform(coordinator.replied(.no, aboutCentral: number))
        }
        let peer = served.central.peer ?? client.peer
        let record = client.hasBond ? bonds.record(of: identity(of: client.peer) ?? client.peer) : nil
        let former = record.flatMap { record in address.map { Bond(record, adapter: $0) } }
        let task = Task(executorPreference: loop) { [weak self] in
            let reply = await options.reply(to: question, about: peer, replacing: former)
            guard !Task.isCancelled else { return }
            await self?.replied(reply, aboutCentral: number)
        }
        centrals.ask(by: task)
    }

    private func replied(_ reply: PairingExchange.Reply, aboutCentral number: UInt64) {
        perform(coordinator.replied(reply, aboutCentral: number))
    }

    func readSecurity(of client: PairingResponder.Client) {
        // The end of the link may not be read yet; the socket's security is noise after it.
        commandsReadable()
        guard let served = centrals.host?.find(client.peer), links.isCurrent(served.link) else {
            return perform(coordinator.centralSecurityRead(nil))
        }
        perform(coordinator.centralSecurityRead(try? system.security(served.descriptor)))
    }

    func store(_ outcome: PairingExchange.Outcome, of client: PairingResponder.Client) {
        guard let configuration = bonds.configuration else { return perform(coordinator.centralStored(false)) }
        if let link = centrals.pairing?.link, isConnected(outcome.identity, besides: link) {
            return perform(coordinator.centralIdentityIsConnected())
        }
        if centrals.isForgotten(outcome.identity) {
            centrals.stored(BLEError(forgottenInItsPairing: outcome.identity))
            return perform(coordinator.centralStored(false))
        }
        let record = BondRecord(outcome, name: nil, bondedAt: configuration.timeOfDay())
        // Not the bond of any identity that the central may claim.
        let replaced = client.hasBond ? identity(of: client.peer) ?? client.peer : nil
        Task(executorPreference: loop) { [weak self] in await self?.store(record, replacing: replaced) }
    }

    /// Whether another link is to the device with this identity, whichever side has made that link.
    private func isConnected(_ identity: PeerID, besides own: LinkIdentity) -> Bool {
        centrals.host?.hasOther(identity, own) == true
            || links.handles(of: identity).contains { $0 != own.handle }
    }

    private func store(_ record: BondRecord, replacing replaced: PeerID?) async {
        do throws(BLEError) {
            let stored = try await bonds.save(record, replacing: replaced, during: "store the bond")
            // It may have been forgotten before it had its turn at the disk.
            if centrals.isForgotten(stored.identity) {
                try await bonds.forget(stored.identity, during: Self.forgetting)
                throw BLEError(forgottenInItsPairing: stored.identity)
            }
            if let address { security.report(.bonded(Bond(stored, adapter: address))) }
            perform(coordinator.centralStored(true))
        } catch {
            centrals.stored(error)
            perform(coordinator.centralStored(false))
        }
    }

    /// The pairing of a central has ended.
    func centralPaired(
        _ client: PairingResponder.Client, _ result: Result<PairingExchange.Outcome, PairingResponder.Failure>
    ) {
        let isPaired = if case .success = result { true } else { false }
        let (pairing, storeFailure) = centrals.finish(isPaired: isPaired) { links.isCurrent($0) }
        guard let served = pairing?.central ?? centrals.host?.find(client.peer),
            let options = pairing?.options ?? centrals.options
        else {
            logger.notice(
                "a pairing has ended after the link of its central",
                metadata: ["adapter": "\(name)", "central": "\(client.peer)"])
            return
        }
        switch result {
        case .success(let outcome):
            links.identified(served.link, as: outcome.identity)
            guard let address, let record = bonds.record(of: outcome.identity) else {
                // Another task has removed the bond meanwhile.
                logger.notice("a bond was removed at once", metadata: ["central": "\(outcome.identity)"])
                return
            }
            centrals.host?.ended(served.central, .success(Bond(record, adapter: address)))
        case .failure(let failure):
            let error = BLEError(failure, pairingOf: served.central.peer ?? client.peer, options)
            report(storeFailure ?? explained(error, failure), of: served)
        }
    }

    /// Adds to an error what may be the cause of each: the address that the kernel pairs with.
    private func explained(_ error: BLEError, _ failure: PairingResponder.Failure) -> BLEError {
        guard let cause = instances.addressFailure, case .pairing(let reason) = failure, reason.isRefusalByPeer else {
            return error
        }
        return error.hinting(
            (error.hint.map { $0 + " " } ?? "")
                + "If no central can pair, another program's advertisement has changed the address that the kernel "
                + "pairs with, which could not be set right: \(cause).")
    }

    /// A central was refused at its first question. It may repeat that as often as it likes.
    func centralRefused(_ client: PairingResponder.Client, _ failure: PairingResponder.Failure) {
        let served = centrals.host?.find(client.peer)
        if let served, let options = centrals.options {
            _ = centrals.host?.securityRefused(
                served.central, BLEError(failure, pairingOf: served.central.peer ?? client.peer, options))
        }
        switch failure {
        case .tooManyFailures, .tooManyUnconfirmed, .busy:
            return security.report(.pairingRefused(client.peer))
        case .bondExists, .identityConnected, .pairing: break
        }
        guard let served, let options = centrals.options,
            centrals.isNewRefusal(served.link, failure, whereUp: { links.isCurrent($0) })
        else { return }
        report(BLEError(failure, pairingOf: served.central.peer ?? client.peer, options), of: served)
    }

    private func report(_ error: BLEError, of served: ServedCentral) {
        logger.notice(
            "a central could not pair",
            metadata: ["adapter": "\(name)", "central": "\(served.central.name)", "reason": "\(error)"])
        centrals.host?.ended(served.central, .failure(error))
    }

    /// Ends the link of the central that pairs.
    func disconnectPairingCentral() {
        guard let link = centrals.pairing?.link else { return }
        Task(executorPreference: loop) { [weak self] in await self?.disconnect(link) }
    }

    /// Logs, once for each link, that a central wanted to pair and may not.
    func logRefusal(ofCentral peer: PeerID) {
        guard !coordinator.allowsCentralPairing, let served = centrals.host?.find(peer),
            centrals.isNewRefusal(served.link, nil, whereUp: { links.isCurrent($0) })
        else { return }
        logger.notice(
            "a central wanted to pair and may not: `LocalPeripheral.allowPairing` lets it",
            metadata: ["adapter": "\(name)", "central": "\(served.central.name)"])
    }

    /// Nobody waits for what has failed.
    func logRestFailure(_ error: BLEError) {
        let mayPair = coordinator.allowsCentralPairing
        logger.log(
            level: mayPair ? .warning : .debug,
            mayPair
                ? "centrals may pair, and the kernel does not accept it" : "the settings of pairing are not restored",
            metadata: ["adapter": "\(name)", "reason": "\(error)"])
    }

    func logPermissionEnd() {
        instances.releaseAddress()
        logger.debug("centrals may not pair any more", metadata: ["adapter": "\(name)"])
    }
}

extension CentralPairingOptions {
    /// Asks whether a bond is replaced, and then what the kernel asks.
    func reply(
        to question: PairingExchange.Question, about peer: PeerID, replacing former: Bond?
    ) async -> PairingExchange.Reply {
        if let former {
            guard let replace, await replace(former), !Task.isCancelled else { return .no }
        }
        if question == .justWorks, agent.confirm == nil { return acceptsUnconfirmed ? .yes : .no }
        return await agent.reply(to: question, about: peer)
    }
}
