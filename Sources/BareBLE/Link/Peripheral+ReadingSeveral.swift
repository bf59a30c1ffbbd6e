public import BLECore

/// A value, and the handle at which it was found.
public struct AttributeReading: Hashable, Sendable {
    /// Where the value is.
    public let handle: AttributeHandle
    /// The value, to its end.
    public let bytes: [UInt8]
}

extension Peripheral {
    /// Reads every value of one type, and says where each of them is.
    ///
    /// Nothing needs to be discovered. The peer gives several short values of the same length in one answer; one that may
    /// have been cut is read to its end. It costs one request more than it takes to list them, which proves that there are
    /// no more; with `limit` that one can be saved.
    ///
    /// - Parameters:
    ///   - uuid: what kind of value: a characteristic, a descriptor, or a declaration.
    ///   - range: the handles to look at.
    ///   - limit: how many values are enough.
    ///   - timeout: how long it may take; 60 seconds when left out.
    /// - Throws: `BLEError` with `.attributeNotFound` when there is none, `.invalidArgument` for handle 0,
    ///   `.refusedByPeer` when one of them cannot be read (the error names it), and as `read(_:timeout:)` does.
    ///
    /// Spec: Read Using Characteristic UUID, Core Vol 3 Part G, 4.8.2.
    public func readAll(
        _ uuid: BluetoothUUID, in range: ClosedRange<AttributeHandle> = 1...0xFFFF, limit: Int? = nil,
        timeout: Duration? = nil
    ) async throws(BLEError) -> [AttributeReading] {
        let operation = "read all \(uuid)"
        try check(handle: range.lowerBound, during: operation)
        let limit = try count(limit, during: operation)
        return try await recovering(within: timeout ?? Self.valueTimeout, during: operation) {
            (deadline) async throws(BLEError) in
            let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
                let procedure = ReadByUUID(uuid, in: range, mtu: client.mtu, limit: limit)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
            }
            guard case .attributes(let found) = outcome else { throw unexpected(outcome, during: operation) }
            return try await complete(Array(found.prefix(limit)), until: deadline, during: operation)
        }
    }

    /// Reads several values at once, which the peer answers with one after the other, in a row.
    ///
    /// Where one ends and the next begins is for the caller to know, and what does not fit into one packet (`mtu - 1` bytes)
    /// is missing at the end.
    ///
    /// - Throws: `BLEError` with `.invalidArgument` for no handles, or more than one packet holds, and as
    ///   `read(_:timeout:)` does.
    ///
    /// Spec: Read Multiple Characteristic Values, Core Vol 3 Part G, 4.8.4.
    public func readMultiple(
        _ handles: [AttributeHandle], timeout: Duration? = nil
    ) async throws(BLEError) -> [UInt8] {
        let operation = "read \(handles.count) values"
        return try await recovering(
            within: timeout ?? Self.valueTimeout, during: operation, repeating: .sameHandles(handles)
        ) { (deadline) async throws(BLEError) in
            let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
                let procedure = ReadMultiple(handles: handles, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .value($0) }
            }
            guard case .value(let values) = outcome else { throw unexpected(outcome, during: operation) }
            return values
        }
    }

    /// Reads several values of known lengths at once, and tells them apart. The last one may have any length.
    ///
    /// - Parameters:
    ///   - handles: where the values are.
    ///   - lengths: their lengths, in the same order; the one of the last value may be left out.
    ///   - timeout: how long it may take; 60 seconds when left out.
    /// - Throws: `BLEError` with `.tooLong` for values that do not fit into one answer, before anything is sent;
    ///   `.malformedReply` for an answer of another length; and as `readMultiple(_:timeout:)` does.
    ///
    /// Spec: Read Multiple Characteristic Values, Core Vol 3 Part G, 4.8.4.
    public func readMultiple(
        _ handles: [AttributeHandle], lengths: [Int], timeout: Duration? = nil
    ) async throws(BLEError) -> [[UInt8]] {
        let operation = "read \(handles.count) values"
        guard lengths.count == handles.count || lengths.count + 1 == handles.count,
            lengths.allSatisfy({ (0...GATTLimits.value).contains($0) })
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
                because: "\(total) bytes do not fit into one answer of \(mtu - 1) bytes",
                hint: "Read fewer values at once.")
        }
        var rest = try await readMultiple(handles, timeout: timeout)[...]
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
                because: "the values together do not have the length that was given for them")
        }
        return values
    }

    /// Reads several values of any length in as few requests as possible.
    ///
    /// A value that found no room in the answer, or not all of it, is read behind it, so the result is complete; one alone is
    /// read as `read(_:timeout:)` does. Peers older
    /// than Bluetooth 5.2 do not know the request; that is told as `.refusedByPeer` with `attError` 0x06.
    ///
    /// - Returns: The values, in the order of the handles.
    /// - Throws: `BLEError` with `.invalidArgument` for no handles, or more than one packet holds, and as
    ///   `read(_:timeout:)` does.
    ///
    /// Spec: Read Multiple Variable Length Characteristic Values, Core Vol 3 Part G, 4.8.5.
    public func readMultipleVariable(
        _ handles: [AttributeHandle], timeout: Duration? = nil
    ) async throws(BLEError) -> [[UInt8]] {
        let operation = "read \(handles.count) values"
        return try await recovering(
            within: timeout ?? Self.valueTimeout, during: operation, repeating: .sameHandles(handles)
        ) { (deadline) async throws(BLEError) in
            var readings: [AttributeReading] = []
            repeat {
                let missing = Array(handles.dropFirst(readings.count))
                // The request is for two or more.
                if missing.count == 1, let last = missing.first {
                    let bytes = try await readValue(last, until: deadline, during: operation)
                    readings.append(AttributeReading(handle: last, bytes: bytes))
                    break
                }
                let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
                    let procedure = ReadMultipleVariable(handles: missing, mtu: client.mtu)
                    return client.start(procedure, id: id, deadline: deadline, at: now) { .attributes($0) }
                }
                guard case .attributes(let found) = outcome, !found.isEmpty else {
                    throw unexpected(outcome, during: operation)
                }
                readings += try await complete(found, until: deadline, during: operation)
            } while readings.count < handles.count
            return readings.map(\.bytes)
        }
    }

    /// Reads what is missing of values that may have been cut.
    private func complete(
        _ found: [AttributeValue], until deadline: BootInstant, during operation: String
    ) async throws(BLEError) -> [AttributeReading] {
        var readings: [AttributeReading] = []
        for attribute in found {
            guard attribute.mayBeCut else {
                readings.append(AttributeReading(handle: attribute.handle, bytes: attribute.value))
                continue
            }
            let outcome = try await run(until: deadline, during: operation) { client, id, deadline, now in
                let procedure = ReadLong(handle: attribute.handle, continuing: attribute.value, mtu: client.mtu)
                return client.start(procedure, id: id, deadline: deadline, at: now) { .value($0) }
            }
            guard case .value(let bytes) = outcome else { throw unexpected(outcome, during: operation) }
            readings.append(AttributeReading(handle: attribute.handle, bytes: bytes))
        }
        return readings
    }
}
