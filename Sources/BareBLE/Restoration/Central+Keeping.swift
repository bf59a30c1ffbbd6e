public import BLECore
internal import BLELinux
internal import Logging

// What is wanted, kept for the next start; and an end that the next start goes on from.

extension Central {
    /// How long the beginning and the end of a daemon wait for the disk that has its state.
    static let storageTime: Duration = .seconds(5)

    /// A central that keeps what it wants of the radio in `store`, from `restore(_:from:holding:handlers:)` on.
    public init(store: StateStore, _ configuration: Configuration = Configuration()) {
        var configuration = configuration
        configuration.stateStore = store
        self.init(configuration)
    }

    /// How it stands with the state on the disk; `nil` without a store, before `restore(_:from:holding:handlers:)` and after `suspend(keepingLinks:)`.
    public var stateStatus: StateStatus? {
        keeper.map { keeper in keeper.assumeIsolated { $0.status } }
    }

    /// Returns when the disk has what is wanted now. The state is written by itself, too.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` when nothing is kept, because there is no `Configuration.stateStore`, or because
    ///   `restore(_:from:holding:handlers:)` was not called, or `suspend(keepingLinks:)` was; `.timedOut` when the disk has not answered by
    ///   then; `.diskFull`, `.notPermitted`, `.tooLong`, `.system`. After these a change is not lost: it is still being written, or tried
    ///   again later.
    public func saveState(timeout: Duration = .seconds(5)) async throws(BLEError) {
        guard let keeper else { throw nothingKeptError(during: "save the state") }
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
            because: "`restore()` has not been called, so nothing is kept",
            hint: "Call `Central.restore()` at each start, also the first, before the first session.")
    }

    /// Logs once that a store was given and nothing is kept in it.
    private func noticeNothingIsKept() {
        guard let store = configuration.stateStore, !hasRestored, !hasNoticedMissingRestore else { return }
        hasNoticedMissingRestore = true
        configuration.logger.notice(
            "nothing is kept for the next start: call `Central.restore()` before the first session",
            metadata: ["store": "\(store.path)"])
    }

    /// Forgets a peer: the next start does not want it. A session with it goes on.
    public func forget(_ peer: PeerID) {
        keeper?.assumeIsolated { $0.forget(peer) }
    }

    /// Forgets the scan that is wanted: the next start does not begin it. One that runs goes on.
    public func forgetScan() {
        keeper?.assumeIsolated { $0.forgetScan() }
    }

    /// Ends all sessions in a way that the next start goes on with: what is wanted stays so.
    ///
    /// To be called at the end of a daemon, before it ends sessions or subscriptions by itself. The store is free for another process then.
    /// A disk that hangs is waited for 5 s; the log says so, and the store is free when what is being written is over, or this process.
    ///
    /// - Parameter keepingLinks: Whether links that are ready stay up: they are the result, to be passed to the program that this one
    ///   executes. Else they end, and the result is empty. Links that no session has are the caller's.
    @discardableResult
    public func suspend(keepingLinks: Bool = false) async -> [DetachedLink] {
        await keeper?.freeze()
        // The disk that keeps a session's end waiting is the one that has the state.
        let limit = loop.now() + Self.storageTime
        // All at once: each may have to wait for a disk that hangs.
        var links: [DetachedLink] = []
        await withTaskGroup(of: DetachedLink?.self) { group in
            for session in sessions.values.compactMap(\.session).sorted(by: { $0.name < $1.name }) {
                group.addTask(executorPreference: loop) { await self.end(session, keepingLink: keepingLinks) }
            }
            for await case let link? in group { links.append(link) }
        }
        links.sort { $0.name < $1.name }
        do throws(BLEError) {
            try await keeper?.flush(until: limit)
        } catch {
            configuration.logger.error("the state is not on the disk", metadata: ["reason": "\(error)"])
        }
        await keeper?.close()
        keeper = nil
        hasRestored = false
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

    /// Ends all sessions in a way that the next start goes on with, and hands their links to the service manager, which keeps them up
    /// until then.
    ///
    /// A link that the manager does not take ends; the log says so.
    public func suspend(handingOverTo store: DescriptorStore) async {
        // One that hangs is waited for once, not for each link.
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

    /// The devices that match a scan that was wanted, as `scan(_:_:lostAfter:duration:capacity:)` gives them; it lasts.
    public nonisolated func scan(_ wanted: WantedScan) -> ScanSequence {
        scan(wanted.settings.filter, wanted.settings, lostAfter: wanted.lostAfter).lasting()
    }
}

// MARK: - What is noted

extension Central {
    /// Has the store told of a session, and from now on of what becomes of it.
    func keep(_ session: Session, with peer: PeerID, _ subscriptions: [WantedSubscription]) {
        guard let keeper else { return noticeNothingIsKept() }
        keeper.assumeIsolated { $0.want(WantedPeer(peer, session.options, subscriptions)) }
        session.assumeIsolated { $0.keeper = keeper }
    }

    /// Has the store told which adapter is used, once it is known.
    func keepAdapter() {
        guard let keeper, let address = adapter.assumeIsolated({ $0.address }) else { return }
        keeper.assumeIsolated { $0.change { $0.adapter = address } }
    }

    /// Wants a scan from now on; the result is one iterator's part in it.
    func keep(_ scan: WantedScan) -> LastingScan? {
        guard let keeper else {
            noticeNothingIsKept()
            return nil
        }
        keeper.assumeIsolated { $0.want(scan) }
        return LastingScan(scan, keeper)
    }

    /// Wants a scan no longer.
    func forget(_ scan: WantedScan) {
        keeper?.assumeIsolated { $0.forget(scan) }
    }
}

extension WantedPeer {
    init(_ peer: PeerID, _ options: SessionOptions, _ subscriptions: [WantedSubscription]) {
        self.init(
            peer, reconnect: options.reconnect, provenAfter: options.provenAfter, readyTimeout: options.readyTimeout,
            timeout: options.connect.timeout, mtu: options.connect.mtu, parameters: options.connect.parameters,
            validation: options.connect.validation, observesServiceChanges: options.connect.observesServiceChanges,
            subscriptions: subscriptions)
    }
}

extension SessionOptions {
    init(_ wanted: WantedPeer) {
        self.init(
            connect: ConnectOptions(
                timeout: wanted.timeout, mtu: wanted.mtu, parameters: wanted.parameters, validation: wanted.validation,
                observesServiceChanges: wanted.observesServiceChanges),
            reconnect: wanted.reconnect, provenAfter: wanted.provenAfter, readyTimeout: wanted.readyTimeout)
    }
}
