public import BLECore

extension Peripheral {
    /// Reads a value, decoded as the key's type.
    ///
    /// ```swift
    /// let level = try await device.read(.batteryLevel)
    /// ```
    ///
    /// - Throws: `BLEError` as `read(_:timeout:)` does for bytes; `.malformedValue` if they do not fit the type
    ///   (`partialValue` holds them); `.ambiguous` if the key matches several characteristics, which `at(_:)`
    ///   distinguishes.
    public func read<Value: GATTReadable>(
        _ key: CharacteristicKey<Value>, timeout: Duration? = nil
    ) async throws(BLEError) -> Value {
        let reference = CharacteristicReference(key)
        let bytes = try await read(reference, timeout: timeout)
        return try decode(bytes, as: Value.self, during: "read \(reference)")
    }

    /// Writes a value, encoded as the key's type.
    ///
    /// - Throws: `BLEError` as `write(_:to:_:timeout:)` does for bytes.
    public func write<Value: GATTWritable>(
        _ value: Value, to key: CharacteristicKey<Value>, _ kind: WriteKind = .withResponse, timeout: Duration? = nil
    ) async throws(BLEError) {
        try await write(value.valueBytes, to: CharacteristicReference(key), kind, timeout: timeout)
    }

    /// Subscribes to a characteristic, and returns its values decoded as the key's type.
    ///
    /// - Throws: `BLEError` as `subscribe(to:_:)` does for bytes.
    public func subscribe<Value: GATTReadable>(
        to key: CharacteristicKey<Value>, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(BLEError) -> TypedValueSequence<Value> {
        typed(try await subscribe(to: CharacteristicReference(key), options), options.malformedValues)
    }

    /// Returns the sequence with each value decoded.
    func typed<Value: GATTReadable & Sendable>(
        _ received: ValueSequence, _ policy: SubscribeOptions.MalformedValuePolicy
    ) -> TypedValueSequence<Value> {
        return TypedValueSequence(received: received, decoder: ValueDecoder(policy, log))
    }

    /// Decodes a value.
    nonisolated func decode<Value: GATTReadable>(
        _ bytes: [UInt8], as type: Value.Type, during operation: @autoclosure () -> String
    ) throws(BLEError) -> Value {
        do {
            return try Value(value: bytes)
        } catch {
            throw BLEError(malformed: bytes, error, subject: name, during: operation())
        }
    }
}

extension CharacteristicReference {
    /// Creates a reference to the characteristic that a key names.
    public init<Value>(_ key: CharacteristicKey<Value>) {
        self = .uuid(key.uuid, service: key.service, index: key.index)
    }
}

extension BLEError {
    init(malformed bytes: [UInt8], _ packet: MalformedPacket, subject: String, during operation: String) {
        self.init(
            .malformedValue, subject: subject, during: operation,
            because: "\(packet), in \(bytes.isEmpty ? "no bytes" : Hex.encode(bytes))",
            hint: "Without the key's type the bytes are given as they are.", partialValue: bytes, origin: .peer)
    }
}
