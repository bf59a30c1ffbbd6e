internal import BLECore
internal import BLELinux
internal import Logging

extension Central {
    /// The time that a new link waits for the disk; afterwards it continues without a cache.
    private static let loadingTime: Duration = .seconds(5)

    /// Returns the cache that a link to `peer` begins with.
    func cache(of peer: PeerID, _ policy: CachePolicy, until deadline: BootInstant?) async -> GATTCache? {
        guard policy.cache == nil, let load = policy.load else { return policy.cache }
        let now = loop.now()
        let limit = now + Self.loadingTime
        // A link that came up at the last moment may still use its cache.
        let end = min(max(deadline ?? limit, now + .seconds(1)), limit)
        do throws(WorkFailure) {
            return try await disk.run(on: loop, until: end, load)
        } catch {
            switch error {
            case .noRoom: logProblem(with: peer)("a cache is not used", .noRoom(during: "read a cache"))
            case .late: logProblem(with: peer)("the disk did not return a cache in time", nil)
            case .cancelled: break
            }
            return nil
        }
    }

    /// Returns the policy for a link to `peer`.
    ///
    /// A link that is encrypted with the key of a bond has a cache of its own, filled on such links alone, and another
    /// one after each pairing. Any device that had the peer's address may have filled the cache of the other links,
    /// and can have repeated the peer's Database Hash: an equal hash proves nothing there.
    ///
    /// - Parameter bond: The bond with whose key the link is encrypted; `nil` if it is not.
    func cachePolicy(for peer: PeerID, _ bond: BondID?, _ options: ConnectOptions) -> CachePolicy {
        var policy = CachePolicy(options)
        guard let path = configuration.cacheDirectory ?? configuration.stateStore?.directory else { return policy }
        let directory = GATTCacheDirectory(path)
        guard directory.file(for: peer) != nil else { return policy }
        let log = logProblem(with: peer)
        policy.load = { Self.load(peer, bond, from: directory, log) }
        policy.store = { [loop, disk, adapter, bondedClients] cache in
            if let bond, await !adapter.mayStoreCache(of: bond, bondedClients) { return false }
            do throws(WorkFailure) {
                return try await disk.run(on: loop) {
                    Self.save(cache, for: peer, bond, in: directory, log) {
                        // The disk may have taken its time.
                        bond.map { bondedClients.isFormer($0) } ?? false
                    }
                }
            } catch {
                // Without a deadline it is the only failure.
                log("a cache could not be written", .noRoom(during: "write a cache"))
                return false
            }
        }
        return policy
    }

    /// Removes the stored caches of the bonds with a peer.
    func removeCaches(ofBondsWith identity: PeerID) async {
        guard let path = configuration.cacheDirectory ?? configuration.stateStore?.directory else { return }
        let directory = GATTCacheDirectory(path)
        let log = logProblem(with: identity)
        let message = "the cache of a forgotten bond could not be removed"
        do throws(WorkFailure) {
            try await disk.run(on: loop, until: loop.now() + Self.loadingTime) {
                do throws(BLEError) {
                    try directory.removeBonds(of: identity)
                } catch {
                    log(message, error)
                }
            }
        } catch {
            switch error {
            case .noRoom: log(message, .noRoom(during: "remove a cache"))
            case .late: log(message, nil)
            case .cancelled: break
            }
        }
    }

    /// Logs a problem with a peer's cache, and the reason where it is known.
    private func logProblem(with peer: PeerID) -> @Sendable (_ message: String, BLEError?) -> Void {
        { [loop, logger = configuration.logger, warnings = warnings.warnings(for: "\(peer)")] message, error in
            // A peer that comes and goes reads and writes each time.
            guard let leftOut = warnings.admit(message, at: loop.now()) else { return }
            var metadata: Logger.Metadata = ["peer": "\(peer)"]
            if let error { metadata["reason"] = "\(error)" }
            if leftOut > 0 { metadata["left out"] = "\(leftOut)" }
            logger.warning("\(message)", metadata: metadata)
        }
    }

    /// A file that cannot be used counts as missing; it is logged once, because it is written again.
    private static func load(
        _ peer: PeerID, _ bond: BondID?, from directory: GATTCacheDirectory, _ log: (String, BLEError?) -> Void
    ) -> GATTCache? {
        do {
            return try directory.load(for: peer, bond)
        } catch {
            log("a cache is not used", error)
            return nil
        }
    }

    private static func save(
        _ cache: GATTCache, for peer: PeerID, _ bond: BondID?, in directory: GATTCacheDirectory,
        _ log: (String, BLEError?) -> Void, unless isFormer: () -> Bool
    ) -> Bool {
        do {
            try directory.save(cache, for: peer, bond, unless: isFormer)
            return true
        } catch {
            log("a cache could not be written", error)
            return false
        }
    }
}

extension Adapter {
    /// Records that a cache is being stored for a bond.
    ///
    /// - Returns: Whether it may be: not for a bond that was replaced or forgotten.
    func mayStoreCache(of bond: BondID, _ clients: BondedClients) -> Bool {
        guard self.bond(with: bond.identity) == bond else { return false }
        clients.storing(for: bond)
        return true
    }
}
