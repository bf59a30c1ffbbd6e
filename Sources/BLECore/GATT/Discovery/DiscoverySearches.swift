// The searches of `GATTDiscovery`: positions in the database, and the requests that follow from them.

/// The state that all searches for declarations share: a range, and how far it has been searched.
struct SearchRange: Sendable {
    let range: ClosedRange<AttributeHandle>
    /// The next handle to request; one past the range at the end.
    var cursor: Int

    init(_ range: ClosedRange<AttributeHandle>) {
        self.range = range
        cursor = Int(range.lowerBound)
    }

    /// The next handle to request.
    var start: AttributeHandle { AttributeHandle(truncatingIfNeeded: cursor) }

    /// The number of handles left to request.
    var count: Int { Int(range.upperBound) - cursor + 1 }

    var isAtBeginning: Bool { cursor == Int(range.lowerBound) }

    /// Checks the first handle of a response: it must have been requested, and not have been received before.
    func check(_ handle: AttributeHandle) throws(GATTFailure) {
        guard range.contains(handle) else { throw .outOfRange(handle) }
        guard Int(handle) >= cursor else { throw .noProgress(at: handle) }
    }
}

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
    init(isPrimary: Bool, gap: ClosedRange<AttributeHandle>, lastSeen: AttributeHandle? = nil) {
        self.isPrimary = isPrimary
        place = SearchRange(gap)
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

/// The characteristics in a range.
struct CharacteristicSearch: Sendable {
    var place: SearchRange
    /// The last declaration that is known to be in the range, when the search follows up on declarations seen.
    let lastSeen: AttributeHandle?

    init(range: ClosedRange<AttributeHandle>, lastSeen: AttributeHandle? = nil) {
        place = SearchRange(range)
        self.lastSeen = lastSeen
    }

    var request: ATTReadByTypeRequest {
        ATTReadByTypeRequest(
            startHandle: place.start, endHandle: place.range.upperBound, type: .characteristicDeclaration)
    }
}

/// The configurations in a range, by their type.
struct ConfigurationSearch: Sendable {
    var place: SearchRange

    var request: ATTReadByTypeRequest {
        ATTReadByTypeRequest(
            startHandle: place.start, endHandle: place.range.upperBound, type: .clientCharacteristicConfiguration)
    }
}

/// The references to other services in a range that is known to hold some.
struct IncludeSearch: Sendable {
    var place: SearchRange
    /// The declarations that are known to be in the range.
    let seen: [AttributeHandle]

    /// `seen` must not be empty, and must be ascending.
    init(_ seen: [AttributeHandle]) {
        self.seen = seen
        let first = seen.first ?? 1
        place = SearchRange(first...max(first, seen.last ?? first))
    }

    var request: ATTReadByTypeRequest {
        ATTReadByTypeRequest(startHandle: place.start, endHandle: place.range.upperBound, type: .includeDeclaration)
    }
}
