import BLECore

/// Responds to requests from an attribute table, the way a faithful peer does.
///
/// The quirks make it wrong in one way each; `intercept` makes it wrong in any other.
struct TestAttributeServer {
    enum Quirk: Hashable {
        /// A list of services or values jumps over those of another length instead of ending in front of them.
        case skipsOtherLengths
        /// The configurations cannot be read by type.
        case hidesConfigurations
        /// The value of one packet counts as short: asking for more of it is Attribute Not Long.
        case refusesBlobOfOnePacket
        /// Attribute Not Found names handle 0.
        case errorsNameHandleZero
    }

    var database: ModelDatabase
    let mtu: Int
    var quirks: Set<Quirk> = []
    /// Requests the prepared queue holds.
    var queueLimit = 64
    /// Asked before the table is; a response of its own goes out instead.
    var intercept: (ATTPacket) -> [UInt8]? = { _ in nil }
    private(set) var requests: [ATTPacket] = []
    private(set) var prepared: [ATTPrepareWriteRequest] = []

    init(_ database: ModelDatabase, mtu: Int = 23, quirks: Set<Quirk> = []) {
        self.database = database
        self.mtu = mtu
        self.quirks = quirks
    }

    mutating func reply(to pdu: [UInt8]) throws -> [UInt8] {
        let packet = try ATTPacket(pdu)
        requests.append(packet)
        if let answer = intercept(packet) { return answer }
        switch packet {
        case .exchangeMTURequest:
            return ATTExchangeMTUResponse(mtu: UInt16(mtu)).bytes
        case .findInformationRequest(let request):
            return findInformation(request)
        case .findByTypeValueRequest(let request):
            return findByTypeValue(request)
        case .readByTypeRequest(let request):
            return readByType(request)
        case .readByGroupTypeRequest(let request):
            return readByGroupType(request)
        case .readRequest(let request):
            return read(request.handle, opcode: packet.opcode) { ATTReadResponse(value: cut($0)).bytes }
        case .readBlobRequest(let request):
            return readBlob(request)
        case .readMultipleRequest(let request):
            var values: [UInt8] = []
            for handle in request.handles {
                guard let attribute = attribute(handle) else { return error(packet.opcode, handle, .invalidHandle) }
                values += attribute.value
            }
            return ATTReadMultipleResponse(values: cut(values)).bytes
        case .writeRequest(let request):
            return write([(request.handle, 0, request.value)], opcode: packet.opcode) ?? ATTWriteResponse().bytes
        case .prepareWriteRequest(let request):
            return prepare(request)
        case .executeWriteRequest(let request):
            let queue = prepared
            prepared = []
            guard request.action == .write else { return ATTExecuteWriteResponse().bytes }
            return write(queue.map { ($0.handle, Int($0.offset), $0.part) }, opcode: packet.opcode)
                ?? ATTExecuteWriteResponse().bytes
        default:
            return error(packet.opcode, 0, .requestNotSupported)
        }
    }

    func attribute(_ handle: AttributeHandle) -> ModelAttribute? {
        attributes(handle, handle).first
    }
}

// MARK: - Lists

extension TestAttributeServer {
    private func attributes(_ first: AttributeHandle, _ last: AttributeHandle) -> [ModelAttribute] {
        let all = database.attributes
        let start = all.partitioningIndex { $0.handle >= first }
        let end = all.partitioningIndex { $0.handle > last }
        return Array(all[start..<max(start, end)])
    }

    /// The longest prefix of entries of one length that fits into a packet.
    private func list<Entry>(_ all: [Entry], canSkip: Bool = true, length: (Entry) -> Int) -> [Entry] {
        guard let first = all.first.map(length) else { return [] }
        var kept: [Entry] = []
        for entry in all {
            if length(entry) != first {
                if canSkip, quirks.contains(.skipsOtherLengths) { continue }
                break
            }
            guard 2 + (kept.count + 1) * first <= mtu else { break }
            kept.append(entry)
        }
        return kept
    }

    private func findInformation(_ request: ATTFindInformationRequest) -> [UInt8] {
        let found = list(attributes(request.startHandle, request.endHandle), canSkip: false) {
            2 + $0.type.attBytes.count
        }
        guard !found.isEmpty else { return notFound(request.startHandle, .findInformationRequest) }
        return ATTFindInformationResponse(entries: found.map { .init(handle: $0.handle, type: $0.type) }).bytes
    }

    private func findByTypeValue(_ request: ATTFindByTypeValueRequest) -> [UInt8] {
        let found = attributes(request.startHandle, request.endHandle).filter {
            $0.type == BluetoothUUID(request.type) && $0.value == request.value
        }
        guard !found.isEmpty else { return notFound(request.startHandle, .findByTypeValueRequest) }
        let entries = found.prefix((mtu - 1) / 4).map {
            ATTFindByTypeValueResponse.Entry(startHandle: $0.handle, endHandle: $0.groupEnd ?? $0.handle)
        }
        return ATTFindByTypeValueResponse(entries: Array(entries)).bytes
    }

    private func readByType(_ request: ATTReadByTypeRequest) -> [UInt8] {
        let found = attributes(request.startHandle, request.endHandle).filter { $0.type == request.type }
        guard let first = found.first else { return notFound(request.startHandle, .readByTypeRequest) }
        if quirks.contains(.hidesConfigurations), request.type == .clientCharacteristicConfiguration {
            return error(.readByTypeRequest, first.handle, .readNotPermitted)
        }
        if let code = first.readError { return error(.readByTypeRequest, first.handle, code) }
        let longest = min(mtu - 4, 253)
        let readable = found.prefix { $0.readError == nil }
        let entries = list(Array(readable)) { 2 + min($0.value.count, longest) }.map {
            ATTReadByTypeResponse.Entry(handle: $0.handle, value: Array($0.value.prefix(longest)))
        }
        return ATTReadByTypeResponse(entries: entries).bytes
    }

    private func readByGroupType(_ request: ATTReadByGroupTypeRequest) -> [UInt8] {
        guard request.type == .primaryServiceDeclaration || request.type == .secondaryServiceDeclaration else {
            return error(.readByGroupTypeRequest, request.startHandle, .unsupportedGroupType)
        }
        let found = attributes(request.startHandle, request.endHandle).filter { $0.type == request.type }
        guard !found.isEmpty else { return notFound(request.startHandle, .readByGroupTypeRequest) }
        let entries = list(found) { 4 + $0.value.count }.map {
            ATTReadByGroupTypeResponse.Entry(
                startHandle: $0.handle, endHandle: $0.groupEnd ?? $0.handle, value: $0.value)
        }
        return ATTReadByGroupTypeResponse(entries: entries).bytes
    }
}

// MARK: - Values

extension TestAttributeServer {
    private func cut(_ value: [UInt8]) -> [UInt8] { Array(value.prefix(mtu - 1)) }

    private func read(_ handle: AttributeHandle, opcode: ATTOpcode, _ answer: ([UInt8]) -> [UInt8]) -> [UInt8] {
        guard let attribute = attribute(handle) else { return error(opcode, handle, .invalidHandle) }
        if let code = attribute.readError { return error(opcode, handle, code) }
        return answer(attribute.value)
    }

    private func readBlob(_ request: ATTReadBlobRequest) -> [UInt8] {
        read(request.handle, opcode: .readBlobRequest) { value in
            if quirks.contains(.refusesBlobOfOnePacket), value.count <= mtu - 1 {
                return error(.readBlobRequest, request.handle, .attributeNotLong)
            }
            guard Int(request.offset) <= value.count else {
                return error(.readBlobRequest, request.handle, .invalidOffset)
            }
            return ATTReadBlobResponse(part: cut(Array(value.dropFirst(Int(request.offset))))).bytes
        }
    }

    private mutating func prepare(_ request: ATTPrepareWriteRequest) -> [UInt8] {
        guard let attribute = attribute(request.handle) else {
            return error(.prepareWriteRequest, request.handle, .invalidHandle)
        }
        if let code = attribute.writeError { return error(.prepareWriteRequest, request.handle, code) }
        guard prepared.count < queueLimit else {
            return error(.prepareWriteRequest, request.handle, .prepareQueueFull)
        }
        prepared.append(request)
        return ATTPrepareWriteResponse(handle: request.handle, offset: request.offset, part: request.part).bytes
    }

    /// Writes everything, or returns the error that stands in the way.
    private mutating func write(
        _ parts: [(handle: AttributeHandle, offset: Int, value: [UInt8])], opcode: ATTOpcode
    ) -> [UInt8]? {
        for part in parts {
            guard let attribute = attribute(part.handle) else { return error(opcode, part.handle, .invalidHandle) }
            if let code = attribute.writeError { return error(opcode, part.handle, code) }
        }
        for part in parts {
            database.change(part.handle) { $0.value = Array($0.value.prefix(part.offset)) + part.value }
        }
        return nil
    }

    private func notFound(_ handle: AttributeHandle, _ opcode: ATTOpcode) -> [UInt8] {
        error(opcode, quirks.contains(.errorsNameHandleZero) ? 0 : handle, .attributeNotFound)
    }

    private func error(_ opcode: ATTOpcode, _ handle: AttributeHandle, _ code: ATTErrorCode) -> [UInt8] {
        ATTErrorResponse(requestOpcode: opcode, handle: handle, code: code).bytes
    }
}

// MARK: - Running procedures

extension TestAttributeServer {
    /// Runs a procedure to its end against this server.
    mutating func run<Procedure: GATTProcedure>(
        _ procedure: Procedure, limit: Int = 20_000
    ) throws -> Result<Procedure.Output, GATTFailure> {
        var procedure = procedure
        var step = procedure.begin()
        for _ in 0..<limit {
            switch step {
            case .finished(let output): return .success(output)
            case .failed(let failure): return .failure(failure)
            case .send(let request):
                let answer = try reply(to: request)
                if answer.first == ATTErrorResponse.opcode.rawValue {
                    step = procedure.received(.error(try ATTErrorResponse(answer)))
                } else {
                    step = procedure.received(.response(answer))
                }
            }
        }
        throw EndlessProcedure()
    }
}

struct EndlessProcedure: Error {}

extension Array {
    /// The first index from which on `condition` holds.
    fileprivate func partitioningIndex(where condition: (Element) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if condition(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
