/// The layout of a cache. Numbers are little-endian:
///
///     "BLEC" 4 | version 1 | payload length 4 | payload | CRC-32 of everything before 4
///
/// The payload, where a UUID is its length 1 (2 or 16) and its bytes:
///
///     hash length 1 (0 or 16), hash
///     coverage 1 (0 to 2: all services to that level; 255: these, count 2, each UUID, level 1)
///     services 2, each: first 2, last 2, primary 1, UUID,
///         includes 2, each: handle 2, first 2, last 2, UUID or length 0
///     characteristics 2, each: declaration 2, value 2, end 2, properties 1, UUID
///     descriptors 2, each: handle 2, inferred 1, UUID
///     quirks 2, each: kind 1, handle 2
private enum Layout {
    static let form = FileEnvelope(
        "GATT cache", signature: [0x42, 0x4C, 0x45, 0x43], version: 1, limit: GATTCache.byteLimit)
    static let someServices: UInt8 = 255
}

extension GATTCache {
    /// The encoded form for storage.
    public var bytes: [UInt8] {
        var payload = ByteWriter(reserving: 32 * database.attributeCount)
        write(to: &payload)
        return Layout.form.enclose(payload.bytes)
    }

    /// Returns a Boolean value that indicates whether `bytes` begin like the stored form, intact or not.
    package static func isEnvelope(_ bytes: [UInt8]) -> Bool {
        Layout.form.isBeginning(of: bytes)
    }

    /// Decodes the stored form.
    ///
    /// - Throws: `MalformedPacket` with the position and the field: the signature, the length, the checksum, the
    ///   version, or the first invalid field after a valid checksum.
    public init(bytes: [UInt8]) throws(MalformedPacket) {
        let end = try Layout.form.check(bytes)
        var reader = ByteReader(bytes.span)
        _ = reader.skip(FileEnvelope.headerLength)
        try self.init(reading: &reader, until: end)
    }

    private func write(to writer: inout ByteWriter) {
        let hash = databaseHash.flatMap { $0.count == Self.hashLength ? $0 : nil } ?? []
        writer.u8(UInt8(truncatingIfNeeded: hash.count))
        writer.array(hash)
        switch coverage {
        case .whole(let level):
            writer.u8(level.depth)
        case .services(let levels):
            writer.u8(Layout.someServices)
            writer.count(levels.count)
            // Sorted by their bytes, so that equal caches have equal bytes.
            for (uuid, level) in levels.sorted(by: { ($0.key.high, $0.key.low) < ($1.key.high, $1.key.low) }) {
                writer.storedUUID(uuid)
                writer.u8(level.depth)
            }
        }
        writer.count(database.services.count)
        for service in database.services { service.write(to: &writer) }
        writer.count(database.characteristics.count)
        for characteristic in database.characteristics { characteristic.write(to: &writer) }
        writer.count(database.descriptors.count)
        for descriptor in database.descriptors {
            writer.u16(descriptor.handle)
            writer.u8(descriptor.isInferred ? 1 : 0)
            writer.storedUUID(descriptor.uuid)
        }
        writer.count(database.quirks.count)
        for quirk in database.quirks {
            writer.u8(quirk.code)
            writer.u16(quirk.handle)
        }
    }

    private init(reading reader: inout ByteReader, until end: Int) throws(MalformedPacket) {
        databaseHash = try reader.databaseHash()
        coverage = try reader.coverage()
        var services: [GATTService] = []
        for _ in 0..<(try reader.count("number of services")) {
            services.append(try reader.service(after: services.last))
        }
        var characteristics: [GATTCharacteristic] = []
        for _ in 0..<(try reader.count("number of characteristics")) {
            characteristics.append(try reader.characteristic(after: characteristics.last))
        }
        var descriptors: [GATTDescriptor] = []
        for _ in 0..<(try reader.count("number of descriptors")) {
            descriptors.append(try reader.descriptor(after: descriptors.last))
        }
        var quirks: [GATTDatabase.Quirk] = []
        for _ in 0..<(try reader.count("number of quirks")) { quirks.append(try reader.quirk()) }
        guard reader.offset == end else { throw .cache(at: reader.offset, .trailingBytes(end - reader.offset)) }
        database = GATTDatabase(
            services: services, characteristics: characteristics, descriptors: descriptors, quirks: quirks)
        guard database.attributeCount <= GATTDatabase.attributeLimit else {
            throw .cache(at: end, .invalidField("number of attributes"))
        }
    }
}

extension MalformedPacket {
    fileprivate static func cache(at offset: Int, _ reason: Reason) -> MalformedPacket {
        .stored(Layout.form, at: offset, reason)
    }
}

// MARK: - Parts

extension GATTService {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.u16(handles.lowerBound)
        writer.u16(handles.upperBound)
        writer.u8(isPrimary ? 1 : 0)
        writer.storedUUID(uuid)
        writer.count(includes.count)
        for include in includes {
            writer.u16(include.handle)
            writer.u16(include.handles.lowerBound)
            writer.u16(include.handles.upperBound)
            if let uuid = include.uuid { writer.storedUUID(uuid) } else { writer.u8(0) }
        }
    }
}

extension GATTCharacteristic {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.u16(declarationHandle)
        writer.u16(valueHandle)
        writer.u16(endHandle)
        writer.u8(properties.rawValue)
        writer.storedUUID(uuid)
    }
}

extension ByteWriter {
    fileprivate mutating func count(_ count: Int) {
        u16(UInt16(clamping: count))
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    fileprivate mutating func databaseHash() throws(MalformedPacket) -> [UInt8]? {
        let start = offset
        guard let length = u8() else { throw .cache(at: start, .tooShort) }
        guard length > 0 else { return nil }
        guard Int(length) == GATTCache.hashLength else { throw .cache(at: start, .invalidField("hash length")) }
        guard let hash = array(Int(length)) else { throw .cache(at: offset, .tooShort) }
        return hash
    }

    @_lifetime(self: copy self)
    fileprivate mutating func coverage() throws(MalformedPacket) -> GATTDatabase.Coverage {
        let start = offset
        guard let kind = u8() else { throw .cache(at: start, .tooShort) }
        if let level = DiscoveryLevel(depth: kind) { return .whole(level) }
        guard kind == Layout.someServices else { throw .cache(at: start, .invalidField("coverage")) }
        var levels: [BluetoothUUID: DiscoveryLevel] = [:]
        for _ in 0..<(try count("number of services looked for")) {
            let uuid = try uuid("service looked for")
            guard let depth = u8(), let level = DiscoveryLevel(depth: depth) else {
                throw .cache(at: offset, .invalidField("level"))
            }
            levels[uuid] = level
        }
        return .services(levels)
    }

    /// A count of parts, at most that of a database.
    @_lifetime(self: copy self)
    fileprivate mutating func count(_ name: String) throws(MalformedPacket) -> Int {
        let start = offset
        guard let count = u16() else { throw .cache(at: start, .tooShort) }
        guard Int(count) <= GATTDatabase.attributeLimit else { throw .cache(at: start, .invalidField(name)) }
        return Int(count)
    }

    @_lifetime(self: copy self)
    fileprivate mutating func uuid(_ name: String) throws(MalformedPacket) -> BluetoothUUID {
        guard let uuid = try storedUUID(name, in: Layout.form) else { throw .cache(at: offset, .invalidField(name)) }
        return uuid
    }

    /// Two handles, the second not below the first, the first not 0.
    @_lifetime(self: copy self)
    private mutating func handles(_ name: String) throws(MalformedPacket) -> ClosedRange<AttributeHandle> {
        let start = offset
        guard let first = u16(), let last = u16() else { throw .cache(at: start, .tooShort) }
        guard first > 0, first <= last else { throw .cache(at: start, .invalidField(name)) }
        return first...last
    }

    @_lifetime(self: copy self)
    fileprivate mutating func service(after last: GATTService?) throws(MalformedPacket) -> GATTService {
        let start = offset
        let handles = try handles("service handles")
        guard handles.lowerBound > last?.handles.upperBound ?? 0 else {
            throw .cache(at: start, .invalidField("order of services"))
        }
        let isPrimary = try storedFlag("service kind", in: Layout.form)
        var service = GATTService(handles: handles, uuid: try uuid("service"), isPrimary: isPrimary)
        for _ in 0..<(try count("number of includes")) {
            let place = offset
            guard let handle = u16() else { throw .cache(at: place, .tooShort) }
            guard handles.contains(handle) else { throw .cache(at: place, .invalidField("include")) }
            let target = try self.handles("included handles")
            service.includes.append(
                GATTService.Include(
                    handle: handle, handles: target, uuid: try storedUUID("included service", in: Layout.form)))
        }
        return service
    }

    @_lifetime(self: copy self)
    fileprivate mutating func characteristic(
        after last: GATTCharacteristic?
    ) throws(MalformedPacket) -> GATTCharacteristic {
        let start = offset
        guard let declaration = u16(), let value = u16(), let end = u16(), let properties = u8() else {
            throw .cache(at: start, .tooShort)
        }
        guard declaration > last?.declarationHandle ?? 0, value > declaration, end >= value else {
            throw .cache(at: start, .invalidField("characteristic handles"))
        }
        return GATTCharacteristic(
            declarationHandle: declaration, valueHandle: value, endHandle: end,
            properties: CharacteristicProperties(rawValue: properties), uuid: try uuid("characteristic"))
    }

    @_lifetime(self: copy self)
    fileprivate mutating func descriptor(after last: GATTDescriptor?) throws(MalformedPacket) -> GATTDescriptor {
        let start = offset
        guard let handle = u16() else { throw .cache(at: start, .tooShort) }
        guard handle > last?.handle ?? 0 else { throw .cache(at: start, .invalidField("order of descriptors")) }
        let isInferred = try storedFlag("descriptor kind", in: Layout.form)
        return GATTDescriptor(handle: handle, uuid: try uuid("descriptor"), isInferred: isInferred)
    }

    @_lifetime(self: copy self)
    fileprivate mutating func quirk() throws(MalformedPacket) -> GATTDatabase.Quirk {
        let start = offset
        guard let code = u8(), let handle = u16() else { throw .cache(at: start, .tooShort) }
        guard let quirk = GATTDatabase.Quirk(code: code, handle: handle) else {
            throw .cache(at: start, .invalidField("quirk"))
        }
        return quirk
    }
}
