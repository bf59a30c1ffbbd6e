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

extension GATTDiscovery {
    /// One sweep over all services; if only some services are requested, one for each.
    mutating func searchForCharacteristics() {
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

    mutating func received(_ reply: ATTReply, for search: CharacteristicSearch) throws(GATTFailure) -> Search? {
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

extension GATTCharacteristic {
    /// Decodes the value of a declaration: properties 1 | value handle 2 | UUID 2 or 16.
    init?(_ entry: ATTReadByTypeResponse.Entry) {
        var reader = ByteReader(entry.value.span)
        guard let properties = reader.u8(), let value = reader.u16(), let uuid = reader.uuid(reader.remaining) else {
            return nil
        }
        self.init(
            declarationHandle: entry.handle, valueHandle: value, endHandle: value,
            properties: CharacteristicProperties(rawValue: properties), uuid: uuid)
    }
}
