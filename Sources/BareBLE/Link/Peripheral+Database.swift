public import BLECore
internal import BLELinux

// How the peer's services become known: by a discovery of everything, of some services, or of just the one that a call
// names. What is known already costs nothing, and what another call looks for already is waited for: calls that overlap
// never ask for the same.

/// A discovery under way.
struct Search {
    /// The kinds of services that it looks for; `nil`: all.
    let services: [BluetoothUUID]?
    let level: DiscoveryLevel

    /// Whether it finds services of the kind `uuid`, or all, to `level`.
    func finds(_ uuid: BluetoothUUID?, to level: DiscoveryLevel) -> Bool {
        guard self.level >= level, let services else { return self.level >= level }
        return uuid.map(services.contains) ?? false
    }
}

extension Peripheral {
    /// How long a discovery may take, whatever the peer's pace is.
    static let discoveryTimeout: Duration = .seconds(60)

    /// The services that are known now, ordered by handle: from a validated cache, and from discovery or listing.
    /// Nothing is requested from the peer. A service that the peer has announced to have changed is left out until it
    /// has been rediscovered.
    public var services: [GATTService] {
        guard let database = knowledge.database else { return [] }
        return database.services.filter { service in
            !knowledge.stale.ranges.contains { $0.overlaps(service.handles) }
        }
    }

    /// Discovers the peer's database, and keeps it as `database`.
    ///
    /// What is already known to this level, from a cache or an earlier call, costs nothing. Reads and writes by handle
    /// need no discovery; by UUID they use what is known, and discover first if nothing is.
    ///
    /// - Parameters:
    ///   - level: The extent of the discovery.
    ///   - afresh: Whether the peer is asked in any case.
    ///   - timeout: The longest time for all of it; 60 seconds by default.
    /// - Throws: `BLEError` with `.timedOut` after `timeout`, `.malformedReply` for a peer that repeats itself or
    ///   violates the protocol, `.tooLong` beyond 4,096 attributes, `.disconnected`, `.cancelled`.
    @discardableResult
    public func discover(
        _ level: DiscoveryLevel = .subscribable, afresh: Bool = false, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        let operation = "discover the services"
        return try await recovering(within: timeout ?? Self.discoveryTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            if afresh {
                try await discovery(of: nil, level: level, afresh: true, until: deadline, during: operation)
                try await settle(until: deadline, during: operation)
            } else {
                try await know(nil, to: level, until: deadline, during: operation)
            }
            guard let known = knowledge.database else { throw changed(during: operation) }
            return known
        }
    }

    /// Discovers only the services with these UUIDs, with two or three requests each, and keeps them in `database`.
    ///
    /// Services that were already discovered to this level cost nothing.
    ///
    /// - Throws: `BLEError` as `discover(_:afresh:timeout:)` does. A service that the peer does not have is not an
    ///   error: it is not in the result.
    @discardableResult
    public func discover(
        services: [BluetoothUUID], level: DiscoveryLevel = .subscribable, afresh: Bool = false,
        timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        let names = services.map(\.description).joined(separator: ", ")
        let operation = "discover \(names)"
        return try await recovering(within: timeout ?? Self.discoveryTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            if services.isEmpty { return GATTDatabase() }
            if afresh {
                try await discovery(of: services, level: level, afresh: true, until: deadline, during: operation)
                try await settle(until: deadline, during: operation)
            } else {
                try await know(services, to: level, until: deadline, during: operation)
            }
            guard let known = knowledge.database else { throw changed(during: operation) }
            return known.restricted(to: services)
        }
    }

    /// Returns when `services`, or all, are known to `level`, and nothing that is known is stale.
    ///
    /// - Parameter reach: how far a discovery goes, if there must be one.
    func know(
        _ services: [BluetoothUUID]?, to level: DiscoveryLevel, reach: DiscoveryLevel? = nil,
        until deadline: BootInstant, during operation: String
    ) async throws(BLEError) {
        var attempts = 0
        while true {
            let wanted: [BluetoothUUID?] = services ?? [nil]
            let missing = wanted.filter { !isKnown($0, to: level) }
            if missing.isEmpty {
                if knowledge.isSettled { return }
                try await settle(until: deadline, during: operation)
                continue
            }
            let unsought = missing.filter { uuid in !searches.values.contains { $0.finds(uuid, to: level) } }
            if unsought.isEmpty {
                let numbers = searches.filter { search in missing.contains { search.value.finds($0, to: level) } }.keys
                try await waitForSettling(until: deadline, during: operation) {
                    numbers.contains { searches[$0] == nil }
                }
                continue
            }
            // A peer whose services change faster than they are found must not keep a call going.
            guard attempts < 2 else { throw changed(during: operation) }
            attempts += 1
            try await discovery(
                of: services == nil ? nil : unsought.compactMap(\.self), level: reach ?? level, until: deadline,
                during: operation)
        }
    }

    private func isKnown(_ uuid: BluetoothUUID?, to level: DiscoveryLevel) -> Bool {
        if let uuid { knowledge.coverage.includes(uuid, to: level) } else { knowledge.coverage.includesAll(to: level) }
    }

    /// Discovers once, and remembers what was found. What changed while it ran is stale behind it.
    func discovery(
        of services: [BluetoothUUID]?, level: DiscoveryLevel, afresh: Bool = false, until deadline: BootInstant,
        during operation: String
    ) async throws(BLEError) {
        lastNumber &+= 1
        let number = lastNumber
        searches[number] = Search(services: services, level: level)
        knowledge.discoveryBegan()
        let result = await runOperation(until: deadline) { client, id, deadline, now in
            let procedure = GATTDiscovery(level: level, services: services, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .database($0) }
        }
        searches[number] = nil
        defer { resumeSettling(true) }
        guard case .success(.database(let found)) = result else {
            knowledge.discoveryFailed()
            // What changed while it ran waited for its end.
            rediscover()
            throw failure(of: result, during: operation)
        }
        do throws(GATTFailure) {
            try knowledge.found(found, services: services, level: level, afresh: afresh)
        } catch {
            rediscover()
            throw BLEError(error, subject: name, during: operation)
        }
        obeyMissedChanges()
        knowledgeGrew()
    }

    private func failure(
        of result: Result<GATTOutcome, OperationFailure>, during operation: String
    ) -> BLEError {
        switch result {
        case .success(let outcome): unexpected(outcome, during: operation)
        case .failure(.linkLost): endError(during: operation)
        case .failure(let failure): BLEError(failure, subject: name, during: operation)
        }
    }
}

// MARK: - From UUIDs to handles

extension Peripheral {
    /// The characteristic that `reference` means. What is not known of the peer is found first: only the service that the
    /// reference names, else everything.
    ///
    /// - Parameter reach: How far the discovery of a single service goes, if there must be one.
    func resolve(
        _ reference: CharacteristicReference, reach: DiscoveryLevel = .structure, until deadline: BootInstant,
        during operation: String
    ) async throws(BLEError) -> GATTCharacteristic {
        if let found = known(reference) { return found }
        switch reference {
        case .uuid(_, let service?, _):
            try await know([service], to: .structure, reach: reach, until: deadline, during: operation)
        case .characteristic(let characteristic):
            try await settle(until: deadline, during: operation)
            // Nothing is known that speaks against it.
            if !knowledge.contradicts(characteristic) { return characteristic }
            throw changed(during: operation)
        case .handle, .uuid:
            try await know(nil, to: .structure, reach: .subscribable, until: deadline, during: operation)
        }
        guard let database = knowledge.database else { throw changed(during: operation) }
        return try database.resolve(reference, for: operation, at: name)
    }

    /// The one characteristic that `reference` means by what is known, if that settles the question.
    ///
    /// - Parameter soFar: whether the only one that is known is enough, although there may be others.
    func known(_ reference: CharacteristicReference, soFar: Bool = false) -> GATTCharacteristic? {
        guard let database = knowledge.database else { return nil }
        // Where not everything is known, the n-th one that is known need not be the n-th one, nor the only one. Who lists
        // by hand has chosen.
        if case .uuid(_, let service, let index) = reference, !isKnown(service, to: .structure) {
            guard index == nil, service != nil || soFar || knowledge.hasListing else { return nil }
        }
        if case .characteristic(let characteristic) = reference {
            return database.characteristic(valueHandle: characteristic.valueHandle) == nil
                || knowledge.contradicts(characteristic) ? nil : characteristic
        }
        guard let found = try? database.resolve(reference, for: "", at: "") else { return nil }
        return knowledge.stale.contains(found.valueHandle) ? nil : found
    }
}
