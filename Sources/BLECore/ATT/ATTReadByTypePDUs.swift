// PDUs that read all values of one type: characteristics, includes and whole services.

/// Requests the values of all attributes of one type in a range.
///
///     0x08 | start 2 | end 2 | type 2 or 16    reply: ATTReadByTypeResponse
///
/// Spec: ATT_READ_BY_TYPE_REQ, Core Vol 3 Part F, 3.4.4.1.
package struct ATTReadByTypeRequest: ATTRequest, ATTTypeInRangePDU {
    /// The response on success.
    package typealias Response = ATTReadByTypeResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readByTypeRequest
    /// The first handle of the range.
    package var startHandle: AttributeHandle
    /// The last handle of the range.
    package var endHandle: AttributeHandle
    /// The attribute type; encoded in its short form if it has one.
    package var type: BluetoothUUID

    /// Creates a request for `type` in an inclusive range of handles.
    package init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: BluetoothUUID) {
        self.startHandle = startHandle
        self.endHandle = endHandle
        self.type = type
    }
}

/// The response to `ATTReadByTypeRequest`: handles with their values, all of the same length.
///
///     0x09 | length 1 | (handle 2 | value length-2) ...
///
/// Spec: ATT_READ_BY_TYPE_RSP, Core Vol 3 Part F, 3.4.4.2.
package struct ATTReadByTypeResponse: ATTEntryListPDU {
    /// An attribute and its value, truncated to 253 bytes and at the end of the PDU.
    package typealias Entry = ATTAttributeValue

    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readByTypeResponse
    /// The attributes in packet order; at least one when decoded.
    package var entries: [Entry]

    /// Creates a response. The values of `entries` must all have the length of the first, at most 253 bytes.
    package init(entries: [Entry]) {
        self.entries = entries
    }
}

/// Requests the groups of one type in a range, with the values of their declarations.
///
///     0x10 | start 2 | end 2 | type 2 or 16    reply: ATTReadByGroupTypeResponse
///
/// Spec: ATT_READ_BY_GROUP_TYPE_REQ, Core Vol 3 Part F, 3.4.4.9.
package struct ATTReadByGroupTypeRequest: ATTRequest, ATTTypeInRangePDU {
    /// The response on success.
    package typealias Response = ATTReadByGroupTypeResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readByGroupTypeRequest
    /// The first handle of the range.
    package var startHandle: AttributeHandle
    /// The last handle of the range.
    package var endHandle: AttributeHandle
    /// The type of the declarations; encoded in its short form if it has one.
    package var type: BluetoothUUID

    /// Creates a request for groups of `type` in an inclusive range of handles.
    package init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: BluetoothUUID) {
        self.startHandle = startHandle
        self.endHandle = endHandle
        self.type = type
    }
}

/// The response to `ATTReadByGroupTypeRequest`: groups with the values of their declarations, all of the same length.
///
///     0x11 | length 1 | (handle 2 | group end 2 | value length-4) ...
///
/// Spec: ATT_READ_BY_GROUP_TYPE_RSP, Core Vol 3 Part F, 3.4.4.10.
package struct ATTReadByGroupTypeResponse: ATTEntryListPDU {
    /// One group.
    package struct Entry: ATTListEntry {
        /// The length of the two handles.
        package static var headLength: Int { 4 }
        /// The handle of the declaration.
        package var startHandle: AttributeHandle
        /// The last handle of the group; 0xFFFF if the group is the last in the database.
        package var endHandle: AttributeHandle
        /// The value of the declaration: the UUID of a service.
        package var value: [UInt8]

        /// Creates an entry for an inclusive range of handles, declared with `value`.
        package init(startHandle: AttributeHandle, endHandle: AttributeHandle, value: [UInt8]) {
            self.startHandle = startHandle
            self.endHandle = endHandle
            self.value = value
        }

        /// Reads the handles and a value of `valueLength` bytes, or returns `nil` if there are fewer.
        package init?(reading reader: inout ByteReader, valueLength: Int) {
            guard let start = reader.u16(), let end = reader.u16(), let value = reader.array(valueLength) else {
                return nil
            }
            self.init(startHandle: start, endHandle: end, value: value)
        }

        /// Appends the handles.
        package func writeHead(to writer: inout ByteWriter) {
            writer.u16(startHandle)
            writer.u16(endHandle)
        }
    }

    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readByGroupTypeResponse
    /// The groups in packet order; at least one when decoded.
    package var entries: [Entry]

    /// Creates a response. The values of `entries` must all have the length of the first, at most 251 bytes.
    package init(entries: [Entry]) {
        self.entries = entries
    }
}
