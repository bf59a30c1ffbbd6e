public import BLECore

extension Peripheral {
    /// A value and its handle.
    public struct AttributeReading: Hashable, Sendable {
        /// The handle of the value.
        public let handle: AttributeHandle
        /// The whole value.
        public let bytes: [UInt8]
    }
}

/// The former name of `Peripheral.AttributeReading`.
@available(*, deprecated, renamed: "Peripheral.AttributeReading")
public typealias AttributeReading = Peripheral.AttributeReading

extension Peripheral {
    /// Reads every value of one type, with their handles.
    ///
    /// No discovery is needed. The peer returns several short values of the same length in one response; a value that
    /// may be truncated is read to its end. One additional request at the end proves that there are no more; `limit`
    /// can save it.
    ///
    /// - Parameters:
    ///   - uuid: The type of the values: a characteristic, a descriptor, or a declaration.
    ///   - range: The handles to search.
    ///   - limit: The number of values that is enough.
    ///   - timeout: The longest time; 60 seconds by default.
    /// - Throws: `BLEError` with `.attributeNotFound` if there is none, `.invalidArgument` for handle 0,
    ///   `.refusedByPeer` if one of them cannot be read (the error names it), and as `read(_:timeout:)` does.
    ///
    /// Spec: Read Using Characteristic UUID, Core Vol 3 Part G, 4.8.2.
    public func readAll(
        _ uuid: BluetoothUUID, in range: ClosedRange<AttributeHandle> = 1...0xFFFF, limit: Int? = nil,
        timeout: Duration? = nil
    ) async throws(BLEError) -> [AttributeReading] {
        let context = context("read all \(uuid)", within: timeout ?? Self.valueTimeout)
        try check(handle: range.lowerBound, in: context)
        let limit = try count(limit, in: context)
        return try await recovering(context) { () async throws(BLEError) in
            let outcome = try await run(in: context) { client, id, deadline, now in
                let procedure = ReadByUUID(uuid, in: range, mtu: client.mtu, limit: limit)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
            }
            guard case .attributes(let found) = outcome else { throw unexpected(outcome, in: context) }
            return try await complete(Array(found.prefix(limit)), in: context)
        }
    }

    /// Reads the values at several handles in as few requests as possible.
    ///
    /// Without `lengths`, the values may have any length. One that did not fit into the response is read after it, so
    /// the result is complete; a single one is read as by `read(_:timeout:)`. Peers older than Bluetooth 5.2 do not
    /// support the request, which is reported as `.refusedByPeer` with `attError` 0x06.
    ///
    /// With `lengths` it takes one request that older peers support too. Its response contains the values in a row, so
    /// all of them must fit into one packet (`mtu - 1` bytes), and the lengths separate them.
    ///
    /// - Parameters:
    ///   - handles: The handles of the values.
    ///   - lengths: The lengths of the values, in the same order, if they are known; that of the last value may be left
    ///     out.
    ///   - timeout: The longest time; 60 seconds by default.
    /// - Returns: The values, in the order of the handles.
    /// - Throws: `BLEError` with `.invalidArgument` for no handles, or more than fit into one packet, or for lengths
    ///   that do not belong to them; with `lengths`, `.tooLong` for values that do not fit into one response, before
    ///   anything is sent, and `.malformedReply` for a response of another length; and as `read(_:timeout:)` does.
    ///
    /// Spec: Read Multiple (Variable Length) Characteristic Values, Core Vol 3 Part G, 4.8.4 and 4.8.5.
    public func readAll(
        _ handles: [AttributeHandle], lengths: [Int]? = nil, timeout: Duration? = nil
    ) async throws(BLEError) -> [AttributeReading] {
        if let lengths { return try await readSeparated(handles, lengths, timeout: timeout) }
        let context = context(
            "read \(handles.count) values", within: timeout ?? Self.valueTimeout, retrying: .sameHandles(handles))
        return try await recovering(context) { () async throws(BLEError) in
            var readings: [AttributeReading] = []
            repeat {
                let missing = Array(handles.dropFirst(readings.count))
                // The request requires at least two handles.
                if missing.count == 1, let last = missing.first {
                    let bytes = try await readValue(last, in: context)
                    readings.append(AttributeReading(handle: last, bytes: bytes))
                    break
                }
                let outcome = try await run(in: context) { client, id, deadline, now in
                    let procedure = ReadMultipleVariable(handles: missing, mtu: client.mtu)
                    return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
                }
                guard case .attributes(let found) = outcome, !found.isEmpty else {
                    throw unexpected(outcome, in: context)
                }
                readings += try await complete(found, in: context)
            } while readings.count < handles.count
            return readings
        }
    }

    private func readSeparated(
        _ handles: [AttributeHandle], _ lengths: [Int], timeout: Duration?
    ) async throws(BLEError) -> [AttributeReading] {
        let operation = "read \(handles.count) values"
        guard lengths.count == handles.count || lengths.count + 1 == handles.count,
            lengths.allSatisfy({ (0...ATTLimits.valueLength).contains($0) })
        else {
            throw BLEError(
                .invalidArgument, subject: name, during: operation,
                because: "the lengths do not belong to the handles",
                hint: "Give each value a length from 0 to 512; only the last one's may be left out.")
        }
        let total = lengths.reduce(0, +)
        guard total <= mtu - 1 else {
            throw BLEError(
                .tooLong, subject: name, during: operation,
                because: "\(total) bytes do not fit into one response of \(mtu - 1) bytes",
                hint: "Read fewer values at once.")
        }
        // The request requires at least two handles.
        let single = handles.count == 1 ? handles.first : nil
        var rest: ArraySlice<UInt8>
        if let single {
            rest = try await read(.handle(single), timeout: timeout)[...]
        } else {
            rest = try await readJoined(handles, timeout: timeout)[...]
        }
        var values: [[UInt8]] = []
        for length in lengths {
            let value = rest.prefix(length)
            guard value.count == length else { break }
            values.append(Array(value))
            rest = rest.dropFirst(length)
        }
        if values.count == lengths.count, lengths.count < handles.count {
            values.append(Array(rest))
            rest = []
        }
        guard values.count == handles.count, rest.isEmpty else {
            throw BLEError(
                .malformedReply, subject: name, during: operation,
                because: "the values together do not have the length that was given for them",
                hint: "Read the values one by one: a length may have changed.")
        }
        return zip(handles, values).map { AttributeReading(handle: $0, bytes: $1) }
    }

    /// Reads several values with one request, and returns them in a row, as the response contains them. What does not
    /// fit into one packet is missing at the end.
    ///
    /// Spec: Read Multiple Characteristic Values, Core Vol 3 Part G, 4.8.4.
    package func readJoined(
        _ handles: [AttributeHandle], timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let context = context(
            "read \(handles.count) values", within: timeout ?? Self.valueTimeout, retrying: .sameHandles(handles))
        return try await recovering(context) { () async throws(BLEError) in
            let outcome = try await run(in: context) { client, id, deadline, now in
                let procedure = ReadMultiple(handles: handles, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .value($0) }
            }
            guard case .value(let values) = outcome else { throw unexpected(outcome, in: context) }
            return values
        }
    }

    /// Reads several values with one request, and returns them in a row.
    @available(*, deprecated, message: "Use `readAll(_:lengths:timeout:)`, which separates the values.")
    public func readMultiple(
        _ handles: [AttributeHandle], timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        try await readJoined(handles, timeout: timeout)
    }

    /// The former name of `readAll(_:lengths:timeout:)`.
    @available(*, deprecated, renamed: "readAll(_:lengths:timeout:)")
    public func readMultiple(
        _ handles: [AttributeHandle], lengths: [Int], timeout: Duration? = nil
    ) async throws(BLEError) -> [[UInt8]] {
        try await readAll(handles, lengths: lengths, timeout: timeout).map(\.bytes)
    }

    /// The former name of `readAll(_:lengths:timeout:)`.
    @available(*, deprecated, renamed: "readAll(_:lengths:timeout:)")
    public func readMultipleVariable(
        _ handles: [AttributeHandle], timeout: Duration? = nil
    ) async throws(BLEError) -> [[UInt8]] {
        try await readAll(handles, timeout: timeout).map(\.bytes)
    }

    /// Reads the rest of values that may have been truncated.
    private func complete(
        _ found: [AttributeValue], in context: CallContext
    ) async throws(BLEError) -> [AttributeReading] {
        var readings: [AttributeReading] = []
        for attribute in found {
            guard attribute.mayBeCut else {
                readings.append(AttributeReading(handle: attribute.handle, bytes: attribute.value))
                continue
            }
            let outcome = try await run(in: context) { client, id, deadline, now in
                let procedure = ReadLong(handle: attribute.handle, continuing: attribute.value, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .value($0) }
            }
            guard case .value(let bytes) = outcome else { throw unexpected(outcome, in: context) }
            readings.append(AttributeReading(handle: attribute.handle, bytes: bytes))
        }
        return readings
    }
}
