public import BLECore
internal import BLELinux

// How the peer's services become known: by a discovery of everything, of some services, or of just the one that a call
// names. What is known already costs nothing.

extension Peripheral {
    /// How long a discovery may take, whatever the peer's pace is.
    static let discoveryTimeout: Duration = .seconds(60)

    /// Finds out what the peer offers, and remembers it as `database`.
    ///
    /// What is known to this level already, from a cache or an earlier call, costs nothing. Reads and writes by handle need
    /// no discovery; by UUID they use what is known, and discover first when nothing is.
    ///
    /// - Parameter afresh: whether the peer is asked in any case.
    /// - Throws: `BLEError` with `.timedOut` after `timeout`, `.malformedReply` for a peer that repeats itself or answers
    ///   nonsense, `.tooLong` beyond 4,096 attributes, `.disconnected`, `.cancelled`.
    @discardableResult
    public func discover(
        _ level: DiscoveryLevel = .subscribable, afresh: Bool = false, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        let operation = "discover the services"
        return try await recovering(within: timeout ?? Self.discoveryTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            if !afresh, knowledge.coverage.includesAll(to: level) {
                try await settle(until: deadline, during: operation)
                if let known = knowledge.database, knowledge.coverage.includesAll(to: level) { return known }
            }
            return try await discovery(of: nil, level: level, until: deadline, during: operation)
        }
    }

    /// Finds only the services of these kinds, which costs two or three requests each, and remembers them in `database`.
    ///
    /// Services that were looked for to this level already cost nothing.
    ///
    /// - Throws: `BLEError` as `discover(_:afresh:timeout:)` does. A service that the peer does not have is no error: it is
    ///   not in the result.
    @discardableResult
    public func discover(
        services: [BluetoothUUID], level: DiscoveryLevel = .subscribable, afresh: Bool = false,
        timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        let names = services.map(\.description).joined(separator: ", ")
        let operation = "discover \(names)"
        return try await recovering(within: timeout ?? Self.discoveryTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            try await settle(until: deadline, during: operation)
            let missing = afresh ? services : services.filter { !knowledge.coverage.includes($0, to: level) }
            if !missing.isEmpty {
                _ = try await discovery(
                    of: missing, level: level, afresh: afresh, until: deadline, during: operation)
            }
            return knowledge.database?.restricted(to: services) ?? GATTDatabase()
        }
    }

    /// Discovers once, and remembers what was found.
    func discovery(
        of services: [BluetoothUUID]?, level: DiscoveryLevel, afresh: Bool = false, until deadline: BootInstant,
        during operation: String
    ) async throws(BLEError) -> GATTDatabase {
        knowledge.discoveryBegan()
        let result = await runOperation(until: deadline) { client, id, deadline, now in
            let procedure = GATTDiscovery(level: level, services: services, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .database($0) }
        }
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
        knowledgeGrew()
        // What changed while it ran is looked at once more before anybody uses it.
        try await settle(until: deadline, during: operation)
        guard let known = knowledge.database else { throw changed(during: operation) }
        return known
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
    func resolve(
        _ reference: CharacteristicReference, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> GATTCharacteristic {
        if let found = known(reference) { return found }
        try await settle(until: deadline, during: operation)
        switch reference {
        case .uuid(_, let service?, _):
            if !knowledge.coverage.includes(service, to: .structure) {
                _ = try await discovery(of: [service], level: .structure, until: deadline, during: operation)
            }
        case .characteristic(let characteristic):
            // Nothing is known that speaks against it.
            if !knowledge.contradicts(characteristic) { return characteristic }
            throw changed(during: operation)
        case .handle, .uuid:
            if !knowledge.coverage.includesAll(to: .structure) {
                _ = try await discovery(of: nil, level: .subscribable, until: deadline, during: operation)
            }
        }
        guard let database = knowledge.database else { throw changed(during: operation) }
        return try database.resolve(reference, for: operation, at: name)
    }

    /// The one characteristic that `reference` means by what is known, if that settles the question.
    func known(_ reference: CharacteristicReference) -> GATTCharacteristic? {
        guard let database = knowledge.database else { return nil }
        // Where not everything is known, the n-th one that is known need not be the n-th one.
        if case .uuid(_, let service, .some) = reference {
            let isCovered = service.map { knowledge.coverage.includes($0, to: .structure) } ?? false
            guard isCovered || knowledge.coverage.includesAll(to: .structure) else { return nil }
        }
        if case .characteristic(let characteristic) = reference {
            return database.characteristic(valueHandle: characteristic.valueHandle) == nil
                || knowledge.contradicts(characteristic) ? nil : characteristic
        }
        guard let found = try? database.resolve(reference, for: "", at: "") else { return nil }
        return knowledge.stale.contains(found.valueHandle) ? nil : found
    }
}
