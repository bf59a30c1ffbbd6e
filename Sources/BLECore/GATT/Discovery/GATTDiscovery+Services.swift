/// The services in a range, with their types.
struct ServiceSearch: Sendable {
    let isPrimary: Bool
    var place: SearchRange
    /// The last declaration that is known to be in the range, when the search follows up on declarations seen.
    let lastSeen: AttributeHandle?
    /// Whether this is the list of all services, and not a search in a gap of it.
    let isWholeList: Bool

    /// The list of all primary services in `range`.
    init(range: ClosedRange<AttributeHandle>) {
        isPrimary = true
        place = SearchRange(range)
        lastSeen = nil
        isWholeList = true
    }

    /// The services in a gap of the list.
    init(isPrimary: Bool, hole: ClosedRange<AttributeHandle>, lastSeen: AttributeHandle? = nil) {
        self.isPrimary = isPrimary
        place = SearchRange(hole)
        self.lastSeen = lastSeen
        isWholeList = false
    }

    var request: ATTReadByGroupTypeRequest {
        ATTReadByGroupTypeRequest(
            startHandle: place.start, endHandle: place.range.upperBound,
            type: isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration)
    }
}

/// The services of one type.
struct NamedServiceSearch: Sendable {
    let uuid: BluetoothUUID
    var place: SearchRange

    init(uuid: BluetoothUUID, range: ClosedRange<AttributeHandle>) {
        self.uuid = uuid
        place = SearchRange(range)
    }

    var request: ATTFindByTypeValueRequest {
        ATTFindByTypeValueRequest(
            startHandle: place.start, endHandle: place.range.upperBound, type: 0x2800, value: uuid.attBytes)
    }
}

extension GATTDiscovery {
    mutating func received(_ reply: ATTReply, for search: ServiceSearch) throws(GATTFailure) -> Search? {
        var search = search
        if case .error(let error) = reply {
            try end(search, because: error)
            return nil
        }
        let entries = try Self.response(to: ATTReadByGroupTypeRequest.self, in: reply).entries
        let length = entries.first?.value.count ?? 0
        guard length == 2 || length == 16 else {
            throw .malformed(ATTReadByGroupTypeResponse.malformed(at: 1, .invalidField("length")))
        }
        var groups: [(ATTFindByTypeValueResponse.Entry, BluetoothUUID)] = []
        for entry in entries {
            guard let uuid = BluetoothUUID(littleEndian: entry.value.span) else { continue }
            groups.append((.init(startHandle: entry.startHandle, endHandle: entry.endHandle), uuid))
        }
        try take(groups, isPrimary: search.isPrimary, isHidden: !search.isWholeList, place: &search.place)
        guard search.place.count > 0 else {
            found.closeServices()
            return nil
        }
        if let lastSeen = search.lastSeen, search.place.cursor > Int(lastSeen) { return nil }
        return .services(search)
    }

    mutating func received(_ reply: ATTReply, for search: NamedServiceSearch) throws(GATTFailure) -> Search? {
        var search = search
        if case .error(let error) = reply {
            found.closeServices()
            if error.code == .attributeNotFound { return nil }
            guard !search.place.isAtBeginning else { throw GATTFailure(error) }
            try found.note(.serviceListCutShort(search.place.start))
            return nil
        }
        let entries = try Self.response(to: ATTFindByTypeValueRequest.self, in: reply).entries
        let uuid = search.uuid
        try take(entries.map { ($0, uuid) }, isPrimary: true, isHidden: false, place: &search.place)
        if search.place.count > 0, !uuid.isOfOneService { return .namedServices(search) }
        found.closeServices()
        return nil
    }

    /// Adds the services of one response and advances past them.
    private mutating func take(
        _ groups: [(ATTFindByTypeValueResponse.Entry, BluetoothUUID)], isPrimary: Bool, isHidden: Bool,
        place: inout SearchRange
    ) throws(GATTFailure) {
        if let first = groups.first { try check(first.0) }
        if let first = groups.first { try place.check(first.0.startHandle) }
        var cursor = place.cursor
        for (index, (group, uuid)) in groups.enumerated() {
            try check(group)
            let start = group.startHandle
            guard place.range.contains(start) else { throw .outOfRange(start) }
            guard Int(start) >= cursor else {
                try found.note(.serviceDropped(start))
                continue
            }
            var end = group.endHandle
            if end > place.range.upperBound {
                end = place.range.upperBound
                try found.note(.serviceEndClamped(start))
            }
            let hasEnd = end >= start
            let next = groups.dropFirst(index + 1).first?.0.startHandle
            let service = GATTService(handles: start...(hasEnd ? end : start), uuid: uuid, isPrimary: isPrimary)
            guard try found.add(service, isHidden: isHidden, next: next) else { continue }
            if !hasEnd { try found.markWithoutEnd(start) }
            let kept = found.service(containing: start)?.handles.upperBound ?? start
            cursor = Int(kept) + 1
        }
        // A hidden service that was dropped is still explained: its declaration is known.
        if isHidden, cursor == place.cursor, let last = groups.last { cursor = Int(last.0.startHandle) + 1 }
        guard cursor > place.cursor else { throw .noProgress(at: place.start) }
        place.cursor = cursor
    }

    private func check(_ group: ATTFindByTypeValueResponse.Entry) throws(GATTFailure) {
        // An end of 0 is a known defect of peers and means that the end is unknown.
        guard group.startHandle > 0, group.endHandle >= group.startHandle || group.endHandle == 0 else {
            throw .malformed(ATTReadByGroupTypeResponse.malformed(at: 2, .invalidField("handle range")))
        }
    }

    /// Called at the end of a list of services: the whole list, or the search in a gap.
    private mutating func end(_ search: ServiceSearch, because error: ATTErrorResponse) throws(GATTFailure) {
        guard search.isWholeList else {
            if search.lastSeen != nil { try found.note(.declarationUnreadable(search.place.start)) }
            return
        }
        found.closeServices()
        if error.code == .attributeNotFound { return }
        let isKnownEnding =
            error.code == .unsupportedGroupType || error.code == .invalidHandle && !search.place.isAtBeginning
        guard isKnownEnding || !search.place.isAtBeginning else { throw GATTFailure(error) }
        try found.note(.serviceListCutShort(search.place.start))
    }

    /// Characteristics outside every service show that the list of services has a gap.
    mutating func searchAroundStrays(isPrimary: Bool) {
        var last: ClosedRange<AttributeHandle>?
        for characteristic in found.characteristics {
            let handle = characteristic.declarationHandle
            guard found.service(containing: handle) == nil, let hole = found.hole(around: handle), hole != last else {
                continue
            }
            last = hole
            pending.append(.services(ServiceSearch(isPrimary: isPrimary, hole: hole)))
        }
    }
}

extension BluetoothUUID {
    /// Whether a peer has at most one service of this type, so that nothing is requested after the first one.
    ///
    /// Spec: Core Vol 3 Part C, 12; Part G, 7.
    fileprivate var isOfOneService: Bool { self == 0x1800 || self == .genericAttribute }
}
