public import BLECore
internal import BLELinux
internal import Logging

extension Central {
    /// Resumes what the daemon did before its restart: sessions with their subscriptions, a scan, and links that were
    /// handed over.
    ///
    /// Call it once, before the first session. From then on the state in `Configuration.stateStore` is kept current
    /// automatically: it contains a session until `Session.disconnect(_:)`, a subscription of
    /// `Session.subscribe(to:_:)` until it is unsubscribed, and a scan that is `ScanSequence.lasting()`. Releasing
    /// them, the end of the process and its crash do not remove them. Without a store only links are restored.
    ///
    /// The call returns as soon as everything has begun. A session whose link was handed over resumes on it without a
    /// request; the others connect by their own policies, and find their peers' services in the cache. A failure
    /// concerns one peer alone.
    ///
    /// - Parameters:
    ///   - links: Links from the program that executed this one.
    ///   - environment: Where to look for links that the service manager has kept.
    ///   - holding: How many values of a restored subscription are kept until a task adopts it. The preferred kind of
    ///     subscription comes from the state. On a link that was handed over, an `onReady` that subscribes to the same
    ///     characteristic adopts it.
    ///   - handlers: Called for each peer, before any connect, for the code that cannot be stored. A peer whose policy
    ///     is `.custom` fails with `.invalidArgument` if it gets no `reconnect`. If the result is `nil`, the peer is
    ///     removed from the state.
    /// - Throws: `BLEError` with `.busy` if another process has the store, which the reason names, or if this was
    ///   called before; `.timedOut` if the disk with the state has not responded in 5 s; `.cancelled`,
    ///   `.notPermitted`, `.diskFull`, `.invalidArgument`, `.system`. A state that cannot be used is not an error: see
    ///   `Restoration.damage`.
    public func restore(
        _ links: [DetachedLink] = [], from environment: ServiceEnvironment = .process,
        holding: SubscribeOptions = SubscribeOptions(),
        handlers: @Sendable (RestorationState.Peer) -> Session.Handlers? = { _ in Session.Handlers() }
    ) async throws(BLEError) -> Restoration {
        guard persistence.beginRestoring() else {
            throw BLEError(
                .busy, subject: configuration.stateStore?.path ?? "this central", during: "restore the state",
                because: "this central has done so before",
                hint: "Call `restore()` once, before the first session; make another central for another state.")
        }
        var restoration = Restoration()
        var state = RestorationState()
        if let store = configuration.stateStore {
            do throws(BLEError) {
                let contents = try await open(store)
                (state, restoration.damage, restoration.movedTo) = (contents.state, contents.damage, contents.movedTo)
            } catch {
                persistence.restoringFailed()
                throw error
            }
        }
        restoration.adapter = state.adapter
        continueRecovery(state)
        var course = AdoptionCourse()
        var handed = HandedLinks(links, DescriptorStore.take(from: environment), from: environment)
        if let store = handed.store {
            for name in handed.damaged.keys.sorted() { await remove(name, from: store, &course) }
        }
        let names = state.peers.map(\.peer) + handed.rest.compactMap(\.link.peer)
        if configuration.security != nil, !handed.rest.isEmpty, names.contains(where: { $0.kind == .resolvablePrivate })
        {
            // If they cannot be read, the adoption of each link reports that.
            try? await adapter.readBonds(during: "restore the state")
        }
        let plans = state.peers.map { ($0, handlers($0)) }
        for (persisted, handlers) in plans {
            if let handlers {
                let link = handed.take(persisted.peer) { self.name(of: $0) }
                restoration.peers.append(await restore(persisted, handlers, link, holding, &course))
            } else {
                forget(persisted.peer)
            }
        }
        restoration.links = course.unused
        restoration.lostLinks = handed.damaged
        for link in handed.rest {
            switch await adopted(link, holding, &course) {
            case .success(let peripheral): restoration.links.append(peripheral)
            case .failure(let error): restoration.lostLinks[link.link.name] = error
            }
        }
        if let scan = state.scan { restoration.scan = await restore(scan) }
        return restoration
    }

    private func open(_ store: StateStore) async throws(BLEError) -> OpenStateStore.Contents {
        let logger = configuration.logger
        let (open, contents) = try await stored(store.path) {
            () throws(BLEError) -> (OpenStateStore, OpenStateStore.Contents) in
            let open = try store.open()
            let contents = try open.load()
            // Logged here, so that it is also logged if no task waits any longer.
            if let damage = contents.damage {
                logger.warning("the state is not used", metadata: ["reason": "\(damage)"])
            }
            return (open, contents)
        }
        let write: StateKeeper.Write = { state in
            Result { () throws(BLEError) in try open.save(state) }
        }
        persistence.use(
            StateKeeper(holding: contents.state, in: store.path, on: loop, logger: logger, write: write) {
                open.close()
            })
        return contents
    }

    /// Reads the store at `path`. A late result is dropped, and a store that was opened with it.
    package func stored<Value: Sendable>(
        _ path: String, _ read: @Sendable @escaping () throws(BLEError) -> Value
    ) async throws(BLEError) -> Value {
        let operation = "restore the state"
        let result: Result<Value, BLEError>
        do throws(WorkFailure) {
            result = try await disk.run(on: loop, until: loop.now() + Self.storageTime) { Result(catching: read) }
        } catch {
            switch error {
            case .noRoom:
                throw .noRoom(subject: path, during: operation)
            case .cancelled:
                throw BLEError(.cancelled, subject: path, during: operation, because: "the task was cancelled")
            case .late:
                throw BLEError(
                    .timedOut, subject: path, during: operation,
                    because: "the disk has not responded in \(Self.storageTime)",
                    hint: "`dmesg` may show what is wrong with it.")
            }
        }
        return try result.get()
    }

    // MARK: Recovery

    /// Counts the steps of recovery that earlier runs of the program have taken, has the state keep those of this one,
    /// and finishes a step in which an earlier one was ended.
    private func continueRecovery(_ state: RestorationState) {
        let loop = loop
        let (time, runs): (MachineTime, [BootInstant]) = adapter.assumeIsolated { adapter in
            let timeOfDay = adapter.system.timeOfDay
            let boot = adapter.system.bootIdentifier()
            let time = MachineTime(now: loop.now(), timeOfDay: timeOfDay(), boot: boot)
            let runs = state.recoveryRuns(at: time)
            adapter.continueRecovery(after: runs) { [weak self] runs, isLeftOff in
                let time = MachineTime(now: loop.now(), timeOfDay: timeOfDay(), boot: boot)
                self?.assumeIsolated { $0.keepRecovery(at: runs, isLeftOff: isLeftOff, by: time) }
            }
            return (time, runs)
        }
        let isLeftOff = state.isAdapterLeftOff(at: time)
        // From now on the clock of this boot counts, whatever becomes of the time of day. An adapter that is on by now
        // is not switched on at a later start, when somebody may have switched it off on purpose.
        if isLeftOff || (!runs.isEmpty && !state.hasRecoveryRuns(of: time)) {
            keepRecovery(at: runs, isLeftOff: false, by: time)
        }
        if isLeftOff { adapter.assumeIsolated { $0.finishEarlierStep(of: state.adapter) } }
    }

    private func keepRecovery(at runs: [BootInstant], isLeftOff: Bool, by time: MachineTime) {
        persistence.keeper?.assumeIsolated { $0.recovered(at: runs, isAdapterLeftOff: isLeftOff, by: time) }
    }

    // MARK: One peer

    private func restore(
        _ peer: RestorationState.Peer, _ handlers: Session.Handlers, _ handed: HandedLink?, _ holding: SubscribeOptions,
        _ course: inout AdoptionCourse
    ) async -> Restoration.Peer {
        var (link, lostLink): (Peripheral?, BLEError?)
        if let handed {
            switch await adopted(handed, holding, &course) {
            case .success(let peripheral): link = peripheral
            case .failure(let error): lostLink = error
            }
        }
        do throws(BLEError) {
            let session = try session(with: peer, handlers, continuingWith: link)
            let subscriptions = peer.subscriptions.map { subscription in
                Restoration.Values(
                    persisted: subscription, session: session,
                    values: session.assumeIsolated { $0.subscribe(to: subscription, holding) })
            }
            return Restoration.Peer(
                persisted: peer, outcome: link == nil ? .connecting(session) : .adopted(session),
                subscriptions: subscriptions, lostLink: lostLink)
        } catch {
            if let link { course.unused.append(link) }
            return Restoration.Peer(persisted: peer, outcome: .failed(error), subscriptions: [], lostLink: lostLink)
        }
    }

    private func adopted(
        _ handed: HandedLink, _ holding: SubscribeOptions, _ course: inout AdoptionCourse
    ) async -> Result<Peripheral, BLEError> {
        let result: Result<Peripheral, BLEError>
        do throws(BLEError) {
            result = .success(try await adopt(handed.link, holding: holding, preparing: &course.isToPrepare))
        } catch {
            result = .failure(error)
        }
        // The manager's copy would keep the link up after its end here.
        if let store = handed.store { await remove(DescriptorStore.name(of: handed.link), from: store, &course) }
        return result
    }

    private func remove(_ name: String, from store: DescriptorStore, _ course: inout AdoptionCourse) async {
        do throws(BLEError) {
            do throws(BLEError) {
                try store.remove(named: name)
            } catch {
                guard error.code == .busy, course.managerResponds else { throw error }
                // The manager accepts no messages now; once it has read those in the queue it will, unless it hangs.
                course.managerResponds = false
                try await store.notifier.barrier()
                course.managerResponds = true
                try store.remove(named: name)
            }
        } catch {
            configuration.logger.warning(
                "the service manager keeps a copy of a link", metadata: ["name": "\(name)", "reason": "\(error)"])
        }
    }

    // MARK: The scan

    private func restore(_ scan: RestorationState.Scan) async -> Restoration.Scan {
        var sequence = self.scan(scan)
        do throws(BLEError) {
            sequence.begun = BegunScan(try await sequence.beginNow())
            return Restoration.Scan(persisted: scan, failure: nil, sequence: sequence)
        } catch {
            return Restoration.Scan(persisted: scan, failure: error, sequence: sequence)
        }
    }
}

// MARK: - Links that were handed over

/// The links that came with the process.
private struct HandedLinks {
    private(set) var rest: [HandedLink]
    let damaged: [String: BLEError]
    let store: DescriptorStore?

    init(_ links: [DetachedLink], _ contents: DescriptorStore.Contents, from environment: ServiceEnvironment) {
        let store = ServiceNotifier(environment).map { DescriptorStore($0) }
        rest =
            links.map { HandedLink(link: $0, store: nil) } + contents.links.map { HandedLink(link: $0, store: store) }
        damaged = contents.damaged
        self.store = store
    }

    /// Takes the link to a peer. That of a bonded peer has its identity, whatever address its session was begun with.
    ///
    /// - Parameter name: Returns the name under which a peer is filed.
    mutating func take(_ peer: PeerID, _ name: (PeerID) -> PeerID) -> HandedLink? {
        let index =
            rest.firstIndex { $0.link.peer == peer } ?? rest.firstIndex { $0.link.peer.map(name) == name(peer) }
        return index.map { rest.remove(at: $0) }
    }
}

/// What is known after the first of many links that are adopted in a row, so that the same wait is not repeated for
/// each.
private struct AdoptionCourse {
    /// Whether the adapter has not been asked yet.
    var isToPrepare = true
    /// Whether the service manager has responded to every message so far.
    var managerResponds = true
    /// Links without a session.
    var unused: [Peripheral] = []
}

/// A link, and the service manager's store if it has a copy.
private struct HandedLink: Sendable {
    let link: DetachedLink
    let store: DescriptorStore?
}
