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

extension GATTDiscovery {
    mutating func received(_ reply: ATTReply, for search: IncludeSearch) throws(GATTFailure) -> Search? {
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
            guard let include = GATTInclude(entry) else {
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
    mutating func received(
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

extension GATTInclude {
    /// Decodes the value of a declaration: first handle 2 | last handle 2 | UUID 2 or nothing.
    init?(_ entry: ATTReadByTypeResponse.Entry) {
        var reader = ByteReader(entry.value.span)
        guard let first = reader.u16(), let last = reader.u16(), first > 0, first <= last else { return nil }
        self.init(handle: entry.handle, handles: first...last, uuid: reader.uuid(reader.remaining))
    }
}
