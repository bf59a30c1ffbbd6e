// Layouts that several PDUs share. A conforming PDU declares its opcode and fields; the encoding is implemented here,
// once.

/// A PDU without parameters.
///
///     opcode 1
package protocol ATTEmptyPDU: ATTPDU {
    /// Creates the PDU.
    init()
}

extension ATTEmptyPDU {
    /// Decodes the parameters, which must be empty.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        try Self.finish(ByteReader(parameters))
        self.init()
    }

    /// The encoded parameters: none.
    package var parameters: [UInt8] { [] }
}

/// A PDU that carries the sender's MTU.
///
///     opcode 1 | MTU 2
package protocol ATTExchangeMTUPDU: ATTPDU {
    /// The maximum PDU size that the sender can receive, in bytes.
    var mtu: UInt16 { get }

    /// Creates a PDU with this MTU.
    init(mtu: UInt16)
}

extension ATTExchangeMTUPDU {
    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let mtu = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(mtu: mtu)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2)
        writer.u16(mtu)
        return writer.bytes
    }
}

/// A PDU with the value of one attribute, extending to the end of the PDU.
///
///     opcode 1 | handle 2 | value 0...
package protocol ATTHandleValuePDU: ATTPDU {
    /// The handle of the attribute.
    var handle: AttributeHandle { get }
    /// The value.
    var value: [UInt8] { get }

    /// Creates a PDU with the `value` of `handle`.
    init(handle: AttributeHandle, value: [UInt8])
}

extension ATTHandleValuePDU {
    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16() else { throw Self.tooShort(reader) }
        self.init(handle: handle, value: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: value.count + 2)
        writer.u16(handle)
        writer.array(value)
        return writer.bytes
    }
}

/// A PDU with one part of a long value.
///
///     opcode 1 | handle 2 | offset 2 | part 0...
package protocol ATTPreparedPartPDU: ATTPDU {
    /// The handle of the attribute to write.
    var handle: AttributeHandle { get }
    /// The offset of the part in the value, in bytes.
    var offset: UInt16 { get }
    /// The part of the value.
    var part: [UInt8] { get }

    /// Creates a PDU with `part` for `handle` at `offset`.
    init(handle: AttributeHandle, offset: UInt16, part: [UInt8])
}

extension ATTPreparedPartPDU {
    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16(), let offset = reader.u16() else { throw Self.tooShort(reader) }
        self.init(handle: handle, offset: offset, part: reader.rest())
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: part.count + 4)
        writer.u16(handle)
        writer.u16(offset)
        writer.array(part)
        return writer.bytes
    }
}

/// A request for one attribute type in a range of handles.
///
///     opcode 1 | start 2 | end 2 | type 2 or 16
package protocol ATTTypeInRangePDU: ATTPDU {
    /// The first handle of the range.
    var startHandle: AttributeHandle { get }
    /// The last handle of the range.
    var endHandle: AttributeHandle { get }
    /// The attribute type; encoded in its short form if it has one.
    var type: BluetoothUUID { get }

    /// Creates a request for `type` in an inclusive range of handles.
    init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: BluetoothUUID)
}

extension ATTTypeInRangePDU {
    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let start = reader.u16(), let end = reader.u16() else { throw Self.tooShort(reader) }
        guard let type = reader.attributeType() else { throw Self.invalid("type", reader) }
        try Self.finish(reader)
        self.init(startHandle: start, endHandle: end, type: type)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u16(startHandle)
        writer.u16(endHandle)
        writer.attributeType(type)
        return writer.bytes
    }
}

/// A PDU with a list of handles, extending to the end of the PDU.
///
///     opcode 1 | handle 2 | handle 2 ...
package protocol ATTHandleListPDU: ATTPDU {
    /// The handles in packet order; at least one when decoded.
    var handles: [AttributeHandle] { get }

    /// Creates a PDU with `handles`.
    init(handles: [AttributeHandle])
}

extension ATTHandleListPDU {
    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var handles: [AttributeHandle] = []
        repeat {
            guard let handle = reader.u16() else { throw Self.tooShort(reader) }
            handles.append(handle)
        } while !reader.isAtEnd
        self.init(handles: handles)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter(reserving: handles.count * 2)
        for handle in handles { writer.u16(handle) }
        return writer.bytes
    }
}

/// A PDU with a list of entries of equal length, extending to the end of the PDU.
///
///     opcode 1 | length 1 | (head | value length-head) ...
package protocol ATTEntryListPDU: ATTPDU {
    /// The type of the entries.
    associatedtype Entry: ATTListEntry

    /// The entries in packet order; at least one when decoded.
    var entries: [Entry] { get }

    /// Creates a PDU with `entries`, whose values must all have the length of the first.
    init(entries: [Entry])
}

/// An entry of an `ATTEntryListPDU`: a head of fixed length, followed by a value.
package protocol ATTListEntry: Hashable, Sendable {
    /// The number of bytes before the value.
    static var headLength: Int { get }

    /// The value.
    var value: [UInt8] { get }

    /// Reads the head and a value of `valueLength` bytes, or returns `nil` if there are fewer.
    init?(reading reader: inout ByteReader, valueLength: Int)

    /// Appends the head.
    func writeHead(to writer: inout ByteWriter)
}

extension ATTEntryListPDU {
    /// Decodes the parameters.
    package init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let length = reader.u8() else { throw Self.tooShort(reader) }
        let valueLength = Int(length) - Entry.headLength
        guard valueLength >= 0 else { throw Self.malformed(at: 1, .invalidField("length")) }
        var entries: [Entry] = []
        repeat {
            guard let entry = Entry(reading: &reader, valueLength: valueLength) else { throw Self.tooShort(reader) }
            entries.append(entry)
        } while !reader.isAtEnd
        self.init(entries: entries)
    }

    /// The encoded parameters.
    package var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u8(UInt8(truncatingIfNeeded: Entry.headLength + (entries.first?.value.count ?? 0)))
        for entry in entries {
            entry.writeHead(to: &writer)
            writer.array(entry.value)
        }
        return writer.bytes
    }
}

/// An attribute handle and its value, as an entry in a list.
package struct ATTAttributeValue: ATTListEntry {
    /// The length of the handle.
    package static var headLength: Int { 2 }
    /// The handle of the attribute.
    package var handle: AttributeHandle
    /// The attribute's value.
    package var value: [UInt8]

    /// Creates an entry with the `value` of `handle`.
    package init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }

    /// Reads the handle and a value of `valueLength` bytes, or returns `nil` if there are fewer.
    package init?(reading reader: inout ByteReader, valueLength: Int) {
        guard let handle = reader.u16(), let value = reader.array(valueLength) else { return nil }
        self.init(handle: handle, value: value)
    }

    /// Appends the handle.
    package func writeHead(to writer: inout ByteWriter) {
        writer.u16(handle)
    }
}
