internal import BLECore
internal import BLELinux

// Pairing and the keys of one adapter.
//
// Duties: keep the adapter under management (`ManagementSetup`), pair one peer at a time (`PairingExchange`), also one
// that has begun to pair (`PairingResponder`), reject every question of the kernel that belongs to no pairing of this
// program, and keep the kernel's lists as the bonds are stored.
//
// Invariants
// - Only peers that a task of this program pairs are paired, and centrals on served links while they may pair: a
//   question about any other peer is rejected at once.
// - One pairing runs at a time. While one of this side waits for its turn, no central begins one: those that come one
//   after the other would keep it waiting.
// - Lists are loaded from the records of `BondedDevices`, which are what the disk has. The kernel's copy is never taken
//   for a bond.
// - A task waits for one thing at a time, and is resumed once.
// - The response to a command of one pairing never reaches another one: each command has a number, and those that are
//   not sent when the pairing ends never are. While a Pair Device is out that its pairing has left, no other pairing
//   begins, and no list is loaded.
// - The coordinator never acts on the adapter, the disk or the agent: it returns actions, in order.

/// Keeps an adapter able to pair, and pairs.
final class SecurityCoordinator {
    enum Action {
        /// A task resumes: the adapter is under management, or cannot be.
        case managed(UInt64, Result<ManagementSetup.Managed, ManagementSetup.Failure>)
        /// The adapter could not be put under management, and no task waits for that any more.
        case setUpFailed(ManagementSetup.Failure)
        /// A task resumes: the lists are loaded, or could not be.
        case listsLoaded(UInt64, ManagementSetup.Failure?)
        /// A task resumes: its pairing has ended.
        case paired(UInt64, Result<PairingExchange.Outcome, PairingExchange.Failure>)
        /// A task resumes: the kernel has removed the keys of a peer, had none, or has failed to.
        case unpaired(UInt64, ManagementCommandFailure?)
        /// A task resumes: no pairing runs any more.
        case turn(UInt64)
        /// Ask the agent, and call `replied`.
        case ask(PairingExchange.Question, number: UInt64)
        /// Read the security of the link's socket, and call `securityRead`.
        case readSecurity
        /// Store the bond, and call `stored`.
        case store(PairingExchange.Outcome)
        /// The pairing has ended: the agent is to stop.
        case stopAsking
        /// A central pairs: ask the agent, and call `replied(_:aboutCentral:)`.
        case askAboutCentral(PairingExchange.Question, PairingResponder.Client, number: UInt64)
        /// The agent is to stop.
        case stopAskingAboutCentral
        /// Read the security of the link's socket, and call `centralSecurityRead`.
        case readCentralSecurity(PairingResponder.Client)
        /// Store the bond that a central has made, and call `centralStored`, or `centralIdentityIsConnected`.
        case storeCentral(PairingExchange.Outcome, PairingResponder.Client)
        /// The pairing of a central has ended, or has been refused.
        case centralPaired(PairingResponder.Client, Result<PairingExchange.Outcome, PairingResponder.Failure>)
        case centralRefused(PairingResponder.Client, PairingResponder.Failure)
        case disconnectCentral(PairingResponder.Client)
        /// The time in which centrals may pair is over.
        case permissionEnded
        /// A task resumes: the kernel lets centrals pair as the permission specifies, or could not be set so.
        case rested(UInt64, ManagementSetup.Failure?)
        /// The kernel could not be set to let centrals pair, or not to, and no task waits for that.
        case restFailed(ManagementSetup.Failure)
        /// A pairing with a peer that no task pairs was refused.
        case refused(PeerID?)
        /// A peer without a bond has asked for security, and the kernel has refused; or the kernel's own pairing for a
        /// channel has failed; or a central has refused what this side has asked for.
        case requested(PeerID)
        /// Another program manages the adapter too, or has changed its security.
        case changedByOthers(ForeignChange)
        /// Another program, or another central of this one, has removed the key of a bonded peer from the kernel. Read
        /// the bonds again, as it may have removed the bond before, and call `loadRemovedKey`.
        case keyRemoved(PeerID)
        /// Stop watching the descriptor, and call `close`.
        case lost(errno: Int32)
    }

    /// The sign that another program manages the adapter.
    enum ForeignChange: Hashable {
        /// It has made the adapter not bondable while centrals may pair. That is undone, now or later.
        case bondableCleared(isSetAgain: Bool)
        /// It has made the adapter bondable, or that could not be made otherwise.
        case madeBondable
        /// The adapter was bondable when it was put under management.
        case wasBondable
        /// It runs, or has begun to.
        case otherManager
        /// It has switched LE Secure Connections off.
        case secureConnectionsOff
        /// It has given the adapter private addresses.
        case privacyOn
        /// It has removed the key of a bonded peer from the kernel, which is given it again.
        case keyRemoved
    }

    /// What is counted.
    struct Counts: Hashable {
        /// Pairings that no task requested.
        var refusedPairings = 0
        /// Loads of the kernel's lists.
        var loads = 0
        var failedLoads = 0
    }

    private let channel: ManagementChannel
    private let now: () -> BootInstant
    /// Returns the bonds as they are stored.
    private let bonds: () -> [BondRecord]
    /// What the adapter's hardware is, if it is known: bonds may be for other hardware.
    private let hardware: () -> String?
    private var setup: ManagementSetup
    /// The adapter that `setup` is about.
    private var setupIndex: UInt16?
    private var exchange = PairingExchange()
    private var responder = PairingResponder()
    /// Returns the central of a served link, by the name that the kernel has for it.
    private var findCentral: (@Sendable (PeerID) -> PairingResponder.Client?)?
    private var pairing: (waiter: UInt64, demand: PairingExchange.Demand)?
    private var commands = PairingCommands()
    /// Set while the kernel has not ended the Pair Device of a pairing that is over: whether that one has left the
    /// adapter bondable.
    private var remains: Bool?
    private var waiters = SecurityWaiters()
    /// Bonded peers whose links the kernel ended because they did not accept their keys.
    private var rejecting: Set<PeerID> = []
    /// The peer whose keys the kernel is not given.
    private var omittedPeer: PeerID?
    /// The peer whose question was refused last, until the kernel has reported the end of that pairing, or of the link.
    private var lastRefused: PeerID?
    private(set) var counts = Counts()
    /// Whether another program has changed the security of the adapter since that was put under management, or before.
    private(set) var hasOtherManager = false

    init(
        bonds: @escaping () -> [BondRecord], hardware: @escaping () -> String? = { nil },
        now: @escaping @Sendable () -> BootInstant
    ) {
        self.bonds = bonds
        self.hardware = hardware
        self.now = now
        setup = ManagementSetup(adapter: 0xFFFF, at: now())
        channel = ManagementChannel(now: now)
    }

    var isOpen: Bool { channel.isOpen }
    var descriptor: Int32? { channel.descriptor }
    /// Whether a pairing runs, or has left the kernel one that it has not ended.
    var isPairing: Bool { isExchanging || responder.isRunning }
    private var isExchanging: Bool { pairing != nil || remains != nil }
    /// Whether the bond of a central is being stored.
    var isStoringCentral: Bool { responder.isStoring }
    /// The link of the central that pairs, or whose pairing waits for its turn.
    var centralLink: LinkIdentity? { responder.link }
    /// Whether centrals may pair.
    var allowsCentralPairing: Bool { responder.isAllowed }
    /// Tasks that wait for this coordinator, and commands that are out.
    var outstanding: Int {
        waiters.count + channel.unfinishedCommands + (isPairing ? 1 : 0)
    }
    /// Whether the kernel has the keys of all bonds.
    var hasKeys: Bool { isManaged && setup.hasKeys }
    var isManaged: Bool { channel.isOpen && setup.isManaged }
    /// Whether the kernel can pair with the adapter; `nil` if nothing has shown it.
    var canPair: Bool? { setup.canPair }
    /// Whether the adapter is being set up: meanwhile it may be switched off.
    var isSettingUp: Bool { setup.isSettingUp }

    var nextDeadline: BootInstant? {
        let waiting = exchange.isRunning ? nil : pairing?.demand.deadline
        let deadlines = [
            channel.nextDeadline, setup.nextDeadline, exchange.nextDeadline, responder.nextDeadline, waiting,
        ]
        return deadlines.compactMap(\.self).min()
    }

    // MARK: Channel

    /// Opens the channel for the adapter with this index.
    func open(_ socket: consuming ManagementSocket, adapter: UInt16) {
        channel.open(socket, adapter: adapter)
        // A power that was switched off before the former socket was lost is still to be switched on.
        if setupIndex == adapter { setup.interfaceOpened(at: now()) } else { setUp(adapter) }
    }

    private func setUp(_ adapter: UInt16) {
        setup = ManagementSetup(adapter: adapter, at: now())
        setupIndex = adapter
        hasOtherManager = false
        if let capability = responder.capability { _ = setup.rest(capability) }
    }

    /// The adapter is there again, perhaps with another index.
    func use(adapter index: UInt16) -> [Action] {
        guard channel.isOpen, channel.adapter != index else { return [] }
        var actions = perform(channel.use(adapter: index))
        // Its removal was missed, where there was one.
        actions += lose()
        setUp(index)
        return actions
    }

    /// Closes the channel, which must not be watched any more.
    func close() -> [Action] {
        // The adapter may be as it was: what is owed to it stays known.
        let actions = perform(channel.close()) + perform(setup.socketLost())
        return actions + losePairing()
    }

    /// Reads what waits at the socket.
    func readable(_ body: ([Action]) -> Void) {
        channel.read { body(perform($0)) }
        let rest = leaveRemains()
        if !rest.isEmpty { body(rest) }
    }

    func timePassed() -> [Action] {
        let now = now()
        var actions = perform(channel.timePassed())
        actions += perform(setup.timePassed(now))
        if exchange.isRunning {
            actions += perform(exchange.timePassed(now))
        } else if let pairing, pairing.demand.deadline <= now {
            actions += endPairing(pairing.waiter, .failure(.timedOut(nil)))
        }
        return actions + perform(responder.timePassed(now)) + leaveRemains()
    }

    // MARK: Setup

    /// Puts the adapter under management; resumes `waiter` when that has ended.
    ///
    /// - Parameter isBystander: Whether it waits for a setup of another task, which decides what follows a failure.
    func manage(_ plan: ManagementSetup.Plan, _ waiter: UInt64, isBystander: Bool = false) -> [Action] {
        waiters.awaitSetup(waiter, isBystander: isBystander)
        return perform(setup.begin(plan))
    }

    /// Loads both lists; resumes `waiter`, if any, when the kernel has them.
    ///
    /// - Parameter omitted: A peer whose keys are left out, until the lists are loaded again or a pairing begins:
    ///   `loadOmittedKeys` is to follow where none does.
    func load(_ waiter: UInt64?, leavingOut omitted: PeerID? = nil) -> [Action] {
        omittedPeer = omitted
        let (number, actions) = setup.reload()
        counts.loads += 1
        if let waiter { waiters.awaitLoad(number, waiter) }
        return perform(actions)
    }

    /// Gives the kernel the keys of a peer again that were left out for a connect which has ended without a pairing.
    func loadOmittedKeys(of peer: PeerID) -> [Action] { omittedPeer == peer && isManaged ? load(nil) : [] }

    /// Gives the kernel the key of a peer again that was removed by others, unless the bond is gone too.
    func loadRemovedKey(of peer: PeerID) -> [Action] {
        guard isManaged || isSettingUp, bonds().contains(where: { $0.identity == peer }) else { return [] }
        return [changedByOthers(.keyRemoved)] + load(nil, leavingOut: omittedPeer)
    }

    /// Gives the kernel the keys of the bonds again, which the disk has changed after its callers had given up.
    func loadLateChange() -> [Action] { isManaged || isSettingUp ? load(nil, leavingOut: omittedPeer) : [] }

    /// Removes the keys of a peer from the kernel, and drops its link; resumes `waiter` when that has ended.
    func unpair(_ identity: PeerID, _ waiter: UInt64) -> [Action] {
        let command = ManagementUnpairDevice(ManagementPeer(identity), disconnects: true)
        return perform(channel.send(command, for: .task(waiter)).events)
    }

    /// A task does not wait any longer.
    func stopWaiting(_ waiter: UInt64) { waiters.remove(waiter) }

    /// Returns whether the kernel has ended a link to a bonded peer because that did not accept its key, since the last
    /// call. It is known without the controller's events too.
    func takeRejection(by identity: PeerID) -> Bool { rejecting.remove(identity) != nil }

    /// Adds what was counted here.
    func count(in statistics: inout AdapterStatistics) {
        statistics.refusedPairings = counts.refusedPairings
        statistics.failedKeyLoads = counts.failedLoads
        let channel = channel.counts
        statistics.managementTimeouts = channel.timeouts
        statistics.malformedManagementEvents = channel.malformed
        statistics.droppedByKernel += channel.droppedByKernel
    }

    /// A link has shown that the kernel cannot pair.
    func cannotPair() { setup.cannotPair() }

    // MARK: Pairing

    /// Pairs; resumes `waiter` in the end. One pairing at a time.
    func pair(_ demand: PairingExchange.Demand, _ waiter: UInt64) -> [Action] {
        guard !isPairing else { return [.paired(waiter, .failure(.command(.pairDevice, .busy)))] }
        // A connect that was to replace the bond of another peer has failed: the kernel lacks that peer's keys, and no
        // list is loaded while the pairing runs.
        let lacksKeys = omittedPeer != nil && omittedPeer != demand.replacedBond
        let actions = lacksKeys ? load(nil) : []
        pairing = (waiter, demand)
        exchange = PairingExchange(after: exchange.lastQuestion)
        return actions + perform(setup.pairingBegins())
    }

    /// A task is to pair: until `pairingRequestEnded` no central begins to.
    func pairingRequested() { waiters.pairingRequested() }

    /// The task has paired, or does not pair any more.
    func pairingRequestEnded() { waiters.pairingRequestEnded() }

    /// Has a task wait until no pairing runs.
    func awaitTurn(_ waiter: UInt64) { waiters.awaitTurn(waiter) }

    func replied(_ reply: PairingExchange.Reply, to number: UInt64) -> [Action] {
        perform(exchange.replied(reply, to: number, at: now()))
    }

    func securityRead(_ security: SocketSecurity?) -> [Action] {
        perform(exchange.securityRead(security.map { ($0.level.rawValue, $0.keySize) }))
    }

    func stored(_ isStored: Bool) -> [Action] { perform(exchange.stored(isStored)) }

    /// The task that pairs does not wait any longer; its pairing ends soon.
    func cancelPairing(_ waiter: UInt64) -> [Action] {
        guard let pairing, pairing.waiter == waiter else { return [] }
        guard exchange.isRunning else {
            // It was not its turn yet.
            return endPairing(waiter, .failure(.cancelled))
        }
        return perform(exchange.cancel(at: now()))
    }

    /// The encryption of the link to a peer has changed.
    func encryptionChanged(_ isEncrypted: Bool, of peer: PeerID) -> [Action] {
        if responder.isRunning(onAir: peer) {
            return perform(responder.encryptionChanged(isEncrypted, at: now()))
        }
        guard pairing?.demand.onAir == peer else { return [] }
        return perform(exchange.encryptionChanged(isEncrypted))
    }

    /// The link to a peer has ended.
    func linkEnded(_ peer: PeerID) -> [Action] {
        if responder.isRunning(onAir: peer) { return perform(responder.linkEnded(at: now())) }
        guard pairing?.demand.onAir == peer else { return [] }
        return perform(exchange.linkEnded(at: now()))
    }

    // MARK: Pairings that centrals begin

    /// Sets how the centrals of served links are found.
    ///
    /// - Parameter find: Returns a central by the name that the kernel has for its link; `nil` for every other peer.
    func findCentrals(by find: @escaping @Sendable (PeerID) -> PairingResponder.Client?) { findCentral = find }

    /// Lets centrals pair; resumes `waiter` when the kernel accepts their pairings, or cannot be made to.
    func allowCentralPairing(_ permission: PairingResponder.Permission, _ waiter: UInt64) -> [Action] {
        waiters.awaitRest(waiter)
        return perform(responder.allow(permission))
    }

    /// Lets no central pair any more.
    func refuseCentrals(keepingCurrent: Bool = false) -> [Action] {
        perform(responder.refuse(keepingCurrent: keepingCurrent, at: now()))
    }

    func replied(_ reply: PairingExchange.Reply, aboutCentral number: UInt64) -> [Action] {
        perform(responder.replied(reply, to: number, at: now()))
    }

    func centralSecurityRead(_ security: SocketSecurity?) -> [Action] {
        perform(responder.securityRead(security.map { ($0.level.rawValue, $0.keySize) }, at: now()))
    }

    func centralStored(_ isStored: Bool) -> [Action] { perform(responder.stored(isStored, at: now())) }

    /// Another central that is connected has the identity of the bond.
    func centralIdentityIsConnected() -> [Action] { perform(responder.identityIsConnected(at: now())) }

    private func perform(_ requests: [PairingResponder.Action]) -> [Action] {
        var actions: [Action] = []
        for request in requests {
            switch request {
            case .rest(let capability): actions += perform(setup.rest(capability))
            case .begin: actions += perform(setup.pairingBegins())
            case .send(let command, let peer):
                guard let adapter = channel.adapter else {
                    actions += perform(responder.adapterLost(at: now()))
                    continue
                }
                let number = commands.next()
                let (ticket, events) = channel.send(
                    command.packet(peer, .noInputNoOutput, adapter: adapter), for: .pairing(number))
                commands.sent(number, command, ticket, of: .central)
                actions += perform(events)
            case .ask(let question, let client, let number):
                actions.append(.askAboutCentral(question, client, number: number))
            case .stopAsking: actions.append(.stopAskingAboutCentral)
            case .readSecurity(let client): actions.append(.readCentralSecurity(client))
            case .store(let outcome, let client): actions.append(.storeCentral(outcome, client))
            case .finish(let client, let result):
                // What is not sent yet would be a command for the next pairing.
                for ticket in commands.removeAll(of: .central) { channel.cancel(ticket) }
                actions += [.stopAskingAboutCentral, .centralPaired(client, result)] + endTurn(isBondable: nil)
            case .refused(let client, let failure):
                counts.refusedPairings += 1
                lastRefused = client.peer
                actions.append(.centralRefused(client, failure))
            case .refuse(let command, let peer):
                guard let adapter = channel.adapter else { continue }
                let (_, events) = channel.send(command.packet(peer, .noInputNoOutput, adapter: adapter), for: .none)
                actions += perform(events)
            case .disconnect(let client): actions.append(.disconnectCentral(client))
            case .permissionEnded: actions.append(.permissionEnded)
            }
        }
        return actions
    }

    // MARK: What the machines return

    private func perform(_ events: [ManagementChannel.Event]) -> [Action] {
        var actions: [Action] = []
        for event in events {
            switch event {
            case .finished(.setup, let code, let result):
                actions += perform(setup.commandFinished(code, result, at: now()))
            case .finished(.pairing(let number), _, let result):
                guard let (side, command) = commands.take(number) else { continue }
                let end = Self.end(of: result)
                switch side {
                case .own: actions += perform(exchange.commandFinished(command, end, at: now()))
                case .central: actions += perform(responder.commandFinished(command, end, at: now()))
                }
            case .finished(.task(let waiter), _, let result):
                var failure: ManagementCommandFailure?
                // A peer that is not paired has no key in the kernel, and the key of one whose link has just ended is
                // removed.
                if case .failure(let reported) = result, ![.notPaired, .disconnected].contains(reported.status) {
                    failure = reported
                }
                actions.append(.unpaired(waiter, failure))
            case .finished(.none, _, _), .finished(.instance, _, _), .finished(.address, _, _):
                break
            case .received(let content):
                actions += received(content)
            case .added:
                // The adapter looks for its own by the address.
                break
            case .removed:
                actions += lose()
            case .lost(let errno):
                actions.append(.lost(errno: errno))
            }
        }
        return actions
    }

    /// Goes on where the kernel has ended the Pair Device that a pairing has left.
    private func leaveRemains() -> [Action] {
        guard let isBondable = remains, !isPairDeviceOut else { return [] }
        remains = nil
        return endTurn(isBondable: isBondable)
    }

    private var isPairDeviceOut: Bool { channel.isOpen && channel.isOut(.pairDevice) }

    /// A program is known to manage every adapter.
    func foundOtherManager() -> [Action] { [changedByOthers(.otherManager)] }

    private func received(_ content: ManagementEvent.Content) -> [Action] {
        // bluetoothd clears the list of blocked peers when it begins, right before it empties the lists of keys, which
        // is reported to nobody.
        if case .deviceUnblocked(let peer) = content, peer.address == .zero { return foundOtherManager() }
        if case .newSettings(let settings) = content { return perform(setup.received(settings, at: now())) }
        if case .deviceUnpaired(let unpaired) = content {
            // By another program. A bonded central that connects by itself would find its key missing. Without
            // management the kernel has no key from here.
            guard isManaged || isSettingUp, let peer = unpaired.peer.id,
                bonds().contains(where: { $0.identity == peer })
            else { return [] }
            return [.keyRemoved(peer)]
        }
        if case .deviceDisconnected(let end) = content, let peer = end.peer.id {
            // Nothing more is reported of a pairing that was refused on this link.
            if lastRefused == peer { lastRefused = nil }
            if end.reason == .authenticationFailure, bonds().contains(where: { $0.identity == peer }) {
                rejecting.insert(peer)
            }
        }
        if exchange.isRunning, let actions = exchange.received(content, at: now()) { return perform(actions) }
        if let actions = responder.received(content, at: now()) { return perform(actions) }
        if case .authenticationFailed(let failed) = content, let peer = failed.peer.id {
            // It also follows a question that was refused here.
            if lastRefused == peer {
                lastRefused = nil
                return []
            }
            // The end of the pairing that runs, under any name that the kernel has had for its link.
            if exchange.concerns(failed.peer) || responder.concerns(failed.peer) || pairing?.demand.peer == peer {
                return []
            }
            return [.requested(peer)]
        }
        guard let refusal = PairingExchange.refusal(of: content), let adapter = channel.adapter else { return [] }
        if let peer = refusal.peer.id, let client = findCentral?(peer),
            let actions = responder.asked(
                content, about: client, isBusy: isExchanging || waiters.hasRequestedPairing, at: now())
        {
            return perform(actions)
        }
        counts.refusedPairings += 1
        lastRefused = refusal.peer.id
        let packet = refusal.command.packet(refusal.peer, .noInputNoOutput, adapter: adapter)
        return perform(channel.send(packet, for: .none).events) + [.refused(refusal.peer.id)]
    }

    private static func end(
        of result: Result<ManagementCommandComplete, ManagementCommandFailure>
    ) -> PairingExchange.CommandEnd {
        switch result {
        case .success(let complete):
            // All that return a peer return it in the same way; settings are of no interest.
            return .success(try? ManagementDisconnect.response(from: complete.returnParameters.span))
        case .failure(let failure):
            switch failure.reason {
            case .status(let status): return .failure(status)
            case .adapterLost, .socketLost: return .lost
            case .malformed, .timeout, .queueFull, .tooLong, .cancelled, .notSent: return .noResponse
            }
        }
    }

    private func perform(_ requests: [ManagementSetup.Action]) -> [Action] {
        var actions: [Action] = []
        for request in requests {
            switch request {
            case .send(let packet):
                actions += perform(channel.send(packet, for: .setup).events)
            case .load(let list):
                let lists = BondRules.keyLists(
                    of: bonds().filter { $0.identity != omittedPeer }, adapter: hardware())
                let events =
                    switch list {
                    case .identityResolvingKeys: channel.send(lists.identities, for: .setup).events
                    case .longTermKeys: channel.send(lists.longTermKeys, for: .setup).events
                    }
                actions += perform(events)
            case .finish(let result):
                let ended = waiters.takeSetup()
                actions += ended.map { .managed($0.waiter, result) }
                // The task that has begun the setup may not wait any more.
                if ended.allSatisfy(\.isBystander), case .failure(let failure) = result, !failure.isLoss {
                    actions.append(.setUpFailed(failure))
                }
            case .listsLoaded(let number, let failure):
                if failure != nil { counts.failedLoads += 1 }
                actions += waiters.takeLoads(upTo: number).map { .listsLoaded($0, failure) }
            case .pairingMayBegin:
                if let pairing {
                    // All lists are loaded when it has ended.
                    omittedPeer = nil
                    actions += perform(exchange.begin(pairing.demand))
                } else {
                    actions += perform(responder.mayBegin())
                }
            case .pairingRefused(let failure):
                if let pairing {
                    actions += endPairing(pairing.waiter, .failure(.notReady(failure)))
                } else {
                    actions += perform(responder.cannotBegin(failure, at: now()))
                }
            case .rested(let failure):
                let ended = waiters.takeRest()
                actions += ended.map { .rested($0, failure) }
                if let failure, ended.isEmpty { actions.append(.restFailed(failure)) }
            case .bondableCleared(let isSetAgain):
                actions.append(changedByOthers(.bondableCleared(isSetAgain: isSetAgain)))
            case .madeBondable: actions.append(changedByOthers(.madeBondable))
            case .wasBondable: actions.append(changedByOthers(.wasBondable))
            case .secureConnectionsOff: actions.append(changedByOthers(.secureConnectionsOff))
            case .privacyOn: actions.append(changedByOthers(.privacyOn))
            }
        }
        return actions
    }

    private func changedByOthers(_ change: ForeignChange) -> Action {
        hasOtherManager = true
        return .changedByOthers(change)
    }

    private func perform(_ requests: [PairingExchange.Action]) -> [Action] {
        var actions: [Action] = []
        for request in requests {
            switch request {
            case .send(let command, let peer):
                guard let adapter = channel.adapter, let capability = pairing?.demand.capability else {
                    actions += perform(exchange.adapterLost())
                    continue
                }
                let number = commands.next()
                let packet = command.packet(peer, capability, adapter: adapter)
                let (ticket, events) = channel.send(packet, for: .pairing(number))
                commands.sent(number, command, ticket, of: .own)
                actions += perform(events)
            case .ask(let question, let number): actions.append(.ask(question, number: number))
            case .readSecurity: actions.append(.readSecurity)
            case .store(let outcome): actions.append(.store(outcome))
            case .finish(let result):
                guard let pairing else { continue }
                actions += endPairing(pairing.waiter, result)
            }
        }
        return actions
    }

    private func endPairing(
        _ waiter: UInt64, _ result: Result<PairingExchange.Outcome, PairingExchange.Failure>
    ) -> [Action] {
        pairing = nil
        // What is not sent yet would be a command for the next pairing.
        for ticket in commands.removeAll(of: .own) { channel.cancel(ticket) }
        let actions = [Action.stopAsking, .paired(waiter, result)]
        if isPairDeviceOut {
            remains = exchange.mayBeBondable
            return actions
        }
        return actions + endTurn(isBondable: exchange.mayBeBondable)
    }

    /// Another pairing may begin.
    private func endTurn(isBondable: Bool?) -> [Action] {
        let turns = waiters.takeTurns()
        return perform(setup.pairingEnds(isBondable: isBondable)) + turns.map { .turn($0) }
    }

    /// The adapter is gone.
    private func lose() -> [Action] { perform(setup.adapterLost()) + losePairing() }

    /// No command can be sent any more.
    private func losePairing() -> [Action] {
        lastRefused = nil
        var actions: [Action] = []
        if exchange.isRunning {
            actions += perform(exchange.adapterLost())
        } else if let pairing {
            actions += endPairing(pairing.waiter, .failure(.adapterLost))
        }
        return actions + perform(responder.adapterLost(at: now())) + leaveRemains()
    }
}

// MARK: - Waiting

/// The tasks that wait for the coordinator, by their numbers.
private struct SecurityWaiters {
    /// Those that wait until the adapter is under management.
    private var setup: [(waiter: UInt64, isBystander: Bool)] = []
    /// Those that wait until the kernel has taken the lists of a load, or of a later one.
    private var loads: [(waiter: UInt64, load: UInt64)] = []
    /// Those that wait until no pairing runs.
    private var turns: [UInt64] = []
    /// Those that wait until the kernel lets centrals pair as the permission specifies.
    private var rest: [UInt64] = []
    /// The number of pairings of this side that run or wait for their turn.
    private var requestedPairings = 0

    var count: Int { setup.count + loads.count + turns.count + rest.count }
    var hasRequestedPairing: Bool { requestedPairings > 0 }

    mutating func awaitSetup(_ waiter: UInt64, isBystander: Bool) { setup.append((waiter, isBystander)) }
    mutating func awaitLoad(_ load: UInt64, _ waiter: UInt64) { loads.append((waiter, load)) }
    mutating func awaitTurn(_ waiter: UInt64) { turns.append(waiter) }
    mutating func awaitRest(_ waiter: UInt64) { rest.append(waiter) }
    mutating func pairingRequested() { requestedPairings += 1 }
    mutating func pairingRequestEnded() { requestedPairings -= 1 }

    mutating func takeSetup() -> [(waiter: UInt64, isBystander: Bool)] { Self.take(&setup) }
    mutating func takeTurns() -> [UInt64] { Self.take(&turns) }
    mutating func takeRest() -> [UInt64] { Self.take(&rest) }

    mutating func takeLoads(upTo load: UInt64) -> [UInt64] {
        let ended = loads.filter { $0.load <= load }
        loads.removeAll { $0.load <= load }
        return ended.map(\.waiter)
    }

    /// A task does not wait any longer.
    mutating func remove(_ waiter: UInt64) {
        setup.removeAll { $0.waiter == waiter }
        loads.removeAll { $0.waiter == waiter }
        turns.removeAll { $0 == waiter }
        rest.removeAll { $0 == waiter }
    }

    private static func take<Waiter>(_ waiters: inout [Waiter]) -> [Waiter] {
        defer { waiters = [] }
        return waiters
    }
}

// MARK: - Commands

/// The commands of pairings that have not ended. Both sides share their numbers, so that the response to a command of
/// one pairing never reaches another one.
private struct PairingCommands {
    /// The side that has begun the pairing.
    enum Side {
        case own
        case central
    }

    private struct Sent {
        let side: Side
        let command: PairingExchange.Command
        let ticket: ManagementCommandQueue.Ticket
    }

    private var unfinished: [UInt64: Sent] = [:]
    private var last: UInt64 = 0

    /// Returns the number of the next command.
    mutating func next() -> UInt64 {
        last &+= 1
        return last
    }

    mutating func sent(
        _ number: UInt64, _ command: PairingExchange.Command, _ ticket: ManagementCommandQueue.Ticket, of side: Side
    ) {
        unfinished[number] = Sent(side: side, command: command, ticket: ticket)
    }

    /// Returns a command that has ended; `nil` for one of a pairing that is over.
    mutating func take(_ number: UInt64) -> (side: Side, command: PairingExchange.Command)? {
        unfinished.removeValue(forKey: number).map { ($0.side, $0.command) }
    }

    /// Forgets the commands of a pairing that is over, and returns their tickets.
    mutating func removeAll(of side: Side) -> [ManagementCommandQueue.Ticket] {
        let ended = unfinished.filter { $0.value.side == side }
        for number in ended.keys { unfinished[number] = nil }
        return ended.values.map(\.ticket)
    }
}

extension ManagementSetup.Failure {
    /// Whether the adapter or the management interface went away, which indicates nothing about the next setup.
    fileprivate var isLoss: Bool {
        switch self {
        case .adapterGone: true
        case .command(let failure): failure.reason == .adapterLost || failure.reason == .socketLost
        default: false
        }
    }
}
