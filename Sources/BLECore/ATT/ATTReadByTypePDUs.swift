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
public struct ATTReadByTypeResponse: ATTEntryListPDU {
    /// One attribute and its value, which is cut at 253 bytes and at the end of the packet.
    public typealias Entry = ATTAttributeValue

    /// The packet's first byte.
    public static let opcode = ATTOpcode.readByTypeResponse
    /// The attributes in the order of the packet; at least one when decoded.
    public var entries: [Entry]

    /// Lists `entries`, whose values must all have the length of the first, at most 253 bytes.
    public init(entries: [Entry]) {
        self.entries = entries
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
public struct ATTReadByGroupTypeResponse: ATTEntryListPDU {
    /// One group.
    public struct Entry: ATTListEntry {
        /// Two handles stand before the value.
        public static var headLength: Int { 4 }
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

        /// Reads the handles and a value of `valueLength` bytes; `nil` when there are fewer.
        public init?(reading reader: inout ByteReader, valueLength: Int) {
            guard let start = reader.u16(), let end = reader.u16(), let value = reader.array(valueLength) else {
                return nil
            }
            self.init(startHandle: start, endHandle: end, value: value)
        }

        /// Appends the handles.
        public func writeHead(to writer: inout ByteWriter) {
            writer.u16(startHandle)
            writer.u16(endHandle)
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
}
