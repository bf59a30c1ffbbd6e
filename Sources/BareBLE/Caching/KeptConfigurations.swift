internal import BLECore
internal import BLELinux

// What a bonded peer keeps for this client from one link to the next: the configurations that were written into it, and
// what is known of its services. A server must keep the configurations of bonded clients, and announce to them what has
// changed meanwhile (Service Changed); so on the next link nothing has to be written or read.
//
// Not every server does that. What is believed rests on this evidence, the strongest first:
//
// 1. The link is encrypted with the key of the bond, so the peer has the bond. Another device at its address, and one
//    that was reset, have not: such a link is never handed on.
// 2. This peer was seen to keep configurations: on the first link after the pairing one of them is read back. If it is
//    not there, all are written on every link, as without a bond. It is read again when the last link did not end in an
//    orderly way, because the peer may have been switched off: some keep configurations in a memory that needs power.
// 3. The peer was asked to announce changes of its services, that configuration is kept too, and no packet was
//    discarded before the link was encrypted, which may have been the announcement. Else its Database Hash is read,
//    as on any link.
// 4. Nothing contradicts it later. A Service Changed in a range makes its configurations unknown. A Database Hash that
//    differs, an attribute that is not there and the error Database Out Of Sync drop all that is remembered.
//
// What no evidence shows is a peer that loses its configurations between two orderly links, and keeps the bond, against
// the specification: it sends nothing, as if its values did not change.
//
// Duties
// - On a link (`KeptConfigurations`): holds the configurations that the peer has kept and this link has not used yet,
//   and returns what a write of one of them needs.
// - Between links (`BondedClients`): remembers each bonded peer for as long as the central lives.
//
// Invariants
// - A configuration leaves `configurations` with its use on this link, with a write to it, and with anything that
//   contradicts it.
// - `keeps` is true or false only by the peer's response when a configuration was read back, on this link or an earlier
//   one. One task reads it back, for all that need the result. Each of these waits to its own deadline, or until it is
//   cancelled; the reading has no deadline, and is cancelled when no task waits for it any more.
// - While a task waits in `proofWaiters`, `proof` reads.
// - A value that was switched on before the link was encrypted is not remembered, unless it is written again.
// - What is remembered belongs to one bond: it is not used after another pairing with the same peer.
// - Only the peripheral uses `KeptConfigurations`, on its event loop. All links share `BondedClients`, which has locks.
//
// Spec: Core Vol 3 Part G, 2.5.2 (attribute caching), 3.3.3.3 (configurations of bonded clients), 7.1.

/// What is remembered of a bonded peer between links.
struct RememberedClient: Sendable {
    /// Its known services; `nil` if they must be discovered again.
    var cache: GATTCache?
    /// Returns whether a link of the same bond has stored the cache, if caches are stored.
    var isCacheStored: @Sendable () -> Bool = { true }
    /// The configurations that are switched on, by the handles of their values.
    var configurations: [AttributeHandle: Subscriptions.Active] = [:]
    /// Whether the peer was seen to keep configurations; `nil` while that is not known.
    var keeps: Bool?
}

/// The configurations that a bonded peer has kept and that were not used on this link yet.
final class KeptConfigurations {
    /// Whether the peer keeps configurations, as reading one of them back has shown.
    typealias Proof = Result<Bool, OperationFailure>

    /// What to do to switch a value on.
    enum Need: Hashable, Sendable {
        case write
        /// Read it back first: nothing has shown yet that the peer keeps configurations.
        case proof
        /// It is on.
        case nothing
    }

    private var configurations: [AttributeHandle: Subscriptions.Active]
    /// The values that were switched on before the link was encrypted, where it was not from its beginning.
    private var unproven: Set<AttributeHandle> = []
    private(set) var keeps: Bool?
    /// Reads one of them back; `nil` unless that is under way.
    private var proof: Task<Void, Never>?
    /// The number of the last task that reads. The result of a former one, which was cancelled, is for no task.
    private var proofNumber: UInt64 = 0
    /// The tasks that wait for the result.
    let proofWaiters: Waiters<Proof>

    init(_ remembered: RememberedClient?, on loop: EventLoop) {
        proofWaiters = Waiters(on: loop)
        configurations = remembered?.configurations ?? [:]
        keeps = remembered?.keeps
    }

    /// The configuration of a value that the peer has kept, if it does.
    func configuration(of valueHandle: AttributeHandle) -> Subscriptions.Active? {
        keeps == false ? nil : configurations[valueHandle]
    }

    /// Returns what a write of a configuration needs. What is written, or need not be, is not kept any longer,
    /// but in use.
    func need(_ write: SubscriptionHub.CCCDWrite) -> Need {
        guard let kept = configuration(of: write.valueHandle), kept.configuration.handle == write.handle,
            kept.kind.configuration == write.value
        else {
            configurations[write.valueHandle] = nil
            unproven.remove(write.valueHandle)
            return .write
        }
        guard keeps == true else { return .proof }
        configurations[write.valueHandle] = nil
        return .nothing
    }

    /// A kept configuration is in use on this link.
    func use(_ valueHandle: AttributeHandle) { configurations[valueHandle] = nil }

    /// Has one of them read back for a task that waits. `begin` starts the task that reads, unless one does already;
    /// `proofEnded` reports its end by the number.
    func prove(_ begin: (UInt64) -> Task<Void, Never>) {
        guard proof == nil else { return }
        proofNumber &+= 1
        proof = begin(proofNumber)
    }

    /// The task with this number no longer reads. Returns whether a task has waited for the result.
    func proofEnded(_ number: UInt64, _ result: Proof) -> Bool {
        guard number == proofNumber else { return false }
        proof = nil
        let isAwaited = !proofWaiters.isEmpty
        proofWaiters.resumeAll(result)
        return isAwaited
    }

    /// A task no longer waits for the result.
    func stoppedWaitingForProof() {
        guard proofWaiters.isEmpty else { return }
        proof?.cancel()
        proof = nil
    }

    /// One of them was read back.
    func proved(_ isKept: Bool) {
        keeps = isKept
        if !isKept { configurations = [:] }
    }

    /// The program itself writes a descriptor.
    func written(_ descriptor: AttributeHandle) {
        for (handle, kept) in configurations where kept.configuration.handle == descriptor {
            configurations[handle] = nil
        }
    }

    /// The link was not encrypted when these values were switched on.
    func secured(after active: [Subscriptions.Active]) {
        unproven = Set(active.map(\.valueHandle))
    }

    /// The peer has changed the services in a range.
    func servicesChanged(in range: ClosedRange<AttributeHandle>) {
        for handle in Array(configurations.keys) where range.contains(handle) { configurations[handle] = nil }
    }

    /// The peer contradicts what was known of it.
    func contradicted() {
        configurations = [:]
        keeps = nil
    }

    /// Returns what is remembered at the end of a link on which these values are switched on.
    ///
    /// - Parameter isOrderly: Whether the peer cannot have lost power with the link.
    func remembered(_ active: [Subscriptions.Active], _ cache: GATTCache?, isOrderly: Bool) -> RememberedClient {
        var all = configurations
        for var value in active where !unproven.contains(value.valueHandle) {
            value.subscribers = []
            all[value.valueHandle] = value
        }
        return RememberedClient(cache: cache, configurations: all, keeps: isOrderly || keeps == false ? keeps : nil)
    }
}

/// What is remembered of bonded peers, by their bonds, for as long as the central lives.
final class BondedClients: Sendable {
    private let clients = Lock<[PeerID: (bond: BondID, client: RememberedClient)]>([:])
    /// The bond of each peer for which a cache was stored last.
    private let stored = Lock<[PeerID: BondID]>([:])

    /// Returns what is remembered; `nil` also after another pairing with the same peer.
    func client(of bond: BondID) -> RememberedClient? {
        clients.withLock { clients in
            guard let known = clients[bond.identity], known.bond == bond else { return nil }
            return known.client
        }
    }

    /// Remembers one peer for each bond.
    func keep(_ client: RememberedClient, of bond: BondID) {
        clients.withLock { $0[bond.identity] = (bond, client) }
    }

    /// Drops what is remembered of a peer whose bond is forgotten.
    func remove(_ identity: PeerID) {
        clients.withLock { $0[identity] = nil }
        stored.withLock { $0[identity] = nil }
    }

    /// A cache is being stored for a bond, which is not a former one now.
    func storing(for bond: BondID) { stored.withLock { $0[bond.identity] = bond } }

    /// Whether another bond has replaced this one since `storing`, or it was forgotten.
    func isFormer(_ bond: BondID) -> Bool { stored.withLock { $0[bond.identity] != bond } }
}

extension Central {
    /// Returns the bond with whose key a link is encrypted, by the descriptor of its socket; `nil` if it is not.
    func bond(over descriptor: Int32, _ controls: LinkControls?) -> BondID? {
        guard configuration.security != nil, let controls, let bond = controls.bond(),
            controls.security(descriptor).isEncrypted
        else { return nil }
        return bond
    }

    /// Adds to the policy of a link what is remembered of a peer with whose bond the link is encrypted.
    func remember(
        _ bond: BondID?, _ controls: LinkControls?, hasDiscarded: Bool, in policy: inout CachePolicy
    ) {
        guard configuration.security != nil, controls != nil else { return }
        policy.remember = { [bondedClients] client, bond in bondedClients.keep(client, of: bond) }
        policy.bond = bond
        guard let bond, let client = bondedClients.client(of: bond) else { return }
        policy.remembered = client
        policy.mayTrust = !hasDiscarded && policy.cache == nil
        if policy.cache == nil { policy.cache = client.cache }
    }
}

// MARK: - On a link

extension Peripheral {
    /// Uses what is remembered of a bonded peer without its Database Hash, if the evidence is enough. It takes one
    /// request while the peer has not been seen to keep configurations, otherwise none.
    ///
    /// - Returns: Whether it does.
    /// - Throws: `BLEError` with `.timedOut`, `.cancelled`, if the peer does not respond to that request.
    func useRemembered(in context: CallContext) async throws(BLEError) -> Bool {
        guard let cache = peerDatabase.trustedCache else { return false }
        guard let announcer = cache.database.characteristics(ServiceChanged.uuid, in: .genericAttribute).first else {
            // A server without it never changes its services.
            guard cache.coverage.includesAll(to: .structure) else { return false }
            peerDatabase.resume(cache, isServiceChangedEnabled: false)
            return true
        }
        guard let own = kept.configuration(of: announcer.valueHandle), own.kind == .indication else { return false }
        let proof = await isKept(own.configuration.handle, own.kind.configuration, until: context.deadline)
        if case .failure(let failure) = proof, failure == .timedOut || failure == .cancelled {
            throw BLEError(failure, subject: name, during: context.operation)
        }
        guard proof == .success(true) else { return false }
        kept.use(announcer.valueHandle)
        peerDatabase.resume(cache, isServiceChangedEnabled: true)
        let subscription = LinkState.Subscription(
            valueHandle: announcer.valueHandle, configuration: own.configuration, kind: own.kind, uuid: announcer.uuid,
            isWanted: false, isOwn: true)
        subscriptionHub.resume(subscription, holding: SubscribeOptions())
        return true
    }

    /// Switches a value on or off in the peer; sends nothing if a bonded peer has kept that.
    ///
    /// - Parameter number: The number of the operation, from the moment in which the write became due.
    func configure(
        _ write: SubscriptionHub.CCCDWrite, as number: OperationID
    ) async -> Result<Void, OperationFailure> {
        let timeout = write.isDisabling ? Self.disablingTimeout : Self.valueTimeout
        let deadline = loop.now() + timeout
        switch kept.need(write) {
        case .nothing: return .success(())
        case .proof:
            let isKept = await isKept(write.handle, write.value, until: deadline)
            if case .failure(let failure) = isKept { return .failure(failure) }
            // The services may have changed meanwhile, or another one was read.
            if isKept == .success(true), kept.need(write) == .nothing { return .success(()) }
            // After a change the handle may belong to another attribute.
            guard subscriptionHub.isDue(write) else { return .failure(.servicesChanged) }
        case .write: break
        }
        return await runOperation(as: number, until: deadline, isOfCall: false) { client, id, deadline, now in
            let procedure = WriteRequest(handle: write.handle, value: write.value, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
        }.map { _ in () }
    }

    /// Returns whether the peer keeps configurations. The first one that is needed is read back, and decides for all.
    ///
    /// Fails with `.timedOut` at the deadline and with `.cancelled` if the task is cancelled, for this task alone; and
    /// where the peer reports that the handles have changed: it does so once, and carries out the next request.
    func isKept(
        _ descriptor: AttributeHandle, _ value: [UInt8], until deadline: BootInstant?
    ) async -> KeptConfigurations.Proof {
        if let keeps = kept.keeps { return .success(keeps) }
        let waiters = kept.proofWaiters
        let wait = await waiters.wait(until: deadline) { _ in
            if let keeps = kept.keeps { return .success(keeps) }
            kept.prove { number in
                Task(executorPreference: loop) { await self.readBack(descriptor, value, as: number) }
            }
            return nil
        }
        switch wait {
        case .resumed(let result):
            return result
        case .timedOut:
            kept.stoppedWaitingForProof()
            return .failure(.timedOut)
        case .cancelled:
            kept.stoppedWaitingForProof()
            return .failure(.cancelled)
        }
    }

    /// Reads a configuration back, for all tasks that wait for the result.
    private func readBack(_ descriptor: AttributeHandle, _ value: [UInt8], as number: UInt64) async {
        let result = await runOperation(until: nil, isOfCall: false) { client, id, deadline, now in
            client.startRead(descriptor, id: id, deadline: deadline, at: now)
        }
        let proof: KeptConfigurations.Proof
        switch result {
        case .success(.value(let found)):
            kept.proved(found == value)
            proof = .success(found == value)
        case .failure(let failure) where failure.reportsOutOfSync:
            kept.contradicted()
            proof = .failure(failure)
        case .failure(.gatt):
            kept.proved(false)
            proof = .success(false)
        // Nothing was shown.
        case .success, .failure:
            proof = .success(false)
        }
        let isAwaited = kept.proofEnded(number, proof)
        // The peer reports a change once. A task that had waited to this moment handles it no longer.
        if !isAwaited, case .failure = proof { resynchronizeLater() }
    }

    /// Remembers what a bonded peer keeps, at the end of a link that was encrypted.
    func rememberBonded(_ reason: DisconnectReason) {
        guard let remember = peerDatabase.remember, protection.isSecured, let bond = controls?.bond() else { return }
        let isOrderly: Bool
        switch reason {
        // The next owner of the link may write what it likes.
        case .detached: return remember(RememberedClient(), bond)
        case .requested, .byPeer: isOrderly = true
        case .supervisionTimeout, .attTimeout, .protocolViolation, .adapterLost, .other: isOrderly = false
        }
        if protection.isValidated {
            let active = subscriptionHub.active
            var client = kept.remembered(active, peerDatabase.cacheToKeep(for: bond), isOrderly: isOrderly)
            client.isCacheStored = peerDatabase.storage(for: bond)
            remember(client, bond)
        } else if var earlier = peerDatabase.remembered {
            if !isOrderly, earlier.keeps == true { earlier.keeps = nil }
            remember(earlier, bond)
        }
    }
}
