/// The layout of a link's state inside its frame (`FileEnvelope`, "BLEL"). Numbers are little-endian:
///
///     peer: kind 1 (0 none, 1 public, 2 random), address 6 | name: length 1, UTF-8
///     MTU 2, receive limit 2, own MTU 2, exchanged MTU 2 (0: not), MTU the peer asked for 2 (0: not)
///     pending request: opcode 1 (0: none), handle 2, offered MTU 2, end of its time 8 (nanoseconds since boot)
///     confirmations due 1 | response due: length 1, bytes | prepared writes 1
///     subscriptions 2, each: value 2, descriptor 2, flags 1 (1 wanted, 2 own, 4 inferred, 8 indication), UUID
///     cache: length 4 (0: none), bytes
private enum Layout {
    static let form = FileEnvelope(
        "link state", signature: [0x42, 0x4C, 0x45, 0x4C], version: 1, limit: 1 << 19)
    /// More than a peer can have; a hostile file might claim as many as it likes.
    static let subscriptionLimit = 4_096
    /// The longest response to a peer's request is an Error Response.
    static let responseLimit: UInt8 = 5
}

extension LinkState {
    /// The maximum length of `bytes`.
    package static var byteLimit: Int { Layout.form.byteLimit }

    /// The encoded form to hand over.
    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.storedPeer(peer)
        writer.storedText(name)
        let queue = client.queue
        for number in [
            queue.mtu, queue.receiveLimit, client.largestMTU, queue.exchangedMTU ?? 0, queue.peerMTU ?? 0,
        ] {
            writer.u16(number)
        }
        writer.u8(queue.unanswered?.opcode.rawValue ?? 0)
        writer.u16(queue.unanswered?.handle ?? 0)
        writer.u16(queue.unanswered?.offeredMTU ?? 0)
        writer.u64(UInt64(bitPattern: queue.unanswered?.end.nanoseconds ?? 0))
        writer.u8(queue.confirmationsDue)
        let response = queue.response ?? []
        writer.u8(UInt8(clamping: response.count))
        writer.array(response)
        writer.u8(client.mayHoldPreparedWrites ? 1 : 0)
        let kept = subscriptions.prefix(Layout.subscriptionLimit)
        writer.u16(UInt16(clamping: kept.count))
        for subscription in kept { subscription.write(to: &writer) }
        let cache = cache?.bytes ?? []
        writer.u32(UInt32(truncatingIfNeeded: cache.count))
        writer.array(cache)
        return Layout.form.enclose(writer.bytes)
    }

    /// Decodes the form.
    ///
    /// - Throws: `MalformedPacket`.
    package init(bytes: [UInt8]) throws(MalformedPacket) {
        let end = try Layout.form.check(bytes)
        var reader = ByteReader(bytes.span)
        _ = reader.skip(FileEnvelope.headerLength)
        let peer = try reader.storedPeer(in: Layout.form)
        self.init(peer: peer, name: try reader.storedText("name", in: Layout.form))
        client = try reader.client()
        let start = reader.offset
        guard let count = reader.u16() else { throw .link(at: start, .tooShort) }
        guard Int(count) <= Layout.subscriptionLimit else {
            throw .link(at: start, .invalidField("number of subscriptions"))
        }
        for _ in 0..<count { subscriptions.append(try reader.subscription(after: subscriptions.last)) }
        cache = try reader.cache()
        guard reader.offset == end else { throw .link(at: reader.offset, .trailingBytes(end - reader.offset)) }
    }
}

extension LinkState.Subscription {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.u16(valueHandle)
        writer.u16(configuration.handle)
        var flags: UInt8 = 0
        if isWanted { flags |= 1 }
        if isOwn { flags |= 2 }
        if configuration.isInferred { flags |= 4 }
        if kind == .indication { flags |= 8 }
        writer.u8(flags)
        if let uuid { writer.storedUUID(uuid) } else { writer.u8(0) }
    }
}

extension MalformedPacket {
    fileprivate static func link(at offset: Int, _ reason: Reason) -> MalformedPacket {
        .stored(Layout.form, at: offset, reason)
    }
}

extension ByteReader {
    @_lifetime(self: copy self)
    fileprivate mutating func client() throws(MalformedPacket) -> GATTClient.Remains {
        var client = GATTClient.Remains()
        client.queue.mtu = try mtu()
        client.queue.receiveLimit = try mtu()
        client.largestMTU = try mtu()
        let start = offset
        guard let exchanged = u16(), let asked = u16(), let opcode = u8(), let handle = u16(), let offered = u16(),
            let end = u64(), let confirmations = u8(), let responseLength = u8()
        else { throw .link(at: start, .tooShort) }
        client.queue.exchangedMTU = exchanged == 0 ? nil : exchanged
        client.queue.peerMTU = asked == 0 ? nil : asked
        if opcode != 0 {
            let request = ATTOpcode(rawValue: opcode)
            guard request.isRequest else { throw .link(at: start, .invalidField("unanswered request")) }
            client.queue.unanswered = ATTQueue.Remains.Unanswered(
                opcode: request, handle: handle == 0 ? nil : handle, offeredMTU: offered == 0 ? nil : offered,
                end: BootInstant(nanoseconds: Int64(bitPattern: end)))
        }
        guard confirmations <= ATTQueue.mostConfirmationsDue else {
            throw .link(at: start, .invalidField("confirmations due"))
        }
        client.queue.confirmationsDue = confirmations
        guard responseLength <= Layout.responseLimit else { throw .link(at: start, .invalidField("response due")) }
        guard let response = array(Int(responseLength)) else { throw .link(at: offset, .tooShort) }
        client.queue.response = response.isEmpty ? nil : response
        client.mayHoldPreparedWrites = try storedFlag("prepared writes", in: Layout.form)
        return client
    }

    @_lifetime(self: copy self)
    private mutating func mtu() throws(MalformedPacket) -> UInt16 {
        let start = offset
        guard let mtu = u16() else { throw .link(at: start, .tooShort) }
        guard mtu >= ATTQueue.defaultMTU, mtu <= ATTQueue.largestMTU else {
            throw .link(at: start, .invalidField("MTU"))
        }
        return mtu
    }

    @_lifetime(self: copy self)
    fileprivate mutating func subscription(
        after last: LinkState.Subscription?
    ) throws(MalformedPacket) -> LinkState.Subscription {
        let start = offset
        guard let value = u16(), let descriptor = u16(), let flags = u8() else { throw .link(at: start, .tooShort) }
        guard value > last?.valueHandle ?? 0, descriptor > 0 else {
            throw .link(at: start, .invalidField("subscription handles"))
        }
        guard flags < 16, flags & 3 != 0 else { throw .link(at: start, .invalidField("subscription flags")) }
        return LinkState.Subscription(
            valueHandle: value,
            configuration: GATTDescriptor(
                handle: descriptor, uuid: .clientCharacteristicConfiguration, isInferred: flags & 4 != 0),
            kind: flags & 8 != 0 ? .indication : .notification,
            uuid: try storedUUID("subscription", in: Layout.form), isWanted: flags & 1 != 0, isOwn: flags & 2 != 0)
    }

    @_lifetime(self: copy self)
    fileprivate mutating func cache() throws(MalformedPacket) -> GATTCache? {
        let start = offset
        guard let length = u32() else { throw .link(at: start, .tooShort) }
        guard length > 0 else { return nil }
        guard length <= Layout.form.byteLimit, let bytes = array(Int(length)) else {
            throw .link(at: start, .tooShort)
        }
        return try GATTCache(bytes: bytes)
    }
}
