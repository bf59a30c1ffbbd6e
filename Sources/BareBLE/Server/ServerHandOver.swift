internal import BLECore
internal import BLELinux
internal import Logging

// What a local peripheral takes over from the run before, and what it leaves to the next one.
//
// Duties
// - Restores, once: what bonded centrals have configured, from its file, and what the service manager has kept.
// - Resumes the links of the run before when links of their kind are accepted, before newcomers are.
// - Suspends: has the links settle, all at the same time, and hands over those that can be, with the sockets on which
//   centrals wait.
//
// Invariants
// - Nothing is taken from the service manager before `restore`, and nothing twice.
//   What is never taken goes with `drop()`.
// - A link is handed over only with nothing unfinished, and with a key that is known to be that of its bond. Any other
//   ends, and is reported.
// - Only the event loop's thread uses it.

/// The state that outlives a run of the program.
// Unchecked: only the loop's thread touches its state.
final class ServerHandOver: @unchecked Sendable {
    /// The time for a request of a central to be finished before its link is handed over.
    private static let settlingTime: Duration = .seconds(5)

    /// What has become of a link that was to be handed over.
    private enum Outcome: Sendable {
        case item(HandedServer.Item)
        /// The link of this name has ended, for this reason.
        case lost(String, BLEError)
        /// The link had ended by itself.
        case gone
    }

    private let central: Central
    private let services: PublishedServices
    private let records: ClientRecords
    private let links: ServedLinks
    /// What the run before has handed over; `nil` before `restore`.
    private var handed: HandedServer?
    private var isRestored = false
    /// Resumes the links over a radio, while it runs.
    private var resuming: Task<Void, Never>?

    init(on central: Central, services: PublishedServices, records: ClientRecords, links: ServedLinks) {
        self.central = central
        self.services = services
        self.records = records
        self.links = links
    }

    private var logger: Logger { central.configuration.logger }

    // MARK: From the run before

    /// Continues with what the run before has left.
    ///
    /// - Parameters:
    ///   - environment: Where to look for what the service manager has kept.
    ///   - store: Where it is kept what bonded centrals have configured; `nil` for nowhere.
    /// - Throws: `BLEError` with the codes of `LocalPeripheral.restore(from:)`. The next call continues.
    func restore(
        from environment: ServiceEnvironment, _ store: StateStore?, during operation: String
    ) async throws(BLEError) -> LocalPeripheral.RestorationResult {
        guard !isRestored else {
            throw BLEError(
                .busy, during: operation, because: "this local peripheral has done so before",
                hint: "Call it once, right after the peripheral was created.")
        }
        guard services.services.isEmpty, links.isEmpty else {
            throw BLEError(
                .invalidArgument, during: operation, because: "services are published, or links are served already",
                hint: "Restore it right after it was created.")
        }
        let logger = logger
        // After a failure the next call continues with the same descriptors.
        let handed = handed ?? HandedServer(from: environment, on: central.loop, logger: logger)
        self.handed = handed
        var restoration = LocalPeripheral.RestorationResult()
        (restoration.links, restoration.lost) = (handed.linkNames, handed.damaged)
        if let store {
            let (file, loaded) = try await central.stored(store.clientsPath) {
                () throws(BLEError) -> (StateFile, StateFile.Loaded<ClientTable>) in
                let file = try store.openClients()
                let loaded = try store.loadClients(from: file)
                // Logged here, so that it is also logged if no task waits any longer.
                if let damage = loaded.damage {
                    logger.warning("the configurations of centrals are not used", metadata: ["reason": "\(damage)"])
                }
                return (file, loaded)
            }
            records.keep(loaded.value ?? ClientTable(), in: file)
            (restoration.damage, restoration.movedTo) = (loaded.damage, loaded.movedTo)
        }
        isRestored = true
        handed.removeDamaged()
        restoration.knownCentrals = records.count
        return restoration
    }

    /// Returns the descriptor of the socket that listens at an address, which is the caller's from now on; `nil` if
    /// there is none.
    func takeListener(at address: ListeningAddress) -> Int32? { handed?.takeListener(at: address) }

    /// Serves the links over a radio again, while the table of links is open. Each call returns after the last of them.
    func resumeRadioLinks() async {
        if let resuming { return await resuming.value }
        guard handed != nil else { return }
        // In a task of its own: a caller that is cancelled would close the links that are left.
        let task = Task(executorPreference: central.loop) { await self.resumeAllRadioLinks() }
        resuming = task
        await task.value
    }

    private func resumeAllRadioLinks() async {
        defer { resuming = nil }
        for link in handed?.takeLinks(overRadio: true) ?? [] {
            do throws(BLEError) {
                let operation = "resume a link"
                let found = try await central.adapter.adopt(served: link.descriptor, during: operation)
                // It may have been closed meanwhile, and would not end the link.
                try links.checkIsOpen(during: operation)
                resume(link, as: found?.peer, found?.controls)
            } catch {
                _ = LinkSocket(adopting: link.descriptor)
                logger.notice(
                    "a link is not resumed", metadata: ["peer": "\(link.state.link.name)", "reason": "\(error)"])
            }
        }
    }

    /// Serves the links without a radio again.
    func resumeSocketLinks() {
        for link in handed?.takeLinks(overRadio: false) ?? [] { resume(link) }
    }

    private func resume(_ link: HandedServer.Link, as peer: PeerID? = nil, _ controls: LinkControls? = nil) {
        links.resume(link.state, over: LinkSocket(adopting: link.descriptor), as: peer, controls)
    }

    /// Closes what was not taken, and has the service manager do so.
    func drop() { handed?.drop() }

    // MARK: To the next run

    /// Hands over the links of centrals, and the sockets on which they are accepted.
    ///
    /// - Returns: What was not handed over, by its name, with the reasons.
    func suspend(
        _ acceptor: CentralAcceptor, to store: DescriptorStore, isolation: isolated (any Actor)? = #isolation
    ) async -> [String: BLEError] {
        var items = await acceptor.releaseSockets().compactMap(HandedServer.item(ofListener:))
        var lost: [String: BLEError] = [:]
        let deadline = central.loop.now() + Self.settlingTime
        let ids = links.inbound.map(\.id)
        for id in ids { links[id]?.server.stopUpdates() }
        await acceptor.endPairings()
        // Concurrently: a link that has to wait for another one may receive the next request meanwhile, which is then
        // unfinished at the deadline. The order of what is stored is that of the links.
        let outcomes = ids.map { id in
            Task(executorPreference: central.loop) { await self.takeFromTable(id, until: deadline) }
        }
        for outcome in outcomes {
            switch await outcome.value {
            case .item(let item): items.append(item)
            case .lost(let name, let error): lost[name] = error
            case .gone: break
            }
        }
        await finishRecords(isolation: isolation)
        lost.merge(await HandedServer.put(items, in: store, logger: logger)) { first, _ in first }
        return lost
    }

    /// Has the disk store what bonded centrals have configured, and the counters of their signed writes.
    func finishRecords(isolation: isolated (any Actor)? = #isolation) async {
        await central.adapter.storeAcceptedCounters()
        await records.flush(until: central.loop.now() + Central.storageTime, isolation: isolation)
        records.close()
    }

    /// Takes a link to be handed over at the first moment at which nothing is unfinished; ends it if there is none
    /// until the deadline, or if it cannot be handed over.
    private func takeFromTable(_ id: ConnectedCentral.ID, until deadline: BootInstant) async -> Outcome {
        while let link = links[id] {
            let name = link.peripheral.name
            if link.server.remains == nil, central.loop.now() < deadline {
                await link.server.settle(until: deadline)
                continue
            }
            do throws(BLEError) {
                return .item(try item(of: link))
            } catch {
                return .lost(name, await end(link, error))
            }
        }
        return .gone
    }

    /// Checks and takes a link without a suspension: no pairing begins meanwhile, and no request arrives.
    private func item(of link: ServedLink) throws(BLEError) -> HandedServer.Item {
        if let identity = link.identity, !central.adapter.assumeIsolated({ $0.mayHandOver(identity) }) {
            throw Self.unprovenError(link.peripheral.name)
        }
        guard let remains = link.server.remains else {
            throw BLEError(
                .timedOut, subject: link.peripheral.name, during: "hand a link over",
                because: "a request of the central is not finished",
                hint: "The link ends; the central connects again by itself.")
        }
        let detached = link.peripheral.assumeIsolated { peripheral in
            Result { () throws(BLEError) in try peripheral.detachNow() }
        }
        return try HandedServer.item(
            of: try detached.get(), remains, services.database.outline, number: link.id.number)
    }

    /// Ends a link that cannot be handed over; returns the reason.
    private func end(_ link: ServedLink, _ reason: BLEError) async -> BLEError {
        logger.notice(
            "a link is not handed over", metadata: ["peer": "\(link.peripheral.name)", "reason": "\(reason)"])
        await link.peripheral.disconnect()
        return reason
    }

    private static func unprovenError(_ name: String) -> BLEError {
        BLEError(
            .pairingFailed, subject: name, during: "hand a link over",
            because: "a pairing on the link is not finished, or has failed",
            hint: "The link ends; the central connects again by itself.")
    }
}
