public import BLECore

extension Peripheral {
    /// How long a discovery may take, whatever the peer's pace is.
    static let discoveryTimeout: Duration = .seconds(60)
    /// How long reading or writing one value may take; a single request of it is bound to 30 s by the protocol.
    static let valueTimeout: Duration = .seconds(60)

    /// Finds out what the peer offers, and remembers it as `database`.
    ///
    /// Reads and writes by handle need none; by UUID they use what is known, and discover first when nothing is.
    ///
    /// - Throws: `BLEError` with `.timedOut` after `timeout`, `.malformedReply` for a peer that repeats itself or answers
    ///   nonsense, `.tooLong` beyond 4,096 attributes, `.disconnected`, `.cancelled`.
    @discardableResult
    public func discover(
        _ level: DiscoveryLevel = .subscribable, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        try await discovery(of: nil, level: level, timeout: timeout, during: "discover the services")
    }

    /// Finds only the services of these kinds, which costs two or three requests each, and remembers them as `database`.
    ///
    /// - Throws: `BLEError` as `discover(_:timeout:)` does. A service that the peer does not have is no error: it is not
    ///   in the result.
    @discardableResult
    public func discover(
        services: [BluetoothUUID], level: DiscoveryLevel = .subscribable, timeout: Duration? = nil
    ) async throws(BLEError) -> GATTDatabase {
        let names = services.map(\.description).joined(separator: ", ")
        return try await discovery(of: services, level: level, timeout: timeout, during: "discover \(names)")
    }

    private func discovery(
        of services: [BluetoothUUID]?, level: DiscoveryLevel, timeout: Duration?, during operation: String
    ) async throws(BLEError) -> GATTDatabase {
        try await recovering(within: timeout ?? Self.discoveryTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            try await discovery(of: services, level: level, until: deadline, during: operation)
        }
    }

    /// Discovers once, and remembers what was found.
    private func discovery(
        of services: [BluetoothUUID]?, level: DiscoveryLevel, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> GATTDatabase {
        let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
            let procedure = GATTDiscovery(level: level, services: services, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .database($0) }
        }
        guard case .database(let database) = outcome else { throw unexpected(outcome, during: operation) }
        knownDatabase = database
        return database
    }

    /// Reads a value to its end, however long it is (at most 512 bytes).
    ///
    /// By handle it costs one request, and one more for each further `mtu - 1` bytes. By UUID it costs the same when the
    /// handle is known; when nothing has been discovered, the peer is asked for the value by its type, which costs one
    /// request as well. A descriptor is read by its handle.
    ///
    /// - Throws: `BLEError` with `.refusedByPeer` or `.insufficientSecurity` and the peer's `attError`, `.ambiguous`,
    ///   `.attributeNotFound`, `.tooLong` with the part that was read, `.timedOut`, `.disconnected`, `.cancelled`.
    public func read(
        _ characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        if case .handle(let handle) = characteristic {
            return try await recovering(
                within: timeout ?? Self.valueTimeout, during: "read \(characteristic)"
            ) { (deadline) async throws(BLEError) in
                try await readValue(handle, until: deadline, during: "read \(characteristic)")
            }
        }
        return try await readAttribute(characteristic, timeout: timeout).value
    }

    /// Reads what is behind an offset in a value, to the end of it.
    ///
    /// - Parameters:
    ///   - characteristic: which value.
    ///   - offset: how many bytes to leave out, 0 to 512.
    ///   - timeout: how long it may take.
    /// - Throws: `BLEError` as `read(_:timeout:)` does; `.invalidArgument` for an offset that no value has, and
    ///   `.refusedByPeer` with `attError` 0x07 for one behind the end of this one.
    ///
    /// Spec: Read Long Characteristic Values, Core Vol 3 Part G, 4.8.3.
    public func read(
        _ characteristic: CharacteristicReference, from offset: Int, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let operation = "read \(characteristic) from byte \(offset)"
        let start = try checked(offset, during: operation)
        return try await recovering(within: timeout ?? Self.valueTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            let handle = try await valueHandle(characteristic, until: deadline, during: operation)
            let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
                let procedure = ReadLong(handle: handle, from: start, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .value($0) }
            }
            guard case .value(let value) = outcome else { throw unexpected(outcome, during: operation) }
            return value
        }
    }

    /// Refuses an offset that no value has.
    func checked(_ offset: Int, during operation: String) throws(BLEError) -> UInt16 {
        guard (0...GATTLimits.value).contains(offset) else {
            throw BLEError(
                .invalidArgument, subject: name, during: operation, because: "the offset is \(offset)",
                hint: "A value has at most 512 bytes.")
        }
        return UInt16(truncatingIfNeeded: offset)
    }

    /// The handle of the value that `reference` means.
    func valueHandle(
        _ reference: CharacteristicReference, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> AttributeHandle {
        if case .handle(let handle) = reference { return handle }
        return try await resolve(reference, until: deadline, during: operation).valueHandle
    }

    /// Reads a value, and says where it was found and what kind it is, as far as that is known.
    package func readAttribute(
        _ characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> (handle: AttributeHandle, uuid: BluetoothUUID?, value: [UInt8]) {
        let operation = "read \(characteristic)"
        return try await recovering(within: timeout ?? Self.valueTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            switch characteristic {
            case .handle(let handle):
                let value = try await readValue(handle, until: deadline, during: operation)
                return (handle, knownDatabase?.type(at: handle), value)
            case .uuid(let uuid, nil, nil) where knownDatabase == nil:
                let (handle, value) = try await readByType(uuid, until: deadline, during: operation)
                return (handle, uuid, value)
            case .uuid(let uuid, _, _):
                let handle = try await resolve(characteristic, until: deadline, during: operation).valueHandle
                return (handle, uuid, try await readValue(handle, until: deadline, during: operation))
            }
        }
    }

    @inline(__always)
    func readValue(
        _ handle: AttributeHandle, until deadline: BootInstant, during operation: @autoclosure () -> String
    ) async throws(BLEError) -> [UInt8] {
        let outcome = try await run(until: deadline, during: operation()) { client, id, deadline, now in
            client.startRead(handle, id: id, deadline: deadline, at: now)
        }
        guard case .value(let value) = outcome else { throw unexpected(outcome, during: operation()) }
        return value
    }

    private func readByType(
        _ uuid: BluetoothUUID, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> (handle: AttributeHandle, value: [UInt8]) {
        let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
            let procedure = ReadByUUID(uuid, mtu: client.mtu, limit: 1)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
        }
        guard case .attributes(let attributes) = outcome, let first = attributes.first else {
            throw unexpected(outcome, during: operation)
        }
        guard attributes.count == 1 else {
            let handles = attributes.map { CharacteristicReference.handle($0.handle).description }
            throw BLEError(
                .ambiguous, subject: name, during: operation,
                because: "\(attributes.count) attributes are \(uuid): \(handles.joined(separator: ", "))",
                hint: "Name one of them by its handle, or by its index: `key.at(0)` is the first.")
        }
        guard first.mayBeCut else { return (first.handle, first.value) }
        return (first.handle, try await readValue(first.handle, until: deadline, during: operation))
    }

    /// The characteristic that `reference` means; discovers the peer when nothing is known of it yet.
    func resolve(
        _ reference: CharacteristicReference, until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> GATTCharacteristic {
        if let knownDatabase { return try knownDatabase.resolve(reference, for: operation, at: name) }
        let found = try await discovery(of: nil, level: .subscribable, until: deadline, during: operation)
        return try found.resolve(reference, for: operation, at: name)
    }

    /// An outcome of another kind than the procedure has: a mistake in this library, told as an error all the same.
    func unexpected(_ outcome: GATTOutcome, during operation: String) -> BLEError {
        BLEError(.malformedReply, subject: name, during: operation, because: "the procedure ended with \(outcome)")
    }
}
