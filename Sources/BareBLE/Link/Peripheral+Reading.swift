internal import BLECore

extension Peripheral {
    /// The longest time for reading or writing one value; the protocol limits each single request to 30 s.
    static let valueTimeout: Duration = .seconds(60)

    /// Reads a value to its end, however long it is (at most 512 bytes).
    ///
    /// By handle it takes one request, and one more for each further `mtu - 1` bytes. By UUID it takes the same if the
    /// handle is known; if nothing has been discovered, the value is requested by its type, which takes one request as
    /// well. The first of several values is then read if the response contains it alone, as it does if their lengths
    /// differ; `readAll(_:in:limit:timeout:)` returns all. A descriptor is read by its handle.
    ///
    /// ATT responses have no number. A peer that sends one twice is detected, and `ATTStatistics.duplicatedResponses`
    /// counts it; a copy that is still on its way when the next read is sent cannot be distinguished from the response
    /// to that.
    ///
    /// - Parameters:
    ///   - characteristic: The value to read.
    ///   - timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` with `.refusedByPeer` or `.insufficientSecurity` and the peer's `attError`, `.ambiguous`,
    ///   `.attributeNotFound`, `.tooLong` with the part that was read, `.timedOut`, `.disconnected`, `.cancelled`.
    public func read(
        _ characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        if case .handle(let handle) = characteristic {
            let context = context(
                .read(characteristic), within: timeout ?? Self.valueTimeout, retrying: .sameHandle(handle))
            return try await recovering(context) { () async throws(BLEError) in
                try await readValue(handle, in: context)
            }
        }
        return try await readAttribute(characteristic, timeout: timeout).value
    }

    /// Reads a value from an offset to its end.
    ///
    /// - Parameters:
    ///   - characteristic: The value to read.
    ///   - offset: The number of bytes to skip, 0 to 512.
    ///   - timeout: The longest time; `nil` for 60 s.
    /// - Throws: `BLEError` as `read(_:timeout:)` does; `.invalidArgument` for an offset that no value has, and
    ///   `.refusedByPeer` with `attError` 0x07 for one past the end of this value.
    ///
    /// Spec: Read Long Characteristic Values, Core Vol 3 Part G, 4.8.3.
    public func read(
        _ characteristic: CharacteristicReference, from offset: Int, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let context = context(
            "read \(characteristic) from byte \(offset)", within: timeout ?? Self.valueTimeout,
            retrying: RetryRule(reading: characteristic))
        let start = try checked(offset, in: context)
        return try await recovering(context) { () async throws(BLEError) in
            let handle = try await valueHandle(characteristic, in: context)
            let outcome = try await run(in: context) { client, id, deadline, now in
                let procedure = ReadLong(handle: handle, from: start, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .value($0) }
            }
            guard case .value(let value) = outcome else { throw unexpected(outcome, in: context) }
            return value
        }
    }

    /// Refuses an offset that no value has.
    func checked(_ offset: Int, in context: CallContext) throws(BLEError) -> UInt16 {
        guard (0...ATTLimits.valueLength).contains(offset) else {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation, because: "the offset is \(offset)",
                hint: "A value has at most 512 bytes.")
        }
        return UInt16(truncatingIfNeeded: offset)
    }

    /// Returns the handle of the value that `reference` means.
    func valueHandle(
        _ reference: CharacteristicReference, in context: CallContext
    ) async throws(BLEError) -> AttributeHandle {
        if case .handle(let handle) = reference { return handle }
        return try await resolve(reference, in: context).valueHandle
    }

    /// Reads a value, and returns it with its handle and its type, as far as they are known.
    package func readAttribute(
        _ characteristic: CharacteristicReference, timeout: Duration? = nil
    ) async throws(BLEError) -> (handle: AttributeHandle, uuid: BluetoothUUID?, value: [UInt8]) {
        let context = context(
            .read(characteristic), within: timeout ?? Self.valueTimeout,
            retrying: RetryRule(reading: characteristic))
        return try await recovering(context) { () async throws(BLEError) in
            switch characteristic {
            case .handle(let handle):
                let value = try await readValue(handle, in: context)
                return (handle, peerDatabase.state.database?.type(at: handle), value)
            case .uuid(let uuid, nil, nil)
            where !peerDatabase.state.coverage.includesAll(to: .structure):
                if let found = peerDatabase.state.known(uuid, soFar: true) {
                    let changes = peerDatabase.state.changeCount
                    let value = try await readValue(found.valueHandle, in: context)
                    if peerDatabase.state.confirms(found, since: changes) {
                        return (found.valueHandle, found.uuid, value)
                    }
                    // Its type needs no handle that may be wrong.
                }
                let (handle, value) = try await readByType(uuid, in: context)
                return (handle, uuid, value)
            case .uuid, .characteristic:
                while true {
                    let found: GATTCharacteristic
                    if case .uuid(let uuid, let service, let index) = characteristic,
                        let known = peerDatabase.state.known(uuid, in: service, index: index)
                    {
                        found = known
                    } else {
                        found = try await resolve(characteristic, in: context)
                    }
                    let changes = peerDatabase.state.changeCount
                    let value = try await readValue(found.valueHandle, in: context)
                    // During the call the peer may have announced that the handle now belongs to another
                    // characteristic, or a pairing may have dropped the cache that the handle is from.
                    if peerDatabase.state.confirms(found, since: changes) {
                        return (found.valueHandle, found.uuid, value)
                    }
                }
            }
        }
    }

    /// Returns the type of the attribute at a handle, which costs one request where it is not known.
    package func attributeType(
        at handle: AttributeHandle, timeout: Duration? = nil
    ) async throws(BLEError) -> BluetoothUUID {
        if let known = peerDatabase.state.database?.type(at: handle) { return known }
        let context = context(
            .read(.handle(handle)), within: timeout ?? Self.valueTimeout,
            retrying: RetryRule(reading: .handle(handle)))
        return try await recovering(context) { () async throws(BLEError) in
            try await lookUpType(at: handle, in: context)
        }
    }

    /// Requests the type of the attribute at a handle.
    func lookUpType(at handle: AttributeHandle, in context: CallContext) async throws(BLEError) -> BluetoothUUID {
        let outcome = try await run(in: context) { client, id, deadline, now in
            client.start(AttributeTypeLookup(handle), id: id, deadline: deadline, at: now) { type in
                .descriptors([GATTDescriptor(handle: handle, uuid: type)])
            }
        }
        guard case .descriptors(let found) = outcome, let attribute = found.first else {
            throw unexpected(outcome, in: context)
        }
        return attribute.uuid
    }

    @inline(__always)
    func readValue(
        _ handle: AttributeHandle, in context: CallContext
    ) async throws(BLEError) -> [UInt8] {
        let outcome = try await runInlined(in: context) { client, id, deadline, now in
            client.startRead(handle, id: id, deadline: deadline, at: now)
        }
        guard case .value(let value) = outcome else { throw unexpected(outcome, in: context) }
        return value
    }

    private func readByType(
        _ uuid: BluetoothUUID, in context: CallContext
    ) async throws(BLEError) -> (handle: AttributeHandle, value: [UInt8]) {
        let outcome = try await run(in: context) { client, id, deadline, now in
            let procedure = ReadByUUID(uuid, mtu: client.mtu, limit: 1)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
        }
        guard case .attributes(let attributes) = outcome, let first = attributes.first else {
            throw unexpected(outcome, in: context)
        }
        guard attributes.count == 1 else {
            let handles = attributes.map { CharacteristicReference.handle($0.handle).description }
            throw BLEError(
                .ambiguous, subject: name, during: context.operation,
                because: "\(attributes.count) attributes are \(uuid): \(handles.joined(separator: ", "))",
                hint: "Name one of them by its handle, or by its service and index.")
        }
        guard first.mayBeCut else { return (first.handle, first.value) }
        return (first.handle, try await readValue(first.handle, in: context))
    }

    /// Returns the error for an outcome that does not match the procedure, which is a bug in this library.
    func unexpected(_ outcome: GATTOutcome, in context: CallContext) -> BLEError {
        BLEError(
            .malformedReply, subject: name, during: context.operation, because: "the procedure ended with \(outcome)")
    }
}
