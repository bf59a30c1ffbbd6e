internal import BLECore
internal import BLELinux
internal import Logging

// The links that a local peripheral serves: those that centrals have made, and those that this program has made.
//
// Duties
// - Gives each link a `LinkServer`, and runs the handlers of the application for its requests.
// - Reports what happens at a link, in order: connected, subscribed, written, unsubscribed, disconnected.
// - Passes to a server what its bonded central has configured on earlier links, and has changes of that recorded.
// - Makes room for a new link: ends the link that the same central had before, and one that may go if there are too
//   many. Addresses are not encrypted, and any device may copy one: so a link that the key of a bond encrypts ends only
//   for a newer one that the key encrypts as well, and stays however many centrals come.
// - Finds the central of a link by each of its names: the kernel's, the one on the air, and that of its bond.
//
// Invariants
// - A link is in the table from its first packet to its end. Then its subscriptions have ended.
// - The number of a link is never used again.
// - Once the table is closed, no link that this program makes is served any more. Those of centrals are accepted by
//   `CentralAcceptor`, which ends separately.
// - Only the event loop's thread uses it.

/// A link that is served.
struct ServedLink: Sendable {
    let id: ConnectedCentral.ID
    let peripheral: Peripheral
    let server: LinkServer
    /// Whether a central has made the link.
    let isInbound: Bool
    /// Whether the run before has served the link.
    let isRestored: Bool
    /// The requests for security of the central.
    let securing: SecurityRequests
    /// The central's identity, where it is known, or its address.
    private(set) var peer: PeerID?

    fileprivate init(
        _ peripheral: Peripheral, number: UInt64, servedBy server: LinkServer, isInbound: Bool, isRestored: Bool = false
    ) {
        id = ConnectedCentral.ID(number: number)
        self.peripheral = peripheral
        self.server = server
        self.isInbound = isInbound
        self.isRestored = isRestored
        securing = SecurityRequests(of: peripheral, isInbound: isInbound)
        peer = peripheral.id
    }

    fileprivate mutating func identified(as peer: PeerID) { self.peer = peer }

    /// The bond whose records are passed and stored; the adapter does not know it any more once the link has ended.
    fileprivate private(set) var lastBond: BondID?

    /// Looks which bond the link has now.
    fileprivate mutating func updateBond() { if let bond { lastBond = bond } }

    /// Whether the link has a bond now that it did not have at the last look. It has none while the bonds are not read,
    /// and while another link of the central pairs.
    fileprivate var hasOtherBond: Bool { bond.map { $0 != lastBond } ?? false }

    /// The link as the adapter knows it; `nil` without a radio.
    var identity: LinkIdentity? { peripheral.controls?.link }

    fileprivate var bond: BondID? { peripheral.assumeIsolated { $0.controls?.bond() } }

    /// Whether a name is one by which the peer of the link is known: to the kernel, on the air, or by its bond.
    fileprivate func isNamed(_ name: PeerID, _ identity: LinkIdentity) -> Bool {
        [identity.kernelName, identity.peer, peer].contains(name)
    }
}

/// The links of a local peripheral.
// Unchecked: only the loop's thread touches its state.
final class ServedLinks: @unchecked Sendable {
    private let settings: LocalPeripheral.Settings
    private let central: Central
    private let services: PublishedServices
    private let records: ClientRecords
    private let events: ServerEvents
    private let idleLimit: IdleLimit
    private var links: [UInt64: ServedLink] = [:]
    /// The links that make room for others, until they have ended.
    private var leaving: Set<UInt64> = []
    private var lastNumber: UInt64 = 0
    /// The handlers of the application that run, by the handles of the attributes.
    private var running: [AttributeHandle: Int] = [:]
    private(set) var isClosed = false

    /// The number of handlers of an attribute that may run beyond one for each link.
    static let abandonedLimit = 64

    init(
        _ settings: LocalPeripheral.Settings, on central: Central, services: PublishedServices, records: ClientRecords,
        events: ServerEvents
    ) {
        self.settings = settings
        self.central = central
        self.services = services
        self.records = records
        self.events = events
        idleLimit = IdleLimit(settings.idleLimit, on: central)
    }

    // MARK: Lookup

    var isEmpty: Bool { links.isEmpty }

    /// All links, in the order in which they began.
    var inOrder: [ServedLink] { links.inOrder }

    /// The links that centrals have made, in their order.
    var inbound: [ServedLink] { links.inOrder.filter(\.isInbound) }

    /// The number of the next link.
    var nextNumber: UInt64 { lastNumber &+ 1 }

    subscript(id: ConnectedCentral.ID) -> ServedLink? { links[id.number] }

    /// - Throws: `BLEError` with `.disconnected`.
    func link(to id: ConnectedCentral.ID, during operation: String) throws(BLEError) -> ServedLink {
        guard let link = self[id] else {
            throw BLEError(
                .disconnected, during: operation, because: "the central is not connected",
                hint: "`centrals` has those that are.")
        }
        return link
    }

    /// The link with this number at the controller. After the end of a link its number belongs to the next one, which
    /// may be served before the end is known.
    func link(handle: ConnectionHandle) -> ServedLink? {
        inOrder.last { $0.peripheral.controls?.handle == handle }
    }

    /// The client side of the link to a peer that is connected as a central.
    func peripheral(connectedAs peer: PeerID) -> Peripheral? {
        inbound.first { $0.peer == peer || $0.peripheral.id == peer }?.peripheral
    }

    /// The central of a link, as it is now.
    func snapshot(of link: ServedLink) -> ConnectedCentral {
        let all = services.services.flatMap(\.characteristics)
        var central = ConnectedCentral(
            id: link.id, peer: link.peer, name: link.peripheral.name, mtu: Int(link.server.mtu),
            security: link.peripheral.assumeIsolated { $0.security },
            subscriptions: all.filter { !link.server.configuration(of: $0.id).isEmpty })
        central.isRestored = link.isRestored
        return central
    }

    /// The tasks and questions of all links that are unfinished.
    var outstanding: Int { links.values.reduce(0) { $0 + $1.server.outstanding } }

    // MARK: Closing

    /// Serves no more links, except those that centrals still make, and ends no idle ones.
    func close() { isClosed = true }

    /// - Throws: `BLEError` with `.invalidArgument` once it is closed.
    func checkIsOpen(during operation: String) throws(BLEError) {
        guard isClosed else { return }
        throw BLEError(
            .invalidArgument, during: operation, because: "this local peripheral was stopped",
            hint: "Create another one.")
    }

    // MARK: Services

    /// The services in `handles` have changed.
    func databaseChanged(_ handles: ClosedRange<AttributeHandle>) {
        // The records first: a link whose central is proven stores its own after that.
        records.databaseChanged(handles, services.database)
        for link in inOrder { link.server.databaseChanged(handles) }
    }

    private var peersInUse: Set<PeerID> { Set(links.values.compactMap(\.peer)) }
}

// MARK: - The beginning of a link

extension ServedLinks {
    /// Serves the link that a central has made.
    ///
    /// - Throws: `BLEError` with `.busy` if there are too many, `.system`. The link has ended then.
    @discardableResult
    func accept(
        _ socket: consuming LinkSocket, from peer: PeerID? = nil, name: String, _ controls: LinkControls? = nil
    ) throws(BLEError) -> ConnectedCentral.ID {
        let peripheral = makePeripheral(
            over: socket, id: peer, name: name, mtu: UInt16(clamping: settings.mtu), controls)
        endLinks(of: peripheral.id, before: nextNumber, isProven: false)
        try makePlace(for: peripheral)
        return try serve(peripheral, isInbound: true)
    }

    /// Serves a link that this program has made, unless the table is closed.
    func serve(_ peripheral: Peripheral) {
        guard !isClosed else { return }
        _ = try? serve(peripheral, isInbound: false)
    }

    /// Returns the link of a central, which nothing reads yet.
    private func makePeripheral(
        over socket: consuming LinkSocket, id: PeerID?, name: String, mtu: UInt16, _ controls: LinkControls?
    ) -> Peripheral {
        let reportedReason = socket.reportedReason
        let descriptor = socket.release()
        return central.assumeIsolated {
            let socket = LinkSocket(adopting: descriptor, reportedReason: reportedReason)
            return $0.makePeripheral(over: socket, id: id, name: name, mtu: mtu, controls: controls)
        }
    }

    private func serve(_ peripheral: Peripheral, isInbound: Bool) throws(BLEError) -> ConnectedCentral.ID {
        // A device offers one MTU, in both roles (Core Vol 3 Part F, 3.4.2.2).
        let mtu = peripheral.assumeIsolated { $0.link.largestMTU }
        let (number, server) = makeServer(mtu: mtu, isInbound: isInbound)
        let link = ServedLink(peripheral, number: number, servedBy: server, isInbound: isInbound)
        links[number] = link
        let failure: BLEError? = peripheral.assumeIsolated { peripheral in
            do throws(BLEError) {
                try peripheral.serve(server, isStarting: isInbound)
                return nil
            } catch {
                return error
            }
        }
        if let failure {
            links[number] = nil
            throw failure
        }
        reportConnected(number)
        watchEnd(of: peripheral, number)
        // The record before the security: a client that is proven without a record is stored with an empty one.
        passRecord(number)
        peripheral.assumeIsolated { $0.serverSecurityMayHaveChanged() }
        idleLimit.enforce(on: self)
        return link.id
    }

    /// Goes on with a link that the run before has served.
    func resume(
        _ state: ServedLinkState, over socket: consuming LinkSocket, as peer: PeerID?, _ controls: LinkControls?
    ) {
        let (former, remains) = (state.link, state.server)
        let peripheral = makePeripheral(
            over: socket, id: peer ?? former.peer, name: former.name, mtu: former.client.largestMTU, controls)
        let (number, server) = makeServer(
            mtu: max(UInt16(clamping: settings.mtu), remains.offeredMTU), isInbound: true)
        links[number] = ServedLink(peripheral, number: number, servedBy: server, isInbound: true, isRestored: true)
        peripheral.assumeIsolated { $0.adopt(state, servedBy: server) }
        reportConnected(number)
        server.resume(remains, of: state.outline)
        idleLimit.enforce(on: self)
        // What is in force has come with the link.
        if remains.isEncrypted { links[number]?.updateBond() } else { passRecord(number) }
        watchEnd(of: peripheral, number)
        peripheral.assumeIsolated { peripheral in
            do throws(BLEError) {
                try peripheral.continueServing(server, wasEncrypted: remains.isEncrypted)
            } catch {
                peripheral.close(.other(nil, errorNumber: error.errorNumber))
            }
        }
    }

    /// Returns the server of the next link, and its number.
    private func makeServer(mtu: UInt16, isInbound: Bool) -> (number: UInt64, server: LinkServer) {
        records.begin(with: services.database)
        lastNumber = nextNumber
        let number = lastNumber
        let server = LinkServer(of: services, mtu: mtu, isInbound: isInbound, on: central.loop)
        server.onEvents { [weak self] event in
            self?.happened(event, number)
        } questions: { [weak self] question in
            await self?.perform(question, from: number) ?? .rejected(.unlikelyError)
        }
        return (number, server)
    }

    private func reportConnected(_ number: UInt64) {
        if let link = links[number] { events.report(.connected(snapshot(of: link))) }
    }

    private func watchEnd(of peripheral: Peripheral, _ number: UInt64) {
        peripheral.assumeIsolated { $0.onEnd { [weak self] reason in self?.ended(number, reason) } }
    }

    /// Passes on what a bonded central has configured on earlier links.
    private func passRecord(_ number: UInt64) {
        let former = links[number]?.lastBond
        links[number]?.updateBond()
        guard let link = links[number], let bond = link.bond else { return }
        if let record = records.record(of: bond) {
            link.server.identified(record)
        } else if let former, former != bond {
            // What was configured with an earlier bond, which this side has replaced, went with that.
            link.server.identified(ClientRecord(checksum: services.database.checksum), isNewBond: true)
        }
    }

    /// Ends the links that a central has had before one of its links: it has forgotten them, and nothing else would end
    /// them for seconds.
    ///
    /// - Parameters:
    ///   - peer: The central.
    ///   - number: The number of the link.
    ///   - isProven: Whether the key of the bond encrypts the link.
    /// - Returns: Whether there were any.
    @discardableResult
    private func endLinks(of peer: PeerID?, before number: UInt64, isProven: Bool) -> Bool {
        guard let peer else { return false }
        var hasEnded = false
        for link in inbound
        where link.id.number < number && (link.peer == peer || link.peripheral.id == peer)
            && (isProven || !link.server.security.isProven)
        {
            link.peripheral.assumeIsolated {
                $0.endForServer(.other(.connectionAlreadyExists, errorNumber: nil))
            }
            hasEnded = true
        }
        return hasEnded
    }

    /// Makes sure that there are not too many links.
    private func makePlace(for newcomer: Peripheral) throws(BLEError) {
        let proven = inbound.filter { $0.server.security.isProven }
        let inbound = inbound.filter { link in
            // A proven link of the same central ends once the newcomer is proven as well.
            let isEarlier = newcomer.id.map { link.peer == $0 || link.peripheral.id == $0 } ?? false
            // So does that of a central that has come back before: the two links have one place.
            let hasEarlier = !link.server.security.isProven && proven.contains { $0.peer == link.peer }
            return !leaving.contains(link.id.number) && !isEarlier && !hasEarlier
        }
        // A central that has come back may have two links for a moment.
        let excess = inbound.count + 1 - max(1, settings.maximumCentrals)
        guard excess > 0 else { return }
        // Of several that were heard at the same time, the oldest link.
        let idle = inbound.filter { !$0.server.security.isProven }
            .sorted { ($0.server.lastHeard, $0.id.number) < ($1.server.lastHeard, $1.id.number) }
        guard idle.count >= excess else {
            disconnect(newcomer)
            throw BLEError(
                .busy, subject: newcomer.name, during: "accept a central",
                because: "\(inbound.count - idle.count) centrals are connected, and a bond encrypts the link of each")
        }
        for link in idle.prefix(excess) {
            leaving.insert(link.id.number)
            disconnect(link.peripheral)
        }
    }

    private func disconnect(_ peripheral: Peripheral) {
        Task(executorPreference: central.loop) { await peripheral.disconnect() }
    }
}

// MARK: - What happens at a link

extension ServedLinks {
    private func happened(_ event: LinkServer.Event, _ number: UInt64) {
        guard let link = links[number] else { return }
        switch event {
        case .securing:
            // Earlier links store what they owe before the record is in force.
            let hasStored =
                link.isInbound && link.server.security.isProven
                && endLinks(of: link.peer, before: number, isProven: true)
            // Without the record of its bond, the central would be stored with an empty one.
            if hasStored || link.hasOtherBond { passRecord(number) }
        case .secured: link.securing.securityChanged()
        case .store(let record):
            links[number]?.updateBond()
            if let bond = links[number]?.lastBond { records.store(record, of: bond, connected: peersInUse) }
        case .overdue(let handle): services.handlerIsOverdue(handle, link.peripheral.log)
        case .ready, .configured, .wrote, .dropped:
            events.report(event, in: services, by: snapshot(of: link))
        }
    }

    private func perform(_ question: GATTServer.Question, from number: UInt64) async -> GATTServer.HandlerResult {
        guard let link = links[number] else { return .rejected(.unlikelyError) }
        if case .verify(let command) = question {
            let isRight = await link.peripheral.controls?.accept(command, central.configuration.writeSignature) ?? false
            return isRight ? .accepted : .rejected(.insufficientAuthentication)
        }
        let handle = question.handle
        let count = running[handle, default: 0]
        // A handler that does not end when it is cancelled goes on after its link, and the next link may have it called
        // again.
        guard count < links.count + Self.abandonedLimit else {
            return .rejected(.insufficientResources, handle: handle)
        }
        running[handle] = count + 1
        defer { running[handle] = running[handle].flatMap { $0 > 1 ? $0 - 1 : nil } }
        return await services.perform(
            question, from: snapshot(of: link), authorize: settings.authorize, log: link.peripheral.log)
    }

    private func ended(_ number: UInt64, _ reason: DisconnectReason) {
        guard let link = links[number] else { return }
        let former = snapshot(of: link)
        link.server.linkLost()
        links[number] = nil
        leaving.remove(number)
        link.securing.linkEnded(reason)
        logProblems(of: link)
        events.report(.disconnected(former, reason))
    }

    /// Logs what the link's client did wrong, and what the application was too slow for.
    private func logProblems(of link: ServedLink) {
        let text = WarningThrottle.text(link.server.statistics.forEachProblem)
        guard !text.isEmpty else { return }
        link.peripheral.log.report(.warning, "problems with a client", ["counts": "\(text)"])
    }
}

// MARK: - Pairing

extension ServedLinks {
    /// What the adapter asks and reports of the pairings of centrals.
    var pairingHost: CentralPairings.Host {
        CentralPairings.Host { [weak self] peer in
            self?.served(peer)
        } hasOther: { [weak self] peer, link in
            self?.hasCentral(peer, besides: link) ?? false
        } ended: { [weak self] central, result in
            self?.pairingEnded(central, result)
        } securityRefused: { [weak self] central, error in
            self?[central.id]?.securing.refused(error) ?? false
        }
    }

    /// The central whose link the kernel has under a name.
    private func served(_ peer: PeerID) -> ServedCentral? {
        for link in inbound.reversed() {
            let descriptor = link.peripheral.assumeIsolated { $0.link.descriptor }
            guard let identity = link.identity, let descriptor, link.isNamed(peer, identity) else { continue }
            return ServedCentral(link: identity, descriptor: descriptor, central: snapshot(of: link))
        }
        return nil
    }

    /// Whether a central is connected by another link than the one given.
    private func hasCentral(_ peer: PeerID, besides own: LinkIdentity) -> Bool {
        inbound.contains { link in
            guard let identity = link.identity, identity != own else { return false }
            return link.isNamed(peer, identity)
        }
    }

    private func pairingEnded(_ former: ConnectedCentral, _ result: Result<Bond, BLEError>) {
        let number = former.id.number
        if case .success(let bond) = result, let link = links[number] {
            links[number]?.identified(as: bond.peer)
            // What the central had configured with an earlier bond went with that.
            link.server.identified(ClientRecord(checksum: services.database.checksum), isNewBond: true)
            link.peripheral.assumeIsolated { $0.serverSecurityMayHaveChanged() }
        }
        links[number]?.securing.pairingEnded(result)
        let now = links[number].map { snapshot(of: $0) } ?? former
        switch result {
        case .success(let bond): events.report(.paired(now, bond))
        case .failure(let error): events.report(.pairingFailed(now, error))
        }
    }
}
