public import BLECore
internal import BLELinux

// The discovery procedures of the specification, one by one, for callers that choose the requests and their order
// themselves. `discover()` finds the same in fewer requests. Each takes first the UUIDs, where the procedure knows
// them, then the owner (`of`) or the range of handles (`in`) to search, then a limit.

extension Peripheral {
    /// Lists the peer's primary services, or those with certain UUIDs, ordered by handle.
    ///
    /// It takes a request for every few services; with `uuids` one or two for each. The result is added to `database`,
    /// unless the peer announces a change meanwhile. A service that the peer does not have is not an error.
    ///
    /// - Parameters:
    ///   - uuids: The UUIDs; `nil` for all services.
    ///   - range: The handles to search.
    ///   - limit: The number of services with one UUID that is enough.
    ///   - timeout: The longest time for all of it, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` with `.invalidArgument` for handle 0, `.refusedByPeer`, `.insufficientSecurity`,
    ///   `.malformedReply`, `.tooLong`, `.timedOut`, `.disconnected`, `.cancelled`.
    ///
    /// Spec: Core Vol 3 Part G, 4.4.
    public func discoverServices(
        _ uuids: [BluetoothUUID]? = nil, in range: ClosedRange<AttributeHandle> = 1...0xFFFF, limit: Int? = nil,
        timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTService] {
        try await services(
            uuids, isPrimary: true, handles: range, limit,
            in: context("discover the services", within: timeout ?? Self.discoveryTimeout))
    }

    /// Lists the peer's secondary services, which are only used where another service includes them, or those with
    /// certain UUIDs, ordered by handle.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Service Definition, Core Vol 3 Part G, 3.1.
    public func discoverSecondaryServices(
        _ uuids: [BluetoothUUID]? = nil, in range: ClosedRange<AttributeHandle> = 1...0xFFFF, limit: Int? = nil,
        timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTService] {
        try await services(
            uuids, isPrimary: false, handles: range, limit,
            in: context("discover the secondary services", within: timeout ?? Self.discoveryTimeout))
    }

    /// Lists the services that a service includes.
    ///
    /// A reference to a service with a long UUID takes one more request. The result is added to `database`, unless the
    /// peer announces a change meanwhile.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Find Included Services, Core Vol 3 Part G, 4.5.1.
    public func discoverIncludedServices(
        of service: GATTService, limit: Int? = nil, timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTService.Include] {
        try await discoverIncludedServices(in: service.handles, limit: limit, timeout: timeout)
    }

    /// Lists the references to services in a range of handles.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Find Included Services, Core Vol 3 Part G, 4.5.1.
    public func discoverIncludedServices(
        in range: ClosedRange<AttributeHandle>, limit: Int? = nil, timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTService.Include] {
        let context = context("discover the included services", within: timeout ?? Self.discoveryTimeout)
        let limit = try count(limit, in: context)
        let (outcome, changes) = try await list(range, in: context) { client, id, deadline, now in
            client.start(IncludeDiscovery(in: range, limit: limit), id: id, deadline: deadline, at: now) {
                .includes($0)
            }
        }
        guard case .includes(let found) = outcome else { throw unexpected(outcome, in: context) }
        remember(since: changes) { $0.including(found) }
        return found
    }

    /// Lists the characteristics of a service, or those with certain UUIDs.
    ///
    /// All of them are requested in any case: the protocol has no request for one UUID. The result is added to
    /// `database`, unless the peer announces a change meanwhile.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Core Vol 3 Part G, 4.6.
    public func discoverCharacteristics(
        _ uuids: [BluetoothUUID]? = nil, of service: GATTService, limit: Int? = nil, timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTCharacteristic] {
        try await discoverCharacteristics(uuids, in: service.handles, limit: limit, timeout: timeout)
    }

    /// Lists the characteristics in a range of handles, or those with certain UUIDs.
    ///
    /// The last one is assumed to extend to the end of the range, which is correct if the range is a service.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Core Vol 3 Part G, 4.6.
    public func discoverCharacteristics(
        _ uuids: [BluetoothUUID]? = nil, in range: ClosedRange<AttributeHandle>, limit: Int? = nil,
        timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTCharacteristic] {
        let context = context("discover the characteristics", within: timeout ?? Self.discoveryTimeout)
        let limit = try count(limit, in: context)
        let (outcome, changes) = try await list(range, in: context) { client, id, deadline, now in
            let procedure = CharacteristicDiscovery(uuids, in: range, limit: limit)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .characteristics($0) }
        }
        guard case .characteristics(let found) = outcome else { throw unexpected(outcome, in: context) }
        remember(since: changes) { $0.including(found) }
        return found
    }

    /// Lists the descriptors of a characteristic, without a request if it has no handles left for one.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Discover All Characteristic Descriptors, Core Vol 3 Part G, 4.7.1.
    public func discoverDescriptors(
        of characteristic: GATTCharacteristic, limit: Int? = nil, timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTDescriptor] {
        guard let range = characteristic.descriptorHandles else { return [] }
        return try await discoverDescriptors(in: range, limit: limit, timeout: timeout)
    }

    /// Lists the descriptors in a range of handles, up to the first declaration in it.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `discoverServices(_:in:limit:timeout:)` does.
    ///
    /// Spec: Discover All Characteristic Descriptors, Core Vol 3 Part G, 4.7.1.
    public func discoverDescriptors(
        in range: ClosedRange<AttributeHandle>, limit: Int? = nil, timeout: Duration? = nil
    ) async throws(BLEError) -> [GATTDescriptor] {
        let context = context("discover the descriptors", within: timeout ?? Self.discoveryTimeout)
        let limit = try count(limit, in: context)
        let (outcome, changes) = try await list(range, in: context) { client, id, deadline, now in
            let procedure = DescriptorDiscovery(in: range, limit: limit)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .descriptors($0) }
        }
        guard case .descriptors(let found) = outcome else { throw unexpected(outcome, in: context) }
        remember(since: changes) { $0.including(found) }
        return found
    }

    // MARK: Inside

    private func services(
        _ uuids: [BluetoothUUID]?, isPrimary: Bool, handles range: ClosedRange<AttributeHandle>, _ limit: Int?,
        in context: CallContext
    ) async throws(BLEError) -> [GATTService] {
        guard let uuids else {
            return try await services(named: nil, isPrimary: isPrimary, handles: range, limit, in: context)
        }
        var all: [GATTService] = []
        for uuid in uuids {
            all += try await services(
                named: uuid, isPrimary: isPrimary, handles: range, limit,
                in: context.named("\(context.operation) \(uuid)"))
        }
        return all.sorted { $0.handles.lowerBound < $1.handles.lowerBound }
    }

    private func services(
        named uuid: BluetoothUUID?, isPrimary: Bool, handles range: ClosedRange<AttributeHandle>, _ limit: Int?,
        in context: CallContext
    ) async throws(BLEError) -> [GATTService] {
        let limit = try count(limit, in: context)
        let (outcome, changes) = try await list(range, in: context) { client, id, deadline, now in
            let procedure = ServiceDiscovery(uuid, isPrimary: isPrimary, in: range, limit: limit)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .services($0) }
        }
        guard case .services(let found) = outcome else { throw unexpected(outcome, in: context) }
        remember(since: changes) { $0.including(found) }
        return found
    }

    private func list(
        _ range: ClosedRange<AttributeHandle>, in context: CallContext,
        start: (inout GATTClient, OperationID, BootInstant?, BootInstant) -> [GATTClient.Action]
    ) async throws(BLEError) -> (outcome: GATTOutcome, changes: UInt64) {
        try check(handle: range.lowerBound, in: context)
        return try await recovering(context) { () async throws(BLEError) in
            let changes = peerDatabase.state.changeCount
            return (try await run(in: context, start: start), changes)
        }
    }

    /// Adds a listing to the known database, unless the peer has announced a change since there were `changes`: the
    /// listing may be older than it.
    private func remember(since changes: UInt64, _ adding: (GATTDatabase) -> GATTDatabase) {
        guard changes == peerDatabase.state.changeCount else { return }
        peerDatabase.add(adding)
    }

    func count(_ limit: Int?, in context: CallContext) throws(BLEError) -> Int {
        guard let limit else { return GATTDatabase.attributeLimit }
        guard limit > 0 else {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation, because: "the limit is \(limit)",
                hint: "Give a limit of at least 1, or none.")
        }
        return limit
    }

    /// Refuses handle 0, which no attribute can have, before a request is sent.
    func check(handle: AttributeHandle, in context: CallContext) throws(BLEError) {
        guard handle == 0 else { return }
        throw BLEError(
            .invalidArgument, subject: name, during: context.operation, because: "no attribute has the handle 0",
            hint: "Handles begin at 1.")
    }
}
