internal import BLECore
internal import BLELinux
internal import Logging

// How the adapter pairs: it performs what `SecurityCoordinator` returns, with the disk, the agent and the link.

extension Adapter {
    /// Pairs with a peer over its link.
    ///
    /// - Parameter descriptor: The descriptor of the link's socket.
    func pair(
        _ link: LinkIdentity, descriptor: Int32, _ options: PairingOptions
    ) async throws(BLEError) -> Bond {
        let operation = "pair"
        let peer = link.peer
        let deadline = loop.now() + options.timeout
        let managed = try await manage(in: CallContext(.text(operation), until: deadline))
        guard managed.canPair != false else { throw BLEError(cannotPairWith: name, during: operation) }
        let interruption = WaitInterruption.handled { [weak self] number, _ in
            self?.assumeIsolated { $0.perform($0.coordinator.cancelPairing(number)) }
        }
        coordinator.pairingRequested()
        defer { coordinator.pairingRequestEnded() }
        while true {
            guard links.isCurrent(link) else { throw lostError(of: link, during: operation) }
            // It may have been bonded while another pairing ran.
            if let bond = try bondToKeep(with: link, descriptor: descriptor, options) { return bond }
            guard !coordinator.isPairing else {
                let (wake, number) = await suspend(until: deadline) { number in
                    guard coordinator.isPairing, links.isCurrent(link) else { return self.wake(number) }
                    coordinator.awaitTurn(number)
                    // The other peer's pairing may last for longer than the link.
                    if let handle = link.handle { _ = links.awaitEnd(of: handle, number) }
                }
                coordinator.stopWaiting(number)
                if let handle = link.handle { links.cancelAwaitingEnd(of: handle, number) }
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
                        descriptor: descriptor, wasEncrypted: linkSecurity(of: link, descriptor).isEncrypted,
                        options: options))
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
        guard linkSecurity(of: link, descriptor).isEncrypted, !security.centrals.hasFailed(on: link) else {
            throw BLEError(
                .pairingFailed, subject: "\(link.peer)", during: "pair",
                because: "there is a bond, and this link was made without it",
                hint: "Connect again: the link is encrypted with the key of the bond then.")
        }
        return Bond(record, adapter: address)
    }

    /// - Throws: `BLEError` with `.pairingFailed` for a bond that is weaker than required.
    func checkStrength(
        of record: BondRecord, _ required: PairingOptions.RequiredSecurity, during operation: String
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
        // The first reply to the kernel decides, and bluetoothd without an agent refuses at once.
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
            case .setUpFailed(let failure): setUpFailed(BLEError(failure, adapter: name, during: "manage the adapter"))
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
            case .keyRemoved(let peer):
                Task(executorPreference: loop) { [weak self] in await self?.loadRemovedKey(of: peer) }
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
                security.pairingRefused(with: peer, at: loop.now())
                security.report(.pairingRefused(peer))
                _ = securityRefused(withCentral: peer)
                logRefusal(ofCentral: peer)
            case .requested(let peer):
                // It may be the response to a request of this side.
                if securityRefused(withCentral: peer) { continue }
                // The kernel may have begun to pair by itself, for a channel.
                if security.pairingFailed(with: peer, at: loop.now()) { continue }
                security.countSecurityRequest()
                security.report(.securityRequested(peer))
                logRefusal(ofCentral: peer)
            case .lost(let errno):
                logger.debug("the management interface is gone", metadata: ["adapter": "\(name)", "errno": "\(errno)"])
                managementLost()
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
        if case .failure(let failure) = result, let context = rest?.context { noteKey(of: context, after: failure) }
        wake(
            waiter,
            .paired(
                result.map { _ in rest?.stored }
                    .mapError { PairingFailure(reason: $0, storeFailure: rest?.storeFailure) }))
    }

    /// Notes a link that is encrypted with the key of a pairing that has failed.
    private func noteKey(of context: PairingContext, after failure: PairingExchange.Failure) {
        let link = context.link
        guard !context.wasEncrypted, failure != .alreadyEncrypted, links.isCurrent(link),
            linkSecurity(of: link, context.descriptor).isEncrypted
        else { return }
        security.centrals.failed(on: link) { links.isCurrent($0) }
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
            let reason = BLEError(forgottenInItsPairing: outcome.identity)
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
            // It may have been forgotten before it had its turn at the disk.
            if security.pairing.isForgotten(stored.identity) {
                try await bonds.forget(stored.identity, during: Self.forgetting)
                throw BLEError(forgottenInItsPairing: stored.identity)
            }
            if let address { security.report(.bonded(Bond(stored, adapter: address))) }
            guard security.pairing.stored(.success(stored), for: waiter) else { return }
            // The kernel has the link by this name now, and nothing else may resolve the address on air.
            if let link = security.pairing.context?.link { links.identified(link, as: stored.identity) }
            perform(coordinator.stored(true))
        } catch {
            guard security.pairing.stored(.failure(error), for: waiter) else { return }
            perform(coordinator.stored(false))
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
