internal import BLECore
internal import BLELinux
internal import Logging

// Accepts the links of an adapter.
//
// The kernel hands every new link to the program that listens, also one that this program has initiated by command:
// that connect claims its link here. Any other goes to the server.
//
// Invariants
// - A link of the central role is kept until its connect claims it, until the next link with its handle begins, or
//   `claimTime` is over. Then it is closed.
// - The controller's event about a link is read before the link is routed, because it has its role.
// - Only the adapter uses it, on its event loop.

/// The listening socket of an adapter, and the accepted links that no connect has claimed yet.
final class LinkAcceptor {
    typealias Handler = (_ socket: consuming LinkSocket, _ peer: PeerID, _ handle: ConnectionHandle?) -> Void

    /// A link that this program has initiated.
    private struct Unclaimed {
        let handle: ConnectionHandle
        let descriptor: Int32
        /// Of a simulated radio.
        let reportedReason: (@Sendable () -> Int32?)?
    }

    /// How long a link waits for the connect that has initiated it.
    private static let claimTime: Duration = .seconds(2)

    private let loop: EventLoop
    private let socket: AcceptingSocket
    private var handler: Handler?
    /// The object that has begun to listen.
    private var owner: ObjectIdentifier?
    private var unclaimed: [Unclaimed] = []
    /// The links that this program's controller has initiated, and that have not ended.
    private var initiated: Set<ConnectionHandle> = []
    private let claims: Waiters<Void>

    init(on loop: EventLoop, logger: Logger) {
        self.loop = loop
        socket = AcceptingSocket(on: loop, logger: logger)
        claims = Waiters(on: loop)
    }

    /// Whether links are accepted.
    var isListening: Bool { socket.isOpen }

    /// Begins to accept links.
    ///
    /// - Parameters:
    ///   - name: The name of the adapter, for the log.
    ///   - readable: Called when `acceptAll` must be.
    ///   - handler: Called with each link that no connect of this program has initiated.
    func begin(
        _ listening: consuming ListeningSocket, of name: String, for owner: ObjectIdentifier,
        readable: @escaping EventLoop.Handler, _ handler: @escaping Handler
    ) throws(SystemCallError) {
        try socket.begin(listening, at: ["adapter": "\(name)"], readable: readable)
        self.handler = handler
        self.owner = owner
    }

    /// Whether this owner listens.
    func isListening(for owner: ObjectIdentifier) -> Bool { isListening && self.owner == owner }

    /// Releases the socket, which still listens; `nil` if there is none.
    func takeSocket() -> Int32? {
        let descriptor = socket.release()
        end()
        return descriptor
    }

    /// Accepts no more links.
    func end() {
        socket.end()
        handler = nil
        owner = nil
        for link in unclaimed { _ = LinkSocket(adopting: link.descriptor) }
        unclaimed = []
        claims.resumeAll()
    }

    /// The controller has reported a link.
    func began(_ complete: LEConnectionComplete) {
        // The socket of an earlier link with this handle, which ended before its connect claimed it. The kernel hands
        // on the new one later.
        drop(complete.handle)
        if complete.isCentral { initiated.insert(complete.handle) } else { initiated.remove(complete.handle) }
    }

    /// The controller has reported the end of a link.
    func ended(_ handle: ConnectionHandle) { initiated.remove(handle) }

    /// The controller has no link any more, and begins to number them again.
    func controllerReset() { initiated = [] }

    /// Accepts what waits, and routes it.
    func acceptAll() {
        while let link = socket.nextLink() {
            let (peer, handle) = (link.peer, link.handle)
            if let handle, initiated.contains(handle) {
                keep(link.take(), handle)
            } else if let peer {
                handler?(link.take(), peer, handle)
            }
        }
    }

    private func keep(_ socket: consuming LinkSocket, _ handle: ConnectionHandle) {
        drop(handle)
        let reportedReason = socket.reportedReason
        let descriptor = socket.release()
        unclaimed.append(Unclaimed(handle: handle, descriptor: descriptor, reportedReason: reportedReason))
        claims.resumeAll()
        _ = loop.schedule(at: loop.now() + Self.claimTime) { [weak self] in
            self?.expire(descriptor, handle)
        }
    }

    private func expire(_ descriptor: Int32, _ handle: ConnectionHandle) {
        // A later link may have the same numbers: it then waits for less time.
        if unclaimed.contains(where: { $0.handle == handle && $0.descriptor == descriptor }) { drop(handle) }
    }

    private func drop(_ handle: ConnectionHandle) {
        if let old = take(handle) { _ = consume old }
    }

    /// Returns the socket of a link that was accepted, and is the caller's from now on.
    private func take(_ handle: ConnectionHandle) -> LinkSocket? {
        guard let index = unclaimed.firstIndex(where: { $0.handle == handle }) else { return nil }
        let link = unclaimed.remove(at: index)
        return LinkSocket(adopting: link.descriptor, reportedReason: link.reportedReason)
    }

    /// Waits for the socket of a link that this program has initiated; `nil` if it does not come.
    func claim(
        _ handle: ConnectionHandle, until deadline: BootInstant, isolation: isolated (any Actor)? = #isolation
    ) async -> LinkSocket? {
        while isListening {
            if let socket = take(handle) { return socket }
            let end = await claims.wait(until: deadline) { _ in
                isListening && !unclaimed.contains { $0.handle == handle } ? nil : ()
            }
            guard case .resumed = end else { return take(handle) }
        }
        return nil
    }
}

extension Adapter {
    /// How long the kernel may take to hand on a link that the controller has reported. If another program has it, it
    /// does not come.
    private static let handOnTime: Duration = .milliseconds(250)

    /// Accepts links from now on.
    ///
    /// - Parameters:
    ///   - owner: The owner of the links.
    ///   - operation: The operation, for messages.
    ///   - handed: Returns the descriptor of a socket that listens at this address already, and is the adapter's from
    ///     now on; `nil` if there is none.
    ///   - handler: Called with each link that this program has not made.
    /// - Throws: `BLEError` with `.unsupported`, `.noAdapter`, `.system`.
    func accept(
        for owner: ObjectIdentifier, during operation: String,
        adopting handed: @Sendable (BluetoothAddress) -> Int32? = { _ in nil },
        _ handler: @escaping @Sendable (_ socket: consuming LinkSocket, PeerID, LinkControls) -> Void
    ) async throws(BLEError) {
        if acceptor.isListening(for: owner) { return }
        let own = try await addressToListenOn(during: operation)
        if acceptor.isListening(for: owner) { return }
        // One that has gone without a stop.
        acceptor.end()
        do throws(SystemCallError) {
            let socket =
                if let descriptor = handed(own) {
                    try ListeningSocket(adopting: descriptor, at: .attributeChannel(own))
                } else {
                    try system.listen(own)
                }
            try acceptor.begin(socket, of: name, for: owner) { [weak self] in
                self?.assumeIsolated { $0.acceptorReadable() }
            } _: { [weak self] socket, peer, handle in
                guard let self else { return }
                let (name, controls) = assumeIsolated { adapter in
                    if let handle {
                        adapter.advertiser.linkAccepted(handle)
                        adapter.armTimer()
                    }
                    let link = adapter.register(handle, adapter.identity(of: peer) ?? peer, kernelName: peer)
                    return (link.peer, adapter.controls(of: link))
                }
                handler(socket, name, controls)
            }
        } catch {
            throw BLEError(error, acceptingOn: name, during: operation)
        }
        logger.debug("accepting links", metadata: ["adapter": "\(name)"])
    }

    /// The adapter's address. An adapter that is off can be listened on; one that is there is asked what it can do.
    func addressToListenOn(during operation: String) async throws(BLEError) -> BluetoothAddress {
        do throws(BLEError) {
            try await prepare(during: operation)
        } catch {
            guard error.code == .adapterDown || error.code == .blocked || error.code == .notPermitted, info != nil
            else {
                throw error
            }
        }
        guard let info else { throw downError(during: operation) }
        return info.address
    }

    /// Accepts the links that wait, so that one is known before what comes over it.
    func acceptWaitingLinks() {
        if acceptor.isListening { acceptorReadable() }
    }

    /// Accepts no more links for an owner.
    func stopAccepting(for owner: ObjectIdentifier) {
        if acceptor.isListening(for: owner) { acceptor.end() }
    }

    /// Whether the next run may serve a link: one with a pairing that has not succeeded may have a key that is no
    /// bond's.
    func mayHandOver(_ link: LinkIdentity) -> Bool { !security.centrals.isUnproven(link) }

    /// Releases the socket with which an owner accepts links; `nil` if it accepts none.
    func takeListener(of owner: ObjectIdentifier) -> Int32? {
        acceptor.isListening(for: owner) ? acceptor.takeSocket() : nil
    }

    /// Returns what the adapter can do for a link that the run before has served, with the peer's name; `nil` if the
    /// link is another adapter's, or without a radio.
    ///
    /// - Throws: `BLEError` with the codes of `readBonds`; `.disconnected` if the link has ended.
    func adopt(served descriptor: Int32, during operation: String) async throws(BLEError)
        -> (peer: PeerID, controls: LinkControls)?
    {
        try? await prepare(during: operation, mayCyclePower: false)
        if security.isConfigured { try await readBonds(during: operation) }
        let socket = LinkSocket(adopting: descriptor)
        let endpoint = try? socket.endpoint()
        let handle = try? socket.hciHandle()
        _ = socket.release()
        guard let endpoint else {
            throw BLEError(
                .disconnected, subject: name, during: operation, because: "the link has ended meanwhile",
                hint: "The central connects again by itself.")
        }
        guard case .radio(let own, let peer) = endpoint, own == address else { return nil }
        let link = register(handle, identity(of: peer) ?? peer, kernelName: peer)
        return (link.peer, controls(of: link))
    }

    private func acceptorReadable() {
        // The roles of the links that wait.
        reportsReadable()
        commandsReadable()
        acceptor.acceptAll()
    }

    /// Returns the socket of a link that this program has initiated, if the kernel has handed it to the listening
    /// socket.
    func acceptedSocket(_ handle: ConnectionHandle?, until deadline: BootInstant) async -> LinkSocket? {
        guard let handle, acceptor.isListening else { return nil }
        acceptorReadable()
        return await acceptor.claim(handle, until: min(deadline, loop.now() + Self.handOnTime))
    }
}
