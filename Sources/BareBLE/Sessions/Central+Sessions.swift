public import BLECore
internal import BLELinux

extension Central {
    /// Starts a session, which connects to a peer and keeps the connection until the session ends.
    ///
    /// It returns at once: `Session.ready(within:)` waits for the link. A peer has one session of a central at a time,
    /// and no other call connects to it meanwhile; `session(of:)` returns the existing one.
    ///
    /// A session with a bonded peer stays one session whatever private addresses the peer uses, and each of its links
    /// is encrypted before its first byte. If the peer rejects the bond's key the session gives up at once, with
    /// `BLEError.Code.bondRejected`: neither attempts nor a new pairing would distinguish the right peer from
    /// another device.
    ///
    /// - Parameters:
    ///   - peer: The peer to connect to.
    ///   - options: Options for each link, and the reconnect policy.
    ///   - onReady: Prepares each new link before it is available to others: authentication, settings. If it throws,
    ///     or takes longer than `Session.Options.readyTimeout`, the link is ended and counts as a failed connect. It
    ///     must not wait for the session, nor capture it: that would keep the session alive forever.
    ///   - decide: Called for the pause before the next attempt; it returns `nil` to give up. It receives the failure
    ///     and the number of connects that have failed in a row. It makes the policy `.custom`. It is not called for
    ///     the loss of the adapter, and for failures that would recur each time.
    /// - Throws: `BLEError` with `.busy` if the peer has a session, `.invalidArgument`.
    public func session(
        with peer: PeerID, _ options: Session.Options = Session.Options(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil,
        reconnect decide: (@Sendable (Session.Disconnection, _ failures: Int) -> Duration?)? = nil
    ) throws(BLEError) -> Session {
        try session(with: peer, options, Session.Handlers(onReady: onReady, reconnect: decide))
    }

    /// Starts a session with an existing link, which makes the next one when that is lost.
    ///
    /// `onReady` runs on this link too. From now on the session owns the link, and ends it with itself. If the call
    /// throws, the link stays the caller's.
    ///
    /// - Parameters:
    ///   - link: A radio link of this central.
    ///   - options: Options for each further link, and the reconnect policy.
    ///   - onReady: Prepares each link, as in `session(with:_:onReady:reconnect:)`.
    ///   - decide: Called for the pause before the next attempt, as there.
    /// - Throws: `BLEError` with `.disconnected` if the link has ended, `.busy` if the peer has a session,
    ///   `.invalidArgument` for a link without an address and for one on another central's thread; `.notBonded` for one
    ///   without the security that the options demand; `.notSupported` for one to a private address that may be a
    ///   bonded peer's, without `Configuration.addressHash`; `.unusableState` for one to a peer whose bond is damaged.
    public func session(
        adopting link: Peripheral, _ options: Session.Options = Session.Options(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil,
        reconnect decide: (@Sendable (Session.Disconnection, _ failures: Int) -> Duration?)? = nil
    ) throws(BLEError) -> Session {
        let operation = "begin a session"
        guard let peer = link.id else {
            throw BLEError(
                .invalidArgument, subject: link.name, during: operation,
                because: "the link has no address that could be connected to again")
        }
        guard link.loop === loop else { throw Session.strangeLinkError(link, during: operation) }
        if let error = link.assumeIsolated({ $0.end == nil ? nil : $0.endError(during: operation) }) { throw error }
        let demand = options.connect.security
        if let error = link.assumeIsolated({ $0.takingError(demand, during: operation) }) { throw error }
        return try session(
            with: peer, options, Session.Handlers(onReady: onReady, reconnect: decide), beginningWith: link)
    }

    /// Returns a restored session; if a link was handed over, it begins with that link.
    func session(
        with persisted: RestorationState.Peer, _ handlers: Session.Handlers, continuingWith link: Peripheral?
    ) throws(BLEError) -> Session {
        try session(
            with: persisted.peer, Session.Options(persisted), handlers, beginningWith: link, persisted.subscriptions)
    }

    private func session(
        with peer: PeerID, _ options: Session.Options, _ handlers: Session.Handlers,
        beginningWith link: Peripheral? = nil, _ subscriptions: [RestorationState.Subscription] = []
    ) throws(BLEError) -> Session {
        if session(of: peer) != nil { throw hasSessionError(peer) }
        let adapter = adapter
        let first = Lock(link)
        var target = SessionTarget(name: "\(peer)", peer: peer) {
            await adapter.awaitPresence()
        } connect: { options throws(BLEError) in
            if let link = first.withLock({ $0.take() }) { return link }
            return try await self.connectAlone(peer, options)
        }
        target.isPeer = { [weak self] other in
            other == peer || self?.assumeIsolated { $0.name(of: other) == $0.name(of: peer) } ?? false
        }
        let session = try begin(target, options, handlers, persistence.keeper)
        keep(session, with: peer, subscriptions)
        sessions.add(session, with: peer)
        return session
    }

    /// Returns the session with a peer; `nil` if there is none that has not ended.
    public func session(of peer: PeerID) -> Session? {
        if let session = sessions.session(of: peer) { return session }
        // A bonded peer has several names.
        guard configuration.security != nil else { return nil }
        let name = name(of: peer)
        return sessions.session { self.name(of: $0) == name }
    }

    /// Starts a session with an ATT server on a Unix SEQPACKET socket, which it connects to as `connect(toSocket:_:)`
    /// does.
    ///
    /// - Throws: `BLEError` with `.invalidArgument`.
    public func session(
        toSocket path: String, _ options: Session.Options = Session.Options(),
        onReady: (@Sendable (Peripheral) async throws -> Void)? = nil,
        reconnect decide: (@Sendable (Session.Disconnection, _ failures: Int) -> Duration?)? = nil
    ) throws(BLEError) -> Session {
        let target = SessionTarget(name: "unix:\(path)") { options throws(BLEError) in
            try await self.connect(toSocket: path, options)
        }
        return try begin(target, options, Session.Handlers(onReady: onReady, reconnect: decide))
    }

    /// Returns a session whose links the caller's closure makes.
    package func session(
        _ target: SessionTarget, _ options: Session.Options = Session.Options(),
        _ handlers: Session.Handlers = Session.Handlers()
    ) throws(BLEError) -> Session {
        try begin(target, options, handlers)
    }

    private func begin(
        _ target: SessionTarget, _ options: Session.Options, _ handlers: Session.Handlers, _ keeper: StateKeeper? = nil
    ) throws(BLEError) -> Session {
        var target = target
        target.options = options
        if handlers.decide != nil { target.options.reconnect = .custom }
        _ = try mtu(options.connect, connectingTo: target.name)
        guard target.options.reconnect != .custom || handlers.decide != nil else {
            throw BLEError(
                .invalidArgument, subject: target.name, during: "begin a session",
                because: "the policy is custom, and no function decides", hint: "Give `reconnect:` a closure.")
        }
        let session = Session(
            target, handlers, loop: loop, logger: configuration.logger,
            warnings: warnings.warnings(for: target.name), keeper: keeper)
        session.assumeIsolated { $0.start() }
        return session
    }

    /// Whether a session uses, or may make, links to a peer.
    func isTaken(_ peer: PeerID) -> Bool {
        session(of: peer).map { $0.state != .paused } ?? false
    }

    func hasSessionError(_ peer: PeerID) -> BLEError {
        BLEError(
            .busy, subject: "\(peer)", during: "connect", because: "a session of this program has the peer",
            hint: "Use that one, `Central.session(of:)`, or end it first; `Session.releaseLink()` lends its link.")
    }
}
