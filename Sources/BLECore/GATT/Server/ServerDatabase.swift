// The attributes of the local server, shared by all links.
//
// Responsibilities: assign handles, keep the values that the application leaves to it, find attributes, and report
// which handles a change affects. What a single client has written or may do belongs to its `GATTServer`.
//
// Invariants:
// - Attributes are sorted by handle. A handle is never used twice in the life of a database, not even after its service
//   was withdrawn: a client with a cache would mistake one attribute for the other.
// - The same services, published in the same order, have the same handles.
// - Generic Access and Generic Attribute come first, so that their handles are the same in every database.

/// One attribute of a `ServerDatabase`.
package struct ServerAttribute: Hashable, Sendable {
    /// The duty that the server has for an attribute beyond keeping its value.
    package enum Role: Hashable, Sendable {
        case plain
        /// The declaration of a service, with the last handle of its group.
        case group(end: AttributeHandle)
        /// The client configuration of a value, with the bits that the value's properties permit.
        /// Each client has its own.
        case clientConfiguration(value: AttributeHandle, permitted: GATTDescriptor.ClientConfiguration)
        /// Client Supported Features. Each client has its own.
        case clientFeatures
        /// Database Hash.
        case databaseHash
    }

    /// The origin of the value that a read returns.
    package enum Reading: Hashable, Sendable {
        /// The value in the database.
        case stored
        /// The application, once for all parts of a long value.
        case handler
        /// The application, for each part of a long value.
        case handlerForEachPart
    }

    /// The PDUs that may write an attribute.
    package struct WriteMethods: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Write Request, and Prepare Write Request.
        package static let request = WriteMethods(rawValue: 1)
        /// Write Command.
        package static let command = WriteMethods(rawValue: 2)
        /// Signed Write Command.
        package static let signed = WriteMethods(rawValue: 4)
    }

    package var handle: AttributeHandle
    package var type: BluetoothUUID
    /// The value; empty if the application provides it.
    package var value: [UInt8]
    package var role = Role.plain
    package var reading = Reading.stored
    /// A Boolean value that indicates whether the application decides about writes. A value that is read from the
    /// database is stored once it agrees.
    package var asksToWrite = false
    /// The PDUs that may write the attribute.
    package var writeMethods: WriteMethods = []
    /// A Boolean value that indicates whether writes must not change the length of the value.
    package var isFixedLength = false
    /// The maximum length of what clients write, in bytes.
    package var longestValue = ATTLimits.valueLength
    /// The requirement for reads; `nil` if reads are not permitted.
    package var read: AccessRequirement? = .open
    /// The requirement for writes.
    package var write = AccessRequirement.open
    /// The requirement for sending the value.
    package var send = AccessRequirement.open

    package init(handle: AttributeHandle, type: BluetoothUUID, value: [UInt8] = []) {
        self.handle = handle
        self.type = type
        self.value = value
    }

    /// The last handle of the attribute's group; its own if it has none.
    package var groupEnd: AttributeHandle {
        if case .group(let end) = role { end } else { handle }
    }
}

/// The attributes of the local server.
///
/// Spec: Core Vol 3 Part G, 2.5 and 3.
package struct ServerDatabase: Sendable {
    /// The maximum length of the Device Name, in bytes (Core Vol 3 Part C, 12.1).
    package static let longestName = 248

    /// A published service.
    package struct PublishedService: Hashable, Sendable {
        /// The handles of the service.
        package let handles: ClosedRange<AttributeHandle>
        /// The handle of the value of each characteristic, in their order.
        package let values: [AttributeHandle]
    }

    /// The reason that services were not published or withdrawn.
    package enum Failure: Error, Hashable, Sendable {
        /// There are not enough handles left.
        case noHandlesLeft
        /// The database has this service already: Generic Access or Generic Attribute.
        case reservedService(BluetoothUUID)
        /// The database adds this descriptor itself, or does not support it.
        case reservedDescriptor(BluetoothUUID)
        /// The type of a characteristic's value, or of a descriptor, is that of a declaration, or of another descriptor
        /// by which clients find their way.
        case reservedType(BluetoothUUID)
        /// A value is longer than 512 bytes.
        case valueTooLong(BluetoothUUID)
        /// A fixed value would be writable.
        case fixedValueWritable(BluetoothUUID)
        /// An included service does not exist.
        case noSuchService
        /// Another service includes the one to withdraw; its handle.
        case isIncluded(by: AttributeHandle)
    }

    private var attributes: [ServerAttribute]
    /// The next handle to assign; 0x10000 if none is left.
    private var next: UInt32
    /// The handle of the first service that the application may withdraw.
    private let firstOwn: AttributeHandle

    /// The number of attributes.
    package var count: Int { attributes.count }

    /// All attributes, by handle.
    package var all: [ServerAttribute] { attributes }

    /// The message of the Database Hash, which the owner computes and passes to `setHash` after each change.
    package private(set) var hashMessage: DatabaseHashMessage

    /// A number that changes with the declarations, by which a stored record of a client is compared after a restart.
    package private(set) var checksum: UInt32

    /// Creates a database with Generic Access and Generic Attribute.
    ///
    /// - Parameters:
    ///   - name: The Device Name, at most 248 bytes of UTF-8; the rest is left out.
    ///   - appearance: The Appearance.
    ///   - isNameWritable: Whether clients may write the name.
    ///   - hasHash: Whether there is a Database Hash. The owner must be able to compute it.
    package init(name: String, appearance: UInt16, isNameWritable: Bool = false, hasHash: Bool = true) {
        var layout = Layout(next: 1)
        let access = CharacteristicDefinition(
            0x2A00, isNameWritable ? [.read, .write] : .read,
            value: .stored(Array(Array(name.utf8).prefix(Self.longestName))))
        var number = ByteWriter(reserving: 2)
        number.u16(appearance)
        layout.add(
            ServiceDefinition(0x1800, [access, CharacteristicDefinition(0x2A01, .read, value: .stored(number.bytes))]),
            includes: [])
        var features = ServiceDefinition(
            0x1801,
            [
                CharacteristicDefinition(0x2A05, .indicate, value: .handled),
                CharacteristicDefinition(0x2B29, [.read, .write], value: .stored([0])),
            ])
        if hasHash { features.characteristics.append(CharacteristicDefinition(0x2B2A, .read, value: .stored([]))) }
        layout.add(features, includes: [])
        for index in layout.attributes.indices {
            switch layout.attributes[index].type {
            case 0x2A00: layout.attributes[index].longestValue = Self.longestName
            case .clientSupportedFeatures: layout.attributes[index].role = .clientFeatures
            case .databaseHash: layout.attributes[index].role = .databaseHash
            default: break
            }
        }
        self.init(layout.attributes, next: layout.next)
    }

    /// Creates a database of these attributes; the later one of two with the same handle is left out, and handle 0.
    package init(attributes: [ServerAttribute]) {
        var kept: [ServerAttribute] = []
        kept.reserveCapacity(attributes.count)
        for attribute in attributes.sorted(by: { $0.handle < $1.handle })
        where attribute.handle > kept.last?.handle ?? 0 {
            kept.append(attribute)
        }
        self.init(kept, next: UInt32(kept.last?.handle ?? 0) + 1)
    }

    private init(_ attributes: [ServerAttribute], next: UInt32) {
        self.attributes = attributes
        self.next = next
        firstOwn = AttributeHandle(truncatingIfNeeded: min(next, 0xFFFF))
        hashMessage = DatabaseHashMessage(attributes)
        checksum = CRC32.checksum(hashMessage.bytes)
    }

    // MARK: Lookup

    /// Returns the attribute at `handle`.
    package subscript(handle: AttributeHandle) -> ServerAttribute? {
        position(of: handle).map { attributes[$0] }
    }

    /// Returns the attributes from `first` through `last`.
    package func attributes(
        from first: AttributeHandle, through last: AttributeHandle
    ) -> ArraySlice<ServerAttribute> {
        let start = attributes.firstSortedIndex { $0.handle >= first }
        let end = attributes.firstSortedIndex { $0.handle > last }
        return attributes[start..<max(start, end)]
    }

    /// Returns the client configuration of the value at `handle`.
    package func configuration(of handle: AttributeHandle) -> ServerAttribute? {
        for attribute in attributes(from: handle, through: .max).dropFirst() {
            switch attribute.type {
            case .primaryServiceDeclaration, .secondaryServiceDeclaration, .characteristicDeclaration: return nil
            default:
                if case .clientConfiguration(handle, _) = attribute.role { return attribute }
            }
        }
        return nil
    }

    /// Returns the handle of the first value with this UUID.
    package func handle(of uuid: BluetoothUUID) -> AttributeHandle? {
        attributes.first { $0.type == uuid }?.handle
    }

    private func position(of handle: AttributeHandle) -> Int? {
        let position = attributes.firstSortedIndex { $0.handle >= handle }
        guard position < attributes.count, attributes[position].handle == handle else { return nil }
        return position
    }

    /// The services and their handles, to be compared by a later run of the program.
    package var outline: ServerOutline {
        var services: [ServerOutline.Service] = []
        for attribute in attributes {
            guard case .group(let end) = attribute.role, end >= attribute.handle,
                attribute.handle > services.last?.handles.upperBound ?? 0
            else { continue }
            let declarations = DatabaseHashMessage(Array(self.attributes(from: attribute.handle, through: end)))
            services.append(
                ServerOutline.Service(
                    handles: attribute.handle...end, checksum: CRC32.checksum(declarations.bytes)))
        }
        return ServerOutline(services: services)
    }

    // MARK: Values

    /// Replaces the value at `handle`, as the application may do at any time. Values beyond 512 bytes are cut.
    package mutating func setValue(_ value: [UInt8], of handle: AttributeHandle) {
        guard let position = position(of: handle) else { return }
        // A value that fits is not copied.
        attributes[position].value =
            value.count > ATTLimits.valueLength ? Array(value.prefix(ATTLimits.valueLength)) : value
    }

    /// Sets the Database Hash: 16 bytes, in the order in which they are sent. Until then, reads of it fail.
    package mutating func setHash(_ hash: [UInt8]) {
        for index in attributes.indices where attributes[index].role == .databaseHash {
            attributes[index].value = hash.count == 16 ? hash : []
        }
    }

    // MARK: Services

    /// Publishes services after all others, all of them or none.
    ///
    /// - Returns: The services in their order, and the handles that are affected.
    package mutating func publish(
        _ services: [ServiceDefinition]
    ) throws(Failure) -> (services: [PublishedService], affected: ClosedRange<AttributeHandle>?) {
        for service in services { try Self.check(service) }
        var layout = Layout(next: next)
        // The groups are known only after all have been laid out, and an include may refer to a later one.
        for service in services { layout.add(service, includes: service.includes.map { _ in [0, 0, 0, 0, 0, 0] }) }
        guard layout.next <= 0x1_0000 else { throw .noHandlesLeft }
        for (service, published) in zip(services, layout.published) {
            for (offset, include) in service.includes.enumerated() {
                let value = try declaration(of: include, among: layout.published, services)
                layout.setValue(value, at: UInt32(published.handles.lowerBound) + 1 + UInt32(offset))
            }
        }
        attributes += layout.attributes
        next = layout.next
        structureChanged()
        guard let first = layout.published.first, let last = layout.published.last else { return ([], nil) }
        return (layout.published, first.handles.lowerBound...last.handles.upperBound)
    }

    /// Withdraws the service whose declaration is at `handle`.
    ///
    /// - Returns: The handles that are affected.
    package mutating func withdraw(_ handle: AttributeHandle) throws(Failure) -> ClosedRange<AttributeHandle> {
        guard handle >= firstOwn, let service = self[handle], case .group(let end) = service.role, end >= handle else {
            throw .noSuchService
        }
        let handles = handle...end
        var current = handle
        for attribute in attributes {
            if case .group = attribute.role { current = attribute.handle }
            guard attribute.type == .includeDeclaration, !handles.contains(attribute.handle) else { continue }
            var reader = ByteReader(attribute.value.span)
            if reader.u16() == handle { throw .isIncluded(by: current) }
        }
        attributes.removeAll { handles.contains($0.handle) }
        structureChanged()
        return handles
    }

    private mutating func structureChanged() {
        setHash([])
        hashMessage = DatabaseHashMessage(attributes)
        checksum = CRC32.checksum(hashMessage.bytes)
    }

    private func declaration(
        of include: ServiceDefinition.Include, among published: [PublishedService], _ services: [ServiceDefinition]
    ) throws(Failure) -> [UInt8] {
        var writer = ByteWriter(reserving: 6)
        switch include {
        case .published(let handle):
            guard let service = self[handle], case .group(let end) = service.role else { throw .noSuchService }
            writer.u16(handle)
            writer.u16(end)
            if service.value.count == 2 { writer.array(service.value) }
        case .position(let position):
            guard published.indices.contains(position), services.indices.contains(position) else {
                throw .noSuchService
            }
            writer.u16(published[position].handles.lowerBound)
            writer.u16(published[position].handles.upperBound)
            if let short = services[position].uuid.short { writer.u16(short) }
        }
        return writer.bytes
    }

    private static func check(_ service: ServiceDefinition) throws(Failure) {
        if service.uuid == 0x1800 || service.uuid == 0x1801 { throw .reservedService(service.uuid) }
        for characteristic in service.characteristics {
            switch characteristic.uuid {
            case 0x2800, 0x2801, 0x2802, 0x2803, 0x2900, 0x2901, 0x2902, 0x2903, 0x2904, 0x2905:
                throw .reservedType(characteristic.uuid)
            default: break
            }
            try check(
                characteristic.value, of: characteristic.uuid,
                isWritable: !characteristic.properties.isDisjoint(
                    with: [.write, .writeWithoutResponse, .authenticatedSignedWrites]))
            for descriptor in characteristic.descriptors {
                switch descriptor.uuid {
                case 0x2900, 0x2902, 0x2903: throw .reservedDescriptor(descriptor.uuid)
                case 0x2800, 0x2801, 0x2802, 0x2803: throw .reservedType(descriptor.uuid)
                default: try check(descriptor.value, of: descriptor.uuid, isWritable: descriptor.isWritable)
                }
            }
        }
    }

    private static func check(
        _ value: DefinedValue, of uuid: BluetoothUUID, isWritable: Bool
    ) throws(Failure) {
        switch value {
        case .fixed(let bytes):
            if isWritable { throw .fixedValueWritable(uuid) }
            if bytes.count > ATTLimits.valueLength { throw .valueTooLong(uuid) }
        case .stored(let bytes, _):
            if bytes.count > ATTLimits.valueLength { throw .valueTooLong(uuid) }
        case .handled, .handledInParts: break
        }
    }
}

/// Assigns handles to services, in order. Past the last handle it only counts.
private struct Layout {
    var attributes: [ServerAttribute] = []
    var published: [ServerDatabase.PublishedService] = []
    private(set) var next: UInt32

    init(next: UInt32) {
        self.next = next
    }

    mutating func add(_ service: ServiceDefinition, includes: [[UInt8]]) {
        let start = next
        let position = attributes.count
        append(service.isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration, service.uuid.attBytes)
        for include in includes { append(.includeDeclaration, include) }
        var values: [AttributeHandle] = []
        for characteristic in service.characteristics { values.append(add(characteristic)) }
        guard position < attributes.count, next <= 0x1_0000 else { return }
        let end = AttributeHandle(truncatingIfNeeded: next - 1)
        attributes[position].role = .group(end: end)
        published.append(
            ServerDatabase.PublishedService(
                handles: AttributeHandle(truncatingIfNeeded: start)...end, values: values))
    }

    mutating func setValue(_ value: [UInt8], at handle: UInt32) {
        for index in attributes.indices where UInt32(attributes[index].handle) == handle {
            attributes[index].value = value
        }
    }

    private mutating func add(_ characteristic: CharacteristicDefinition) -> AttributeHandle {
        var properties = characteristic.properties
        if characteristic.extendedProperties.rawValue != 0 { properties.insert(.extendedProperties) }
        let value = AttributeHandle(truncatingIfNeeded: next + 1)
        var declaration = ByteWriter(reserving: 19)
        declaration.u8(properties.rawValue)
        declaration.u16(value)
        declaration.array(characteristic.uuid.attBytes)
        append(.characteristicDeclaration, declaration.bytes)
        append(characteristic.uuid, []) { attribute in
            attribute.take(characteristic.value)
            attribute.read = properties.contains(.read) ? characteristic.access.read : nil
            attribute.write = characteristic.access.write
            attribute.send = characteristic.access.subscribe
            if properties.contains(.write) { attribute.writeMethods.insert(.request) }
            if properties.contains(.writeWithoutResponse) { attribute.writeMethods.insert(.command) }
            if properties.contains(.authenticatedSignedWrites) { attribute.writeMethods.insert(.signed) }
        }
        if properties.canSubscribe {
            var permitted: GATTDescriptor.ClientConfiguration = []
            if properties.contains(.notify) { permitted.insert(.notifications) }
            if properties.contains(.indicate) { permitted.insert(.indications) }
            append(.clientCharacteristicConfiguration, []) { attribute in
                attribute.role = .clientConfiguration(value: value, permitted: permitted)
                attribute.writeMethods = [.request, .command]
                attribute.write = characteristic.access.subscribe
            }
        }
        if properties.contains(.extendedProperties) {
            var value = ByteWriter(reserving: 2)
            value.u16(characteristic.extendedProperties.rawValue)
            append(0x2900, value.bytes)
        }
        for descriptor in characteristic.descriptors {
            append(descriptor.uuid, []) { attribute in
                attribute.take(descriptor.value)
                attribute.read = descriptor.access.read
                attribute.write = descriptor.access.write
                if descriptor.isWritable { attribute.writeMethods = .request }
            }
        }
        return value
    }

    private mutating func append(
        _ type: BluetoothUUID, _ value: [UInt8], _ configure: (inout ServerAttribute) -> Void = { _ in }
    ) {
        defer { next += 1 }
        guard next <= 0xFFFF else { return }
        var attribute = ServerAttribute(handle: AttributeHandle(truncatingIfNeeded: next), type: type, value: value)
        configure(&attribute)
        attributes.append(attribute)
    }
}

extension ServerAttribute {
    fileprivate mutating func take(_ value: DefinedValue) {
        switch value {
        case .fixed(let bytes): self.value = bytes
        case .stored(let bytes, let isFixedLength):
            self.value = bytes
            self.isFixedLength = isFixedLength
        case .handled:
            reading = .handler
            asksToWrite = true
        case .handledInParts:
            reading = .handlerForEachPart
            asksToWrite = true
        }
    }
}

extension DatabaseHashMessage {
    /// Creates the message of a server's own attributes, sorted by handle.
    fileprivate init(_ attributes: [ServerAttribute]) {
        var writer = ByteWriter(reserving: 24 * attributes.count)
        for attribute in attributes {
            let value: [UInt8]
            switch attribute.type {
            case .primaryServiceDeclaration, .secondaryServiceDeclaration, .includeDeclaration,
                .characteristicDeclaration, 0x2900:
                value = attribute.value
            case 0x2901, 0x2902, 0x2903, 0x2904, 0x2905: value = []
            default: continue
            }
            writer.u16(attribute.handle)
            writer.array(attribute.type.attBytes)
            writer.array(value)
        }
        bytes = writer.bytes
    }
}
