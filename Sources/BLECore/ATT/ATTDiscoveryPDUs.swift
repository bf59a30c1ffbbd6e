// PDUs that find attributes by handle, type or value.

/// Requests the handles and types of the attributes in a range.
///
///     0x04 | start 2 | end 2                   reply: ATTFindInformationResponse
///
/// Spec: ATT_FIND_INFORMATION_REQ, Core Vol 3 Part F, 3.4.3.1.
package struct ATTFindInformationRequest: ATTRequest {
    /// The response on success.
    package typealias Response = ATTFindInformationResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.findInformationRequest
    /// The first handle of the range.
    package var startHandle: AttributeHandle
    /// The last handle of the range.
    package var endHandle: AttributeHandle

    /// Creates a request for an inclusive range of handles.
    package init(startHandle: AttributeHandle, endHandle: AttributeHandle) {
        self.startHandle = startHandle
        self.endHandle = endHandle
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let start = reader.u16(), let end = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(startHandle: start, endHandle: end)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 4)
        writer.u16(startHandle)
        writer.u16(endHandle)
        return writer.bytes
    }
}

/// The response to `ATTFindInformationRequest`: handles with their types, all in the same format.
///
///     0x05 | format 1 = 1 | (handle 2 | type 2) ...
///     0x05 | format 1 = 2 | (handle 2 | type 16) ...
///
/// Spec: ATT_FIND_INFORMATION_RSP, Core Vol 3 Part F, 3.4.3.2.
package struct ATTFindInformationResponse: ATTPDU {
    /// One attribute.
    package struct Entry: Hashable, Sendable {
        /// The attribute's handle.
        package var handle: AttributeHandle
        /// The attribute's type.
        package var type: BluetoothUUID

        /// Creates an entry.
        package init(handle: AttributeHandle, type: BluetoothUUID) {
            self.handle = handle
            self.type = type
        }
    }

    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.findInformationResponse
    /// The attributes in packet order; at least one when decoded.
    package var entries: [Entry]
    /// A Boolean value that indicates whether the types are encoded as 16 bytes each (format 2).
    package var usesLongTypes: Bool

    /// Creates a response; types are encoded as 16 bytes each if any of them has no short form.
    package init(entries: [Entry]) {
        self.entries = entries
        usesLongTypes = entries.contains { $0.type.short == nil }
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
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

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u8(usesLongTypes ? 2 : 1)
        for entry in entries {
            writer.u16(entry.handle)
            writer.attributeType(entry.type, long: usesLongTypes)
        }
        return writer.bytes
    }
}

/// Requests the groups whose declaration has this type and exactly this value.
///
///     0x06 | start 2 | end 2 | type 2 | value 0...      reply: ATTFindByTypeValueResponse
///
/// Spec: ATT_FIND_BY_TYPE_VALUE_REQ, Core Vol 3 Part F, 3.4.3.3.
package struct ATTFindByTypeValueRequest: ATTRequest {
    /// The response on success.
    package typealias Response = ATTFindByTypeValueResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.findByTypeValueRequest
    /// The first handle of the range.
    package var startHandle: AttributeHandle
    /// The last handle of the range.
    package var endHandle: AttributeHandle
    /// The 16-bit attribute type; the PDU cannot carry longer ones.
    package var type: UInt16
    /// The value to compare with.
    package var value: [UInt8]

    /// Creates a request for `value` of `type` in an inclusive range of handles.
    package init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: UInt16, value: [UInt8]) {
        self.startHandle = startHandle
        self.endHandle = endHandle
        self.type = type
        self.value = value
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let start = reader.u16(), let end = reader.u16(), let type = reader.u16() else {
            throw Self.tooShort(reader)
        }
        self.init(startHandle: start, endHandle: end, type: type, value: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u16(startHandle)
        writer.u16(endHandle)
        writer.u16(type)
        writer.array(value)
        return writer.bytes
    }
}

/// The response to `ATTFindByTypeValueRequest`: the groups found.
///
///     0x07 | (handle 2 | group end 2) ...
///
/// Spec: ATT_FIND_BY_TYPE_VALUE_RSP, Core Vol 3 Part F, 3.4.3.4.
package struct ATTFindByTypeValueResponse: ATTPDU {
    /// One group.
    package struct Entry: Hashable, Sendable {
        /// The handle of the attribute found.
        package var startHandle: AttributeHandle
        /// The last handle of its group; 0xFFFF if the group is the last in the database.
        package var endHandle: AttributeHandle

        /// Creates an entry for an inclusive range of handles.
        package init(startHandle: AttributeHandle, endHandle: AttributeHandle) {
            self.startHandle = startHandle
            self.endHandle = endHandle
        }
    }

    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.findByTypeValueResponse
    /// The groups in packet order; at least one when decoded.
    package var entries: [Entry]

    /// Creates a response.
    package init(entries: [Entry]) {
        self.entries = entries
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var entries: [Entry] = []
        repeat {
            guard let start = reader.u16(), let end = reader.u16() else { throw Self.tooShort(reader) }
            entries.append(Entry(startHandle: start, endHandle: end))
        } while !reader.isAtEnd
        self.init(entries: entries)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        for entry in entries {
            writer.u16(entry.startHandle)
            writer.u16(entry.endHandle)
        }
        return writer.bytes
    }
}
