// What a recorded link shows of its peer, from the PDUs in their order.
//
// Duties: the attributes that the recorded client has discovered, with what it has read, written and received.
//
// Invariants:
// - Any bytes are tolerated: a PDU that cannot be read, or a response without its request, shows nothing.
// - At most `GATTDatabase.attributeLimit` attributes of a kind are stored.

import BLECore
import BareBLE

/// The peer of a recorded link.
struct RecordedPeer {
    /// What happened at one PDU.
    typealias Events = [LinkEvent]

    private var request: ATTPacket?
    private var services: [AttributeHandle: GATTService] = [:]
    private var includes: [AttributeHandle: GATTService.Include] = [:]
    private var characteristics: [AttributeHandle: GATTCharacteristic] = [:]
    private var descriptors: [AttributeHandle: BluetoothUUID] = [:]
    /// The types by which values were read: of attributes that the client need not have discovered.
    private var readTypes: [AttributeHandle: BluetoothUUID] = [:]
    private var values: [AttributeHandle: [UInt8]] = [:]
    private var refusals: Set<AttributeHandle> = []

    /// The attributes that were discovered, or read by their types.
    var database: GATTDatabase {
        var services = services.values.sorted { $0.handles.lowerBound < $1.handles.lowerBound }
        // A service ends before the next one, whatever the peer has claimed.
        for (index, next) in services.enumerated().dropFirst() {
            let handles = services[index - 1].handles
            services[index - 1].handles = handles.clamped(to: handles.lowerBound...(next.handles.lowerBound - 1))
        }
        for include in includes.values.sorted(by: { $0.handle < $1.handle }) {
            if let index = Self.index(of: include.handle, in: services) { services[index].includes.append(include) }
        }
        let undeclared = undeclared(in: services)
        let sorted = (Array(characteristics.values) + undeclared).sorted {
            $0.declarationHandle < $1.declarationHandle
        }
        let whole = sorted.enumerated().map { index, characteristic in
            var characteristic = characteristic
            let service = Self.index(of: characteristic.declarationHandle, in: services).map { services[$0] }
            let next = index + 1 < sorted.count ? sorted[index + 1].declarationHandle - 1 : AttributeHandle.max
            let end = min(next, service?.handles.upperBound ?? next)
            characteristic.endHandle = max(characteristic.valueHandle, end)
            return characteristic
        }
        let declared = Set(whole.flatMap { [$0.declarationHandle, $0.valueHandle] }).union(
            services.map(\.handles.lowerBound))
        let found = readTypes.merging(descriptors) { $1 }.filter { handle, uuid in
            !declared.contains(handle) && includes[handle] == nil && !Self.declarations.contains(uuid)
        }
        return GATTDatabase(
            services: services, characteristics: whole,
            descriptors: found.map { GATTDescriptor(handle: $0.key, uuid: $0.value) })
    }

    /// Returns the characteristics of which the client has read the value by its type alone (Core Vol 3 Part G, 4.8.2):
    /// each in its service, with its declaration in front of the value, unless another attribute is known there.
    private func undeclared(in services: [GATTService]) -> [GATTCharacteristic] {
        let declared = Set(characteristics.values.flatMap { [$0.declarationHandle, $0.valueHandle] })
        return readTypes.compactMap { handle, type in
            guard handle > 1, AssignedNumbers.descriptorName(type) == nil else { return nil }
            let declaration = handle - 1
            guard let index = Self.index(of: handle, in: services), services[index].handles.lowerBound < declaration,
                !declared.contains(handle), !declared.contains(declaration), readTypes[declaration] == nil,
                includes[handle] == nil, includes[declaration] == nil,
                descriptors[declaration].map({ $0 == .characteristicDeclaration }) ?? true
            else { return nil }
            return GATTCharacteristic(
                declarationHandle: declaration, valueHandle: handle, endHandle: handle, properties: .read, uuid: type)
        }
    }

    /// The place of the service that has a handle, among services in order that do not overlap.
    private static func index(of handle: AttributeHandle, in services: [GATTService]) -> Int? {
        var (low, high) = (0, services.count)
        while low < high {
            let middle = (low + high) / 2
            if services[middle].handles.lowerBound <= handle { low = middle + 1 } else { high = middle }
        }
        return low > 0 && services[low - 1].handles.contains(handle) ? low - 1 : nil
    }

    private static let declarations: Set<BluetoothUUID> = [0x2800, 0x2801, 0x2802, 0x2803]

    /// Takes the next PDU of the link.
    mutating func take(_ pdu: [UInt8], isSent: Bool) -> Events {
        guard let packet = try? ATTPacket(pdu) else { return [] }
        let opcode = ATTOpcode(rawValue: pdu[0])
        if isSent { return sent(packet, isRequest: opcode.isRequest) }
        return received(packet, isResponse: opcode.isResponse)
    }

    private mutating func sent(_ packet: ATTPacket, isRequest: Bool) -> Events {
        switch packet {
        case .writeCommand(let write): return known(write.handle, write.value, .read)
        case .signedWriteCommand(let write): return known(write.handle, write.value, .read)
        default:
            // A link serves both roles: what is sent may be a response to the peer.
            if isRequest { request = packet }
            return []
        }
    }

    private mutating func received(_ packet: ATTPacket, isResponse: Bool) -> Events {
        switch packet {
        case .handleValueNotification(let value): return known(value.handle, value.value, .sent)
        case .handleValueIndication(let value): return known(value.handle, value.value, .sent)
        case .multipleHandleValueNotification(let list):
            return list.entries.flatMap { known($0.handle, $0.value, .sent) }
        default: break
        }
        guard isResponse else { return [] }
        defer { request = nil }
        switch (request, packet) {
        case (.exchangeMTURequest(let own), .exchangeMTUResponse(let other)):
            return [.connected(mtu: max(23, Int(min(own.mtu, other.mtu))))]
        case (.readByGroupTypeRequest(let request), .readByGroupTypeResponse(let list)):
            let found: [GATTService] = list.entries.compactMap { entry in
                guard let uuid = Self.uuid(entry.value), entry.startHandle <= entry.endHandle else { return nil }
                return GATTService(
                    handles: entry.startHandle...entry.endHandle, uuid: uuid,
                    isPrimary: request.type == BluetoothUUID.primaryServiceDeclaration)
            }
            return Self.store(found.map { ($0.handles.lowerBound, $0) }, in: &services) ? discovered : []
        case (.findByTypeValueRequest(let request), .findByTypeValueResponse(let list)):
            guard BluetoothUUID(request.type) == BluetoothUUID.primaryServiceDeclaration,
                let uuid = Self.uuid(request.value)
            else { return [] }
            let found = list.entries.filter { $0.startHandle <= $0.endHandle }.map {
                GATTService(handles: $0.startHandle...$0.endHandle, uuid: uuid)
            }
            return Self.store(found.map { ($0.handles.lowerBound, $0) }, in: &services) ? discovered : []
        case (.readByTypeRequest(let request), .readByTypeResponse(let list)):
            return found(request.type, list)
        case (.findInformationRequest, .findInformationResponse(let list)):
            return Self.store(list.entries.map { ($0.handle, $0.type) }, in: &descriptors) ? discovered : []
        case (.readRequest(let request), .readResponse(let response)):
            return known(request.handle, response.value, .read)
        case (.readBlobRequest(let request), .readBlobResponse(let response)):
            let former = values[request.handle] ?? []
            guard former.count >= Int(request.offset) else { return [] }
            return known(request.handle, former.prefix(Int(request.offset)) + response.part, .read)
        case (.readMultipleVariableRequest(let request), .readMultipleVariableResponse(let response)):
            return zip(request.handles, response.values).flatMap { known($0, $1, .read) }
        case (.writeRequest(let request), .writeResponse):
            return known(request.handle, request.value, .read)
        case (.readRequest(let request), .errorResponse(let error)):
            let refusal = BLEError(
                .refusedByPeer, during: "read", because: "refused: \(error.code.name.lowercased())",
                attError: error.code)
            guard refusals.contains(request.handle) || refusals.count < GATTDatabase.attributeLimit else { return [] }
            refusals.insert(request.handle)
            return [.unreadable(request.handle, refusal)]
        default:
            return []
        }
    }

    private mutating func found(_ type: BluetoothUUID, _ list: ATTReadByTypeResponse) -> Events {
        switch type {
        case BluetoothUUID.characteristicDeclaration:
            let found = list.entries.compactMap { GATTCharacteristic($0) }
            return Self.store(found.map { ($0.declarationHandle, $0) }, in: &characteristics) ? discovered : []
        case BluetoothUUID.includeDeclaration:
            let found = list.entries.compactMap { GATTService.Include($0) }
            return Self.store(found.map { ($0.handle, $0) }, in: &includes) ? discovered : []
        default:
            let found = Self.declarations.contains(type) ? [] : list.entries.map { ($0.handle, type) }
            let isNews = Self.store(found, in: &readTypes)
            return (isNews ? discovered : []) + list.entries.flatMap { known($0.handle, $0.value, .read) }
        }
    }

    private var discovered: Events { [.discovered(database)] }

    /// Stores attributes of a kind, and returns whether they are news. Only then is the database built, which takes
    /// long: a client discovers it at each link, and a recording may have any number of responses.
    private static func store<Attribute: Equatable>(
        _ found: [(AttributeHandle, Attribute)], in known: inout [AttributeHandle: Attribute]
    ) -> Bool {
        var isNews = false
        for (handle, attribute) in found where known[handle] != attribute {
            guard known[handle] != nil || known.count < GATTDatabase.attributeLimit else { continue }
            known[handle] = attribute
            isNews = true
        }
        return isNews
    }

    private mutating func known(
        _ handle: AttributeHandle, _ bytes: some Collection<UInt8>, _ origin: LinkEvent.Origin
    ) -> Events {
        guard values[handle] != nil || values.count < GATTDatabase.attributeLimit else { return [] }
        let value = Array(bytes)
        values[handle] = value
        return [.value(handle, value, origin)]
    }

    private static func uuid(_ bytes: [UInt8]) -> BluetoothUUID? {
        var reader = ByteReader(bytes.span)
        return reader.uuid(reader.remaining)
    }
}
