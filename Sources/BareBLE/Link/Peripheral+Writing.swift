internal import BLECore

extension Peripheral {
    /// The kind of a write: with or without a response.
    public enum WriteKind: Hashable, Sendable {
        /// The peer acknowledges the write. A value longer than `mtu - 3` bytes is sent in pieces, all or nothing.
        case withResponse
        /// No response: the call returns when the kernel has taken the packet. At most `mtu - 3` bytes, never truncated
        /// or split.
        case withoutResponse
    }
}

/// The former name of `Peripheral.WriteKind`.
@available(*, deprecated, renamed: "Peripheral.WriteKind")
public typealias WriteKind = Peripheral.WriteKind

extension Peripheral {
    /// Writes a value.
    ///
    /// With response, up to `mtu - 3` bytes take one request; up to 512 bytes are sent as prepared writes, each piece
    /// compared with the peer's response, and on any difference nothing is written. Without response, awaiting the
    /// call is the flow control: it returns when the kernel has taken the packet, so nothing is lost by writing fast.
    ///
    /// - Parameters:
    ///   - value: The bytes to write.
    ///   - characteristic: The destination.
    ///   - kind: Whether the write has a response.
    ///   - timeout: The longest time, including the wait for its turn; `nil` for 60 s.
    /// - Throws: `BLEError` with `.tooLong` for a value that this kind of write cannot carry, `.notSupported` if a
    ///   known characteristic does not allow this kind, `.refusedByPeer`, `.insufficientSecurity`, `.malformedReply`
    ///   if the response to a prepared write differs, `.ambiguous`, `.attributeNotFound`, `.servicesChanged` if the
    ///   peer announces meanwhile that the handle may mean another attribute, `.timedOut`, `.disconnected`,
    ///   `.cancelled`. A cancelled or timed-out write may have reached the peer all the same.
    public func write(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = context(
            .write(byteCount: value.count, to: characteristic), within: timeout ?? Self.valueTimeout,
            retrying: .never)
        try await recovering(context) { () async throws(BLEError) in
            let handle = try await writableHandle(characteristic, kind, in: context)
            switch kind {
            case .withResponse:
                try await writeOnce(value, to: handle, in: context)
            case .withoutResponse:
                try await sendCommand(value, to: handle, in: context)
            }
        }
    }

    /// Writes a part of a value from `offset` on, and leaves the bytes before it.
    ///
    /// It is sent as prepared writes, however short it is: no other request carries an offset. The peer decides about
    /// the bytes after the part.
    ///
    /// - Parameters:
    ///   - value: The part; with the offset at most 512 bytes.
    ///   - characteristic: The destination.
    ///   - offset: The position in the value at which the part begins.
    ///   - timeout: The longest time; `nil` for 60 s.
    /// - Throws: `BLEError` as `write(_:to:_:timeout:)` does, and `.invalidArgument` for an offset that no value has.
    ///
    /// Spec: Write Long Characteristic Values, Core Vol 3 Part G, 4.9.4.
    public func write(
        _ value: [UInt8], to characteristic: CharacteristicReference, at offset: Int, timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = context(
            .write(byteCount: value.count, to: characteristic), within: timeout ?? Self.valueTimeout,
            retrying: .never)
        let start = try checked(offset, in: context)
        try await recovering(context) { () async throws(BLEError) in
            let handle = try await writableHandle(characteristic, .withResponse, in: context)
            _ = try await run(in: context) { client, id, deadline, now in
                let procedure = WriteLong(handle: handle, value: value, offset: start, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
            }
        }
    }

    /// Returns the length of the longest value that one call of `write(_:to:_:timeout:)` carries on this link, in
    /// bytes.
    ///
    /// The length is 512 with response, as longer values are sent in pieces, and `mtu - 3` without.
    public func maximumWriteLength(for kind: WriteKind) -> Int {
        switch kind {
        case .withResponse: ATTLimits.valueLength
        case .withoutResponse: mtu - 3
        }
    }

    func writeOnce(
        _ value: [UInt8], to handle: AttributeHandle, in context: CallContext,
        askingFor collector: Subscriptions.ID? = nil
    ) async throws(BLEError) {
        let isLong = value.count > mtu - 3
        _ = try await run(in: context, askingFor: collector) { client, id, deadline, now in
            if isLong {
                let procedure = WriteLong(handle: handle, value: value, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
            }
            let procedure = WriteRequest(handle: handle, value: value, mtu: client.mtu)
            return client.start(procedure, id: id, deadline: deadline, at: now) { .done }
        }
    }

    func sendCommand(
        _ value: [UInt8], to handle: AttributeHandle, in context: CallContext,
        askingFor collector: Subscriptions.ID? = nil
    ) async throws(BLEError) {
        guard value.count <= mtu - 3 else {
            throw BLEError(
                .tooLong, subject: name, during: context.operation,
                because: "a write without response carries at most \(mtu - 3) bytes on this link",
                hint: "Split the value as the device's documentation states, or write with response.")
        }
        let command = ATTWriteCommand(handle: handle, value: value).bytes
        _ = try await run(in: context, askingFor: collector) { client, id, deadline, now in
            client.startCommand(command, id: id, deadline: deadline, at: now)
        }
    }

    /// Writes several values as one: the peer queues all of them and then writes all or none.
    ///
    /// - Parameter timeout: The longest time for all of it; `nil` for 60 s.
    /// - Throws: `BLEError` as `write(_:to:_:timeout:)` does; nothing was written then, unless the link was lost, the
    ///   time was over or the task was cancelled during the last request.
    public func writeReliably(
        _ values: [(value: [UInt8], characteristic: CharacteristicReference)], timeout: Duration? = nil
    ) async throws(BLEError) {
        let context = context(
            "write \(values.count) values reliably", within: timeout ?? Self.valueTimeout, retrying: .never)
        try await recovering(context) { () async throws(BLEError) in
            let parts = try await reliableParts(values, in: context)
            _ = try await run(in: context) { client, id, deadline, now in
                client.start(ReliableWrite(parts, mtu: client.mtu), id: id, deadline: deadline, at: now) { .done }
            }
        }
    }

    /// Returns the parts of a reliable write. While one characteristic is discovered, the peer may announce that the
    /// handle of an earlier one belongs to another attribute; all of them are looked up again then.
    private func reliableParts(
        _ values: [(value: [UInt8], characteristic: CharacteristicReference)], in context: CallContext
    ) async throws(BLEError) -> [ReliableWrite.Part] {
        // A peer whose services change faster than they can be discovered must not keep a call pending forever.
        for _ in 0..<2 {
            let changes = peerDatabase.state.changeCount
            var parts: [ReliableWrite.Part] = []
            for (value, characteristic) in values {
                try checkReliableWrite(to: characteristic, in: context)
                let handle = try await writableHandle(characteristic, .withResponse, in: context)
                parts.append(ReliableWrite.Part(handle: handle, value: value))
            }
            if changes == peerDatabase.state.changeCount { return parts }
        }
        throw changed(during: context.operation)
    }

    /// Refuses a write that would disable the values of an existing subscription.
    func checkConfiguration(_ handle: AttributeHandle, in context: CallContext) throws(BLEError) {
        kept.written(handle)
        guard subscriptionHub.ownsConfiguration(at: handle) else { return }
        throw BLEError(
            .busy, subject: name, during: context.operation, because: "a subscription keeps this client configuration",
            hint: "End the subscription first.")
    }

    func writableHandle(
        _ reference: CharacteristicReference, _ kind: WriteKind, in context: CallContext
    ) async throws(BLEError) -> AttributeHandle {
        if case .handle(let handle) = reference {
            try checkConfiguration(handle, in: context)
            return handle
        }
        let found = try await resolve(reference, in: context)
        let allowed: CharacteristicProperties = kind == .withResponse ? .write : .writeWithoutResponse
        if found.properties.contains(allowed) || found.properties.contains(.extendedProperties) {
            return found.valueHandle
        }
        let other: CharacteristicProperties = kind == .withResponse ? .writeWithoutResponse : .write
        // If the value cannot be written at all, the kind of write is not the reason.
        let isWritable = !found.properties.isDisjoint(with: [other, .authenticatedSignedWrites])
        let kindOfWrite = kind == .withResponse ? " with response" : " without response"
        throw BLEError(
            .notSupported, subject: name, during: context.operation,
            because: "it is not writable\(isWritable ? kindOfWrite : "") (properties: \(found.properties))",
            hint: found.properties.contains(other)
                ? "Write it \(kind == .withResponse ? "without" : "with") response." : nil)
    }
}
