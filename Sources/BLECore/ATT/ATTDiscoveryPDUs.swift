// The packets that find attributes by place, type or value.

/// Asks for the handles and types of the attributes in a range.
///
///     0x04 | start 2 | end 2                   reply: ATTFindInformationResponse
///
/// Spec: ATT_FIND_INFORMATION_REQ, Core Vol 3 Part F, 3.4.3.1.
public struct ATTFindInformationRequest: ATTRequest {
    /// The answer of a peer that agrees.
    public typealias Response = ATTFindInformationResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.findInformationRequest
    /// The first handle of the range.
    public var startHandle: AttributeHandle
    /// The last handle of the range.
    public var endHandle: AttributeHandle

    /// Asks about `startHandle` to `endHandle`, both included.
    public init(startHandle: AttributeHandle, endHandle: AttributeHandle) {
        self.startHandle = startHandle
        self.endHandle = endHandle
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let start = reader.u16(), let end = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(startHandle: start, endHandle: end)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 4)
        writer.u16(startHandle)
        writer.u16(endHandle)
        return writer.bytes
    }
}

/// The answer to `ATTFindInformationRequest`: handles with their types, all in the same form.
///
///     0x05 | format 1 = 1 | (handle 2 | type 2) ...
///     0x05 | format 1 = 2 | (handle 2 | type 16) ...
///
/// Spec: ATT_FIND_INFORMATION_RSP, Core Vol 3 Part F, 3.4.3.2.
public struct ATTFindInformationResponse: ATTPDU {
    /// One attribute.
    public struct Entry: Hashable, Sendable {
        /// Its handle.
        public var handle: AttributeHandle
        /// Its type.
        public var type: BluetoothUUID

        /// An attribute of `type` at `handle`.
        public init(handle: AttributeHandle, type: BluetoothUUID) {
            self.handle = handle
            self.type = type
        }
    }

    /// The packet's first byte.
    public static let opcode = ATTOpcode.findInformationResponse
    /// The attributes in the order of the packet; at least one when decoded.
    public var entries: [Entry]
    /// Whether the types take 16 bytes each on the wire (format 2).
    public var usesLongTypes: Bool

    /// Lists `entries`; 16 bytes a type as soon as one of them has no short form.
    public init(entries: [Entry]) {
        self.entries = entries
        usesLongTypes = entries.contains { $0.type.short == nil }
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let format = reader.u8() else { throw Self.tooShort(reader) }
        guard format == 1 || format == 2 else { throw Self.malformed(at: 1, .invalidField("format")) }
        let typeSize = format == 1 ? 2 : 16
        var entries: [Entry] = []
        repeat {
            guard let handle = reader.u16(), let type = reader.uuid(typeSize) else { throw Self.tooShort(reader) }
            entries.append(Entry(handle: handle, type: type))
        } while !reader.isAtEnd
        self.entries = entries
        usesLongTypes = format == 2
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u8(usesLongTypes ? 2 : 1)
        for entry in entries {
            writer.u16(entry.handle)
            writer.attributeType(entry.type, long: usesLongTypes)
        }
        return writer.bytes
    }
}

/// Asks for the groups whose declaration has this type and exactly this value.
///
///     0x06 | start 2 | end 2 | type 2 | value 0...      reply: ATTFindByTypeValueResponse
///
/// Spec: ATT_FIND_BY_TYPE_VALUE_REQ, Core Vol 3 Part F, 3.4.3.3.
public struct ATTFindByTypeValueRequest: ATTRequest {
    /// The answer of a peer that agrees.
    public typealias Response = ATTFindByTypeValueResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.findByTypeValueRequest
    /// The first handle of the range.
    public var startHandle: AttributeHandle
    /// The last handle of the range.
    public var endHandle: AttributeHandle
    /// The 16-bit form of the type; the packet has no room for another.
    public var type: UInt16
    /// The value to compare with.
    public var value: [UInt8]

    /// Looks for `value` under `type` in a range, both ends included.
    public init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: UInt16, value: [UInt8]) {
        self.startHandle = startHandle
        self.endHandle = endHandle
        self.type = type
        self.value = value
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let start = reader.u16(), let end = reader.u16(), let type = reader.u16() else {
            throw Self.tooShort(reader)
        }
        self.init(startHandle: start, endHandle: end, type: type, value: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u16(startHandle)
        writer.u16(endHandle)
        writer.u16(type)
        writer.array(value)
        return writer.bytes
    }
}

/// The answer to `ATTFindByTypeValueRequest`: the groups found.
///
///     0x07 | (handle 2 | group end 2) ...
///
/// Spec: ATT_FIND_BY_TYPE_VALUE_RSP, Core Vol 3 Part F, 3.4.3.4.
public struct ATTFindByTypeValueResponse: ATTPDU {
    /// One group.
    public struct Entry: Hashable, Sendable {
        /// The handle of the attribute found.
        public var startHandle: AttributeHandle
        /// The last handle of its group; 0xFFFF when the group ends the database.
        public var endHandle: AttributeHandle

        /// The group from `startHandle` to `endHandle`, both included.
        public init(startHandle: AttributeHandle, endHandle: AttributeHandle) {
            self.startHandle = startHandle
            self.endHandle = endHandle
        }
    }

    /// The packet's first byte.
    public static let opcode = ATTOpcode.findByTypeValueResponse
    /// The groups in the order of the packet; at least one when decoded.
    public var entries: [Entry]

    /// Lists `entries`.
    public init(entries: [Entry]) {
        self.entries = entries
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var entries: [Entry] = []
        repeat {
            guard let start = reader.u16(), let end = reader.u16() else { throw Self.tooShort(reader) }
            entries.append(Entry(startHandle: start, endHandle: end))
        } while !reader.isAtEnd
        self.init(entries: entries)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        for entry in entries {
            writer.u16(entry.startHandle)
            writer.u16(entry.endHandle)
        }
        return writer.bytes
    }
}
