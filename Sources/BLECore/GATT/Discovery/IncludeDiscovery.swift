/// Lists the references to other services in a range of handles.
///
/// A reference to a service with a long UUID does not contain it; the service's own declaration is read for it, and if
/// the peer refuses that, the reference has no UUID. References are not followed. The list ends at the end of the
/// range, when the peer reports that there are no more, or at `limit` references.
///
/// Spec: Find Included Services, Core Vol 3 Part G, 4.5.1.
package struct IncludeDiscovery: GATTProcedure {
    private let limit: Int
    private var place: SearchRange
    private var includes: [GATTService.Include] = []
    /// The number of declarations that the peer listed, including those left out.
    private var declarations = 0
    /// The references whose service is still to be read, as indices, the next one last.
    private var unnamed: [Int] = []

    package init(in range: ClosedRange<AttributeHandle>, limit: Int = GATTDatabase.attributeLimit) {
        self.limit = limit
        place = SearchRange(range)
    }

    package mutating func begin() -> GATTStep<[GATTService.Include]> { .send(request) }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[GATTService.Include]> {
        .attempt { () throws(GATTFailure) in
            if let index = unnamed.popLast() {
                includes[index].uuid = try uuid(in: reply)
                return next()
            }
            if case .error(let error) = reply {
                guard place.isEnd(error.code) else { throw GATTFailure(error) }
                return .finished(includes)
            }
            let entries = try Self.response(to: ATTReadByTypeRequest.self, in: reply).entries
            guard let first = entries.first, first.value.count == 4 || first.value.count == 6 else {
                throw .malformed(ATTReadByTypeResponse.malformed(at: 1, .invalidField("length")))
            }
            try place.check(first.handle)
            for entry in entries {
                guard place.range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
                guard Int(entry.handle) >= place.cursor else { continue }
                place.cursor = Int(entry.handle) + 1
                declarations += 1
                guard let include = GATTService.Include(entry), includes.count < limit else { continue }
                if include.uuid == nil { unnamed.insert(includes.count, at: 0) }
                includes.append(include)
            }
            guard declarations <= GATTDatabase.attributeLimit else {
                throw .databaseTooLarge(limit: GATTDatabase.attributeLimit)
            }
            return next()
        }
    }

    private var request: [UInt8] {
        ATTReadByTypeRequest(startHandle: place.start, endHandle: place.range.upperBound, type: .includeDeclaration)
            .bytes
    }

    private func next() -> GATTStep<[GATTService.Include]> {
        if let index = unnamed.last {
            return .send(ATTReadRequest(handle: includes[index].handles.lowerBound).bytes)
        }
        return place.count > 0 && includes.count < limit ? .send(request) : .finished(includes)
    }

    private func uuid(in reply: ATTReply) throws(GATTFailure) -> BluetoothUUID? {
        guard case .response = reply else { return nil }
        let value = try Self.response(to: ATTReadRequest.self, in: reply).value
        return value.count == 2 || value.count == 16 ? BluetoothUUID(littleEndian: value.span) : nil
    }
}
