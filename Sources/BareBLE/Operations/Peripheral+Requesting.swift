internal import BLECore
internal import BLELinux

extension Peripheral {
    /// How long an answer of several values may take where the caller does not say.
    private static let assemblyTimeout: Duration = .seconds(600)

    /// Writes a value, and waits for the value that the peer sends in answer.
    ///
    /// The response is listened for before the request is written, so it cannot be missed. What the kernel had received before the
    /// request was written is not taken for it. A value that is still on its way then cannot be told from a response: where a
    /// device sends by itself, use `matching`. Where nobody listens to the characteristic, a subscription is made and taken
    /// back afterwards, which costs two requests more: to ask several times, subscribe to it meanwhile. Other listeners
    /// get the answer too.
    ///
    /// An answer that comes after the call has failed may be taken for that of the next one, unless `matching` tells
    /// them apart, or `drain(_:quietFor:timeout:)` is called in between.
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - characteristic: where it is written.
    ///   - kind: how it is written.
    ///   - reply: where the answer comes from; `nil` for the same characteristic.
    ///   - matching: whether a value is the answer; others are passed over. It is asked on the library's thread.
    ///   - timeout: how long all of it may take; `nil` for 60 s.
    /// - Returns: The answer.
    /// - Throws: `BLEError` with `.timedOut` when no value matched in time, and as `write(_:to:_:timeout:)` and
    ///   `subscribe(to:_:)` do. The request may have been carried out all the same.
    public func request(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        replyOn reply: CharacteristicReference? = nil,
        matching: @escaping @Sendable (_ value: [UInt8]) -> Bool = { _ in true }, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let source = reply ?? characteristic
        let operation = "get an answer from \(source)"
        let deadline = loop.now() + (timeout ?? Self.valueTimeout)
        let (outcome, gathering) = try await gather(
            ResponseCollector(.match(matching), deadline: deadline), from: source,
            behind: GatheredRequest(value: value, characteristic: characteristic, kind: kind), until: deadline,
            during: operation)
        if case .matched(let answer) = outcome { return answer }
        let count = gathering.count
        throw BLEError(
            .timedOut, subject: name, during: operation,
            because: count == 0 ? "the peer sent no value in time" : "none of \(count) values was the answer",
            hint: "The link is still up; the peer may have carried out the request.")
    }

    /// Writes a value, and puts the values that the peer sends in answer into one.
    ///
    /// It listens as `request(_:to:_:replyOn:matching:timeout:)` does. What has come when it fails is in the error's
    /// `partialValue`; a part is never taken for the whole.
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - characteristic: where it is written.
    ///   - kind: how it is written.
    ///   - source: where the answer comes from.
    ///   - assembly: when the answer is complete.
    ///   - idleTimeout: how long the peer may be silent behind the request and between two values; values without bytes are silence.
    ///   - timeout: how long all of it may take; `nil` for ten minutes, of which the request may take one.
    /// - Returns: The values, one behind the other.
    /// - Throws: `BLEError` with `.tooLong` when more came than was meant to, `.timedOut`, `.disconnected`, `.cancelled`,
    ///   each with what had come; `.invalidArgument` for a negative length; and as `write(_:to:_:timeout:)` and `subscribe(to:_:)` do.
    public func request(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        assembling source: CharacteristicReference, _ assembly: ReplyFraming, idleTimeout: Duration = .seconds(10),
        timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let operation = "assemble an answer from \(source)"
        if case .length(let length) = assembly.measure, length < 0 {
            throw BLEError(.invalidArgument, subject: name, during: operation, because: "the length is \(length)")
        }
        let now = loop.now()
        let (outcome, gathering) = try await gather(
            ResponseCollector(
                .assemble(assembly), idleTime: idleTimeout, deadline: now + (timeout ?? Self.assemblyTimeout)),
            from: source, behind: GatheredRequest(value: value, characteristic: characteristic, kind: kind),
            until: now + (timeout ?? Self.valueTimeout), during: operation)
        let count = gathering.bytes.count
        switch outcome {
        case .assembled(let bytes): return bytes
        case .tooMuch:
            throw BLEError(
                .tooLong, subject: name, during: operation,
                because: "\(count) bytes came, where at most \(assembly.mostBytes) were expected",
                hint: "All of them are in the error.", partialValue: gathering.bytes, origin: .peer)
        case .idle, .timedOut, .silent, .matched, .collected:
            throw BLEError(
                .timedOut, subject: name, during: operation,
                because: outcome == .idle
                    ? "the peer was silent for \(idleTimeout) behind \(count) bytes"
                    : "the answer was not complete in time, with \(count) bytes",
                hint: "The link is still up; what came is in the error.", partialValue: gathering.bytes, origin: .peer)
        }
    }

    /// Writes a value, and collects the values that the peer sends in response, each by itself.
    ///
    /// ```swift
    /// let records = try await device.request([0x01, 0x01], to: control, collecting: measurements, .until { $0.first == 0x06 })
    /// ```
    ///
    /// It listens as `request(_:to:_:replyOn:matching:timeout:)` does. When it fails, what has come is in the error's `partialValue`, one value
    /// after the other.
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - characteristic: where it is written.
    ///   - kind: how it is written.
    ///   - source: where the responses come from.
    ///   - count: how many there are.
    ///   - idleTimeout: how long the peer may be silent after the request and between two values.
    ///   - timeout: how long all of it may take; `nil` for ten minutes, of which the request may take one.
    /// - Returns: The values, in the order in which they crossed the link.
    /// - Throws: `BLEError` with `.tooLong` when more came than the limit and none was the last one, `.timedOut`, `.disconnected`, `.cancelled`,
    ///   each with what had come; `.invalidArgument` for a negative count; and as `write(_:to:_:timeout:)` and `subscribe(to:_:)` do.
    public func request(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        collecting source: CharacteristicReference, _ count: ResponseCount, idleTimeout: Duration = .seconds(10),
        timeout: Duration? = nil
    ) async throws(BLEError) -> [[UInt8]] {
        let operation = "collect responses from \(source)"
        if case .exactly(let count) = count.measure, count < 0 {
            throw BLEError(.invalidArgument, subject: name, during: operation, because: "the count is \(count)")
        }
        let now = loop.now()
        let (outcome, gathering) = try await gather(
            ResponseCollector(
                .collect(count), idleTime: idleTimeout, deadline: now + (timeout ?? Self.assemblyTimeout)),
            from: source, behind: GatheredRequest(value: value, characteristic: characteristic, kind: kind),
            until: now + (timeout ?? Self.valueTimeout), during: operation)
        let values = gathering.count == 1 ? "1 value" : "\(gathering.count) values"
        switch outcome {
        case .collected(let values): return values
        case .tooMuch:
            throw BLEError(
                .tooLong, subject: name, during: operation, because: "\(values) came, and none was the last one",
                hint: "All of them are in the error.", partialValue: gathering.bytes)
        case .idle, .timedOut, .silent, .matched, .assembled:
            throw BLEError(
                .timedOut, subject: name, during: operation,
                because: outcome == .idle
                    ? "the peer was silent for \(idleTimeout) after \(values)"
                    : "the responses were not complete in time, with \(values)",
                hint: "The link is still up; what came is in the error.", partialValue: gathering.bytes)
        }
    }

    /// Discards what the peer sends until it is silent, for instance the rest of an answer that was given up.
    ///
    /// Where nobody listens to the characteristic, a subscription is made and taken back afterwards. Other listeners
    /// get the values all the same.
    ///
    /// - Parameters:
    ///   - source: where the values come from.
    ///   - silence: how long no value must come.
    ///   - timeout: how long all of it may take; `nil` for a minute more than `silence`. A device that goes on for longer than that needs
    ///     a longer one.
    /// - Returns: How many values were discarded.
    /// - Throws: `BLEError` with `.timedOut` when the values do not stop, and as `subscribe(to:_:)` does.
    @discardableResult
    public func drain(
        _ source: CharacteristicReference, quietFor silence: Duration, timeout: Duration? = nil
    ) async throws(BLEError) -> Int {
        let operation = "wait until \(source) is silent"
        let deadline = loop.now() + (timeout ?? silence + Self.valueTimeout)
        let (outcome, gathering) = try await gather(
            ResponseCollector(.silence, idleTime: silence, deadline: deadline), from: source, behind: nil,
            until: deadline,
            during: operation)
        if outcome == .silent { return gathering.count }
        throw BLEError(
            .timedOut, subject: name, during: operation,
            because: "\(gathering.count) values came, never \(silence) apart",
            hint: "Tell the device to stop, or allow more time.")
    }
}
