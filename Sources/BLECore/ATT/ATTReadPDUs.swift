// PDUs that read values by handle.

/// Requests the value of one attribute.
///
///     0x0A | handle 2                          reply: ATTReadResponse
///
/// Spec: ATT_READ_REQ, Core Vol 3 Part F, 3.4.4.3.
package struct ATTReadRequest: ATTRequest {
    /// The response on success.
    package typealias Response = ATTReadResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readRequest
    /// The handle of the attribute to read.
    package var handle: AttributeHandle

    /// Creates a request for the value of `handle`.
    package init(handle: AttributeHandle) {
        self.handle = handle
    }

    /// The encoded PDU, in one array: the most frequent of all requests.
    package var bytes: [UInt8] {
        [Self.opcode.rawValue, UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(handle: handle)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2)
        writer.u16(handle)
        return writer.bytes
    }
}

/// The response to `ATTReadRequest`: the value, truncated to MTU - 1 bytes.
///
///     0x0B | value 0...
///
/// Spec: ATT_READ_RSP, Core Vol 3 Part F, 3.4.4.4.
package struct ATTReadResponse: ATTPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readResponse
    /// The value or its beginning.
    package var value: [UInt8]

    /// Creates a response.
    package init(value: [UInt8]) {
        self.value = value
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        self.init(value: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] { value }
}

/// Requests the value of one attribute from an offset.
///
///     0x0C | handle 2 | offset 2               reply: ATTReadBlobResponse
///
/// Spec: ATT_READ_BLOB_REQ, Core Vol 3 Part F, 3.4.4.5.
package struct ATTReadBlobRequest: ATTRequest {
    /// The response on success.
    package typealias Response = ATTReadBlobResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readBlobRequest
    /// The handle of the attribute to read.
    package var handle: AttributeHandle
    /// The number of bytes to skip.
    package var offset: UInt16

    /// Creates a request for the value of `handle` from `offset`.
    package init(handle: AttributeHandle, offset: UInt16) {
        self.handle = handle
        self.offset = offset
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16(), let offset = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(handle: handle, offset: offset)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 4)
        writer.u16(handle)
        writer.u16(offset)
        return writer.bytes
    }
}

/// The response to `ATTReadBlobRequest`: the value from the offset, truncated to MTU - 1 bytes.
///
///     0x0D | part 0...
///
/// Spec: ATT_READ_BLOB_RSP, Core Vol 3 Part F, 3.4.4.6.
package struct ATTReadBlobResponse: ATTPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readBlobResponse
    /// The part of the value.
    package var part: [UInt8]

    /// Creates a response.
    package init(part: [UInt8]) {
        self.part = part
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        self.init(part: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] { part }
}

/// Requests several values of known length in one PDU.
///
///     0x0E | handle 2 | handle 2 ...           reply: ATTReadMultipleResponse
///
/// Spec: ATT_READ_MULTIPLE_REQ, Core Vol 3 Part F, 3.4.4.7.
package struct ATTReadMultipleRequest: ATTRequest, ATTHandleListPDU {
    /// The response on success.
    package typealias Response = ATTReadMultipleResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readMultipleRequest
    /// The handles of the attributes to read, in this order; two or more.
    package var handles: [AttributeHandle]

    /// Creates a request.
    package init(handles: [AttributeHandle]) {
        self.handles = handles
    }
}

/// The response to `ATTReadMultipleRequest`: the concatenated values, truncated to MTU - 1 bytes.
///
///     0x0F | values 0...
///
/// Spec: ATT_READ_MULTIPLE_RSP, Core Vol 3 Part F, 3.4.4.8.
package struct ATTReadMultipleResponse: ATTPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readMultipleResponse
    /// The concatenated values; only the client knows where each begins.
    package var values: [UInt8]

    /// Creates a response.
    package init(values: [UInt8]) {
        self.values = values
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        self.init(values: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] { values }
}

/// Requests several values of any length in one PDU.
///
///     0x20 | handle 2 | handle 2 ...           reply: ATTReadMultipleVariableResponse
///
/// Spec: ATT_READ_MULTIPLE_VARIABLE_REQ, Core Vol 3 Part F, 3.4.4.11.
package struct ATTReadMultipleVariableRequest: ATTRequest, ATTHandleListPDU {
    /// The response on success.
    package typealias Response = ATTReadMultipleVariableResponse
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readMultipleVariableRequest
    /// The handles of the attributes to read, in this order; two or more.
    package var handles: [AttributeHandle]

    /// Creates a request.
    package init(handles: [AttributeHandle]) {
        self.handles = handles
    }
}

/// The response to `ATTReadMultipleVariableRequest`: the values, each preceded by its length.
///
///     0x21 | (length 2 | value length) ...
///
/// A server truncates the list at the end of the PDU, so the last value may be shorter than its length field. Decoding
/// with `init(_:mtu:)` accepts that in a PDU of full size; otherwise it is an error.
///
/// Spec: ATT_READ_MULTIPLE_VARIABLE_RSP, Core Vol 3 Part F, 3.4.4.12.
package struct ATTReadMultipleVariableResponse: ATTPDU {
    /// The opcode of this PDU.
    package static let opcode = ATTOpcode.readMultipleVariableResponse
    /// The values in request order; fewer than requested if the PDU was full.
    package var values: [[UInt8]]
    /// The number of bytes of the last value that did not fit into the PDU.
    package var missing: UInt16

    /// Creates a response; the last value lacks `missing` bytes.
    package init(values: [[UInt8]], missing: UInt16 = 0) {
        self.values = values
        self.missing = missing
    }

    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        try self.init(parameters: parameters, canBeCut: false)
    }

    /// Decodes a PDU received on a link with this MTU.
    ///
    /// - Throws: `MalformedPacket`, also for a truncated value in a PDU shorter than `mtu`.
    package init(_ pdu: [UInt8], mtu: UInt16) throws(MalformedPacket) {
        guard let first = pdu.first else { throw Self.malformed(at: 0, .tooShort) }
        guard first == Self.opcode.rawValue else { throw Self.malformed(at: 0, .wrongOpcode(first)) }
        try self.init(parameters: pdu.span.extracting(droppingFirst: 1), canBeCut: pdu.count >= Int(mtu))
    }

    private init(parameters: Span<UInt8>, canBeCut: Bool) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var values: [[UInt8]] = []
        var missing = 0
        repeat {
            guard let length = reader.u16() else {
                // A single byte of a truncated length field carries no information.
                guard canBeCut, !values.isEmpty, reader.skip(1) else { throw Self.tooShort(reader) }
                break
            }
            if let value = reader.array(Int(length)) {
                values.append(value)
            } else {
                guard canBeCut else { throw Self.tooShort(reader) }
                missing = Int(length) - reader.remaining
                values.append(reader.rest())
            }
        } while !reader.isAtEnd
        self.init(values: values, missing: UInt16(truncatingIfNeeded: missing))
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        for (index, value) in values.enumerated() {
            let lost = index == values.count - 1 ? missing : 0
            writer.u16(UInt16(truncatingIfNeeded: value.count) &+ lost)
            writer.array(value)
        }
        return writer.bytes
    }
}
