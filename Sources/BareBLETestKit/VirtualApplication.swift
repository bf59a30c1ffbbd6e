internal import BLECore

/// A `VirtualDevice` as the application of a server: its attributes, and what it does when they are read or written.
struct VirtualApplication: Sendable {
    /// A value to send back from the first characteristic with this UUID.
    struct Echo: Sendable {
        let uuid: BluetoothUUID
        let value: [UInt8]
        /// Whether what one packet has no room for follows in others. Otherwise it is cut off.
        let isDivided: Bool
    }

    var database: ServerDatabase
    /// By the handles of their values.
    private var characteristics: [AttributeHandle: VirtualCharacteristic] = [:]
    /// The handles of the values that have a plan, in their order.
    private(set) var plannedHandles: [AttributeHandle] = []

    /// Creates a device of attributes without any behavior of their own.
    init(database: ServerDatabase) {
        self.database = database
    }

    init(_ device: VirtualDevice) {
        var layout = Layout()
        for service in device.services { layout.add(service) }
        layout.resolveIncludes(device.services)
        database = ServerDatabase(attributes: layout.attributes)
        characteristics = layout.characteristics
        plannedHandles = characteristics.filter { $0.value.plan != nil }.keys.sorted()
        let digest = digest
        for attribute in layout.attributes where attribute.role == .databaseHash && attribute.value.isEmpty {
            database.setValue(digest, of: attribute.handle)
        }
    }

    func plan(of handle: AttributeHandle) -> NotifyPlan? {
        characteristics[handle]?.plan
    }

    // MARK: Decisions

    /// Returns the device's decision about an access. Values to send back are appended to `echoes`.
    mutating func decide(_ question: GATTServer.Question, _ echoes: inout [Echo]) -> GATTServer.HandlerResult {
        switch question {
        case .read(let handle, _):
            switch characteristics[handle]?.onRead {
            case .refuse(let code)?: return .rejected(code)
            case .compute(let value)?: return .value(value())
            case nil: return .value(database[handle]?.value ?? [])
            }
        case .write(let values):
            for written in values {
                if let code = refusal(of: written) { return .rejected(code, handle: written.handle) }
            }
            for written in values { accept(written, &echoes) }
            return .accepted
        case .authorize: return .accepted
        // A device keeps no signing key, so no signature is right.
        case .verify: return .rejected(.insufficientAuthentication)
        }
    }

    private func refusal(of written: GATTServer.WrittenValue) -> ATTErrorCode? {
        switch characteristics[written.handle]?.onWrite {
        case .refuse(let code)?: code
        case .call(let decide)?: decide(value(of: written))
        case .echo?, .reply?, nil: nil
        }
    }

    private mutating func accept(_ written: GATTServer.WrittenValue, _ echoes: inout [Echo]) {
        let value = value(of: written)
        switch characteristics[written.handle]?.onWrite {
        case .echo(let uuid)?: echoes.append(Echo(uuid: uuid, value: value, isDivided: true))
        case .reply(let uuid, let values)?:
            for reply in values(value) { echoes.append(Echo(uuid: uuid, value: reply, isDivided: false)) }
        case .refuse?, .call?, nil: break
        }
        // The server stores the values that it reads from the database.
        if database[written.handle]?.reading != .stored { database.setValue(value, of: written.handle) }
    }

    /// The whole value; a write may continue one that is computed.
    private func value(of written: GATTServer.WrittenValue) -> [UInt8] {
        guard written.offset > 0 else { return written.value }
        return Array((database[written.handle]?.value ?? []).prefix(written.offset)) + written.value
    }

    // MARK: Changes

    /// Becomes `other`, whose values are those of this device where nothing has changed.
    ///
    /// - Returns: The handle range of the change, in whole services of both, or `nil` if nothing changed.
    mutating func change(to other: VirtualApplication) -> ClosedRange<AttributeHandle>? {
        guard let range = changes(to: other.database) else { return nil }
        let old = database.all
        self = other
        for attribute in old where !range.contains(attribute.handle) && attribute.role != .databaseHash {
            database.setValue(attribute.value, of: attribute.handle)
        }
        return range
    }

    private func changes(to other: ServerDatabase) -> ClosedRange<AttributeHandle>? {
        let attributes = database.all + other.all
        let changed = Set(attributes.map { $0.handle }).filter { handle in
            let (old, new) = (database[handle], other[handle])
            return old?.type != new?.type || old?.declaration != new?.declaration || old?.role != new?.role
        }
        guard var lower = changed.min(), var upper = changed.max() else { return nil }
        for attribute in attributes {
            guard case .group(let end) = attribute.role, attribute.handle <= upper, end >= lower else { continue }
            lower = min(lower, attribute.handle)
            upper = max(upper, end)
        }
        return lower...upper
    }

    /// Sixteen bytes that change with the declarations. The specification's hash differs (AES-CMAC), but this digest
    /// also distinguishes two databases.
    private var digest: [UInt8] {
        var hashes: [UInt64] = [0xCBF2_9CE4_8422_2325, 0x6C62_272E_07BB_0142]
        for byte in database.hashMessage.bytes {
            for index in hashes.indices { hashes[index] = (hashes[index] ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        return hashes.flatMap { hash in (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * $0)) } }
    }
}

/// Assigns handles in order. Unlike `ServerDatabase.publish`, it lays out any device, also one that no server should
/// be: with gaps, without Generic Attribute, or with descriptors that do not belong together.
/// Attributes beyond 0xFFFF are omitted.
private struct Layout {
    var attributes: [ServerAttribute] = []
    /// By the handles of their values.
    private(set) var characteristics: [AttributeHandle: VirtualCharacteristic] = [:]
    private var ranges: [(start: AttributeHandle, end: AttributeHandle)] = []
    private var pendingIncludes: [(position: Int, service: Int)] = []
    private var next: UInt32 = 1

    mutating func add(_ service: VirtualService) {
        if let handle = service.handle, handle >= next { next = UInt32(handle) }
        let position = attributes.count
        append(service.isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration, service.uuid.attBytes)
        for included in service.includes {
            pendingIncludes.append((attributes.count, included))
            append(.includeDeclaration, [])
        }
        for characteristic in service.characteristics { add(characteristic) }
        guard attributes.count > position, let end = attributes.last?.handle else { return }
        ranges.append((attributes[position].handle, end))
        attributes[position].role = .group(end: end)
    }

    /// Resolves includes, which may refer to a later service.
    mutating func resolveIncludes(_ services: [VirtualService]) {
        for (position, index) in pendingIncludes
        where attributes.indices.contains(position) && ranges.indices.contains(index)
            && services.indices.contains(index)
        {
            let range = ranges[index]
            let uuid = services[index].uuid
            attributes[position].value =
                range.start.littleEndianBytes + range.end.littleEndianBytes + (uuid.short == nil ? [] : uuid.attBytes)
        }
    }

    private mutating func add(_ characteristic: VirtualCharacteristic) {
        let properties = characteristic.properties
        let requirement = AccessRequirement(characteristic.protection)
        guard next < 0xFFFF else { return }
        let valueHandle = AttributeHandle(truncatingIfNeeded: next + 1)
        append(
            .characteristicDeclaration,
            [properties.rawValue] + valueHandle.littleEndianBytes + characteristic.uuid.attBytes)
        characteristics[valueHandle] = characteristic
        append(characteristic.uuid, characteristic.value) { value in
            value.read = properties.contains(.read) ? requirement : nil
            value.write = requirement
            value.send = requirement
            if properties.contains(.write) { value.writeMethods.insert(.request) }
            if properties.contains(.writeWithoutResponse) { value.writeMethods.insert(.command) }
            if characteristic.onRead != nil { value.reading = .handlerForEachPart }
            value.asksToWrite = characteristic.onRead != nil || characteristic.onWrite != nil
            switch characteristic.uuid {
            case .clientSupportedFeatures: value.role = .clientFeatures
            case .databaseHash: value.role = .databaseHash
            default: break
            }
        }
        if properties.canSubscribe {
            var permitted: GATTDescriptor.ClientConfiguration = []
            if properties.contains(.notify) { permitted.insert(.notifications) }
            if properties.contains(.indicate) { permitted.insert(.indications) }
            append(.clientCharacteristicConfiguration, []) { configuration in
                configuration.role = .clientConfiguration(value: valueHandle, permitted: permitted)
                configuration.writeMethods = [.request, .command]
                configuration.write = requirement
            }
        }
        for descriptor in characteristic.descriptors { append(descriptor.uuid, descriptor.value) }
    }

    private mutating func append(
        _ type: BluetoothUUID, _ value: [UInt8], _ configure: (inout ServerAttribute) -> Void = { _ in }
    ) {
        guard next <= 0xFFFF else { return }
        var attribute = ServerAttribute(handle: AttributeHandle(truncatingIfNeeded: next), type: type, value: value)
        configure(&attribute)
        attributes.append(attribute)
        next += 1
    }
}

extension ServerAttribute {
    /// The value of a declaration, otherwise empty.
    fileprivate var declaration: [UInt8] {
        switch type {
        case .primaryServiceDeclaration, .secondaryServiceDeclaration, .includeDeclaration, .characteristicDeclaration:
            value
        default: []
        }
    }
}

extension AccessRequirement {
    fileprivate init(_ protection: VirtualProtection) {
        let level: Level = protection.isAuthenticated ? .authenticated : protection.isEncrypted ? .encrypted : .open
        self.init(level, keySize: UInt8(clamping: protection.keySize))
    }
}

extension [UInt8] {
    /// Returns the bytes in parts of at most this length, in order. An empty value is one part.
    package func parts(upTo length: Int) -> [[UInt8]] {
        guard length > 0, count > length else { return [self] }
        return stride(from: 0, to: count, by: length).map { Array(self[$0..<Swift.min($0 + length, count)]) }
    }
}

extension UInt16 {
    var littleEndianBytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)] }
}
