internal import BLECore
internal import BLELinux

extension Peripheral {
    /// The default time limit for a response of several values.
    private static let assemblyTimeout: Duration = .seconds(600)

    /// Writes a value, and waits for the value that the peer sends in response.
    ///
    /// The call listens before the request is written, so the response cannot be missed. What the kernel had received
    /// before the request was written is not taken for it. A value that is still on its way then cannot be
    /// distinguished from a response: if a device also sends values by itself, use `matching`. Without a subscription
    /// to the characteristic, one is made and ended afterwards, which takes two more requests: to send several
    /// requests, subscribe meanwhile. Other subscriptions get the response too.
    ///
    /// A response that comes after the call has failed may be taken for that of the next one, unless `matching`
    /// distinguishes them, or `drain(_:quietFor:timeout:)` is called in between.
    ///
    /// - Parameters:
    ///   - value: The request.
    ///   - characteristic: The characteristic to write to.
    ///   - kind: The kind of the write.
    ///   - reply: The characteristic that sends the response; `nil` for the same one.
    ///   - matching: Returns whether a value is the response; others are ignored. It is called on the library's
    ///     thread.
    ///   - timeout: The longest time for all of it; `nil` for 60 s.
    /// - Returns: The response.
    /// - Throws: `BLEError` with `.timedOut` if no value matched in time, and as `write(_:to:_:timeout:)` and
    ///   `subscribe(to:_:)` do. The peer may have executed the request all the same.
    public func request(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        replyOn reply: CharacteristicReference? = nil,
        matching: @escaping @Sendable (_ value: [UInt8]) -> Bool = { _ in true }, timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let source = reply ?? characteristic
        let context = context("get a response from \(source)", within: timeout ?? Self.valueTimeout)
        let (outcome, collector) = try await collect(
            ResponseCollector(.match(matching), deadline: context.deadline), from: source,
            after: CollectedRequest(value: value, characteristic: characteristic, kind: kind), in: context)
        if case .matched(let response) = outcome { return response }
        let count = collector.count
        throw BLEError(
            .timedOut, subject: name, during: context.operation,
            because: count == 0 ? "the peer sent no value in time" : "none of \(count) values was the response",
            hint: "The link is still up; the peer may have carried out the request.")
    }

    /// Writes a value, and joins the values that the peer sends in response.
    ///
    /// It listens as `request(_:to:_:replyOn:matching:timeout:)` does. If it fails, the values so far are in the
    /// error's `partialValue`; a part is never taken for the whole.
    ///
    /// - Parameters:
    ///   - value: The request.
    ///   - characteristic: The characteristic to write to.
    ///   - kind: The kind of the write.
    ///   - source: The characteristic that sends the response.
    ///   - assembly: The rule by which the response is complete.
    ///   - idleTimeout: The longest silence of the peer after the request and between two values; empty values count
    ///     as silence.
    ///   - timeout: The longest time for all of it; `nil` for ten minutes, of which the request may take one.
    /// - Returns: The values, joined in their order.
    /// - Throws: `BLEError` with `.tooLong` if more came than expected, `.timedOut`, `.disconnected`, `.cancelled`,
    ///   each with the values so far; `.invalidArgument` for a negative length; and as `write(_:to:_:timeout:)` and
    ///   `subscribe(to:_:)` do.
    public func request(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        assembling source: CharacteristicReference, _ assembly: ReplyFraming, idleTimeout: Duration = .seconds(10),
        timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let now = loop.now()
        let context = CallContext(
            "assemble a response from \(source)", until: now + (timeout ?? Self.valueTimeout))
        if case .length(let length) = assembly.measure, length < 0 {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation, because: "the length is \(length)",
                hint: "Give a length of at least 0.")
        }
        let (outcome, collector) = try await collect(
            ResponseCollector(
                .assemble(assembly), idleTime: idleTimeout, deadline: now + (timeout ?? Self.assemblyTimeout)),
            from: source, after: CollectedRequest(value: value, characteristic: characteristic, kind: kind),
            in: context)
        let count = collector.bytes.count
        switch outcome {
        case .assembled(let bytes): return bytes
        case .tooMuch:
            throw BLEError(
                .tooLong, subject: name, during: context.operation,
                because: "\(count) bytes came, where at most \(assembly.mostBytes) were expected",
                hint: "All of them are in the error.", partialValue: collector.bytes, origin: .peer)
        case .idle, .timedOut, .silent, .matched, .collected:
            throw BLEError(
                .timedOut, subject: name, during: context.operation,
                because: outcome == .idle
                    ? "the peer was silent for \(idleTimeout) after \(count) bytes"
                    : "the response was not complete in time, with \(count) bytes",
                hint: "The link is still up; what came is in the error.", partialValue: collector.bytes, origin: .peer)
        }
    }

    /// Writes a value, and collects the values that the peer sends in response, each by itself.
    ///
    /// ```swift
    /// let records = try await device.request(
    ///     [0x01, 0x01], to: control, collecting: measurements, .until { $0.first == 0x06 })
    /// ```
    ///
    /// It listens as `request(_:to:_:replyOn:matching:timeout:)` does. If it fails, the values so far are in the
    /// error's `partialValue`, one after the other.
    ///
    /// - Parameters:
    ///   - value: The request.
    ///   - characteristic: The characteristic to write to.
    ///   - kind: The kind of the write.
    ///   - source: The characteristic that sends the responses.
    ///   - count: The number of responses.
    ///   - idleTimeout: The longest silence of the peer after the request and between two values.
    ///   - timeout: The longest time for all of it; `nil` for ten minutes, of which the request may take one.
    /// - Returns: The values, in the order in which they crossed the link.
    /// - Throws: `BLEError` with `.tooLong` if more came than the limit and none was the last one, `.timedOut`,
    ///   `.disconnected`, `.cancelled`, each with the values so far; `.invalidArgument` for a negative count; and as
    ///   `write(_:to:_:timeout:)` and `subscribe(to:_:)` do.
    public func request(
        _ value: [UInt8], to characteristic: CharacteristicReference, _ kind: WriteKind = .withResponse,
        collecting source: CharacteristicReference, _ count: ResponseCount, idleTimeout: Duration = .seconds(10),
        timeout: Duration? = nil
    ) async throws(BLEError) -> [[UInt8]] {
        let now = loop.now()
        let context = CallContext(
            "collect responses from \(source)", until: now + (timeout ?? Self.valueTimeout))
        if case .exactly(let count) = count.measure, count < 0 {
            throw BLEError(
                .invalidArgument, subject: name, during: context.operation, because: "the count is \(count)",
                hint: "Give a count of at least 0.")
        }
        let (outcome, collector) = try await collect(
            ResponseCollector(
                .collect(count), idleTime: idleTimeout, deadline: now + (timeout ?? Self.assemblyTimeout)),
            from: source, after: CollectedRequest(value: value, characteristic: characteristic, kind: kind),
            in: context)
        let values = collector.count == 1 ? "1 value" : "\(collector.count) values"
        switch outcome {
        case .collected(let values): return values
        case .tooMuch:
            throw BLEError(
                .tooLong, subject: name, during: context.operation,
                because: "\(values) came, and none was the last one",
                hint: "All of them are in the error.", partialValue: collector.bytes)
        case .idle, .timedOut, .silent, .matched, .assembled:
            throw BLEError(
                .timedOut, subject: name, during: context.operation,
                because: outcome == .idle
                    ? "the peer was silent for \(idleTimeout) after \(values)"
                    : "the responses were not complete in time, with \(values)",
                hint: "The link is still up; what came is in the error.", partialValue: collector.bytes)
        }
    }

    /// Discards the values that the peer sends until it is silent, such as the rest of a response after a
    /// cancellation.
    ///
    /// Without a subscription to the characteristic, one is made and ended afterwards. Other subscriptions get the
    /// values all the same.
    ///
    /// - Parameters:
    ///   - source: The characteristic that sends the values.
    ///   - silence: The time without a value after which the call returns.
    ///   - timeout: The longest time for all of it; `nil` for a minute more than `silence`. A device that sends for
    ///     longer than that needs a longer one.
    /// - Returns: The number of discarded values.
    /// - Throws: `BLEError` with `.timedOut` if the values do not stop, and as `subscribe(to:_:)` does.
    @discardableResult
    public func drain(
        _ source: CharacteristicReference, quietFor silence: Duration, timeout: Duration? = nil
    ) async throws(BLEError) -> Int {
        let context = context(
            "wait until \(source) is silent", within: timeout ?? silence + Self.valueTimeout)
        let (outcome, collector) = try await collect(
            ResponseCollector(.silence, idleTime: silence, deadline: context.deadline), from: source, after: nil,
            in: context)
        if outcome == .silent { return collector.count }
        throw BLEError(
            .timedOut, subject: name, during: context.operation,
            because: "\(collector.count) values came, never \(silence) apart",
            hint: "Make the device stop, or allow more time.")
    }
}
