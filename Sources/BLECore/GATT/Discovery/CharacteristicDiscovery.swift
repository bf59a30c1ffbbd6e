/// Lists the characteristics in a range of handles: all of them, or those with certain UUIDs.
///
/// All declarations are requested in any case; the protocol has no request for those with one UUID. The end of a
/// characteristic follows from the declaration after it, so the range should be a service. A declaration whose value
/// handle is impossible is left out.
///
/// Spec: Discover All Characteristics of a Service and by UUID, Core Vol 3 Part G, 4.6.
package struct CharacteristicDiscovery: GATTProcedure {
    private let uuids: [BluetoothUUID]?
    private let limit: Int
    private var place: SearchRange
    private var characteristics: [GATTCharacteristic] = []
    /// The number of characteristics with the requested UUIDs.
    private var count = 0
    /// The number of declarations that the peer listed, including those left out.
    private var declarations = 0

    package init(
        _ uuids: [BluetoothUUID]? = nil, in range: ClosedRange<AttributeHandle>,
        limit: Int = GATTDatabase.attributeLimit
    ) {
        self.uuids = uuids
        self.limit = limit
        place = SearchRange(range)
    }

    package mutating func begin() -> GATTStep<[GATTCharacteristic]> { .send(request.bytes) }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[GATTCharacteristic]> {
        .attempt { () throws(GATTFailure) in
            if case .error(let error) = reply {
                guard place.isEnd(error.code) else { throw GATTFailure(error) }
                return .finished(found())
            }
            let entries = try Self.response(to: ATTReadByTypeRequest.self, in: reply).entries
            guard let first = entries.first, first.value.count == 5 || first.value.count == 19 else {
                throw .malformed(ATTReadByTypeResponse.malformed(at: 1, .invalidField("length")))
            }
            try place.check(first.handle)
            for entry in entries { try take(entry) }
            guard declarations <= GATTDatabase.attributeLimit else {
                throw .databaseTooLarge(limit: GATTDatabase.attributeLimit)
            }
            return count < limit && place.count > 0 ? .send(request.bytes) : .finished(found())
        }
    }

    private var request: ATTReadByTypeRequest {
        ATTReadByTypeRequest(
            startHandle: place.start, endHandle: place.range.upperBound, type: .characteristicDeclaration)
    }

    private mutating func take(_ entry: ATTReadByTypeResponse.Entry) throws(GATTFailure) {
        guard place.range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
        guard Int(entry.handle) >= place.cursor, var characteristic = GATTCharacteristic(entry) else { return }
        place.cursor = Int(entry.handle) + 1
        declarations += 1
        guard characteristic.valueHandle > entry.handle, place.range.contains(characteristic.valueHandle) else {
            return
        }
        if let last = characteristics.indices.last {
            characteristics[last].endHandle = max(characteristics[last].valueHandle, entry.handle &- 1)
        }
        characteristic.endHandle = place.range.upperBound
        characteristics.append(characteristic)
        if isWanted(characteristic) { count += 1 }
        place.cursor = Int(characteristic.valueHandle) + 1
    }

    private func isWanted(_ characteristic: GATTCharacteristic) -> Bool {
        uuids.map { $0.contains(characteristic.uuid) } ?? true
    }

    private func found() -> [GATTCharacteristic] {
        Array(characteristics.filter(isWanted).prefix(limit))
    }
}
