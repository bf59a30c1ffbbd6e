/// Lists the services in a range of handles: all of them, or those with one UUID.
///
/// It returns only the list, whereas `GATTDiscovery` also discovers the contents of the services. The list ends at the
/// end of the range, when the peer reports that there are no more, or at `limit` services. A service that overlaps the
/// one before it is left out; one without an end extends to the next one. Two wrong error codes with which some peers
/// end the list are accepted, once the list has begun. Peers refuse to search secondary services by UUID; those are
/// listed, and the others left out.
///
/// Spec: Discover All Primary Services and by Service UUID, Core Vol 3 Part G, 4.4.
package struct ServiceDiscovery: GATTProcedure {
    private let uuid: BluetoothUUID?
    private let isPrimary: Bool
    private let limit: Int
    private var place: SearchRange
    private var services: [GATTService] = []

    package init(
        _ uuid: BluetoothUUID? = nil, isPrimary: Bool = true, in range: ClosedRange<AttributeHandle> = 1...0xFFFF,
        limit: Int = GATTDatabase.attributeLimit
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.limit = limit
        place = SearchRange(range)
    }

    package mutating func begin() -> GATTStep<[GATTService]> { .send(request) }

    package mutating func received(_ reply: ATTReply) -> GATTStep<[GATTService]> {
        .attempt { () throws(GATTFailure) in
            if case .error(let error) = reply {
                guard place.isEnd(error.code) else { throw GATTFailure(error) }
                return .finished(services)
            }
            let groups = try groups(in: reply)
            guard let first = groups.first else { throw .noProgress(at: place.start) }
            try place.check(first.start)
            for (index, group) in groups.enumerated() {
                try take(group, next: groups.dropFirst(index + 1).first?.start)
            }
            guard services.count <= GATTDatabase.attributeLimit else {
                throw .databaseTooLarge(limit: GATTDatabase.attributeLimit)
            }
            if services.count >= limit { return .finished(Array(services.prefix(limit))) }
            return place.count > 0 ? .send(request) : .finished(services)
        }
    }

    private var declaration: BluetoothUUID {
        isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration
    }

    private var request: [UInt8] {
        let (start, end) = (place.start, place.range.upperBound)
        guard let uuid, isPrimary else {
            return ATTReadByGroupTypeRequest(startHandle: start, endHandle: end, type: declaration).bytes
        }
        return ATTFindByTypeValueRequest(startHandle: start, endHandle: end, type: 0x2800, value: uuid.attBytes).bytes
    }

    private struct Group {
        var start: AttributeHandle
        var end: AttributeHandle
        var uuid: BluetoothUUID
    }

    private func groups(in reply: ATTReply) throws(GATTFailure) -> [Group] {
        var groups: [Group] = []
        if let uuid, isPrimary {
            for entry in try Self.response(to: ATTFindByTypeValueRequest.self, in: reply).entries {
                groups.append(Group(start: entry.startHandle, end: entry.endHandle, uuid: uuid))
            }
            return groups
        }
        for entry in try Self.response(to: ATTReadByGroupTypeRequest.self, in: reply).entries {
            guard entry.value.count == 2 || entry.value.count == 16,
                let uuid = BluetoothUUID(littleEndian: entry.value.span)
            else { throw .malformed(ATTReadByGroupTypeResponse.malformed(at: 1, .invalidField("length"))) }
            groups.append(Group(start: entry.startHandle, end: entry.endHandle, uuid: uuid))
        }
        return groups
    }

    private mutating func take(_ group: Group, next: AttributeHandle?) throws(GATTFailure) {
        guard place.range.contains(group.start) else { throw .outOfRange(group.start) }
        guard group.end >= group.start || group.end == 0 else {
            throw .malformed(ATTReadByGroupTypeResponse.malformed(at: 2, .invalidField("handle range")))
        }
        guard Int(group.start) >= place.cursor else { return }
        // 0 and 0xFFFF are sent by peers that do not know where a service ends.
        var end = min(group.end == 0 ? .max : group.end, place.range.upperBound)
        if end == place.range.upperBound, let next, next > group.start { end = next &- 1 }
        if let last = services.indices.last, services[last].handles.upperBound >= group.start {
            services[last].handles = services[last].handles.lowerBound...(group.start &- 1)
        }
        if uuid == nil || uuid == group.uuid {
            services.append(GATTService(handles: group.start...end, uuid: group.uuid, isPrimary: isPrimary))
        }
        place.cursor = group.end == 0 ? Int(group.start) + 1 : Int(end) + 1
    }
}

extension SearchRange {
    /// Whether an error only means that nothing more follows.
    func isEnd(_ code: ATTErrorCode) -> Bool {
        if code == .attributeNotFound { return true }
        return !isAtBeginning && (code == .invalidHandle || code == .unsupportedGroupType)
    }
}
