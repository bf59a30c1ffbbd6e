public import BLECore
internal import BLELinux
internal import Logging

// Persists the restoration state, and ends a run so that the next start can resume.

extension Central {
    /// The time that the start and the end of a daemon wait for the disk with its state.
    static let storageTime: Duration = .seconds(5)

    /// Creates a central that keeps its restoration state in `store`, from `restore(_:from:holding:handlers:)` on.
    public init(store: StateStore, _ configuration: Configuration = Configuration()) {
        var configuration = configuration
        configuration.stateStore = store
        self.init(configuration)
    }

    /// The status of the state on the disk; `nil` without a store, before `restore(_:from:holding:handlers:)` and
    /// after `suspend(keepingLinks:)`.
    public var stateStatus: StateStore.Status? {
        persistence.keeper.map { keeper in keeper.assumeIsolated { $0.status } }
    }

    /// Returns when the current state is on the disk. The state is also written automatically.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` if no state is kept, because there is no
    ///   `Configuration.stateStore`, `restore(_:from:holding:handlers:)` was not called, or `suspend(keepingLinks:)`
    ///   was; `.timedOut` if the disk has not responded by then; `.diskFull`, `.notPermitted`, `.tooLong`, `.system`.
    ///   No change is lost by these: it is still being written, or tried again later.
    public func saveState(timeout: Duration = .seconds(5)) async throws(BLEError) {
        guard let keeper = persistence.keeper else { throw nothingKeptError(during: "save the state") }
        try await keeper.flush(until: loop.now() + timeout)
    }

    private func nothingKeptError(during operation: String) -> BLEError {
        guard let store = configuration.stateStore else {
            return BLEError(
                .invalidArgument, subject: "this central", during: operation, because: "it has no state store",
                hint: "Make it with `Central(store:)`, and call `restore()` before the first session.")
        }
        return BLEError(
            .invalidArgument, subject: store.path, during: operation,
            because: "`restore()` has not been called, or not since `suspend()`, so nothing is kept",
            hint: "Call `Central.restore()` at each start, also the first, before the first session.")
    }

    /// Logs once that there is a store and nothing is kept in it.
    private func noticeNothingIsKept() {
        guard let store = configuration.stateStore, persistence.noticeMissingRestore() else { return }
        configuration.logger.notice(
            "nothing is kept for the next start: call `Central.restore()` before the first session",
            metadata: ["store": "\(store.path)"])
    }

    /// Removes a peer from the restoration state: the next start does not connect to it. A session with it continues.
    public func forget(_ peer: PeerID) {
        guard let keeper = persistence.keeper else { return }
        // A bonded peer has several names, and its session may have been begun with another one.
        let name = name(of: peer)
        for kept in keeper.assumeIsolated({ $0.state.peers.map(\.peer) }) where self.name(of: kept) == name {
            keeper.assumeIsolated { $0.forget(kept) }
        }
    }

    /// Removes the scan from the restoration state: the next start does not begin it. A running scan continues.
    public func forgetScan() {
        persistence.keeper?.assumeIsolated { $0.forgetScan() }
    }

    /// Ends all sessions and keeps the restoration state, so that the next start resumes them.
    ///
    /// Call it at the end of a daemon, before ending sessions or subscriptions one by one. Afterwards the store is
    /// free for another process. The call waits at most 5 s for a disk that hangs and logs it; the store is then free
    /// after the pending write or at the end of this process.
    ///
    /// - Parameter keepingLinks: Whether links that are ready stay up: they are returned, to be passed to the program
    ///   that this one executes. Otherwise they end, and the result is empty. Links without a session remain the
    ///   caller's.
    @discardableResult
    public func suspend(keepingLinks: Bool = false) async -> [DetachedLink] {
        await persistence.keeper?.freeze()
        // The disk that delays a session's end is the one with the state.
        let limit = loop.now() + Self.storageTime
        // Concurrently: each may have to wait for a disk that hangs.
        var links: [DetachedLink] = []
        await withTaskGroup(of: DetachedLink?.self) { group in
            for session in sessions.all {
                group.addTask(executorPreference: loop) { await self.end(session, keepingLink: keepingLinks) }
            }
            for await case let link? in group { links.append(link) }
        }
        links.sort { $0.name < $1.name }
        do throws(BLEError) {
            try await persistence.keeper?.flush(until: limit)
        } catch {
            configuration.logger.error("the state is not on the disk", metadata: ["reason": "\(error)"])
        }
        await persistence.keeper?.close()
        persistence.end()
        return links
    }

    private func end(_ session: Session, keepingLink: Bool) async -> DetachedLink? {
        var link: DetachedLink?
        if keepingLink {
            do throws(BLEError) {
                link = try await session.detach()
            } catch {
                configuration.logger.debug(
                    "no link is kept", metadata: ["peer": "\(session.name)", "reason": "\(error)"])
            }
        }
        await session.disconnect()
        return link
    }

    /// Ends all sessions and keeps the restoration state, and hands their links to the service manager, which keeps
    /// them up until the next start.
    ///
    /// A link that the manager does not take is closed and logged.
    public func suspend(handingOverTo store: DescriptorStore) async {
        // A manager that hangs is waited for once, not for each link.
        var isAnswering = true
        for link in await suspend(keepingLinks: true) {
            do throws(BLEError) {
                if isAnswering { try await store.put(link) } else { _ = try store.send(link) }
            } catch {
                if error.code == .timedOut { isAnswering = false }
                configuration.logger.notice(
                    link.fileDescriptor == nil ? "a link may not be handed over" : "a link is not handed over",
                    metadata: ["peer": "\(link.name)", "reason": "\(error)"])
            }
        }
    }

    /// Returns the devices that match a scan of the restoration state, as `scan(_:_:lostAfter:duration:capacity:)`
    /// does; the scan stays in that state.
    public nonisolated func scan(_ persisted: RestorationState.Scan) -> ScanSequence {
        scan(persisted.settings.filter, persisted.settings, lostAfter: persisted.lostAfter).lasting()
    }
}

// MARK: - Recording the state

extension Central {
    /// Adds a session to the restoration state, and records its changes from now on.
    func keep(_ session: Session, with peer: PeerID, _ subscriptions: [RestorationState.Subscription]) {
        guard let keeper = persistence.keeper else { return noticeNothingIsKept() }
        let entry = RestorationState.Peer(peer, session.options, subscriptions)
        let peersInUse = sessions.peers
        keeper.assumeIsolated { keeper in
            keeper.makeRoom(for: peer, sparing: peersInUse)
            keeper.add(entry)
        }
    }

    /// Records the adapter in use, once it is known.
    func keepAdapter() {
        guard let keeper = persistence.keeper, let address = adapter.assumeIsolated({ $0.address }) else { return }
        keeper.assumeIsolated { $0.use(adapter: address) }
    }

    /// Adds a scan to the restoration state; the result is one iterator's part in it.
    func keep(_ scan: RestorationState.Scan) -> LastingScan? {
        guard let keeper = persistence.keeper else {
            noticeNothingIsKept()
            return nil
        }
        keeper.assumeIsolated { $0.add(scan) }
        return LastingScan(scan, keeper)
    }

    /// Removes a scan from the restoration state.
    func forget(_ scan: RestorationState.Scan) {
        persistence.keeper?.assumeIsolated { $0.forget(scan) }
    }
}

extension RestorationState.Peer {
    init(_ peer: PeerID, _ options: Session.Options, _ subscriptions: [RestorationState.Subscription]) {
        self.init(
            peer, reconnect: options.reconnect, resetBackoffAfter: options.resetBackoffAfter,
            readyTimeout: options.readyTimeout,
            timeout: options.connect.timeout, mtu: options.connect.mtu, parameters: options.connect.parameters,
            validation: options.connect.validation, observesServiceChanges: options.connect.observesServiceChanges,
            requiresBond: options.connect.security.requiresBond, subscriptions: subscriptions)
    }
}

extension Session.Options {
    init(_ persisted: RestorationState.Peer) {
        self.init(
            connect: ConnectOptions(
                timeout: persisted.timeout, mtu: persisted.mtu, parameters: persisted.parameters,
                validation: persisted.validation,
                observesServiceChanges: persisted.observesServiceChanges,
                security: persisted.requiresBond ? .bonded : .asBonded),
            reconnect: persisted.reconnect, resetBackoffAfter: persisted.resetBackoffAfter,
            readyTimeout: persisted.readyTimeout)
    }
}
