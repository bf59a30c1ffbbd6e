public import BLECore
internal import BLELinux
internal import Logging

// A database that was found on an earlier link is used again when the peer's Database Hash says that it may be; and is
// given up when the peer's answers say that it is wrong.

extension Peripheral {
    /// How long the end of a link waits for a disk.
    private static let storageTimeout: Duration = .seconds(5)
    /// How long asking for the hash, and the writes that nobody waits for, may take.
    static let backgroundTimeout: Duration = .seconds(30)

    /// Returns the known database with its hash, to be kept until the next connection; `nil` while nothing is known,
    /// or while changes are being rediscovered.
    ///
    /// If the peer's Database Hash is not known it is read, with one request; with it the next connection can check in
    /// one request whether the peer has changed. Only callers that store caches themselves need this;
    /// `Configuration.cacheDirectory` stores them automatically.
    ///
    /// - Throws: `BLEError` with `.timedOut`, `.disconnected`, `.cancelled`. A peer that refuses to return its hash is
    ///   not an error.
    public func cache(timeout: Duration? = nil) async throws(BLEError) -> GATTCache? {
        if knowledge.lacksHash, end == nil {
            let deadline = loop.now() + (timeout ?? Self.valueTimeout)
            let operation = "read the database hash"
            let reading = try await calling(until: deadline, during: operation) { () async throws(BLEError) in
                try await databaseHash(until: deadline, during: operation)
            }
            knowledge.hashRead(reading)
        }
        checkHash()
        return knowledge.isHashRefuted ? nil : knowledge.cache
    }

    /// Asks for the hash where a cache waits for it, or where one is to be stored: before anything else is asked, so that
    /// what is stored with it is never older than it says.
    func validateCache(until deadline: BootInstant) async throws(BLEError) {
        dropForgedCache()
        guard knowledge.awaitsHash || policy.store != nil && !knowledge.isFromCache else { return }
        let reading = try await databaseHash(until: deadline, during: "connect")
        knowledge.hashRead(reading)
        logger.debug(
            "database hash read", metadata: ["peer": "\(name)", "cacheIsUsed": "\(knowledge.isFromCache)"])
    }

    /// The peer's Database Hash, by its type: the handle need not be known.
    func databaseHash(
        until deadline: BootInstant, isOfCall: Bool = true, during operation: String
    ) async throws(BLEError) -> DatabaseKnowledge.HashReading {
        let result = await runOperation(until: deadline, isOfCall: isOfCall) { client, id, deadline, now in
            let procedure = ReadByUUID(.databaseHash, mtu: client.mtu, limit: 1)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
        }
        switch result {
        case .success(.attributes(let attributes)): return attributes.first.map { .value($0.value) } ?? .absent
        case .success: return .unreadable
        case .failure(.gatt(.attributeNotFound)): return .absent
        case .failure(.gatt): return .unreadable
        case .failure(.linkLost): throw endError(during: operation)
        case .failure(let failure): throw BLEError(failure, subject: name, during: operation)
        }
    }

    // MARK: Checking

    /// Whether `hash` is that of `database`; `nil` when nobody computes it. Peers differ in the order of the octets.
    private func agrees(_ hash: [UInt8], with database: GATTDatabase) -> Bool? {
        guard let databaseHash else { return nil }
        var values: [AttributeHandle: [UInt8]] = [:]
        for descriptor in database.descriptors where descriptor.uuid == .extendedProperties {
            guard let owner = extendedProperties.first(where: { $0.key.handles.contains(descriptor.handle) }) else {
                continue
            }
            let bits = owner.value.rawValue
            values[descriptor.handle] = [UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)]
        }
        // A value that nobody has read leaves open what the hash should be. A peer must not get around the check by that.
        guard let message = DatabaseHashMessage(database, extendedProperties: values) else { return false }
        let computed = databaseHash(message)
        return hash == computed || hash == computed.reversed()
    }

    /// Compares the peer's hash with what was discovered: who repeats another peer's hash must not have its own services kept.
    private func checkHash() {
        guard let cache = knowledge.uncheckedHash, let hash = cache.databaseHash,
            let agrees = agrees(hash, with: cache.database)
        else { return }
        knowledge.hashChecked(agrees: agrees)
        if !agrees { tellWrongHash("the database hash is not that of the database; nothing is kept") }
    }

    /// Drops a cache that is not what its own hash says: it was made by an impostor, or by hand.
    private func dropForgedCache() {
        guard knowledge.awaitsHash, let cache = policy.cache, cache.coverage == .whole(.full),
            let hash = cache.databaseHash, agrees(hash, with: cache.database) == false
        else { return }
        knowledge.dropUnchecked()
        tellWrongHash("a cache is not what its hash says, and is not used")
    }

    private func tellWrongHash(_ message: String) {
        wrongDatabaseHashes += 1
        tell(.warning, message)
    }

    // MARK: Storing

    /// Stores what is known, if it is to be stored and is not already.
    func storeCache() {
        guard let writer else { return }
        checkHash()
        guard !knowledge.isHashRefuted, let cache = knowledge.cache, cache != storedCache else { return }
        storedCache = cache
        writer.write(cache)
    }

    /// Returns when what is known has been stored, or the disk has taken too long.
    func finishStoring() async {
        guard let storing = writer?.task else { return }
        lastNumber &+= 1
        let number = lastNumber
        let timer = loop.schedule(at: loop.now() + Self.storageTimeout) { [weak self] in
            self?.assumeIsolated { $0.stopWaitingForStorage(number) }
        }
        await withCheckedContinuation { waiter in
            storageWaiters[number] = waiter
            Task(executorPreference: loop) {
                await storing.value
                await self.stopWaitingForStorage(number)
            }
        }
        loop.cancel(timer)
    }

    private func stopWaitingForStorage(_ number: UInt64) {
        storageWaiters.removeValue(forKey: number)?.resume()
    }

    // MARK: A database that the peer contradicts

    /// What a call may rely on when it is made again behind a change of the database.
    enum Repetition {
        /// It looks everything up anew.
        case always
        /// It has handles from its caller, which must mean the same as before.
        case sameHandles([AttributeHandle])
        /// It may do harm where it was not meant to.
        case never

        init(reading reference: CharacteristicReference) {
            if case .handle(let handle) = reference { self = .sameHandles([handle]) } else { self = .always }
        }
    }

    /// Finds out what the peer has now, for one call after the other. Answers whether the call may be made again.
    ///
    /// `known` is what the call relied on: another call may have found the change out before it.
    ///
    /// - Throws: `BLEError` with `.servicesChanged` for a call that must not be made again, and what the discovery throws.
    func resynchronize(
        _ contradiction: RecoveryAction.Contradiction, for repetition: Repetition, knowing known: GATTDatabase?,
        of operation: String, until deadline: BootInstant
    ) async throws(BLEError) -> Bool {
        while isResynchronizing {
            try await waitForSettling(until: deadline, during: operation) { !isResynchronizing }
        }
        isResynchronizing = true
        defer {
            isResynchronizing = false
            rediscover()
        }
        if contradiction == .outOfSync {
            let reading = try await databaseHash(until: deadline, during: operation)
            if knowledge.isConfirmed(by: reading) {
                guard let known, known != knowledge.database else { return true }
                return try mayRepeat(repetition, known, during: operation)
            }
            guard let old = knowledge.database else {
                knowledge.hashRead(reading)
                if case .never = repetition { throw changed(during: operation) }
                return true
            }
            try await discoverAgain(behind: reading, old, until: deadline, during: operation)
            return try mayRepeat(repetition, old, during: operation)
        }
        guard let old = knowledge.database else { return false }
        try await discoverAgain(behind: nil, old, until: deadline, during: operation)
        return try mayRepeat(repetition, old, during: operation)
    }

    private func discoverAgain(
        behind reading: DatabaseKnowledge.HashReading?, _ old: GATTDatabase, until deadline: BootInstant,
        during operation: String
    ) async throws(BLEError) {
        let coverage = knowledge.coverage
        guard knowledge.purge(at: loop.now()) else {
            throw BLEError(
                .servicesChanged, subject: name, during: operation,
                because: "the peer keeps saying that its services have changed", hint: "Try again in some seconds.")
        }
        tell(.notice, "what was known of the services is wrong")
        if let reading { knowledge.hashRead(reading) }
        perform(client.servicesChanged(in: 1...0xFFFF, at: loop.now()))
        forgetServices()
        do throws(BLEError) {
            switch coverage {
            case .whole(let level):
                try await discovery(of: nil, level: level, until: deadline, during: operation)
            case .services(let levels):
                let level = levels.values.max() ?? .structure
                let services = levels.keys.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
                try await discovery(of: services, level: level, until: deadline, during: operation)
            }
            try await settle(until: deadline, during: operation)
        } catch {
            // Nobody knows what the handles mean now.
            endSubscriptions(in: 1...0xFFFF)
            tellServiceChange(1...0xFFFF, of: old.services)
            throw error
        }
        let new = knowledge.database
        for characteristic in old.characteristics
        where new?.characteristic(valueHandle: characteristic.valueHandle) != characteristic {
            endSubscriptions(in: characteristic.valueHandle...characteristic.valueHandle)
        }
        // The subscription to announcements may have ended with the others.
        knowledgeGrew()
        tellServiceChange(1...0xFFFF, of: old.services)
        observeAgain()
    }

    private func mayRepeat(
        _ repetition: Repetition, _ old: GATTDatabase, during operation: String
    ) throws(BLEError) -> Bool {
        switch repetition {
        case .always: return true
        case .never: throw changed(during: operation)
        case .sameHandles(let handles):
            for handle in handles where old.type(at: handle) != knowledge.database?.type(at: handle) {
                throw changed(during: operation)
            }
            return true
        }
    }

    func changed(during operation: String) -> BLEError {
        BLEError(
            .servicesChanged, subject: name, during: operation,
            because: "the peer has changed its services since they were discovered",
            hint: "Nothing was read or written. Look the characteristic up again, and try again.")
    }
}
