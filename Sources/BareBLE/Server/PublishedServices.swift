internal import BLECore
internal import Logging

// The services that a local peripheral offers: the database that all its links share, and the handlers of the values
// that the application provides. What is wrong with a handler is logged here.
//
// Invariants
// - A handler belongs to an attribute of the database, and goes with its service.
// - The Database Hash in the database is that of its present structure, wherever there is a means to compute it.
// - Only the event loop's thread uses it.

/// The database of a local peripheral, and its handlers.
// Unchecked: only the loop's thread uses it.
final class PublishedServices: @unchecked Sendable {
    /// What an attribute with handlers belongs to.
    private struct Handlers {
        let service: PublishedService.ID
        let characteristic: PublishedCharacteristic
        let read: LocalValue.ReadHandler?
        let write: LocalValue.WriteHandler?
        let batch: LocalService.BatchHandler?
    }

    /// A value that a central writes, and who takes it.
    private struct HandledWrite {
        let handle: AttributeHandle
        let handlers: Handlers
        let request: LocalValue.WriteRequest
    }

    private(set) var database: ServerDatabase
    private let computeHash: (@Sendable (DatabaseHashMessage) -> [UInt8])?
    private(set) var services: [PublishedService] = []
    /// The Device Name, which is there in any case, and is the only stored value of the library that centrals may
    /// write.
    let deviceName: PublishedCharacteristic
    private var handlers: [AttributeHandle: Handlers] = [:]

    init(
        name: String, appearance: UInt16, isNameWritable: Bool,
        computingHashBy computeHash: (@Sendable (DatabaseHashMessage) -> [UInt8])?
    ) {
        self.computeHash = computeHash
        let database = ServerDatabase(
            name: name, appearance: appearance, isNameWritable: isNameWritable, hasHash: computeHash != nil)
        self.database = database
        deviceName = PublishedCharacteristic(
            id: database.handle(of: 0x2A00) ?? 0, uuid: 0x2A00, service: 0x1800,
            properties: isNameWritable ? [.read, .write] : .read)
        updateHash()
    }

    /// Publishes a service.
    ///
    /// - Returns: The service, and the handles that are affected.
    func publish(
        _ service: LocalService
    ) throws(ServerDatabase.Failure) -> (service: PublishedService, affected: ClosedRange<AttributeHandle>?) {
        let (published, affected) = try database.publish([service.definition])
        guard let place = published.first else { throw .noHandlesLeft }
        let characteristics = zip(service.characteristics, place.values).map { characteristic, handle in
            PublishedCharacteristic(
                id: handle, uuid: characteristic.uuid, service: service.uuid,
                properties: characteristic.properties)
        }
        for (index, (local, characteristic)) in zip(service.characteristics, characteristics).enumerated() {
            add(local.value, at: characteristic.id, of: characteristic, service, at: place.handles.lowerBound)
            // The declaration of the next one comes before its value; the descriptors of the application come last.
            let next = index + 1 < characteristics.count ? characteristics[index + 1].id - 2 : place.handles.upperBound
            for (position, descriptor) in local.descriptors.enumerated() {
                let handle = Int(next) - local.descriptors.count + 1 + position
                add(
                    descriptor.value, at: AttributeHandle(truncatingIfNeeded: handle), of: characteristic, service,
                    at: place.handles.lowerBound)
            }
        }
        let result = PublishedService(
            id: place.handles.lowerBound, uuid: service.uuid, handles: place.handles, characteristics: characteristics)
        services.append(result)
        updateHash()
        return (result, affected)
    }

    private func add(
        _ value: LocalValue, at handle: AttributeHandle, of characteristic: PublishedCharacteristic,
        _ service: LocalService, at declaration: PublishedService.ID
    ) {
        guard case .handled(let read, let write, _) = value.content else { return }
        // A request of a descriptor names its characteristic: together they would be taken for writes of the same
        // value.
        let batch = handle == characteristic.id ? service.batchHandler : nil
        handlers[handle] = Handlers(
            service: declaration, characteristic: characteristic, read: read, write: write, batch: batch)
    }

    /// Withdraws a service.
    ///
    /// - Returns: The handles that are affected.
    func withdraw(_ id: PublishedService.ID) throws(ServerDatabase.Failure) -> ClosedRange<AttributeHandle> {
        let affected = try database.withdraw(id)
        services.removeAll { $0.id == id }
        handlers = handlers.filter { !affected.contains($0.key) }
        updateHash()
        return affected
    }

    private func updateHash() {
        if let computeHash { database.setHash(computeHash(database.hashMessage)) }
    }

    // MARK: Lookup

    /// The published characteristic whose value has a handle, or the Device Name.
    func characteristic(at handle: AttributeHandle) -> PublishedCharacteristic? {
        for service in services where service.handles.contains(handle) {
            return service.characteristics.last { $0.id <= handle }
        }
        return handle == deviceName.id ? deviceName : nil
    }

    /// Returns the one characteristic that `reference` selects.
    ///
    /// - Parameter isNameIncluded: Whether the Device Name is one of them.
    /// - Throws: `BLEError` with `.attributeNotFound` or `.ambiguous`.
    func resolve(
        _ reference: CharacteristicReference, during operation: String, isNameIncluded: Bool = false
    ) throws(BLEError) -> PublishedCharacteristic {
        let matches: [PublishedCharacteristic]
        let all = (isNameIncluded ? [deviceName] : []) + services.flatMap(\.characteristics)
        switch reference {
        case .handle(let handle): matches = all.filter { $0.id == handle }
        case .characteristic(let found): matches = all.filter { $0.id == found.valueHandle && $0.uuid == found.uuid }
        case .uuid(let uuid, let service, let index):
            let named = all.filter { $0.uuid == uuid && (service == nil || $0.service == service) }
            if let index {
                matches = named.indices.contains(index) ? [named[index]] : []
            } else {
                matches = named
            }
        }
        if matches.count > 1 {
            let handles = matches.map { CharacteristicReference.handle($0.id).description }
            throw BLEError(
                .ambiguous, during: operation,
                because: "\(matches.count) published characteristics are \(reference): "
                    + handles.joined(separator: ", "),
                hint: "Name one of them by its handle, or by its service and index.")
        }
        guard let match = matches.first else {
            throw BLEError(
                .attributeNotFound, during: operation, because: "no published characteristic is \(reference)",
                hint: "Publish its service first.")
        }
        return match
    }

    // MARK: Stored values

    /// Returns the handle of the published characteristic that a value is for.
    ///
    /// - Throws: `BLEError` with `.attributeNotFound` or `.ambiguous`;
    ///   `.tooLong` for a value that no attribute can have.
    func handle(
        of reference: CharacteristicReference, for value: [UInt8], during operation: String
    ) throws(BLEError) -> AttributeHandle {
        let found = try resolve(reference, during: operation)
        guard value.count > ATTLimits.valueLength else { return found.id }
        throw BLEError(
            .tooLong, during: operation,
            because: "the value has \(value.count) bytes, and an attribute \(ATTLimits.valueLength) at most")
    }

    /// Has a link serve its client, which may change stored values.
    func serve<Result>(_ body: (inout ServerDatabase) -> Result) -> Result { body(&database) }

    /// Replaces the stored value of an attribute, if it has one.
    func set(_ value: [UInt8], at handle: AttributeHandle) { database.setValue(value, of: handle) }

    // MARK: Handlers

    /// Asks the application.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - central: The central whose request it is.
    ///   - authorize: Decides about accesses that require authorization.
    ///   - log: The log of the central's link.
    func perform(
        _ question: GATTServer.Question, from central: ConnectedCentral,
        authorize: LocalPeripheral.Settings.Authorization?, log: LinkLog
    ) async -> GATTServer.HandlerResult {
        switch question {
        case .read(let handle, let offset):
            guard let read = handlers[handle]?.read else { return .rejected(.readNotPermitted, handle: handle) }
            return await result(handle, log) {
                let value = try await read(LocalValue.ReadRequest(central: central, offset: offset))
                if value.count > ATTLimits.valueLength {
                    report("has returned more than \(ATTLimits.valueLength) bytes", handle, log)
                }
                return .value(value)
            }
        case .write(let values):
            return await write(values, from: central, log)
        case .authorize(let handle, let isWrite):
            guard let authorize, let characteristic = characteristic(at: handle) else {
                return .rejected(.insufficientAuthorization, handle: handle)
            }
            let isSubscription = if case .clientConfiguration? = database[handle]?.role { isWrite } else { false }
            let request = LocalPeripheral.AuthorizationRequest(
                central: central, characteristic: characteristic, isWrite: isWrite, isSubscription: isSubscription)
            return await authorize(request) ? .accepted : .rejected(.insufficientAuthorization, handle: handle)
        case .verify:
            // The owner of the bonds verifies signatures.
            return .rejected(.insufficientAuthentication)
        }
    }

    private func write(
        _ values: [GATTServer.WrittenValue], from central: ConnectedCentral, _ log: LinkLog
    ) async -> GATTServer.HandlerResult {
        // Those that one handler takes together, in the order of their first values.
        var groups: [[HandledWrite]] = []
        for value in values {
            guard let found = handlers[value.handle], found.write != nil || found.batch != nil else {
                return .rejected(.writeNotPermitted, handle: value.handle)
            }
            let request = LocalValue.WriteRequest(
                central: central, characteristic: found.characteristic, offset: value.offset, value: value.value,
                isCommand: value.isCommand)
            let one = HandledWrite(handle: value.handle, handlers: found, request: request)
            // Several services may have the same UUID.
            let index = groups.firstIndex { group in
                guard let first = group.first?.handlers else { return false }
                return first.batch != nil && found.batch != nil && first.service == found.service
            }
            if let index { groups[index].append(one) } else { groups.append([one]) }
        }
        for group in groups {
            guard let first = group.first else { continue }
            let end = await result(first.handle, log) {
                if group.count == 1, let write = first.handlers.write {
                    try await write(first.request)
                } else {
                    try await first.handlers.batch?(group.map { $0.request })
                }
                return .accepted
            }
            guard case .accepted = end else { return end }
        }
        return .accepted
    }

    private func result(
        _ handle: AttributeHandle, _ log: LinkLog, _ body: () async throws -> GATTServer.HandlerResult
    ) async -> GATTServer.HandlerResult {
        do {
            return try await body()
        } catch let refusal as ATTRefusal {
            return .rejected(refusal.code, handle: handle)
        } catch {
            // One that is cancelled took too long, which was logged, or its link has ended.
            if !Task.isCancelled { report("has failed", handle, log, ["error": "\(error)"]) }
            return .rejected(.unlikelyError, handle: handle)
        }
    }

    /// Logs that the handler of an attribute has returned no result in time.
    func handlerIsOverdue(_ handle: AttributeHandle, _ log: LinkLog) {
        report("has not returned in time", handle, log)
    }

    private func report(
        _ problem: String, _ handle: AttributeHandle, _ log: LinkLog, _ details: Logger.Metadata = [:]
    ) {
        let uuid = characteristic(at: handle).map { "\($0.uuid)" } ?? "an attribute"
        let place: Logger.Metadata = ["handle": "\(CharacteristicReference.handle(handle))"]
        log.report(.warning, "the handler of \(uuid) \(problem)", place.merging(details) { $1 })
    }
}

// MARK: - Declarations

extension LocalService {
    /// What the database needs of it.
    fileprivate var definition: ServiceDefinition {
        ServiceDefinition(
            uuid, isPrimary: isPrimary, includes: includes.map { .published($0.id) }, characteristics.map(\.definition))
    }
}

extension LocalCharacteristic {
    fileprivate var definition: CharacteristicDefinition {
        CharacteristicDefinition(
            uuid, properties, extendedProperties: extendedProperties, value: value.definition, access: access,
            descriptors: descriptors.map(\.definition))
    }
}

extension LocalDescriptor {
    fileprivate var definition: DescriptorDefinition {
        DescriptorDefinition(uuid, value: value.definition, isWritable: isWritable, access: access)
    }
}

extension LocalValue {
    fileprivate var definition: DefinedValue {
        switch content {
        case .fixed(let bytes): .fixed(bytes)
        case .stored(let bytes, let isFixedLength): .stored(bytes, isFixedLength: isFixedLength)
        case .handled(_, _, let isReadInParts): isReadInParts ? .handledInParts : .handled
        }
    }
}
