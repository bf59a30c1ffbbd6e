/// The configurations in a range, by their type.
struct ConfigurationSearch: Sendable {
    var place: SearchRange

    var request: ATTReadByTypeRequest {
        ATTReadByTypeRequest(
            startHandle: place.start, endHandle: place.range.upperBound, type: .clientCharacteristicConfiguration)
    }
}

extension GATTDiscovery {
    /// Returns the search that explains most of what this level requires; `nil` if everything is explained.
    mutating func nextExplanation() -> Search? {
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
                let perAnswer = max(1, (mtu - 2) / 4)
                let byType = (wanted + perAnswer - 1) / perAnswer
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

    mutating func received(_ reply: ATTReply, for search: ConfigurationSearch) throws(GATTFailure) -> Search? {
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

    mutating func received(
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
                searches.append(.services(ServiceSearch(isPrimary: isPrimary, hole: region, lastSeen: seen.last)))
            case .characteristicDeclaration:
                searches.append(.characteristics(CharacteristicSearch(range: region, lastSeen: seen.last)))
            default:
                if level == .full { searches.append(.includes(IncludeSearch(seen))) }
            }
        }
        pending += searches.reversed()
    }
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
