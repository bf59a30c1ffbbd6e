/// One attribute's value, found by its type.
package struct AttributeValue: Hashable, Sendable {
    package var handle: AttributeHandle
    package var value: [UInt8]
    /// A Boolean value that indicates whether the value may be truncated: the packet was full, and only `ReadLong`
    /// reads the rest.
    package var mayBeCut: Bool

    package init(handle: AttributeHandle, value: [UInt8], mayBeCut: Bool = false) {
        self.handle = handle
        self.value = value
        self.mayBeCut = mayBeCut
    }
}

/// Reads every value of one type in a range, without known handles.
///
/// With a `limit` it stops at that number, which saves the request that proves there are no more; the values of one
/// response are kept together. A range without any value ends in `attributeNotFound`.
///
/// Spec: Read Using Characteristic UUID, Core Vol 3 Part G, 4.8.2.
package struct ReadByUUID: GATTProcedure {
    private let uuid: BluetoothUUID
    private let range: ClosedRange<AttributeHandle>
    private var mtu: UInt16
    private let limit: Int
    private var cursor: Int
    private var values: [AttributeValue] = []

    package init(
        _ uuid: BluetoothUUID, in range: ClosedRange<AttributeHandle> = 1...0xFFFF, mtu: UInt16,
        limit: Int = GATTDatabase.attributeLimit
    ) {
        self.uuid = uuid
        self.range = range
        self.mtu = max(mtu, MTUExchange.minimum)
        self.limit = limit
        cursor = Int(range.lowerBound)
    }

    package mutating func begin() -> GATTStep<[AttributeValue]> { .send(request.bytes) }

    package mutating func willReceive(mtu: UInt16) {
        self.mtu = max(mtu, MTUExchange.minimum)
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[AttributeValue]> {
        .attempt { () throws(GATTFailure) in
            if case .error(let error) = reply, error.code == .attributeNotFound {
                if values.isEmpty { throw .attributeNotFound(uuid) }
                return .finished(values)
            }
            let response = try Self.response(to: ATTReadByTypeRequest.self, in: reply)
            // A value that ends where the packet or the length byte ends may be truncated.
            let longest = min(Int(mtu) - 4, 253)
            for entry in response.entries {
                guard range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
                guard Int(entry.handle) >= cursor else { throw .noProgress(at: entry.handle) }
                let mayBeCut = entry.value.count >= longest
                values.append(AttributeValue(handle: entry.handle, value: entry.value, mayBeCut: mayBeCut))
                cursor = Int(entry.handle) + 1
            }
            let isEnough = values.count >= limit || cursor > Int(range.upperBound)
            return isEnough ? .finished(values) : .send(request.bytes)
        }
    }

    private var request: ATTReadByTypeRequest {
        let start = UInt16(truncatingIfNeeded: cursor)
        return ATTReadByTypeRequest(startHandle: start, endHandle: range.upperBound, type: uuid)
    }
}
