// One simulation: a virtual radio with its adapters, the peers in the air, and programs that use them, all on one loop
// with a time of its own. It plays a script, looks at what must hold with each event, and ends with a time in which
// nothing goes wrong any more and everything has to work again.
//
// Duties
// - Each call of an application is begun and ended in the log, with its outcome; a call ends once, and in time.
// - The first thing that is wrong is kept in `failure`; the play ends there.
//
// Invariants
// - Everything is on the loop, and nothing here goes by a hash's order, an address or another clock: the same script
//   makes the same log in every process.

import BLECore
import BLELinux
import BareBLE
import BareBLETestKit

/// The result of one simulation.
struct SimulationResult: Sendable {
    let hash: UInt64
    let events: Int
    let failure: String?
    let eventCounts: EventCounts
    let lines: [String]
    /// The simulated time.
    let duration: Duration
}

/// One simulation, while it runs.
actor World {
    /// A program with an adapter.
    struct Host {
        let name: String
        let adapter: Adapter
        let central: Central
        /// Where its bonds are, if it has any.
        var store: SimulatedStore?
        /// Counts the events of its bonds.
        var follower: Task<Void, any Error>?
        /// Whether the program is about to end, and whether it is being replaced by another one.
        var isEnding = false
        var isDown = false
    }

    nonisolated let loop: EventLoop
    let time: VirtualTime
    let script: Script
    let radio: VirtualRadio
    var hosts: [Host] = []
    /// Other programs, with the numbers of the adapters that they share with a host.
    var neighbours: [(adapter: Int, host: Host)] = []
    var peers: [SimulatedPeer] = []
    var log: EventLog
    var eventCounts = EventCounts()
    private(set) var failure: String?

    var links: [LinkWatch] = []
    /// The links that applications have got.
    var made: [WeakLink] = []
    var tasks: [Int: Task<Void, any Error>] = [:]
    /// The adapters that they belong to.
    var taskAdapters: [Int: Int] = [:]
    /// Calls that are under way, by their steps.
    var pending: [Int: String] = [:]
    /// The simulated time of suspensions.
    var suspended = Duration.zero
    /// Whether programs have lost the management interface: they do not know any more whether the kernel can pair.
    var hasLostManagement = false
    /// Whether the faults are over.
    var isHealed = false
    /// The number of scans that have heard something since then.
    var scansHeard = 0
    /// What programs hear by controllers that become deaf, since then, by their names.
    var hearings: [String: Hearing] = [:]

    struct WeakLink {
        weak var link: Peripheral?
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    private init(_ script: Script, _ time: VirtualTime, keepsLines: Bool) {
        self.script = script
        self.time = time
        loop = time.loop
        radio = VirtualRadio(time: time)
        log = EventLog(keepsLines: keepsLines)
    }

    /// Plays a script to its end, or to the first thing that is wrong.
    static func play(_ script: Script, keepsLines: Bool = false) async -> SimulationResult {
        await VirtualTime.run { time in
            let world = World(script, time, keepsLines: keepsLines)
            await world.play()
            await world.endFollowing()
            return await world.outcome
        }
    }

    private var outcome: SimulationResult {
        SimulationResult(
            hash: log.hash, events: log.count, failure: failure, eventCounts: eventCounts, lines: log.lines,
            duration: loop.now() - BootInstant(nanoseconds: 0))
    }

    // MARK: The play

    private func play() async {
        defer { for host in hosts { host.store?.remove() } }
        await setUp()
        let watched = loop.watchedCount
        let start = loop.now()
        for step in script.steps where step.time <= script.length {
            await sleep(until: start + .milliseconds(step.time) + suspended)
            if failure != nil { return }
            perform(step)
        }
        await sleep(until: start + .milliseconds(script.length) + suspended)
        if failure == nil { await recover() }
        if failure == nil { await tidyUp(watched) }
    }

    private func setUp() async {
        if !script.security.isEmpty { await setUpSecurity() }
        let names = script.adapters.indices.map { "hci\($0)" }
        if script.recovery == .usb { await radio.setPermissions([.commands, .administration, .recovery]) }
        for (index, name) in names.enumerated() {
            let personality = script.personality(index)
            eventCounts.add("controller.\(script.adapters[index])")
            if let loss = script.dataLosses.first(where: { $0.adapter == index }) {
                eventCounts.add("dataLoss.\(loss.kind)")
            }
            // The radio comes with a first adapter.
            if name == "hci0" { await radio.setPersonality(personality) } else { await radio.addAdapter(personality) }
        }
        for (index, name) in names.enumerated() {
            let store = script.security.contains(index) ? SimulatedStore(adapter: name) : nil
            hosts.append(host(name, store))
        }
        for adapter in script.neighbours where names.indices.contains(adapter) {
            neighbours.append((adapter, host(names[adapter], isNeighbour: true)))
        }
        for index in script.peers.indices where script.peers[index] != .absent {
            let peer = SimulatedPeer(index, script, radio, adapter: index % hosts.count)
            peers.append(peer)
            await radio.place(peer.peripheral, as: peer.peer, advertising: peer.advertisement(script))
            if peer.identity != nil { await radio.rotateAddress(of: peer.peripheral) }
            await peer.peripheral.behave { [weak self] pdu, response in
                self?.assumeIsolated { $0.react(index, pdu, response) } ?? []
            }
        }
        for host in hosts + neighbours.map(\.host) {
            do {
                try await host.central.ready()
            } catch {
                fail("an adapter that is there was not ready: \(error)")
            }
        }
    }

    func host(_ name: String, _ store: SimulatedStore? = nil, isNeighbour: Bool = false) -> Host {
        var configuration = Configuration()
        configuration.adapter = .named(name)
        if let store {
            do {
                configuration.security = security(try store.open())
            } catch {
                fail("the bonds of \(name) cannot be opened: \(error)")
            }
        }
        configuration.addressHash = { message in
            message.withKey { key in
                let cipher = VirtualCipher(key: (0..<key.count).map { key[$0] })
                return cipher.encrypt(message.block).suffix(3).reduce(0) { $0 << 8 | UInt32($1) }
            }
        }
        configuration.traceLinks = { [weak self] link in
            self?.assumeIsolated { $0.began(link) } ?? { _ in }
        }
        let adapter = Adapter(
            configuration.adapter, loop: loop, logger: configuration.logger,
            trace: { [weak self] packet in self?.assumeIsolated { $0.traced(packet, isNeighbour) } },
            security: configuration.security, addressHash: configuration.addressHash,
            recovery: RecoveryPolicy(script.recovery), system: radio.system)
        let central = Central(configuration, adapter: adapter)
        return Host(
            name: name, adapter: adapter, central: central, store: store,
            follower: store == nil ? nil : follow(central))
    }

    func peer(_ number: Int) -> SimulatedPeer? {
        peers.first { $0.number == number }
    }

    func host(_ number: Int) -> Host {
        hosts[number % hosts.count]
    }

    /// The number of the host that a step concerns.
    func hostNumber(_ step: Script.Step) -> Int {
        (step.verb.isOnAdapter ? step.subject : peer(step.subject)?.adapter ?? 0) % hosts.count
    }

    // MARK: What is seen

    private func began(_ link: TracedLink) -> TracedLink.Observer {
        let number = links.count
        links.append(LinkWatch(peer: link.peer))
        note("+", "link \(number) \(link.peer)")
        if let id = link.id, let peer = peer(named: id), let host = security(of: peer) {
            let isBonded = host.adapter.assumeIsolated { $0.isBonded(with: id) }
            peer.isProtected = isBonded || hasStoredBond(with: peer, host)
        }
        return { [weak self] event in self?.assumeIsolated { $0.see(event, number) } }
    }

    private func see(_ event: TracedLink.Event, _ number: Int) {
        switch event {
        case .pdu(let pdu):
            log.add(pdu.time, pdu.isOutgoing ? "<" : ">", "\(number)", pdu.bytes)
            if !pdu.isOutgoing { checkIsNotForged(pdu) }
        case .ended(let reason, let time):
            log.add(time, "-", "link \(number): \(reason)")
            eventCounts.add("reason.\(Self.name(reason))")
        }
        if let wrong = links[number].see(event) { fail(wrong) }
    }

    private func traced(_ packet: TracedHCIPacket, _ isNeighbour: Bool) {
        let name = isNeighbour ? "\(packet.adapter) beside" : packet.adapter
        log.add(packet.time, packet.isOutgoing ? "c" : "e", name, packet.bytes)
        checkPairings()
    }

    private func react(_ number: Int, _ pdu: [UInt8], _ response: @Sendable ([UInt8]) -> [[UInt8]]) -> [Conduct
        .Reaction]
    {
        guard let peer = peer(number) else { return [] }
        checkIsEncrypted(pdu, peer)
        if peer.isHealed { return response(pdu).map { (.zero, $0) } }
        var reactions = peer.conduct.react(to: pdu, response) { eventCounts.add($0) }
        if peer.responsesToDrop > 0, !reactions.isEmpty {
            peer.responsesToDrop -= 1
            reactions = []
            eventCounts.add("effect.responseDropped")
        }
        return reactions
    }

    func note(_ kind: Character, _ text: String) {
        log.add(loop.now(), kind, text)
    }

    func fail(_ what: String) {
        guard failure == nil else { return }
        failure = what
        note("!", what)
    }

    func sleep(until deadline: BootInstant) async {
        try? await time.clock.sleep(until: deadline)
    }

    func sleep(_ duration: Duration) async {
        await sleep(until: loop.now() + duration)
    }

    static func name(_ reason: DisconnectReason) -> String {
        switch reason {
        case .requested: "requested"
        case .detached: "detached"
        case .byPeer: "byPeer"
        case .supervisionTimeout: "supervisionTimeout"
        case .attTimeout: "attTimeout"
        case .protocolViolation: "protocolViolation"
        case .adapterLost: "adapterLost"
        case .other: "other"
        }
    }
}
