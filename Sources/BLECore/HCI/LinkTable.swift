// The links of one controller: one entry for each connection handle.
//
// Duties: know which handle belongs to which link of this program, how that link runs, why the last link with a handle
// ended, what is known of its encryption, and which updates (connection parameters, PHY) are out on it.
//
// Invariants:
// - The controller uses handles again. A link therefore has a number as well, which is never used again: what holds a
//   `LinkIdentity` reaches only the link that it was made for.
// - Two sockets report links: one their beginnings and updates, the other their ends. An end may be read before the
//   beginning that it belongs to; it is kept (`.endedUnseen`) until that beginning is read, or until the next
//   connection attempt begins.
// - One update of a kind is out on a link at a time, because the event that ends it does not name its request. The
//   others wait. An update whose caller has stopped waiting stays out until its event comes, or until the link layer's
//   own limit has passed. A link that ends, and an adapter that goes, end what is out on it.
// - A controller that has no link with the handle of one that is up has ended it, and the report of that was lost. So
//   has it where the socket of a link has ended, and the kernel lists no link with its handle.
// - The peers of links that are up are pinned in the table of devices: they do not advertise meanwhile.
// - The size of the key by which a command of this program has encrypted a link is known from that event to the first
//   one that ends it: encryption that stops or fails, the end of the link,
//   the beginning of another one with its handle.
// - Why the encryption of a link has failed stays known after its end, which it explains, until another link, or the
//   next connection attempt, begins.
// - A process without CAP_NET_RAW reads the ends of links, and no beginnings: there an end that was read belongs to a
//   link that a socket attaches to only if none was known with its handle (`unseenEnd`).
//
// The table never acts: it returns the numbers of the tasks to resume, in order.

/// A link as its owner knows it: handles are used again, numbers are not.
package struct LinkIdentity: Hashable, Sendable {
    /// The controller's number for the link; `nil` where the kernel does not report it, and for a stand-in.
    package let handle: ConnectionHandle?
    package let number: UInt64
    package let peer: PeerID
    /// The name by which the kernel has the link: the address on air of a bonded peer whose keys it does not have.
    package let kernelName: PeerID
}

/// The subject of a link's update, and its end.
package enum LinkUpdate {
    package enum Kind: Hashable, Comparable, Sendable, CaseIterable {
        case parameters
        case phy
    }

    package struct Key: Hashable, Sendable {
        package let handle: ConnectionHandle
        package let kind: Kind

        package init(handle: ConnectionHandle, kind: Kind) {
            self.handle = handle
            self.kind = kind
        }
    }

    package enum End: Hashable, Sendable {
        /// The controller did not accept the command.
        case failed(HCICommandFailure)
        case parameters(LEConnectionUpdateComplete)
        case phy(LEPHYUpdateComplete)
        case linkLost

        /// A Boolean value that indicates whether the two sides began procedures at the same moment that exclude each
        /// other.
        package var hasCollided: Bool {
            switch self {
            case .parameters(let complete): complete.status.reportsCollision
            case .phy(let complete): complete.status.reportsCollision
            case .failed, .linkLost: false
            }
        }
    }
}

/// The links of a controller, as far as they are known.
package struct LinkTable: ~Copyable {
    /// Called by the owner when the controller has dropped a link and nothing else reports it; with the status of its
    /// response to a command for the link, or `nil` after a reset. The table never calls it.
    package typealias LossHandler = @Sendable (HCIStatus?) -> Void
    /// Called by the owner when the encryption of a link has changed, with whether it is encrypted. The table never
    /// calls it.
    package typealias EncryptionHandler = @Sendable (_ isEncrypted: Bool) -> Void

    private enum Phase {
        case open
        /// This program has sent Disconnect; the end has not been reported.
        case disconnecting
    }

    /// A link of this program.
    private struct Link {
        let identity: LinkIdentity
        var phase = Phase.open
        /// `nil` where this program did not see the link come up.
        var parameters: ConnectionParameters?
        var lossHandler: LossHandler?
        var encryptionHandler: EncryptionHandler?
        /// The identity that the peer has distributed on this link.
        var distributedIdentity: PeerID?
    }

    private enum State {
        /// Nothing is known.
        case unknown
        /// Up, and not registered: another program's, or not attached yet. With `disconnectedFrom`, this program has
        /// sent Disconnect for it, to end a connect to that peer.
        case seen(ConnectionParameters, disconnectedFrom: PeerID? = nil)
        /// Up, and this program's.
        case registered(Link)
        /// The last link has ended.
        case ended(HCIStatus)
        /// A link has ended whose beginning was not read yet.
        case endedUnseen(HCIStatus)
    }

    /// An update that is out.
    private struct Update {
        enum State {
            case awaited(by: UInt64)
            /// The caller has stopped waiting.
            case abandoned
            /// Until the caller takes the result.
            case ended(LinkUpdate.End)
        }

        var state: State
        let expiry: BootInstant
    }

    private struct Entry {
        var state = State.unknown
        /// The size of the key by which a command of this program has encrypted the link.
        var keySize: UInt8?
        /// Why the encryption of the link has failed.
        var encryptionFailure: HCIStatus?
        /// When the report arrived that the link is encrypted; `nil` if it is not, or that is not known.
        var encryptionBeginning: ArrivalTime?
        /// The tasks that wait until the encryption of the link changes, or the link ends.
        var encryptionWaiters: [UInt64] = []
        var updates: [LinkUpdate.Kind: Update] = [:]
        /// The tasks that wait for an update to end before they begin theirs.
        var updateTurns: [LinkUpdate.Kind: [UInt64]] = [:]
        /// When the end of a link with the handle was read last.
        var endTime: BootInstant?
        /// The tasks that wait for the link's end.
        var endWaiters: [UInt64] = []
        /// The number of links that have begun with the handle.
        var beginnings = 0
        /// Whether the end of the last link was concluded without its report, which may still come.
        var isReportDue = false
        var dataAhead = DataAhead()
        /// What came ahead of the last link with the handle.
        var lost = DataAhead()
    }

    /// What came for a handle since the last connection attempt began, while no link was known to have it.
    private struct DataAhead {
        var packets = 0
        /// How many of them need a response, other than that the link is encrypted.
        var requests = 0
        /// How many of them are Security Requests.
        var securityRequests = 0
    }

    private var entries: [ConnectionHandle: Entry] = [:]
    /// Why links have ended, by number, until their owners ask.
    private var reasons: [UInt64: HCIStatus] = [:]
    private var lastNumber: UInt64 = 0
    /// Links whose end the controller has not reported.
    package private(set) var unreportedEnds = 0
    /// Packets of data that came ahead of the Connection Complete of their links,
    /// whose first packets the kernel drops (row W44).
    package private(set) var packetsAhead = 0

    package init() {}

    /// The number of reasons that are kept for owners that may never ask.
    package static let reasonLimit = 64
    /// For this long after its end a link that the kernel lists is taken for ended; later, for a new link whose
    /// beginning was missed. The kernel removes a link as soon as it has handled the event of its end, so that is far
    /// more than it needs.
    package static let listingTime: Duration = .seconds(2)
    /// After that time without a response the link layer drops the link. Spec: T_PRT, Core Vol 6 Part B, 5.2.
    package static let procedureTimeout: Duration = .seconds(40)
}

// MARK: - Links

extension LinkTable {
    /// The peers of all links of this program.
    package var peers: Set<PeerID> {
        entries.values.reduce(into: []) { peers, entry in
            if case .registered(let link) = entry.state { peers.insert(link.identity.peer) }
        }
    }

    /// The peer of a link has distributed its identity.
    package mutating func identified(_ link: LinkIdentity, as identity: PeerID) {
        change(link) { $0.distributedIdentity = identity }
    }

    /// The identity that the peer with this address has distributed on a link that is up; `nil` if none.
    package func identity(of peer: PeerID) -> PeerID? {
        for entry in entries.values {
            if case .registered(let link) = entry.state, link.identity.peer == peer,
                let identity = link.distributedIdentity
            {
                return identity
            }
        }
        return nil
    }

    /// The number of links of this program.
    package var linkCount: Int {
        entries.values.count { if case .registered = $0.state { true } else { false } }
    }

    /// A Boolean value that indicates whether this program has a link.
    package var hasLinks: Bool { linkCount > 0 }

    /// The peer of this program's link with a handle.
    package func peer(of handle: ConnectionHandle) -> PeerID? { link(handle)?.identity.peer }

    /// The handles of this program's links to a peer.
    package func handles(of peer: PeerID) -> [ConnectionHandle] {
        entries.keys.filter { self.peer(of: $0) == peer }.sorted()
    }

    /// Makes `handle` belong to a link of this program from now on.
    ///
    /// - Parameter kernelName: The name by which the kernel has the link, if it is another one.
    package mutating func register(
        _ handle: ConnectionHandle?, _ peer: PeerID, kernelName: PeerID? = nil
    ) -> LinkIdentity {
        lastNumber &+= 1
        let identity = LinkIdentity(
            handle: handle, number: lastNumber, peer: peer, kernelName: kernelName ?? peer)
        guard let handle else { return identity }
        // A link that had the handle before was handed over, or its end was not reported.
        var link = Link(identity: identity)
        link.parameters = parameters(of: handle)
        entries[handle, default: Entry()].state = .registered(link)
        entries[handle]?.isReportDue = false
        return identity
    }

    /// Returns a Boolean value that indicates whether the controller still has a link, as far as it has reported; also
    /// `true` for one without a handle.
    package func isCurrent(_ link: LinkIdentity) -> Bool {
        guard let handle = link.handle else { return true }
        return self.link(handle)?.identity == link
    }

    /// Returns the parameters of the link with a handle; `nil` where this program did not see it come up.
    package func parameters(of handle: ConnectionHandle) -> ConnectionParameters? {
        switch entries[handle]?.state {
        case .seen(let parameters, _): parameters
        case .registered(let link): link.parameters
        case .unknown, .ended, .endedUnseen, nil: nil
        }
    }

    /// Returns the reason that the last link with a handle has ended; `nil` while there may be one.
    package func lastEnd(of handle: ConnectionHandle) -> HCIStatus? {
        switch entries[handle]?.state {
        case .ended(let reason), .endedUnseen(let reason): reason
        case .unknown, .seen, .registered, nil: nil
        }
    }

    /// Returns the reason that a link with a handle has ended whose beginning was not read, since the last connection
    /// attempt began; `nil` if none has.
    package func unseenEnd(of handle: ConnectionHandle) -> HCIStatus? {
        guard case .endedUnseen(let reason)? = entries[handle]?.state else { return nil }
        return reason
    }

    /// Returns a Boolean value that indicates whether the end of a link with a handle was read a moment ago, and
    /// nothing of a later one: the kernel may still list it.
    package func hasJustEnded(_ handle: ConnectionHandle, at now: BootInstant) -> Bool {
        guard lastEnd(of: handle) != nil, let time = entries[handle]?.endTime else { return false }
        return now < time + Self.listingTime
    }

    /// Returns the reason that a link has ended, once.
    package mutating func takeReason(of link: LinkIdentity) -> HCIStatus? {
        reasons.removeValue(forKey: link.number)
    }

    /// Keeps a handler for the moment in which the controller is known to have dropped the link.
    package mutating func watchLoss(of link: LinkIdentity, _ handler: @escaping LossHandler) {
        change(link) { $0.lossHandler = handler }
    }

    /// Keeps a handler for each change of the encryption of a link.
    package mutating func watchEncryption(of link: LinkIdentity, _ handler: @escaping EncryptionHandler) {
        change(link) { $0.encryptionHandler = handler }
    }

    /// The handler for the encryption of this program's link with a handle.
    package func encryptionHandler(of handle: ConnectionHandle) -> EncryptionHandler? {
        link(handle)?.encryptionHandler
    }

    /// This program has sent Disconnect for a link.
    package mutating func disconnecting(_ link: LinkIdentity) {
        change(link) { $0.phase = .disconnecting }
    }

    /// This program has sent Disconnect for a link to `peer` that it has not registered.
    package mutating func disconnecting(_ handle: ConnectionHandle, from peer: PeerID) {
        guard case .seen(let parameters, _)? = entries[handle]?.state else { return }
        entries[handle]?.state = .seen(parameters, disconnectedFrom: peer)
    }

    /// The handle of a link to `peer` that this program has made the controller disconnect.
    package func disconnectingHandle(to peer: PeerID) -> ConnectionHandle? {
        for (handle, entry) in entries {
            switch entry.state {
            case .registered(let link):
                if case .disconnecting = link.phase, link.identity.peer == peer { return handle }
            case .seen(_, let former):
                if former == peer { return handle }
            case .unknown, .ended, .endedUnseen: break
            }
        }
        return nil
    }

    /// The end of a link was not reported in time: it is no longer waited for.
    package mutating func stopAwaitingEnd(of handle: ConnectionHandle) {
        if let link = link(handle) { return change(link.identity) { $0.phase = .open } }
        guard case .seen(let parameters, _)? = entries[handle]?.state else { return }
        entries[handle]?.state = .seen(parameters)
    }

    /// Has a task wait for the end of the link with a handle; `false` where that has ended already.
    ///
    /// - Parameter isUnseen: Whether its beginning was not reported, so that the last end may be an earlier link's.
    package mutating func awaitEnd(of handle: ConnectionHandle, isUnseen: Bool = false, _ waiter: UInt64) -> Bool {
        let end = isUnseen ? unseenEnd(of: handle) : lastEnd(of: handle)
        guard end == nil else { return false }
        entries[handle, default: Entry()].endWaiters.append(waiter)
        return true
    }

    /// The task no longer waits.
    package mutating func cancelAwaitingEnd(of handle: ConnectionHandle, _ waiter: UInt64) {
        entries[handle]?.endWaiters.removeAll { $0 == waiter }
    }

    private func link(_ handle: ConnectionHandle) -> Link? {
        guard case .registered(let link)? = entries[handle]?.state else { return nil }
        return link
    }

    private mutating func change(_ identity: LinkIdentity, _ body: (inout Link) -> Void) {
        guard let handle = identity.handle, var link = link(handle), link.identity == identity else { return }
        body(&link)
        entries[handle]?.state = .registered(link)
    }
}

// MARK: - What the controller reports

extension LinkTable {
    /// A connection attempt begins: ends that nothing has claimed belong to no later link, nor failed encryptions.
    package mutating func attemptBegins() {
        for (handle, entry) in entries {
            entries[handle]?.dataAhead = DataAhead()
            if case .endedUnseen(let reason) = entry.state { entries[handle]?.state = .ended(reason) }
            switch entry.state {
            case .unknown, .ended, .endedUnseen: entries[handle]?.encryptionFailure = nil
            case .seen, .registered: break
            }
        }
    }

    /// A Connection Complete was read. What waits at the socket for ends must have been read before.
    package mutating func began(_ complete: LEConnectionComplete) {
        guard complete.status.isSuccess else { return }
        let ahead = entries[complete.handle]?.dataAhead ?? DataAhead()
        packetsAhead += ahead.packets
        entries[complete.handle, default: Entry()].beginnings += 1
        entries[complete.handle]?.dataAhead = DataAhead()
        entries[complete.handle]?.lost = ahead
        entries[complete.handle]?.isReportDue = false
        entries[complete.handle]?.keySize = nil
        entries[complete.handle]?.encryptionFailure = nil
        // It is reported by another socket, so what is known may belong to this link already.
        let endWasLost =
            switch entries[complete.handle]?.state {
            case .registered(let link): link.parameters != nil
            case .seen: true
            case .unknown, .ended, .endedUnseen, nil: false
            }
        if endWasLost { entries[complete.handle]?.encryptionBeginning = nil }
        switch entries[complete.handle]?.state {
        case .endedUnseen(let reason):
            entries[complete.handle]?.state = .ended(reason)
        case .registered(var link):
            link.parameters = complete.parameters
            entries[complete.handle]?.state = .registered(link)
        case .unknown, .seen, .ended, nil:
            entries[complete.handle, default: Entry()].state = .seen(complete.parameters)
        }
    }

    /// Data came for a handle: ahead of the link's Connection Complete, where that follows.
    ///
    /// - Parameters:
    ///   - needsResponse: Whether its sender waits for a response.
    ///   - needsEncryption: Whether encrypting the link is that response.
    package mutating func dataSeen(
        on handle: ConnectionHandle, needsResponse: Bool = false, needsEncryption: Bool = false
    ) {
        switch entries[handle]?.state {
        case .registered, .seen: return
        case .unknown, .ended, .endedUnseen, nil:
            entries[handle, default: Entry()].dataAhead.packets += 1
            if needsEncryption {
                entries[handle]?.dataAhead.securityRequests += 1
            } else if needsResponse {
                entries[handle]?.dataAhead.requests += 1
            }
        }
    }

    /// Returns a Boolean value that indicates whether the peer of the last link with a handle waits for a response that
    /// never comes, because its request came ahead of the link, and the kernel has dropped it.
    ///
    /// - Parameter isEncrypted: Whether the link is encrypted next, which is what a Security Request asks for.
    package func hasLostRequest(on handle: ConnectionHandle, isEncrypted: Bool = false) -> Bool {
        guard let lost = entries[handle]?.lost else { return false }
        return lost.requests > 0 || !isEncrypted && lost.securityRequests > 0
    }

    /// A Disconnection Complete was read.
    ///
    /// - Returns: The tasks to resume.
    package mutating func ended(_ complete: HCIDisconnectionComplete, at now: BootInstant) -> [UInt64] {
        guard complete.status.isSuccess else { return [] }
        if entries[complete.handle]?.isReportDue == true {
            entries[complete.handle]?.isReportDue = false
            if case .ended = entries[complete.handle]?.state { return [] }
        }
        return ended(complete.handle, complete.reason, at: now)
    }

    private mutating func ended(_ handle: ConnectionHandle, _ reason: HCIStatus, at now: BootInstant) -> [UInt64] {
        entries[handle, default: Entry()].endTime = now
        encryptionEnded(handle)
        // They were data of the link that has ended.
        entries[handle]?.dataAhead = DataAhead()
        switch entries[handle]?.state {
        case .registered(let link):
            // An owner that closes a link without asking leaves its reason here; the oldest goes.
            if reasons.count >= Self.reasonLimit, let oldest = reasons.keys.min() { reasons[oldest] = nil }
            reasons[link.identity.number] = reason
            entries[handle]?.state = .ended(reason)
        case .seen:
            entries[handle]?.state = .ended(reason)
        case .unknown, .ended, .endedUnseen, nil:
            entries[handle, default: Entry()].state = .endedUnseen(reason)
        }
        let waiters = endUpdates(on: handle) + (entries[handle]?.endWaiters ?? [])
        entries[handle]?.endWaiters = []
        return waiters
    }

    /// Returns the number of links that have begun with a handle.
    package func beginnings(of handle: ConnectionHandle) -> Int { entries[handle]?.beginnings ?? 0 }

    /// The controller has reported that it has no link with the handle of one that is up as far as was reported, or the
    /// kernel has ended that link: the report of its end was lost. The reason is then known to nobody.
    ///
    /// - Parameters:
    ///   - beginnings: Those of the handle when that was noticed.
    ///   - isReportDue: Whether the report may still come. It cannot where the kernel has ended the link: the next end
    ///     with the handle is another link's.
    /// - Returns: The tasks to resume, and the handler of the link; `nil` where the link has ended,
    ///   or another one has its handle.
    package mutating func endedUnreported(
        _ link: LinkIdentity, after beginnings: Int, isReportDue: Bool, at now: BootInstant
    ) -> (waiters: [UInt64], lossHandler: LossHandler?)? {
        guard let handle = link.handle, let found = self.link(handle), found.identity == link,
            entries[handle]?.beginnings == beginnings
        else { return nil }
        unreportedEnds += 1
        let waiters = ended(handle, .unknownConnection, at: now)
        entries[handle]?.isReportDue = isReportDue
        return (waiters, found.lossHandler)
    }

    /// The controller was reset, or the adapter went away: it has no links any more.
    ///
    /// - Returns: The tasks to resume, and the handlers of the links that were dropped, in the order of registration.
    package mutating func controllerReset() -> (waiters: [UInt64], lossHandlers: [LossHandler]) {
        var waiters: [UInt64] = []
        var lost: [Link] = []
        for handle in entries.keys.sorted() {
            encryptionEnded(handle)
            entries[handle]?.dataAhead = DataAhead()
            switch entries[handle]?.state {
            case .registered(let link):
                lost.append(link)
                entries[handle]?.state = .unknown
            case .seen: entries[handle]?.state = .unknown
            case .unknown, .ended, .endedUnseen, nil: break
            }
            waiters += endUpdates(on: handle) + (entries[handle]?.endWaiters ?? [])
            entries[handle]?.endWaiters = []
        }
        lost.sort { $0.identity.number < $1.identity.number }
        return (waiters, lost.compactMap { $0.lossHandler })
    }
}

// MARK: - Encryption

extension LinkTable {
    /// A command of this program has encrypted the link with a handle, by a key of this size.
    package mutating func encrypted(_ handle: ConnectionHandle, keySize: UInt8) {
        entries[handle, default: Entry()].keySize = keySize
    }

    /// The link with a handle is not encrypted any more.
    package mutating func encryptionEnded(_ handle: ConnectionHandle) {
        entries[handle]?.keySize = nil
        entries[handle]?.encryptionBeginning = nil
    }

    /// When the report arrived that a link of this program is encrypted; `nil` if it is not, or that is not known.
    package func encryptionBeginning(of link: LinkIdentity) -> ArrivalTime? {
        guard let handle = link.handle, isCurrent(link) else { return nil }
        return entries[handle]?.encryptionBeginning
    }

    /// The size of the key by which a command of this program has encrypted the link with a handle; `nil` if none has,
    /// or the link may not be encrypted any more.
    package func keySize(of handle: ConnectionHandle) -> UInt8? { entries[handle]?.keySize }

    /// The same for a link of this program.
    package func keySize(of link: LinkIdentity) -> UInt8? {
        guard let handle = link.handle, isCurrent(link) else { return nil }
        return keySize(of: handle)
    }

    /// An Encryption Change was read, which arrived at that time.
    ///
    /// - Returns: The tasks to resume.
    package mutating func received(_ change: HCIEncryptionChange, at arrival: ArrivalTime? = nil) -> [UInt64] {
        if change.status.isSuccess, change.isEncrypted {
            entries[change.handle, default: Entry()].encryptionBeginning = arrival
        }
        if !change.status.isSuccess || !change.isEncrypted { encryptionEnded(change.handle) }
        if !change.status.isSuccess { entries[change.handle, default: Entry()].encryptionFailure = change.status }
        return encryptionWaiters(of: change.handle)
    }

    /// Returns the reason that the encryption of the last link with a handle has failed; `nil` if it has not.
    package func encryptionFailure(of handle: ConnectionHandle) -> HCIStatus? { entries[handle]?.encryptionFailure }

    /// Has a task wait until the encryption of the link with a handle changes, or the link ends.
    package mutating func awaitEncryption(of handle: ConnectionHandle, _ waiter: UInt64) {
        entries[handle, default: Entry()].encryptionWaiters.append(waiter)
    }

    /// The task does not wait for the encryption of any link.
    package mutating func stopAwaitingEncryption(_ waiter: UInt64) {
        for handle in entries.keys { entries[handle]?.encryptionWaiters.removeAll { $0 == waiter } }
    }

    /// The tasks that wait for the encryption of the link with a handle.
    package func encryptionWaiters(of handle: ConnectionHandle) -> [UInt64] {
        entries[handle]?.encryptionWaiters ?? []
    }

    /// The tasks that wait for the encryption of any link, in the order in which they began.
    package var encryptionWaiters: [UInt64] { entries.values.flatMap { $0.encryptionWaiters }.sorted() }
}

// MARK: - Updates

extension LinkTable {
    /// When the update that is out ends at the latest; `nil` when the next one may begin.
    package func updateExpiry(_ key: LinkUpdate.Key) -> BootInstant? {
        entries[key.handle]?.updates[key.kind]?.expiry
    }

    /// Has a task wait for its turn with an update.
    package mutating func awaitUpdateTurn(_ key: LinkUpdate.Key, _ waiter: UInt64) {
        entries[key.handle, default: Entry()].updateTurns[key.kind, default: []].append(waiter)
    }

    /// Drops an update that nothing waits for and that is overdue.
    package mutating func expireUpdate(_ key: LinkUpdate.Key, at now: BootInstant) {
        guard let update = entries[key.handle]?.updates[key.kind], case .abandoned = update.state, update.expiry <= now
        else { return }
        entries[key.handle]?.updates[key.kind] = nil
    }

    /// An update is sent for a task; `false` where another is out.
    package mutating func beginUpdate(_ key: LinkUpdate.Key, for waiter: UInt64, until expiry: BootInstant) -> Bool {
        guard updateExpiry(key) == nil else { return false }
        entries[key.handle, default: Entry()].updates[key.kind] = Update(state: .awaited(by: waiter), expiry: expiry)
        return true
    }

    /// The result of an update, to the task that began it, and the tasks whose turn it may be now; `nil` while it is
    /// out.
    package mutating func takeUpdateEnd(_ key: LinkUpdate.Key) -> (end: LinkUpdate.End, next: [UInt64])? {
        guard case .ended(let end)? = entries[key.handle]?.updates[key.kind]?.state else { return nil }
        return (end, passUpdateTurn(key))
    }

    /// The task that began the update no longer waits for it.
    package mutating func abandonUpdate(_ key: LinkUpdate.Key) {
        entries[key.handle]?.updates[key.kind]?.state = .abandoned
    }

    /// An LE Connection Update Complete was read, also one of an update that the peer or the kernel began.
    ///
    /// - Returns: The tasks to resume.
    package mutating func updated(_ complete: LEConnectionUpdateComplete) -> [UInt64] {
        if complete.status.isSuccess {
            switch entries[complete.handle]?.state {
            case .registered(var link):
                link.parameters = complete.parameters
                entries[complete.handle]?.state = .registered(link)
            case .seen(_, let former):
                entries[complete.handle]?.state = .seen(complete.parameters, disconnectedFrom: former)
            // The link was there before this program began to listen.
            case .unknown, nil:
                entries[complete.handle, default: Entry()].state = .seen(complete.parameters)
            // The end was read first.
            case .ended, .endedUnseen: break
            }
        }
        return updateEnded(LinkUpdate.Key(handle: complete.handle, kind: .parameters), .parameters(complete))
    }

    /// An LE PHY Update Complete was read.
    ///
    /// - Returns: The tasks to resume.
    package mutating func updated(_ complete: LEPHYUpdateComplete) -> [UInt64] {
        updateEnded(LinkUpdate.Key(handle: complete.handle, kind: .phy), .phy(complete))
    }

    /// The controller did not accept the command of an update.
    ///
    /// - Returns: The tasks to resume.
    package mutating func updateFailed(_ key: LinkUpdate.Key, _ failure: HCICommandFailure) -> [UInt64] {
        updateEnded(key, .failed(failure))
    }

    private mutating func endUpdates(on handle: ConnectionHandle) -> [UInt64] {
        LinkUpdate.Kind.allCases.flatMap { updateEnded(LinkUpdate.Key(handle: handle, kind: $0), .linkLost) }
    }

    private mutating func updateEnded(_ key: LinkUpdate.Key, _ end: LinkUpdate.End) -> [UInt64] {
        switch entries[key.handle]?.updates[key.kind]?.state {
        case .awaited(let waiter):
            entries[key.handle]?.updates[key.kind]?.state = .ended(end)
            return [waiter]
        case .abandoned:
            return passUpdateTurn(key)
        case .ended, nil:
            return []
        }
    }

    private mutating func passUpdateTurn(_ key: LinkUpdate.Key) -> [UInt64] {
        entries[key.handle]?.updates[key.kind] = nil
        return entries[key.handle]?.updateTurns.removeValue(forKey: key.kind) ?? []
    }
}
