public import BLECore

extension Peripheral {
    /// Writes a value, and waits for the value that the peer sends in response, both as the types of their keys.
    ///
    /// A value on the response's characteristic that does not fit the key's type ends the call.
    ///
    /// - Throws: `BLEError` as `request(_:to:_:replyOn:matching:timeout:)` does for bytes; `.malformedValue` for a
    ///   value that does not fit its type (`partialValue` holds it).
    public func request<Value: GATTWritable, Reply: GATTReadable>(
        _ value: Value, to key: CharacteristicKey<Value>, _ kind: WriteKind = .withResponse,
        replyOn reply: CharacteristicKey<Reply>,
        matching: @escaping @Sendable (_ reply: Reply) -> Bool = { _ in true }, timeout: Duration? = nil
    ) async throws(BLEError) -> Reply {
        let source = CharacteristicReference(reply)
        let bytes = try await request(
            value.valueBytes, to: CharacteristicReference(key), kind, replyOn: source,
            matching: { bytes in (try? Reply(value: bytes)).map(matching) ?? true }, timeout: timeout)
        return try decode(bytes, as: Reply.self, during: "decode a value of \(source)")
    }

    /// Writes a value, and decodes one value from those that the peer sends in response.
    ///
    /// ```swift
    /// let firmware = try await device.request(
    ///     2, to: control, assembling: stream, .length(64), as: FirmwareInfo.self, idleTimeout: .seconds(2))
    /// ```
    ///
    /// - Throws: `BLEError` as `request(_:to:_:assembling:_:idleTimeout:timeout:)` does for bytes; `.malformedValue`
    ///   for bytes that do not fit the type.
    public func request<Value: GATTWritable, Part, Reply: GATTReadable>(
        _ value: Value, to key: CharacteristicKey<Value>, _ kind: WriteKind = .withResponse,
        assembling source: CharacteristicKey<Part>, _ assembly: ReplyFraming, as type: Reply.Type = Reply.self,
        idleTimeout: Duration = .seconds(10), timeout: Duration? = nil
    ) async throws(BLEError) -> Reply {
        let source = CharacteristicReference(source)
        let bytes = try await request(
            value.valueBytes, to: CharacteristicReference(key), kind, assembling: source, assembly,
            idleTimeout: idleTimeout, timeout: timeout)
        return try decode(bytes, as: Reply.self, during: "decode a response from \(source)")
    }

    /// Writes a value, and collects the values that the peer sends in response, as the types of the keys.
    ///
    /// - Throws: `BLEError` as `request(_:to:_:collecting:_:idleTimeout:timeout:)` does for bytes; `.malformedValue`
    ///   for a value that does not fit its type (`partialValue` holds it).
    public func request<Value: GATTWritable, Reply: GATTReadable>(
        _ value: Value, to key: CharacteristicKey<Value>, _ kind: WriteKind = .withResponse,
        collecting source: CharacteristicKey<Reply>, _ count: ResponseCount, idleTimeout: Duration = .seconds(10),
        timeout: Duration? = nil
    ) async throws(BLEError) -> [Reply] {
        let source = CharacteristicReference(source)
        let values = try await request(
            value.valueBytes, to: CharacteristicReference(key), kind, collecting: source, count,
            idleTimeout: idleTimeout, timeout: timeout)
        var replies: [Reply] = []
        for bytes in values {
            replies.append(try decode(bytes, as: Reply.self, during: "decode a value of \(source)"))
        }
        return replies
    }

    /// Discards the values that the peer sends until it is silent, as `drain(_:quietFor:timeout:)` does for a
    /// reference.
    ///
    /// - Throws: `BLEError` as that does.
    @discardableResult
    public func drain<Value>(
        _ source: CharacteristicKey<Value>, quietFor silence: Duration, timeout: Duration? = nil
    ) async throws(BLEError) -> Int {
        try await drain(CharacteristicReference(source), quietFor: silence, timeout: timeout)
    }
}
