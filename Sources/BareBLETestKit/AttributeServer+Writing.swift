internal import BLECore

extension AttributeServer {
    /// Writes a complete value. PDUs that the device sends as a result are appended to `pushed`.
    mutating func write(
        _ value: [UInt8], to handle: AttributeHandle, _ pushed: inout [[UInt8]]
    ) throws(Refusal) {
        let attribute = try writable(handle)
        guard value.count <= Self.longestValue else {
            throw Refusal(code: .invalidAttributeValueLength, handle: handle)
        }
        if case .clientConfiguration = attribute.role, value.count != 2 {
            throw Refusal(code: .invalidAttributeValueLength, handle: handle)
        }
        switch attribute.onWrite {
        case .none, .echo: break
        case .refuse(let code): throw Refusal(code: code, handle: handle)
        case .call(let decide):
            if let code = decide(value) { throw Refusal(code: code, handle: handle) }
        }
        table[handle]?.value = value
        if case .echo(let uuid) = attribute.onWrite, let source = table.valueHandle(of: uuid),
            let pdu = send(value, of: source)
        {
            pushed.append(pdu)
        }
    }

    mutating func prepareWrite(_ request: ATTPrepareWriteRequest) throws(Refusal) -> [UInt8] {
        _ = try writable(request.handle)
        guard prepared.count < Self.prepareQueueLength else {
            throw Refusal(code: .prepareQueueFull, handle: request.handle)
        }
        prepared.append(request)
        return ATTPrepareWriteResponse(handle: request.handle, offset: request.offset, part: request.part).bytes
    }

    /// Executes all prepared writes, or none if one of them does not fit.
    mutating func executeWrite(
        _ request: ATTExecuteWriteRequest, _ pushed: inout [[UInt8]]
    ) throws(Refusal) -> [UInt8] {
        let parts = prepared
        prepared = []
        switch request.action {
        case .cancel: return ATTExecuteWriteResponse().bytes
        case .write: break
        }
        var values: [AttributeHandle: [UInt8]] = [:]
        var order: [AttributeHandle] = []
        for part in parts {
            if values[part.handle] == nil { order.append(part.handle) }
            // The first part begins a new value, unless its offset continues the old one.
            var value = values[part.handle] ?? (part.offset == 0 ? [] : table[part.handle]?.value ?? [])
            guard Int(part.offset) <= value.count else {
                throw Refusal(code: .invalidOffset, handle: part.handle)
            }
            guard Int(part.offset) + part.part.count <= Self.longestValue else {
                throw Refusal(code: .invalidAttributeValueLength, handle: part.handle)
            }
            value = Array(value.prefix(Int(part.offset))) + part.part
            values[part.handle] = value
        }
        for handle in order {
            if let value = values[handle] { try write(value, to: handle, &pushed) }
        }
        return ATTExecuteWriteResponse().bytes
    }

    private func writable(_ handle: AttributeHandle) throws(Refusal) -> ServedAttribute {
        guard let attribute = table[handle] else { throw Refusal(code: .invalidHandle, handle: handle) }
        if let error = attribute.writeError { throw Refusal(code: error, handle: handle) }
        try checkPermitted(attribute)
        return attribute
    }
}
