import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

// Programs with bonds: what they call, what is asked of them, and how it is judged.
//
// - Nothing that was sent without encryption reaches an application on a link to a bonded peer, and nothing of ours is
//   sent to it unencrypted, but for the replies to what was discarded.
// - A peer is paired only while a task pairs it, and an agent is asked only then.
// - A bond that is reported is on the disk. A pairing that fails leaves the record that was there before. A bond that
//   the peer rejects stays, marked.

extension World {
    /// What the seed says about the programs with bonds: whether they pair on demand, and how short a key may be.
    private var habits: (pairsOnDemand: Bool, minimumKeySize: Int) {
        var numbers = Numbers(seed: script.seed, .security, 2000)
        return (numbers.chance(40), numbers.chance(80) ? 16 : 7)
    }

    nonisolated func security(_ bonds: BondStore) -> SecurityConfiguration {
        var numbers = Numbers(seed: script.seed, .security, 2000)
        var security = SecurityConfiguration(bonds: bonds)
        if numbers.chance(40) { security.onDemand = PairingOptions(agent: agent(2), timeout: .seconds(10)) }
        security.minimumKeySize = numbers.chance(80) ? 16 : 7
        security.timeOfDay = { [loop] in 1_790_000_000 + UInt64(max(0, loop.now().nanoseconds) / 1_000_000_000) }
        return security
    }

    /// Kernels differ in the order of events, and in what becomes of a socket whose key is missing.
    func setUpSecurity() async {
        var numbers = Numbers(seed: script.seed, .security, 2001)
        let orders: [VirtualManagement.ResultOrder?] = VirtualManagement.ResultOrder.allCases + [nil]
        await radio.orderResults(numbers.pick(orders))
        await radio.connectWhilePairing(numbers.chance(50))
    }

    /// Counts the events of bonds, until the program ends.
    func follow(_ central: Central) -> Task<Void, any Error> {
        time.task { [events = central.securityEvents, weak self] in
            for try await event in events { await self?.told(event) }
        }
    }

    /// Ends what follows the events of bonds, which would never end, and keep the world.
    func endFollowing() async {
        for host in hosts {
            host.follower?.cancel()
            try? await host.follower?.value
        }
    }

    private func told(_ event: SecurityEvent) {
        let name =
            switch event {
            case .bonded: "bonded"
            case .bondRejected: "bondRejected"
            case .securityRequested: "securityRequested"
            case .pairingRefused: "pairingRefused"
            case .keysLoadedAgain: "keysLoadedAgain"
            case .otherManager: "otherManager"
            case .bondsDamaged: "bondsDamaged"
            case .encrypted: "encrypted"
            case .dropped: "dropped"
            }
        note("B", name)
        eventCounts.add("security.\(name)")
    }

    // MARK: Names

    /// The program with bonds that uses a peer; `nil` if its program has none.
    func security(of peer: SimulatedPeer) -> Host? {
        let host = host(peer.adapter)
        return host.store == nil ? nil : host
    }

    /// The name by which an application knows a peer: the identity of a bonded one, else the address that it has heard.
    func name(of peer: SimulatedPeer) -> PeerID {
        guard let identity = peer.identity else { return peer.peer }
        let host = host(peer.adapter)
        if host.adapter.assumeIsolated({ $0.isBonded(with: identity) }) { return identity }
        return address(of: peer.peripheral) ?? peer.peer
    }

    /// The address that a peer uses now.
    func address(of peripheral: VirtualPeripheral) -> PeerID? {
        radio.assumeIsolated { $0.id(of: peripheral) }
    }

    func peer(named id: PeerID) -> SimulatedPeer? {
        peers.first { peer in
            id == peer.peer || id == peer.identity || id == address(of: peer.peripheral)
                || peer.formerAddresses.contains(id)
        }
    }

    /// How long a connect may take: a peer with bonds may have to be listened for, and its link to be encrypted.
    func connectTime(of peer: SimulatedPeer) -> Duration { security(of: peer) == nil ? .seconds(20) : .seconds(30) }

    // MARK: What must hold

    /// Whether the disk has a bond, whatever the library knows of it.
    func hasStoredBond(with peer: SimulatedPeer, _ host: Host) -> Bool {
        guard let store = host.store, !store.hasOthersChanges, !store.isStopped else { return false }
        return store.records?.contains { $0.identity == peer.identity ?? peer.peer } ?? false
    }

    /// A packet of the client is at the peer.
    func checkIsEncrypted(_ pdu: [UInt8], _ peer: SimulatedPeer) {
        guard peer.isProtected, let opcode = pdu.first,
            !peer.peripheral.assumeIsolated({ $0.linkSecurity.isEncrypted })
        else { return }
        // What was discarded is refused or confirmed before the peer counts as encrypted.
        if opcode == ATTOpcode.errorResponse.rawValue || opcode == ATTOpcode.handleValueConfirmation.rawValue { return }
        fail("peer \(peer.number) is bonded, and was sent \(pdu) without encryption")
    }

    /// A packet of a peer has reached the library.
    func checkIsNotForged(_ pdu: TracedPDU) {
        guard let peer = peers.first(where: { $0.forgery == pdu.bytes }), peer.isProtected else { return }
        fail("peer \(peer.number) is bonded, and what was sent without encryption has been delivered")
    }

    /// Whether a peer has been paired since the last look, and a task wanted it.
    func checkPairings() {
        guard !script.security.isEmpty else { return }
        for peer in peers {
            let count = peer.peripheral.assumeIsolated { $0.pairingCount }
            guard count != peer.seenPairings else { continue }
            peer.seenPairings = count
            if peer.pairingTasks > 0 || loop.now() <= peer.pairingEnd { continue }
            let identity = peer.identity ?? peer.peer
            let isBonded = security(of: peer)?.adapter.assumeIsolated { $0.isBonded(with: identity) } ?? true
            if habits.pairsOnDemand, !isBonded { continue }
            fail("peer \(peer.number) was paired, and no task has asked for that")
        }
    }

    // MARK: Agents

    /// An agent by its number: 0 and 1 have no means, 2 to 5 do what is right, 6 what is wrong, and 7 nothing.
    nonisolated func agent(_ kind: Int) -> PairingAgent {
        var agent = PairingAgent()
        guard kind > 1 else { return agent }
        agent.confirm = { [weak self] peer in await self?.asked("confirm", peer, kind) != nil }
        if [2, 4, 5, 6, 7].contains(kind) {
            agent.show = { [weak self] peer, _ in _ = await self?.asked("show", peer, kind) }
        }
        if [2, 5, 6, 7].contains(kind) {
            agent.compare = { [weak self] peer, number in
                let shown = await self?.asked("compare", peer, kind)
                return shown.map { Int($0) == number.number } ?? false
            }
        }
        if [2, 3, 6, 7].contains(kind) {
            agent.enter = { [weak self] peer in await self?.asked("enter", peer, kind).flatMap { Passkey(Int($0)) } }
        }
        return agent
    }

    /// Returns the number that the peer shows, or another one; `nil` for a no.
    private func asked(_ what: String, _ id: PeerID, _ kind: Int) async -> UInt32? {
        note("q", "\(what) \(id)")
        eventCounts.add("asked.\(what)")
        guard let peer = peer(named: id) else {
            fail("an agent was asked about \(id), whom nobody pairs")
            return nil
        }
        if peer.pairingTasks == 0, !habits.pairsOnDemand {
            fail("an agent was asked, and no task pairs peer \(peer.number)")
        }
        if kind == 7 { await sleep(.seconds(3600)) }
        let shown = await peer.peripheral.shownNumber ?? 0
        return kind == 6 ? what == "enter" ? (shown + 1) % 1_000_000 : nil : shown
    }

    private func options(_ step: Script.Step) -> PairingOptions {
        let replacements: [PairingOptions.Replacement] = [.never, .lostByPeer, .always]
        let requirements: [PairingOptions.RequiredSecurity] = [.encrypted, .legacyPasskey, .authenticated]
        var options = PairingOptions(
            agent: agent(step.second), require: requirements[(step.first / 4) % 3],
            replacing: replacements[step.first % 4 % 3])
        if step.limit > 0 { options.timeout = .milliseconds(step.limit) }
        return options
    }

    // MARK: Calls

    func callSecurity(_ step: Script.Step, _ peer: SimulatedPeer) async {
        guard let host = security(of: peer), let store = host.store else { return }
        let number = peer.number
        var unlimited = step
        unlimited.limit = 0
        switch step.verb {
        case .pair:
            await onLink(unlimited, number) { link in
                try await self.pairing(step, peer, store) { options in try await link.pair(options) }
            }
        case .connectPairing:
            await attemptConnect(unlimited, peer, limit: .seconds(90)) {
                try await self.pairing(step, peer, store) { options in
                    let demand = ConnectOptions(security: .pairing(options))
                    let link = try await host.central.connect(self.name(of: peer), demand)
                    self.keep(link, of: number)
                    return nil
                }
            }
        case .connectBonded:
            await attemptConnect(step, peer, limit: connectTime(of: peer)) {
                let link = try await host.central.connect(self.name(of: peer), ConnectOptions(security: .bonded))
                self.keep(link, of: number)
            }
        default: await forget(step, peer, host, store)
        }
    }

    /// Connects; a bond that the peer has rejected then is kept, and marked.
    func attemptConnect(
        _ step: Script.Step, _ peer: SimulatedPeer, limit: Duration, _ body: () async throws -> Void
    ) async {
        let store = security(of: peer)?.store
        let version = store?.version
        // What another program has removed before, or replaced, cannot be marked.
        let before = store?.records?.first { $0.identity == peer.identity ?? peer.peer }
        guard await attempt(step, limit: limit, body)?.code == .bondRejected, let store else { return }
        eventCounts.add("bond.rejected")
        guard before != nil, store.version == version, !store.mayFail, let records = store.records else { return }
        let record = records.first { $0.identity == peer.identity ?? peer.peer }
        guard case .rejected = record?.state else {
            return fail("peer \(peer.number) has rejected its bond, which is \(record.map { "\($0)" } ?? "gone")")
        }
    }

    /// Pairs, and compares what is stored before and afterwards.
    private func pairing(
        _ step: Script.Step, _ peer: SimulatedPeer, _ store: SimulatedStore,
        _ body: (PairingOptions) async throws -> Bond?
    ) async throws {
        store.keep()
        let identity = peer.identity ?? peer.peer
        let version = store.version
        let before = store.records?.first { $0.identity == identity }
        let wasBonded = await host(peer.adapter).adapter.isBonded(with: identity)
        peer.pairings += 1
        let (number, isAlone) = (peer.pairings, peer.pairingTasks == 0)
        peer.pairingTasks += 1
        let start = loop.now()
        let suspendedBefore = suspended
        let options = options(step)
        defer {
            checkPairings()
            peer.pairingTasks -= 1
            let took = loop.now() - start - (suspended - suspendedBefore)
            if took > options.timeout + .seconds(60) { fail("step \(step.number) paired for \(took)") }
        }
        // What the disk has then, unless somebody else has changed it.
        func stored() -> [BondRecord]? {
            store.version == version && !store.isStopped ? store.records : nil
        }
        do {
            let bond = try await body(options)
            guard let records = stored() else { return }
            guard let record = records.first(where: { $0.identity == bond?.peer ?? identity }) else {
                // A connect may have received another identity.
                if bond == nil { return }
                // A bond that was there is returned, also where another program has removed the file since.
                if wasBonded, before == nil { return }
                return fail("step \(step.number) has reported a bond that is not stored")
            }
            eventCounts.add(before == nil ? "bond.made" : record.keys == before?.keys ? "bond.kept" : "bond.replaced")
        } catch {
            // A connect may also fail after its pairing.
            let isPairings = step.verb == .pair || (error as? BLEError)?.operation == "pair"
            if isPairings, isAlone, peer.pairings == number, !habits.pairsOnDemand, let records = stored() {
                let after = records.first { $0.identity == identity }
                if after?.keys != before?.keys { fail("step \(step.number) has failed and changed the bond: \(error)") }
            }
            throw error
        }
    }

    private func forget(_ step: Script.Step, _ peer: SimulatedPeer, _ host: Host, _ store: SimulatedStore) async {
        let identity = peer.identity ?? peer.peer
        store.keep()
        store.changed()
        let (version, pairings) = (store.version, peer.pairings)
        let isAlone = peer.pairingTasks == 0 && !habits.pairsOnDemand
        let before = store.records?.contains { $0.identity == identity } ?? false
        let failed = await attempt(step) { try await host.central.forgetBond(with: identity) }
        defer { store.changed() }
        guard isAlone, peer.pairings == pairings, store.version == version, !store.isStopped,
            let records = store.records
        else { return }
        let isStored = records.contains { $0.identity == identity }
        if failed == nil, isStored { fail("step \(step.number) has forgotten a bond that is stored") }
        if failed?.code == .bondNotStored, before, !isStored { fail("step \(step.number) reports a bond that is gone") }
    }

    // MARK: The end of a program

    /// The program dies, with a change of its files or at once, and another one begins with what is on the disk.
    func crash(_ step: Script.Step) async {
        let number = hostNumber(step)
        guard let store = hosts[number].store, !hosts[number].isEnding else { return }
        hosts[number].isEnding = true
        defer { hosts[number].isEnding = false }
        eventCounts.add("call.crash")
        if step.first > 0 {
            store.stop(after: step.first - 1)
            let limit = loop.now() + .milliseconds(step.second)
            while !store.isStopped, loop.now() < limit, !isHealed { await sleep(.milliseconds(7)) }
            if isHealed { return store.revive() }
        }
        hosts[number].isDown = true
        note("s", "\(step.number) \(store.isStopped ? "killed" : "died")")
        store.changed()
        // What the kernel has of it ends with its sockets: nothing is cancelled.
        loseManagement()
        await radio.closeManagement()
        for (other, adapter) in taskAdapters.sorted(by: { $0.key < $1.key })
        where adapter == number && other != step.number {
            tasks[other]?.cancel()
        }
        await endLinks(ofProgram: number)
        var rest = 6_000
        while taskAdapters.contains(where: { $0.value == number && $0.key != step.number }) {
            await sleep(.milliseconds(10))
            rest -= 1
            if rest == 0 { return fail("a call of a program that has ended has not ended within a minute") }
        }
        // A call that was cancelled too late has a session, or a link.
        await endLinks(ofProgram: number)
        await replaceProgram(number, store)
        if failure == nil { eventCounts.add("done.crash") }
    }

    private func endLinks(ofProgram number: Int) async {
        var ends: [Task<Void, any Error>] = []
        for peer in peers where peer.adapter == number {
            let (session, link) = (peer.session, peer.link)
            (peer.session, peer.link) = (nil, nil)
            ends.append(time.task { await session?.disconnect() })
            ends.append(time.task { await link?.disconnect() })
        }
        for end in ends { try? await end.value }
    }

    private func replaceProgram(_ number: Int, _ store: SimulatedStore) async {
        let name = hosts[number].name
        hosts[number].follower?.cancel()
        weak let former: Adapter? = hosts[number].adapter
        store.revive()
        hosts[number] = host(name, store)
        (hosts[number].isEnding, hosts[number].isDown) = (true, true)
        var rest = 6_000
        while former != nil {
            await sleep(.milliseconds(10))
            rest -= 1
            if rest == 0 { return fail("somebody holds the adapter of a program that has ended") }
        }
        store.changed()
        if store.records == nil { fail("the bonds of a program that was killed cannot be read") }
        hosts[number].isDown = false
        // Where the adapter is away, its first use makes it ready.
        try? await hosts[number].central.ready()
    }
}
