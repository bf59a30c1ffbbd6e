public import BLECore
internal import BLELinux
internal import Logging

// A database from an earlier link is used again if the peer's Database Hash permits it. It is dropped if the peer's
// responses contradict it.

extension Peripheral {
    /// The longest time for which the end of a link waits for a disk.
    private static let storageTimeout: Duration = .seconds(5)
    /// The longest time for reading the hash, and for writes that no task waits for.
    static let backgroundTimeout: Duration = .seconds(30)

    /// Returns the known database with its hash, to be kept until the next connection; `nil` while nothing is known,
    /// or while changes are being rediscovered.
    ///
    /// If the peer's Database Hash is not known it is read, with one request; with it the next connection can check in
    /// one request whether the peer has changed. Only callers that store caches themselves need this;
    /// `Configuration.cacheDirectory` stores them automatically.
    ///
    /// - Parameter timeout: The longest time for reading the hash; `nil` for 60 s.
    /// - Throws: `BLEError` with `.timedOut`, `.disconnected`, `.cancelled`. A peer that refuses to return its hash is
    ///   not an error.
    public func cache(timeout: Duration? = nil) async throws(BLEError) -> GATTCache? {
        if peerDatabase.state.lacksHash, end == nil {
            let context = context("read the database hash", within: timeout ?? Self.valueTimeout)
            let reading = try await calling(context) { () async throws(BLEError) in
                try await databaseHash(in: context)
            }
            peerDatabase.hashRead(reading)
        }
        return peerDatabase.checkedCache()
    }

    /// Reads the hash if a cache waits for it, or if one is to be stored. This precedes all other requests, so that
    /// what is stored with the hash is never older than it.
    ///
    /// A bonded peer announces what has changed since the last link as soon as the link is encrypted, which may be
    /// before it is decided that the cache is used.
    func validateCache(in context: CallContext) async throws(BLEError) {
        if try await useRemembered(in: context) { return validated() }
        if end != nil { throw endError(during: context.operation) }
        guard peerDatabase.mustReadHash() else { return validated() }
        let awaited = peerDatabase.state.awaitsHash
        let reading = try await databaseHash(in: context)
        peerDatabase.hashRead(reading)
        if awaited, !peerDatabase.state.isFromCache { kept.contradicted() }
        validated()
        logger.debug(
            "database hash read", metadata: ["peer": "\(name)", "cacheIsUsed": "\(peerDatabase.state.isFromCache)"])
    }

    /// Called when it is decided which cache is used.
    private func validated() {
        protection.validated()
        obeyMissedChanges()
    }

    /// Reads the peer's Database Hash by its type, which requires no handle.
    func databaseHash(
        in context: CallContext, isOfCall: Bool = true
    ) async throws(BLEError) -> DatabaseState.HashReading {
        let result = await runOperation(until: context.deadline, isOfCall: isOfCall) { client, id, deadline, now in
            let procedure = ReadByUUID(.databaseHash, mtu: client.mtu, limit: 1)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
        }
        switch result {
        case .success(.attributes(let attributes)): return attributes.first.map { .value($0.value) } ?? .absent
        case .success: return .unreadable
        case .failure(.gatt(.attributeNotFound)): return .absent
        case .failure(.gatt): return .unreadable
        case .failure(.linkLost): throw endError(during: context.operation)
        case .failure(let failure): throw BLEError(failure, subject: name, during: context.operation)
        }
    }

    /// Returns when the cache has been stored, or the disk has taken too long.
    func finishStoring() async {
        await peerDatabase.finishStoring(until: loop.now() + Self.storageTimeout)
    }

    // MARK: Contradictions by the peer

    /// Rediscovers the peer's services, for one call after the other. Returns whether the call may be retried.
    ///
    /// `known` is the database that the call relied on: another call may have detected the change before.
    ///
    /// - Throws: `BLEError` with `.servicesChanged` for a call that must not be retried, and the errors of the
    ///   discovery.
    func resynchronize(
        _ contradiction: CallRecovery.Contradiction, knowing known: GATTDatabase?, in context: CallContext
    ) async throws(BLEError) -> Bool {
        let before = peerDatabase.resynchronizationCount
        while peerDatabase.isBeingResynchronized {
            try await awaitDatabase(in: context) { !peerDatabase.isBeingResynchronized }
        }
        peerDatabase.resynchronizationBegan()
        defer {
            peerDatabase.resynchronizationEnded()
            rediscover()
        }
        if contradiction == .outOfSync {
            let reading = try await databaseHash(in: context)
            if peerDatabase.state.isConfirmed(by: reading) {
                guard let known, known != peerDatabase.state.database else { return true }
                return try await mayRetry(known, in: context)
            }
            // Of the calls that were refused together, the first one discovers; a peer without a hash cannot confirm
            // that for the others.
            if let known, before != peerDatabase.resynchronizationCount, !reading.isValue {
                return try await mayRetry(known, in: context)
            }
            guard let old = peerDatabase.state.database else {
                peerDatabase.hashRead(reading)
                if let known { return try await mayRetry(known, in: context) }
                if case .never = context.retryRule { throw changed(during: context.operation) }
                return true
            }
            try await discoverAgain(after: reading, old, in: context)
            return try await mayRetry(old, in: context)
        }
        guard let old = peerDatabase.state.database else { return false }
        try await discoverAgain(after: nil, old, in: context)
        return try await mayRetry(old, in: context)
    }

    private func discoverAgain(
        after reading: DatabaseState.HashReading?, _ old: GATTDatabase, in context: CallContext
    ) async throws(BLEError) {
        let coverage = peerDatabase.state.coverage
        guard peerDatabase.purge(at: loop.now()) else {
            throw BLEError(
                .servicesChanged, subject: name, during: context.operation,
                because: "the peer keeps reporting that its services have changed", hint: "Try again in some seconds.")
        }
        log.report(.notice, "what was known of the services is wrong")
        kept.contradicted()
        if let reading { peerDatabase.hashRead(reading) }
        link.servicesChanged(in: 1...0xFFFF, happened)
        scheduler.servicesChanged()
        do throws(BLEError) {
            switch coverage {
            case .whole(let level):
                try await discovery(of: nil, level: level, in: context)
            case .services(let levels):
                let level = levels.values.max() ?? .structure
                let services = levels.keys.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
                try await discovery(of: services, level: level, in: context)
            }
            try await awaitRediscovery(in: context)
        } catch {
            // The meaning of all handles is unknown now.
            endSubscriptions(in: 1...0xFFFF)
            peerDatabase.reportChange(of: old.services)
            throw error
        }
        let new = peerDatabase.state.database
        for characteristic in old.characteristics
        where new?.characteristic(valueHandle: characteristic.valueHandle) != characteristic {
            endSubscriptions(in: characteristic.valueHandle...characteristic.valueHandle)
        }
        peerDatabase.resynchronized()
        // The subscription to announcements may have ended with the others.
        peerDatabase.databaseDidChange()
        peerDatabase.reportChange(of: old.services)
        enableServiceChangedAgain()
    }

    /// Returns `true` for a call whose handles have the same meaning as in `old`. What was listed by hand was not
    /// discovered again: of that, the types of these handles are requested.
    private func mayRetry(_ old: GATTDatabase, in context: CallContext) async throws(BLEError) -> Bool {
        var types: [AttributeHandle: BluetoothUUID] = [:]
        for handle in peerDatabase.state.undecidedHandles(context.retryRule, since: old) {
            do throws(BLEError) {
                types[handle] = try await lookUpType(at: handle, in: context)
            } catch {
                guard error.attError == .attributeNotFound || error.attError == .invalidHandle else { throw error }
            }
        }
        guard peerDatabase.state.allows(context.retryRule, since: old, types: types) else {
            throw changed(during: context.operation)
        }
        return true
    }

    func changed(during operation: String) -> BLEError {
        BLEError(
            .servicesChanged, subject: name, during: operation,
            because: "the peer has changed its services since they were discovered",
            hint: "Nothing was read or written. Look the characteristic up again, and try again.")
    }
}

extension DatabaseState.HashReading {
    /// Whether the peer has returned a value.
    fileprivate var isValue: Bool { if case .value = self { true } else { false } }
}

extension RetryRule {
    init(reading reference: CharacteristicReference) {
        if case .handle(let handle) = reference { self = .sameHandle(handle) } else { self = .always }
    }
}
