// The layouts that several packets share. A packet that has one of them declares its opcode and its fields; how they stand on
// the wire is written here, once.

/// A packet that is its opcode and nothing else.
///
///     opcode 1
public protocol ATTEmptyPDU: ATTPDU {
    /// The packet.
    init()
}

extension ATTEmptyPDU {
    /// Decodes what follows the opcode: nothing.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        try Self.finish(ByteReader(parameters))
        self.init()
    }

    /// What follows the opcode on the wire: nothing.
    public var parameters: [UInt8] { [] }
}

/// A packet that tells how large packets may be.
///
///     opcode 1 | MTU 2
public protocol ATTExchangeMTUPDU: ATTPDU {
    /// The largest packet that the sender can receive, in bytes.
    var mtu: UInt16 { get }

    /// Tells `mtu`.
    init(mtu: UInt16)
}

extension ATTExchangeMTUPDU {
    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let mtu = reader.u16() else { throw Self.tooShort(reader) }
        try Self.finish(reader)
        self.init(mtu: mtu)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: 2)
        writer.u16(mtu)
        return writer.bytes
    }
}

/// A packet with one attribute's value, up to its end.
///
///     opcode 1 | handle 2 | value 0...
public protocol ATTHandleValuePDU: ATTPDU {
    /// The attribute whose value it is.
    var handle: AttributeHandle { get }
    /// The value.
    var value: [UInt8] { get }

    /// Carries the `value` of `handle`.
    init(handle: AttributeHandle, value: [UInt8])
}

extension ATTHandleValuePDU {
    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16() else { throw Self.tooShort(reader) }
        self.init(handle: handle, value: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: value.count + 2)
        writer.u16(handle)
        writer.array(value)
        return writer.bytes
    }
}

/// A packet with one piece of a long value.
///
///     opcode 1 | handle 2 | offset 2 | part 0...
public protocol ATTPreparedPartPDU: ATTPDU {
    /// The attribute to write.
    var handle: AttributeHandle { get }
    /// Where the piece begins in the value.
    var offset: UInt16 { get }
    /// The piece.
    var part: [UInt8] { get }

    /// Carries `part` for `handle` at `offset`.
    init(handle: AttributeHandle, offset: UInt16, part: [UInt8])
}

extension ATTPreparedPartPDU {
    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let handle = reader.u16(), let offset = reader.u16() else { throw Self.tooShort(reader) }
        self.init(handle: handle, offset: offset, part: reader.rest())
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: part.count + 4)
        writer.u16(handle)
        writer.u16(offset)
        writer.array(part)
        return writer.bytes
    }
}

/// A packet that asks about one type in a range of handles.
///
///     opcode 1 | start 2 | end 2 | type 2 or 16
public protocol ATTTypeInRangePDU: ATTPDU {
    /// The first handle of the range.
    var startHandle: AttributeHandle { get }
    /// The last handle of the range.
    var endHandle: AttributeHandle { get }
    /// The type; sent in its short form where it has one.
    var type: BluetoothUUID { get }

    /// Asks for `type` in a range, both ends included.
    init(startHandle: AttributeHandle, endHandle: AttributeHandle, type: BluetoothUUID)
}

extension ATTTypeInRangePDU {
    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        guard let start = reader.u16(), let end = reader.u16() else { throw Self.tooShort(reader) }
        guard let type = reader.attributeType() else { throw Self.invalid("type", reader) }
        try Self.finish(reader)
        self.init(startHandle: start, endHandle: end, type: type)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u16(startHandle)
        writer.u16(endHandle)
        writer.attributeType(type)
        return writer.bytes
    }
}

/// A packet with a list of handles up to its end.
///
///     opcode 1 | handle 2 | handle 2 ...
public protocol ATTHandleListPDU: ATTPDU {
    /// The attributes, in this order; at least one when decoded.
    var handles: [AttributeHandle] { get }

    /// Lists `handles`.
    init(handles: [AttributeHandle])
}

extension ATTHandleListPDU {
    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        var handles: [AttributeHandle] = []
        repeat {
            guard let handle = reader.u16() else { throw Self.tooShort(reader) }
            handles.append(handle)
        } while !reader.isAtEnd
        self.init(handles: handles)
    }

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter(reserving: handles.count * 2)
        for handle in handles { writer.u16(handle) }
        return writer.bytes
    }
}

/// A packet with a list of entries up to its end, all of the same length.
///
///     opcode 1 | length 1 | (head | value length-head) ...
public protocol ATTEntryListPDU: ATTPDU {
    /// What the packet lists.
    associatedtype Entry: ATTListEntry

    /// The entries in the order of the packet; at least one when decoded.
    var entries: [Entry] { get }

    /// Lists `entries`, whose values must all have the length of the first.
    init(entries: [Entry])
}

/// One entry of an `ATTEntryListPDU`: a head of fixed length, and a value.
public protocol ATTListEntry: Hashable, Sendable {
    /// How many bytes stand before the value.
    static var headLength: Int { get }

    /// The value.
    var value: [UInt8] { get }

    /// Reads the head and a value of `valueLength` bytes; `nil` when there are fewer.
    init?(reading reader: inout ByteReader, valueLength: Int)

    /// Appends the head.
    func writeHead(to writer: inout ByteWriter)
}

extension ATTEntryListPDU {
    /// Decodes what follows the opcode.
    public init(parameters: Span<UInt8>) throws(MalformedPacket) {
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

    /// What follows the opcode on the wire.
    public var parameters: [UInt8] {
        var writer = ByteWriter()
        writer.u8(UInt8(truncatingIfNeeded: Entry.headLength + (entries.first?.value.count ?? 0)))
        for entry in entries {
            entry.writeHead(to: &writer)
            writer.array(entry.value)
        }
        return writer.bytes
    }
}

/// One attribute and its value, in a packet that lists several.
public struct ATTAttributeValue: ATTListEntry {
    /// A handle stands before the value.
    public static var headLength: Int { 2 }
    /// The attribute whose value it is.
    public var handle: AttributeHandle
    /// Its value.
    public var value: [UInt8]

    /// The `value` of `handle`.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
    }

    /// Reads the handle and a value of `valueLength` bytes; `nil` when there are fewer.
    public init?(reading reader: inout ByteReader, valueLength: Int) {
        guard let handle = reader.u16(), let value = reader.array(valueLength) else { return nil }
        self.init(handle: handle, value: value)
    }

    /// Appends the handle.
    public func writeHead(to writer: inout ByteWriter) {
        writer.u16(handle)
    }
}
