public import BLECore
internal import BLELinux

// Discovery of the peer's services: of everything, of some services, or of the one that a call names. What is already
// known costs no request. A call waits for what another call is discovering, so concurrent calls never send the same
// request twice.
//
// A refused request is retried by `recovering` alone, with the whole call, as `CallRecovery` decides. What
// `ensureDiscovered` counts are no retries: each discovery that it begins is of what is unknown at that moment, and
// a second one follows where the peer has changed its services during the first. The count bounds the call of a peer
// that does so each time.

extension Peripheral {
    /// The longest time for a discovery, at any pace of the peer.
    static let discoveryTimeout: Duration = .seconds(60)

    /// The services that are known now, ordered by handle: from a validated cache, and from discovery or listing.
    /// Nothing is requested from the peer. A service that the peer has announced to have changed is left out until it
    /// has been rediscovered.
    public var services: [GATTService] {
        peerDatabase.state.services
    }

    /// Discovers the peer's database, or certain services of it, and keeps what was found in `database`.
    ///
    /// What is already known to this level, from a cache or an earlier call, costs nothing. Named services take two or
    /// three requests each. Reads and writes by handle need no discovery; by UUID they use what is known, and discover
    /// first if nothing is.
    ///
    /// - Parameters:
    ///   - services: The UUIDs of the services; `nil` for all. A service that the peer does not have is not an error.
    ///   - level: The extent of the discovery.
    ///   - ignoringCache: A Boolean value that indicates whether requests are sent even if the result is known.
    ///   - timeout: The longest time for all of it; 60 seconds by default.
    /// - Returns: The known database; with `services`, only those of them that the peer has.
    /// - Throws: `BLEError` with `.timedOut` after `timeout`, `.malformedReply` for a peer that repeats itself or
    ///   violates the protocol, `.tooLong` beyond 4,096 attributes, `.disconnected`, `.cancelled`.
    @discardableResult
    public func discover(
        services: [BluetoothUUID]? = nil, level: DiscoveryLevel = .subscribable, ignoringCache: Bool = false,
        timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        let names = services?.map(\.description).joined(separator: ", ")
        let context = context(
            "discover \(names ?? "the services")", within: timeout ?? Self.discoveryTimeout)
        return try await recovering(context) { () async throws(BLEError) in
            if let services, services.isEmpty { return GATTDatabase() }
            if ignoringCache {
                try await discovery(of: services, level: level, ignoringCache: true, in: context)
                try await awaitRediscovery(in: context)
            } else {
                try await ensureDiscovered(services, to: level, in: context)
            }
            guard let known = peerDatabase.state.database else { throw changed(during: context.operation) }
            return services.map { known.restricted(to: $0) } ?? known
        }
    }

    /// The former form of `discover(services:level:ignoringCache:timeout:)`.
    @available(*, deprecated, renamed: "discover(services:level:ignoringCache:timeout:)")
    @discardableResult
    public func discover(
        _ level: DiscoveryLevel, ignoringCache: Bool = false, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        try await discover(level: level, ignoringCache: ignoringCache, timeout: timeout)
    }

    /// The former form of `discover(services:level:ignoringCache:timeout:)`.
    @available(*, deprecated, renamed: "discover(services:level:ignoringCache:timeout:)")
    @discardableResult
    public func discover(
        _ level: DiscoveryLevel = .subscribable, afresh: Bool, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        try await discover(level: level, ignoringCache: afresh, timeout: timeout)
    }

    /// The former form of `discover(services:level:ignoringCache:timeout:)`.
    @available(*, deprecated, renamed: "discover(services:level:ignoringCache:timeout:)")
    @discardableResult
    public func discover(
        services: [BluetoothUUID], level: DiscoveryLevel = .subscribable, afresh: Bool, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        try await discover(services: services, level: level, ignoringCache: afresh, timeout: timeout)
    }

    /// Returns when `services`, or all, are known to `level`, and no known part is stale.
    ///
    /// - Parameter reach: The level of a discovery, if one is needed.
    func ensureDiscovered(
        _ services: [BluetoothUUID]?, to level: DiscoveryLevel, reach: DiscoveryLevel? = nil,
        in context: CallContext
    ) async throws(BLEError) {
        var attempts = 0
        while true {
            switch peerDatabase.state.nextStep(toKnow: services, to: level) {
            case .proceed:
                return
            case .awaitRediscovery:
                try await awaitRediscovery(in: context)
            case .awaitDiscovery(let running):
                try await awaitDatabase(in: context) {
                    running.contains { !peerDatabase.state.isRunning($0) }
                }
            case .discover(let unsought):
                // A peer whose services change faster than they can be discovered must not keep a call pending for
                // ever.
                guard attempts < 2 else { throw changed(during: context.operation) }
                attempts += 1
                try await discovery(of: unsought, level: reach ?? level, in: context)
            }
        }
    }

    /// Runs one discovery, and records its result. Changes announced meanwhile make their range stale afterwards.
    func discovery(
        of services: [BluetoothUUID]?, level: DiscoveryLevel, ignoringCache: Bool = false, in context: CallContext
    ) async throws(BLEError) {
        let number = peerDatabase.discoveryBegan(of: services, level: level)
        let result = await runOperation(until: context.deadline) { client, id, deadline, now in
            let procedure = GATTDiscovery(level: level, services: services, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .database($0) }
        }
        defer { peerDatabase.resumeWaiters(true) }
        guard case .success(.database(let found)) = result else {
            peerDatabase.discoveryFailed(number)
            // Changes announced during the discovery have waited for its end.
            rediscover()
            throw failure(of: result, in: context)
        }
        do throws(GATTFailure) {
            try peerDatabase.found(found, by: number, of: services, level: level, ignoringCache: ignoringCache)
        } catch {
            rediscover()
            throw BLEError(error, subject: name, during: context.operation)
        }
        obeyMissedChanges()
        peerDatabase.databaseDidChange()
    }

    private func failure(
        of result: ATTLink.OperationResult, in context: CallContext
    ) -> BLEError {
        switch result {
        case .success(let outcome): unexpected(outcome, in: context)
        case .failure(.linkLost): endError(during: context.operation)
        case .failure(let failure): error(failure, during: context.operation)
        }
    }
}

// MARK: - From UUIDs to handles

extension Peripheral {
    /// Returns the characteristic that `reference` means. What is not known yet is discovered first: only the service
    /// that the reference names, or else everything.
    ///
    /// - Parameter reach: The level of the discovery of a single service, if one is needed.
    func resolve(
        _ reference: CharacteristicReference, reach: DiscoveryLevel = .structure, in context: CallContext
    ) async throws(BLEError) -> GATTCharacteristic {
        if let found = peerDatabase.known(reference) { return found }
        switch reference {
        case .uuid(_, let service?, _):
            try await ensureDiscovered([service], to: .structure, reach: reach, in: context)
        case .characteristic(let characteristic):
            try await awaitRediscovery(in: context)
            // Nothing known contradicts it.
            if !peerDatabase.state.contradicts(characteristic) { return characteristic }
            throw changed(during: context.operation)
        case .handle, .uuid:
            try await ensureDiscovered(nil, to: .structure, reach: .subscribable, in: context)
        }
        guard let database = peerDatabase.state.database else { throw changed(during: context.operation) }
        return try database.resolve(reference, for: context.operation, at: name)
    }
}
