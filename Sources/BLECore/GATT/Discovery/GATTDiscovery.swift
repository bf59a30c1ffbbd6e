/// Discovers a peer's database with as few requests as its responses allow.
///
/// Duties
/// - Requests the services, then all characteristics of all services in one sweep, and then only the handles that
///   those responses left unexplained: a handle whose type follows from the rules is never requested.
/// - Examines single services only, or a range of handles, if requested.
/// - Tolerates the known defects of peers in the field and notes them as quirks; in strict mode the first quirk is the
///   end.
/// - Ends for every peer: handles rise, no request is sent twice, the number of requests is bounded by the number of
///   attributes seen, and the number of attributes is limited. The caller watches the time.
///
/// The level sets the extent. `structure`: services and characteristics. `subscribable`: also the configuration of
/// every value that can be subscribed to. `full`: every attribute, with secondary services and includes.
///
/// Invariants
/// - `current` is the search whose request is outstanding; `pending` are searches that follow from responses.
/// - A search moves its cursor forward with every response, or ends. Cursors are `Int`, so that 0xFFFF has a
///   successor.
/// - The results are in `found` alone; searches only hold their positions.
///
/// The searches themselves, how far each has come and what it requests, are in `DiscoverySearches.swift`.
package struct GATTDiscovery: GATTProcedure {
    /// One list that is being requested, piece by piece.
    private enum Search: Sendable {
        case services(ServiceSearch)
        case namedServices(NamedServiceSearch)
        case characteristics(CharacteristicSearch)
        case configurations(ConfigurationSearch)
        case information(ClosedRange<AttributeHandle>)
        case includes(IncludeSearch)
        case includedService(AttributeHandle)
    }

    private enum Stage: Sendable {
        case services, characteristics, strays, explanations, includes
    }

    private let mtu: Int
    private let level: DiscoveryLevel
    private var found: Discovered
    private var pending: [Search] = []
    /// Whether the configurations may still be requested by type.
    private var mayAskForConfigurations = true

    /// The handles that are examined.
    private let range: ClosedRange<AttributeHandle>
    private let names: [BluetoothUUID]?
    private var current: Search?
    private var stage = Stage.services
    private var sent: Set<[UInt8]> = []

    /// Creates a discovery of everything in `range`, or, with `services`, only of the services with these UUIDs.
    ///
    /// The range must not begin or end inside a service; a service that ends after it is cut off there.
    package init(
        level: DiscoveryLevel = .subscribable, services: [BluetoothUUID]? = nil,
        in range: ClosedRange<AttributeHandle> = 1...0xFFFF, mtu: UInt16, isStrict: Bool = false
    ) {
        self.level = level
        self.range = max(1, range.lowerBound)...max(1, range.upperBound)
        self.mtu = Int(max(mtu, MTUExchange.minimum))
        names = services
        found = Discovered(isStrict: isStrict, bounds: self.range)
    }

    /// Whether all services in the range are discovered.
    private var isWholeDatabase: Bool { names == nil }

    /// The number of requests sent so far.
    package var requestCount: Int { sent.count }

    package mutating func begin() -> GATTStep<GATTDatabase> {
        if let names {
            for name in names.reversed() {
                pending.append(.namedServices(NamedServiceSearch(uuid: name, range: range)))
            }
        } else {
            pending = [.services(ServiceSearch(range: range))]
        }
        return .attempt { () throws(GATTFailure) in try advance() }
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<GATTDatabase> {
        .attempt { () throws(GATTFailure) in
            guard let search = current else { throw .noProgress(at: 0) }
            switch search {
            case .services(let search): current = try received(reply, for: search)
            case .namedServices(let search): current = try received(reply, for: search)
            case .characteristics(let search): current = try received(reply, for: search)
            case .configurations(let search): current = try received(reply, for: search)
            case .information(let range): current = try received(reply, forInformation: range)
            case .includes(let search): current = try received(reply, for: search)
            case .includedService(let handle): current = try received(reply, forIncludedService: handle)
            }
            return try advance()
        }
    }

    /// Continues with the current search, else with a pending one, else with the next stage.
    private mutating func advance() throws(GATTFailure) -> GATTStep<GATTDatabase> {
        while true {
            if let current {
                if let request = try nextRequest(of: current) { return .send(request) }
                self.current = nil
            }
            if let next = pending.popLast() {
                current = next
                continue
            }
            switch stage {
            case .services:
                stage = .characteristics
                searchForCharacteristics()
            case .characteristics:
                stage = .strays
                if level != .full { searchAroundStrays(isPrimary: true) }
            case .strays:
                stage = .explanations
                if level != .full { searchAroundStrays(isPrimary: false) }
            case .explanations:
                try found.inferConfigurations()
                current = nextExplanation()
                if current == nil { stage = .includes }
            case .includes:
                guard let start = found.includeWithoutUUID() else { return .finished(try found.database()) }
                current = .includedService(start)
            }
        }
    }

    /// Returns the request to send for `search`; `nil` if another search has already sent it and had its response.
    private mutating func nextRequest(of search: Search) throws(GATTFailure) -> [UInt8]? {
        let (request, handle) = request(for: search)
        guard sent.count <= 2 * found.types.count + 64 else { throw .noProgress(at: handle) }
        if sent.insert(request).inserted { return request }
        switch search {
        case .information, .configurations, .includedService: throw .noProgress(at: handle)
        case .services, .namedServices, .characteristics, .includes: return nil
        }
    }

    private func request(for search: Search) -> ([UInt8], AttributeHandle) {
        switch search {
        case .services(let search): (search.request.bytes, search.request.startHandle)
        case .namedServices(let search): (search.request.bytes, search.request.startHandle)
        case .characteristics(let search): (search.request.bytes, search.request.startHandle)
        case .configurations(let search): (search.request.bytes, search.request.startHandle)
        case .includes(let search): (search.request.bytes, search.request.startHandle)
        case .information(let range):
            (
                ATTFindInformationRequest(startHandle: range.lowerBound, endHandle: range.upperBound).bytes,
                range.lowerBound
            )
        case .includedService(let handle): (ATTReadRequest(handle: handle).bytes, handle)
        }
    }
}

// MARK: - Services

extension GATTDiscovery {
    private mutating func received(_ reply: ATTReply, for search: ServiceSearch) throws(GATTFailure) -> Search? {
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

    private mutating func received(_ reply: ATTReply, for search: NamedServiceSearch) throws(GATTFailure) -> Search? {
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
    private mutating func searchAroundStrays(isPrimary: Bool) {
        var last: ClosedRange<AttributeHandle>?
        for characteristic in found.characteristics {
            let handle = characteristic.declarationHandle
            guard found.service(containing: handle) == nil, let gap = found.gap(around: handle), gap != last else {
                continue
            }
            last = gap
            pending.append(.services(ServiceSearch(isPrimary: isPrimary, gap: gap)))
        }
    }
}

// MARK: - Characteristics

extension GATTDiscovery {
    /// One sweep over all services; if only some services are requested, one for each.
    private mutating func searchForCharacteristics() {
        guard isWholeDatabase else {
            for service in found.services.reversed() {
                found.lookAt(service.handles)
                search(service.handles)
            }
            return
        }
        guard range == 1...0xFFFF else {
            // A part may contain only what the list of services does not show: secondary ones.
            found.lookAt(range)
            pending.append(.characteristics(CharacteristicSearch(range: range)))
            return
        }
        guard let first = found.services.first, let last = found.services.last else { return }
        found.lookAt(1...last.handles.upperBound)
        search(first.handles.lowerBound...last.handles.upperBound)
    }

    /// The first handle declares a service; a declaration and a value need two more.
    private mutating func search(_ handles: ClosedRange<AttributeHandle>) {
        guard handles.count >= 3 else { return }
        pending.append(
            .characteristics(CharacteristicSearch(range: (handles.lowerBound &+ 1)...handles.upperBound)))
    }

    private mutating func received(_ reply: ATTReply, for search: CharacteristicSearch) throws(GATTFailure) -> Search? {
        var search = search
        if case .error(let error) = reply {
            if search.lastSeen != nil {
                try found.note(.declarationUnreadable(search.place.start))
                return nil
            }
            if error.code == .attributeNotFound { return nil }
            guard !search.place.isAtBeginning else { throw GATTFailure(error) }
            try found.note(.characteristicListCutShort(search.place.start))
            return nil
        }
        let entries = try Self.response(to: ATTReadByTypeRequest.self, in: reply).entries
        let length = entries.first?.value.count ?? 0
        guard length == 5 || length == 19 else {
            throw .malformed(ATTReadByTypeResponse.malformed(at: 1, .invalidField("length")))
        }
        if let first = entries.first { try search.place.check(first.handle) }
        var cursor = search.place.cursor
        for (index, entry) in entries.enumerated() {
            guard search.place.range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
            guard let characteristic = GATTCharacteristic(entry) else { continue }
            guard Int(entry.handle) >= cursor else {
                try found.note(.characteristicDropped(entry.handle))
                continue
            }
            var next = entries.dropFirst(index + 1).first?.handle
            if let following = next, following <= entry.handle { next = nil }
            try found.add(characteristic, next: next)
            let isKept = found.declaresCharacteristic(at: entry.handle)
            cursor = Int(isKept ? characteristic.valueHandle : entry.handle) + 1
        }
        guard cursor > search.place.cursor else { throw .noProgress(at: search.place.start) }
        search.place.cursor = cursor
        let room = mtu - 2 - entries.count * (length + 2)
        return isComplete(search, roomLeft: room >= length + 2) ? nil : .characteristics(search)
    }

    private func isComplete(_ search: CharacteristicSearch, roomLeft: Bool) -> Bool {
        if search.place.count < 2 { return true }
        if let lastSeen = search.lastSeen { return search.place.cursor > Int(lastSeen) }
        // The peer had room for another one in the last service. The rest is requested anyway, and would show a
        // declaration.
        guard level == .full, roomLeft, let last = found.service(containing: search.place.range.upperBound) else {
            return false
        }
        return last.handles.contains(search.place.start)
    }
}

// MARK: - Descriptors

extension GATTDiscovery {
    /// Returns the search that explains most of what this level requires; `nil` if everything is explained.
    private mutating func nextExplanation() -> Search? {
        switch level {
        case .structure:
            return nil
        case .subscribable:
            let gaps = found.openSubscribableGaps()
            guard let first = gaps.first, let last = gaps.last else { return nil }
            let whole = first.lowerBound...last.upperBound
            if mayAskForConfigurations {
                mayAskForConfigurations = false
                let wanted = gaps.count + found.inferredCount(in: whole)
                let perResponse = max(1, (mtu - 2) / 4)
                let byType = (wanted + perResponse - 1) / perResponse
                if byType < inquiryCount(for: gaps) {
                    return .configurations(ConfigurationSearch(place: SearchRange(whole)))
                }
            }
            return .information(inquiry(for: gaps[...]).handles)
        case .full:
            let open = found.open.ranges
            return open.isEmpty ? nil : .information(inquiry(for: open[...]).handles)
        }
    }

    /// Returns the handles to request first, and the number of ranges that they cover.
    ///
    /// A response holds a limited number of short types. As long as all handles in between fit into it too, requesting
    /// the next range with it saves a request.
    private func inquiry(
        for ranges: ArraySlice<ClosedRange<AttributeHandle>>
    ) -> (handles: ClosedRange<AttributeHandle>, count: Int) {
        guard let first = ranges.first else { return (0...0, 1) }
        var end = first.upperBound
        var count = 1
        for range in ranges.dropFirst() {
            guard Int(range.upperBound) - Int(first.lowerBound) + 1 <= (mtu - 2) / 4, range.lowerBound > end &+ 1,
                found.hasOnlyShortTypes(in: (end &+ 1)...(range.lowerBound &- 1))
            else { break }
            end = range.upperBound
            count += 1
        }
        return (first.lowerBound...end, count)
    }

    private func inquiryCount(for ranges: [ClosedRange<AttributeHandle>]) -> Int {
        var left = ranges[...]
        var count = 0
        while !left.isEmpty {
            left = left.dropFirst(inquiry(for: left).count)
            count += 1
        }
        return count
    }

    private mutating func received(_ reply: ATTReply, for search: ConfigurationSearch) throws(GATTFailure) -> Search? {
        var search = search
        if case .error(let error) = reply {
            // With any other error the peer does not support this request: types are requested instead.
            guard error.code == .attributeNotFound else { return nil }
            for gap in found.openSubscribableGaps() where Int(gap.lowerBound) >= search.place.cursor {
                found.explain(gap)
            }
            return nil
        }
        let entries = try Self.response(to: ATTReadByTypeRequest.self, in: reply).entries
        // Only the handles count; some peers have configurations without a value.
        if let first = entries.first { try search.place.check(first.handle) }
        let gaps = found.openSubscribableGaps()
        for entry in entries {
            guard search.place.range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
            guard Int(entry.handle) >= search.place.cursor else {
                try found.note(.informationDropped(entry.handle))
                continue
            }
            try found.add(.clientCharacteristicConfiguration, at: entry.handle)
            search.place.cursor = Int(entry.handle) + 1
        }
        for gap in gaps where Int(gap.upperBound) < search.place.cursor { found.explain(gap) }
        let isWanted = found.openSubscribableGaps().contains { Int($0.upperBound) >= search.place.cursor }
        return isWanted && search.place.count > 0 ? .configurations(search) : nil
    }

    private mutating func received(
        _ reply: ATTReply, forInformation range: ClosedRange<AttributeHandle>
    ) throws(GATTFailure) -> Search? {
        if case .error(let error) = reply {
            if error.code != .attributeNotFound { try found.note(.informationRefused(range.lowerBound)) }
            found.explain(range)
            return nil
        }
        let entries = try Self.response(to: ATTFindInformationRequest.self, in: reply).entries
        var place = SearchRange(range)
        if let first = entries.first { try place.check(first.handle) }
        var declarations: [(AttributeHandle, BluetoothUUID)] = []
        for entry in entries {
            guard range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
            guard Int(entry.handle) >= place.cursor else {
                try found.note(.informationDropped(entry.handle))
                continue
            }
            let isNew = found.types[entry.handle] == nil
            // Handles that the list leaves out do not exist.
            found.explain(place.start...entry.handle)
            place.cursor = Int(entry.handle) + 1
            guard isNew || found.isInferred(entry.handle) else { continue }
            try found.add(entry.type, at: entry.handle)
            if entry.type.isDeclaration { declarations.append((entry.handle, entry.type)) }
        }
        follow(declarations)
        return nil
    }

    /// Unexpected declarations were found; adds one search for each run of a kind.
    private mutating func follow(_ declarations: [(AttributeHandle, BluetoothUUID)]) {
        var searches: [Search] = []
        var index = declarations.startIndex
        while index < declarations.endIndex {
            let (handle, type) = declarations[index]
            let region =
                type.isServiceDeclaration ? found.serviceRegionBegun(at: handle) : found.regionBegun(at: handle)
            var seen = [handle]
            index += 1
            while index < declarations.endIndex, declarations[index].1 == type, region.contains(declarations[index].0) {
                seen.append(declarations[index].0)
                index += 1
            }
            switch type {
            case .primaryServiceDeclaration, .secondaryServiceDeclaration:
                let isPrimary = type == .primaryServiceDeclaration
                searches.append(.services(ServiceSearch(isPrimary: isPrimary, gap: region, lastSeen: seen.last)))
            case .characteristicDeclaration:
                searches.append(.characteristics(CharacteristicSearch(range: region, lastSeen: seen.last)))
            default:
                if level == .full { searches.append(.includes(IncludeSearch(seen))) }
            }
        }
        pending += searches.reversed()
    }
}

// MARK: - Included services

extension GATTDiscovery {
    private mutating func received(_ reply: ATTReply, for search: IncludeSearch) throws(GATTFailure) -> Search? {
        var search = search
        if case .error = reply {
            try found.note(.declarationUnreadable(search.place.start))
            return nil
        }
        let entries = try Self.response(to: ATTReadByTypeRequest.self, in: reply).entries
        let length = entries.first?.value.count ?? 0
        guard length == 4 || length == 6 else {
            throw .malformed(ATTReadByTypeResponse.malformed(at: 1, .invalidField("length")))
        }
        if let first = entries.first { try search.place.check(first.handle) }
        let before = search.place.cursor
        for entry in entries {
            guard search.place.range.contains(entry.handle) else { throw .outOfRange(entry.handle) }
            guard Int(entry.handle) >= search.place.cursor else {
                try found.note(.includeDropped(entry.handle))
                continue
            }
            search.place.cursor = Int(entry.handle) + 1
            guard let include = GATTService.Include(entry) else {
                try found.note(.includeDropped(entry.handle))
                continue
            }
            try found.add(include)
            // Only a service that is not covered yet is new. References are never followed further than that, so
            // cycles of them cost nothing.
            if isWholeDatabase, found.service(containing: include.handles.lowerBound) == nil {
                found.lookAt(include.handles)
            }
        }
        // Some peers skip declarations of another length; those are requested one by one.
        for handle in search.seen where Int(handle) >= before && Int(handle) < search.place.cursor {
            if !entries.contains(where: { $0.handle == handle }) { pending.append(.includes(IncludeSearch([handle]))) }
        }
        return search.place.count > 0 ? .includes(search) : nil
    }

    /// A reference to a service with a long UUID does not contain it; the service's own declaration does.
    private mutating func received(
        _ reply: ATTReply, forIncludedService start: AttributeHandle
    ) throws(GATTFailure) -> Search? {
        var uuid: BluetoothUUID?
        if case .response = reply {
            let value = try Self.response(to: ATTReadRequest.self, in: reply).value
            if value.count == 2 || value.count == 16 { uuid = BluetoothUUID(littleEndian: value.span) }
        }
        try found.resolveIncludes(of: start, as: uuid)
        return nil
    }
}

extension BluetoothUUID {
    /// Whether a peer has at most one service of this type, so that nothing is requested after the first one.
    ///
    /// Spec: Core Vol 3 Part C, 12; Part G, 7.
    fileprivate var isOfOneService: Bool { self == 0x1800 || self == .genericAttribute }
}

extension BluetoothUUID {
    /// Whether attributes of this type declare other attributes, instead of holding data.
    var isDeclaration: Bool {
        isServiceDeclaration || self == .characteristicDeclaration || self == .includeDeclaration
    }

    fileprivate var isServiceDeclaration: Bool {
        self == .primaryServiceDeclaration || self == .secondaryServiceDeclaration
    }
}
