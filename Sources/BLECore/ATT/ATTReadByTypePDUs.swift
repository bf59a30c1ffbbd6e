// The packets that read all values of one type: characteristics, includes, and whole services.

/// Asks for the values of all attributes of one type in a range.
///
///     0x08 | start 2 | end 2 | type 2 or 16    reply: ATTReadByTypeResponse
///
/// Spec: ATT_READ_BY_TYPE_REQ, Core Vol 3 Part F, 3.4.4.1.
public struct ATTReadByTypeRequest: ATTRequest, ATTTypeInRangePDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTReadByTypeResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readByTypeRequest
    /// The first handle of the range.
    public var startHandle: AttributeHandle
    /// The last handle of the range.
    public var endHandle: AttributeHandle
    /// The type; sent in its short form where it has one.
    public var type: BluetoothUUID

    /// Asks for `type` in a range, both ends included.
    public init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: BluetoothUUID) {
        self.startHandle = startHandle
        self.endHandle = endHandle
        self.type = type
    }
}

/// The answer to `ATTReadByTypeRequest`: handles with their values, all of the same length.
///
///     0x09 | length 1 | (handle 2 | value length-2) ...
///
/// Spec: ATT_READ_BY_TYPE_RSP, Core Vol 3 Part F, 3.4.4.2.
public struct ATTReadByTypeResponse: ATTPDU {
    /// One attribute and its value, which is cut at 253 bytes and at the end of the packet.
    public struct Entry: Hashable, Sendable {
        /// Its handle.
        public var handle: AttributeHandle
        /// Its value.
        public var value: [UInt8]

        /// The attribute at `handle` with `value`.
        public init(handle: AttributeHandle, value: [UInt8]) {
            self.handle = handle
            self.value = value
        }
    }

    /// The packet's first byte.
    public static let opcode = ATTOpcode.readByTypeResponse
    /// The attributes in the order of the packet; at least one when decoded.
    public var entries: [Entry]

    /// Lists `entries`, whose values must all have the length of the first, at most 253 bytes.
    public init(entries: [Entry]) {
        self.entries = entries
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let length = reader.u8() else { throw Self.tooShort(reader) }
        guard length >= 2 else { throw Self.malformed(at: 1, .invalidField("length")) }
        var entries: [Entry] = []
        repeat {
            guard let handle = reader.u16(), let value = reader.array(Int(length) - 2) else {
                throw Self.tooShort(reader)
            }
            entries.append(Entry(handle: handle, value: value))
        } while !reader.isAtEnd
        self.init(entries: entries)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u8(UInt8(truncatingIfNeeded: 2 + (entries.first?.value.count ?? 0)))
        for entry in entries {
            writer.u16(entry.handle)
            writer.array(entry.value)
        }
        return writer.bytes
    }
}

/// Asks for the groups of one type in a range, with the values of their declarations.
///
///     0x10 | start 2 | end 2 | type 2 or 16    reply: ATTReadByGroupTypeResponse
///
/// Spec: ATT_READ_BY_GROUP_TYPE_REQ, Core Vol 3 Part F, 3.4.4.9.
public struct ATTReadByGroupTypeRequest: ATTRequest, ATTTypeInRangePDU {
    /// The answer of a peer that agrees.
    public typealias Response = ATTReadByGroupTypeResponse
    /// The packet's first byte.
    public static let opcode = ATTOpcode.readByGroupTypeRequest
    /// The first handle of the range.
    public var startHandle: AttributeHandle
    /// The last handle of the range.
    public var endHandle: AttributeHandle
    /// The type of the declarations; sent in its short form where it has one.
    public var type: BluetoothUUID

    /// Asks for groups of `type` in a range, both ends included.
    public init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: BluetoothUUID) {
        self.startHandle = startHandle
        self.endHandle = endHandle
        self.type = type
    }
}

/// The answer to `ATTReadByGroupTypeRequest`: groups with the values of their declarations, all of the same length.
///
///     0x11 | length 1 | (handle 2 | group end 2 | value length-4) ...
///
/// Spec: ATT_READ_BY_GROUP_TYPE_RSP, Core Vol 3 Part F, 3.4.4.10.
public struct ATTReadByGroupTypeResponse: ATTPDU {
    /// One group.
    public struct Entry: Hashable, Sendable {
        /// The handle of the declaration.
        public var startHandle: AttributeHandle
        /// The last handle of the group; 0xFFFF when the group ends the database.
        public var endHandle: AttributeHandle
        /// The value of the declaration: the UUID of a service.
        public var value: [UInt8]

        /// The group from `startHandle` to `endHandle`, declared with `value`.
        public init(startHandle: AttributeHandle, endHandle: AttributeHandle, value: [UInt8]) {
            self.startHandle = startHandle
            self.endHandle = endHandle
            self.value = value
        }
    }

    /// The packet's first byte.
    public static let opcode = ATTOpcode.readByGroupTypeResponse
    /// The groups in the order of the packet; at least one when decoded.
    public var entries: [Entry]

    /// Lists `entries`, whose values must all have the length of the first, at most 251 bytes.
    public init(entries: [Entry]) {
        self.entries = entries
    }

    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let length = reader.u8() else { throw Self.tooShort(reader) }
        guard length >= 4 else { throw Self.malformed(at: 1, .invalidField("length")) }
        var entries: [Entry] = []
        repeat {
            guard let start = reader.u16(), let end = reader.u16(), let value = reader.array(Int(length) - 4) else {
                throw Self.tooShort(reader)
            }
            entries.append(Entry(startHandle: start, endHandle: end, value: value))
        } while !reader.isAtEnd
        self.init(entries: entries)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u8(UInt8(truncatingIfNeeded: 4 + (entries.first?.value.count ?? 0)))
        for entry in entries {
            writer.u16(entry.startHandle)
            writer.u16(entry.endHandle)
            writer.array(entry.value)
        }
        return writer.bytes
    }
}
