internal import BLECore

extension AttributeServer {
    func read(_ request: ATTReadRequest) throws(Refusal) -> [UInt8] {
        ATTReadResponse(value: Array(try value(at: request.handle).prefix(Int(mtu) - 1))).bytes
    }

    func readBlob(_ request: ATTReadBlobRequest) throws(Refusal) -> [UInt8] {
        let value = try value(at: request.handle)
        guard Int(request.offset) <= value.count else { throw Refusal(code: .invalidOffset, handle: request.handle) }
        return ATTReadBlobResponse(part: Array(value.dropFirst(Int(request.offset)).prefix(Int(mtu) - 1))).bytes
    }

    func readMultiple(_ request: ATTReadMultipleRequest) throws(Refusal) -> [UInt8] {
        var values: [UInt8] = []
        for handle in request.handles { values += try value(at: handle) }
        return ATTReadMultipleResponse(values: Array(values.prefix(Int(mtu) - 1))).bytes
    }

    func readMultipleVariable(_ request: ATTReadMultipleVariableRequest) throws(Refusal) -> [UInt8] {
        var values: [UInt8] = []
        for handle in request.handles {
            let value = try value(at: handle)
            values += UInt16(truncatingIfNeeded: value.count).littleEndianBytes + value
        }
        return [ATTReadMultipleVariableResponse.opcode.rawValue] + values.prefix(Int(mtu) - 1)
    }

    func readByType(_ request: ATTReadByTypeRequest) throws(Refusal) -> [UInt8] {
        try checkRange(request.startHandle, request.endHandle)
        let longest = min(Int(mtu) - 4, 253)
        var room = Int(mtu) - 2
        var entries: [ATTReadByTypeResponse.Entry] = []
        for attribute in table.range(request.startHandle, request.endHandle) where attribute.type == request.type {
            // Only the first value's error is a response; a later one ends the list.
            let isRefused = attribute.protection.refusal(over: linkSecurity, isBonded: isBonded) != nil
            if attribute.refusesRead || isRefused, !entries.isEmpty { break }
            try checkPermitted(attribute)
            let value = Array(try attribute.read().prefix(longest))
            guard room >= value.count + 2, entries.first.map({ $0.value.count == value.count }) ?? true else { break }
            room -= value.count + 2
            entries.append(.init(handle: attribute.handle, value: value))
        }
        guard !entries.isEmpty else { throw Refusal(code: .attributeNotFound, handle: request.startHandle) }
        return ATTReadByTypeResponse(entries: entries).bytes
    }

    func readByGroupType(_ request: ATTReadByGroupTypeRequest) throws(Refusal) -> [UInt8] {
        try checkRange(request.startHandle, request.endHandle)
        guard
            request.type == AttributeTable.Declaration.primaryService
                || request.type == AttributeTable.Declaration.secondaryService
        else { throw Refusal(code: .unsupportedGroupType, handle: request.startHandle) }
        let longest = min(Int(mtu) - 6, 251)
        var room = Int(mtu) - 2
        var entries: [ATTReadByGroupTypeResponse.Entry] = []
        for attribute in table.range(request.startHandle, request.endHandle) where attribute.type == request.type {
            guard case .group(let end) = attribute.role else { continue }
            let value = Array(attribute.value.prefix(longest))
            guard room >= value.count + 4, entries.first.map({ $0.value.count == value.count }) ?? true else { break }
            room -= value.count + 4
            entries.append(.init(startHandle: attribute.handle, endHandle: end, value: value))
        }
        guard !entries.isEmpty else { throw Refusal(code: .attributeNotFound, handle: request.startHandle) }
        return ATTReadByGroupTypeResponse(entries: entries).bytes
    }

    func findInformation(_ request: ATTFindInformationRequest) throws(Refusal) -> [UInt8] {
        try checkRange(request.startHandle, request.endHandle)
        var room = Int(mtu) - 2
        var entries: [ATTFindInformationResponse.Entry] = []
        for attribute in table.range(request.startHandle, request.endHandle) {
            let length = attribute.type.attBytes.count + 2
            guard room >= length, entries.first.map({ ($0.type.short == nil) == (attribute.type.short == nil) }) ?? true
            else { break }
            room -= length
            entries.append(.init(handle: attribute.handle, type: attribute.type))
        }
        guard !entries.isEmpty else { throw Refusal(code: .attributeNotFound, handle: request.startHandle) }
        return ATTFindInformationResponse(entries: entries).bytes
    }

    func findByTypeValue(_ request: ATTFindByTypeValueRequest) throws(Refusal) -> [UInt8] {
        try checkRange(request.startHandle, request.endHandle)
        var room = Int(mtu) - 1
        var entries: [ATTFindByTypeValueResponse.Entry] = []
        for attribute in table.range(request.startHandle, request.endHandle)
        where attribute.type.short == request.type && attribute.value == request.value {
            guard room >= 4 else { break }
            room -= 4
            var end = attribute.handle
            if case .group(let last) = attribute.role { end = last }
            entries.append(.init(startHandle: attribute.handle, endHandle: end))
        }
        guard !entries.isEmpty else { throw Refusal(code: .attributeNotFound, handle: request.startHandle) }
        return ATTFindByTypeValueResponse(entries: entries).bytes
    }

    /// Returns the complete value of a handle that a client reads.
    private func value(at handle: AttributeHandle) throws(Refusal) -> [UInt8] {
        guard let attribute = table[handle] else { throw Refusal(code: .invalidHandle, handle: handle) }
        try checkPermitted(attribute)
        return try attribute.read()
    }

    private func checkRange(_ start: AttributeHandle, _ end: AttributeHandle) throws(Refusal) {
        guard start > 0, start <= end else { throw Refusal(code: .invalidHandle, handle: start) }
    }
}
