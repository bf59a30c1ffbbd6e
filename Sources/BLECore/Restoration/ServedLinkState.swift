/// The state of a link that this program serves, for the run of the program that serves it next: what `LinkState` has
/// of our client side, and what the server knows of the peer's.
///
/// `bytes` is a form to hand over, on the same machine, for as long as the link lives.
package struct ServedLinkState: Hashable, Sendable {
    /// Our client side.
    package var link: LinkState
    /// The server side.
    package var server: GATTServer.Remains
    /// The services that the peer was served from.
    package var outline: ServerOutline

    package init(link: LinkState, server: GATTServer.Remains, outline: ServerOutline) {
        self.link = link
        self.server = server
        self.outline = outline
    }
}

/// The layout inside the frame (`FileEnvelope`, "BLEV"). Numbers are little-endian:
///
///     services, as `ServerOutline.swift` specifies
///     MTU 2, offered MTU 2 | MTU exchanged 1 | encrypted 1 | features 1 | awareness 1 | sign counter 4
///     pending change: first handle 2 (0: none), last handle 2
///     indication: 1 (0 none, 1 a value, 2 Service Changed), handle 2, change: first 2 (0: none),
///       last 2, end of its time 8
///     configurations 2, each: handle 2, bits 2; by handle
///     written 2, each: handle 2; by handle
///     prepared writes 2, of services that have changed 1, each: handle 2, offset 2, length 2, bytes
///     link: length 4, bytes of `LinkState`
private enum Layout {
    static let form = FileEnvelope(
        "served link", signature: [0x42, 0x4C, 0x45, 0x56], version: 1, limit: 1 << 21)
    /// More than a client can have; a damaged form might claim as many as it likes.
    static let configurationLimit = 21_845
    static let preparedLimit = 1_024
}

extension ServedLinkState {
    /// The maximum length of `bytes`.
    package static var byteLimit: Int { Layout.form.byteLimit }

    /// The encoded form to hand over.
    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.storedOutline(outline)
        writer.u16(server.mtu)
        writer.u16(server.offeredMTU)
        writer.u8(server.isMTUExchanged ? 1 : 0)
        writer.u8(server.isEncrypted ? 1 : 0)
        writer.u8(server.features)
        writer.u8(server.awareness.rawValue)
        writer.u32(server.signCounter)
        writer.storedRange(server.pendingChange)
        let indication = server.indication
        writer.u8(indication.map { $0.isServiceChanged ? 2 : 1 } ?? 0)
        writer.u16(indication?.handle ?? 0)
        writer.storedRange(indication?.change)
        writer.u64(UInt64(bitPattern: indication?.deadline.nanoseconds ?? 0))
        let configurations = server.configurations.sorted { $0.key < $1.key }.prefix(Layout.configurationLimit)
        writer.u16(UInt16(clamping: configurations.count))
        for (handle, bits) in configurations {
            writer.u16(handle)
            writer.u16(bits.rawValue)
        }
        let written = server.written.sorted().prefix(Layout.configurationLimit)
        writer.u16(UInt16(clamping: written.count))
        for handle in written { writer.u16(handle) }
        let prepared = server.prepared.prefix(Layout.preparedLimit)
        writer.u16(UInt16(clamping: prepared.count))
        writer.u8(server.isPreparedStale ? 1 : 0)
        for request in prepared {
            writer.u16(request.handle)
            writer.u16(request.offset)
            writer.u16(UInt16(clamping: request.part.count))
            writer.array(request.part)
        }
        let link = link.bytes
        writer.u32(UInt32(clamping: link.count))
        writer.array(link)
        return Layout.form.enclose(writer.bytes)
    }

    /// Decodes the form.
    ///
    /// - Throws: `MalformedPacket`.
    package init(bytes: [UInt8]) throws(MalformedPacket) {
        let end = try Layout.form.check(bytes)
        var reader = ByteReader(bytes.span)
        _ = reader.skip(FileEnvelope.headerLength)
        let outline = try reader.storedOutline(in: Layout.form)
        let server = try reader.server()
        let start = reader.offset
        guard let length = reader.u32(), let link = reader.array(Int(length)) else {
            throw .stored(Layout.form, at: start, .tooShort)
        }
        guard reader.offset == end else {
            throw .stored(Layout.form, at: reader.offset, .trailingBytes(end - reader.offset))
        }
        self.init(link: try LinkState(bytes: link), server: server, outline: outline)
    }
}

extension ByteWriter {
    fileprivate mutating func storedRange(_ range: ClosedRange<AttributeHandle>?) {
        u16(range?.lowerBound ?? 0)
        u16(range?.upperBound ?? 0)
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    fileprivate mutating func server() throws(MalformedPacket) -> GATTServer.Remains {
        var server = GATTServer.Remains()
        let start = offset
        guard let mtu = u16(), let offered = u16() else { throw .stored(Layout.form, at: start, .tooShort) }
        guard mtu >= ATTQueue.defaultMTU, mtu <= offered, offered <= ATTQueue.largestMTU else {
            throw .stored(Layout.form, at: start, .invalidField("MTU"))
        }
        (server.mtu, server.offeredMTU) = (mtu, offered)
        server.isMTUExchanged = try storedFlag("MTU exchanged", in: Layout.form)
        server.isEncrypted = try storedFlag("encrypted", in: Layout.form)
        let place = offset
        guard let features = u8(), let number = u8(), let counter = u32() else {
            throw .stored(Layout.form, at: place, .tooShort)
        }
        guard let awareness = GATTServer.Awareness(rawValue: number) else {
            throw .stored(Layout.form, at: place + 1, .invalidField("awareness"))
        }
        (server.features, server.awareness, server.signCounter) = (features, awareness, counter)
        server.pendingChange = try storedRange()
        server.indication = try indication()
        for _ in 0..<(try count(Layout.configurationLimit, "number of configurations")) {
            let place = offset
            guard let handle = u16(), let bits = u16() else { throw .stored(Layout.form, at: place, .tooShort) }
            guard handle > 0, bits > 0, server.configurations[handle] == nil else {
                throw .stored(Layout.form, at: place, .invalidField("configuration"))
            }
            server.configurations[handle] = GATTDescriptor.ClientConfiguration(rawValue: bits)
        }
        for _ in 0..<(try count(Layout.configurationLimit, "number of written configurations")) {
            let place = offset
            guard let handle = u16() else { throw .stored(Layout.form, at: place, .tooShort) }
            guard server.written.insert(handle).inserted else {
                throw .stored(Layout.form, at: place, .invalidField("written configuration"))
            }
        }
        let prepared = try count(Layout.preparedLimit, "number of prepared writes")
        server.isPreparedStale = try storedFlag("prepared writes", in: Layout.form)
        for _ in 0..<prepared {
            let place = offset
            guard let handle = u16(), let offset = u16(), let length = u16(), let part = array(Int(length)) else {
                throw .stored(Layout.form, at: place, .tooShort)
            }
            server.prepared.append(ATTPrepareWriteRequest(handle: handle, offset: offset, part: part))
        }
        return server
    }

    @_lifetime(self: copy self)
    private mutating func indication() throws(MalformedPacket) -> GATTServer.Remains.Indication? {
        let start = offset
        guard let kind = u8(), let handle = u16() else { throw .stored(Layout.form, at: start, .tooShort) }
        let change = try storedRange()
        guard let end = u64() else { throw .stored(Layout.form, at: offset, .tooShort) }
        guard kind <= 2 else { throw .stored(Layout.form, at: start, .invalidField("indication")) }
        guard kind > 0 else { return nil }
        return GATTServer.Remains.Indication(
            handle: handle, isServiceChanged: kind == 2, change: change,
            deadline: BootInstant(nanoseconds: Int64(bitPattern: end)))
    }

    @_lifetime(self: copy self)
    private mutating func count(_ limit: Int, _ field: String) throws(MalformedPacket) -> UInt16 {
        let start = offset
        guard let count = u16() else { throw .stored(Layout.form, at: start, .tooShort) }
        guard Int(count) <= limit else { throw .stored(Layout.form, at: start, .invalidField(field)) }
        return count
    }

    @_lifetime(self: copy self)
    private mutating func storedRange() throws(MalformedPacket) -> ClosedRange<AttributeHandle>? {
        let start = offset
        guard let first = u16(), let last = u16() else { throw .stored(Layout.form, at: start, .tooShort) }
        guard first <= last, first > 0 || last == 0 else {
            throw .stored(Layout.form, at: start, .invalidField("range of handles"))
        }
        return first == 0 ? nil : first...last
    }
}
