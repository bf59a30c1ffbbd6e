import BLECore
import BLEProfiles
import BareBLE

/// The result of `explore`, as a screen and as JSON.
struct AttributeTree: Sendable {
    /// The result of reading one value.
    enum Reading: Sendable {
        case value([UInt8])
        /// The peer has refused it, has not responded, or has sent an invalid value.
        case refused(BLEError)
    }

    let peer: String
    /// The kind of the peer's address; `nil` without a radio.
    let kind: BluetoothAddress.Kind?
    let mtu: Int
    let connecting: Duration
    let discovering: Duration
    /// Whether the database came from the cache.
    let isFromCache: Bool
    /// Whether the peer has no hash to validate a cache with.
    let isUnchecked: Bool
    /// The number of requests for the database: the discovery, or the validation of a cache.
    let discoveryRequests: Int
    let allRequests: Int
    let database: GATTDatabase
    /// The services to show.
    let services: [GATTService]
    let values: [AttributeHandle: Reading]
    /// The failure because of which not everything was read: the link was lost.
    let interruption: BLEError?
    /// What pairs with the peer, for users; `nil` if nothing does.
    let pairingAdvice: String?

    /// Returns the handles to read: values with the read property, and descriptors; only those of `services`, if any
    /// are named.
    static func readable(in database: GATTDatabase, of services: [GATTService]) -> [AttributeHandle] {
        let characteristics = database.characteristics.filter { $0.properties.contains(.read) }.map(\.valueHandle)
        let descriptors = database.descriptors.filter { $0.uuid.short != nil }.map(\.handle)
        let all = (characteristics + descriptors).sorted()
        if services.count == database.services.count { return all }
        return all.filter { handle in services.contains { $0.handles.contains(handle) } }
    }
}

extension AttributeTree {
    /// The attributes of a peer without values.
    init(_ database: GATTDatabase, of peer: String, mtu: Int) {
        self.init(
            peer: peer, kind: nil, mtu: mtu, connecting: .zero, discovering: .zero, isFromCache: false,
            isUnchecked: false, discoveryRequests: 0, allRequests: 0, database: database, services: database.services,
            values: [:], interruption: nil, pairingAdvice: nil)
    }
}

// MARK: - Decoded values

extension AttributeTree {
    /// Returns the decoded value at `handle`, by its type or by its presentation format.
    func meaning(of bytes: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID) -> ValueDescription? {
        database.meaning(of: bytes, at: handle, uuid) { descriptor in
            guard case .value(let bytes) = values[descriptor] else { return nil }
            return bytes
        }
    }
}

extension GATTDatabase {
    /// Returns the decoded value at `handle`, by its type or by its presentation format; `value` returns the value of
    /// a descriptor, if it was read.
    func meaning(
        of bytes: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID, value: (AttributeHandle) -> [UInt8]?
    ) -> ValueDescription? {
        ValueDescription.of(bytes, uuid: uuid, format: presentationFormat(of: handle, value: value))
    }

    private func presentationFormat(
        of handle: AttributeHandle, value: (AttributeHandle) -> [UInt8]?
    ) -> GATTDescriptor.PresentationFormat? {
        guard let characteristic = characteristic(valueHandle: handle) else { return nil }
        let formats = descriptors(of: characteristic).filter { $0.uuid == 0x2904 }
        // Several of them describe the parts of an aggregate, none of them the whole.
        guard formats.count == 1, let format = formats.first, let bytes = value(format.handle) else { return nil }
        return try? GATTDescriptor.PresentationFormat(value: bytes)
    }
}

// MARK: - JSON

extension AttributeTree {
    var json: JSONLine { json(ofOperation: nil) }

    /// Returns the object; with the name of an operation, where several have results.
    func json(ofOperation name: String?) -> JSONLine {
        .object([
            "v": 1, "operation": name.map { .string($0) }, "peer": .string(peer),
            "addressKind": kind.map { .string($0.rawValue) }, "mtu": .integer(mtu),
            "attributes": .integer(database.attributeCount),
            "cached": isFromCache ? .bool(true) : nil, "discoveryRequests": .integer(discoveryRequests),
            "requests": .integer(allRequests),
            "services": .array(services.map(json(of:))),
            "quirks": database.quirks.isEmpty ? nil : .array(database.quirks.map { .string("\($0)") }),
            "error": interruption.map { .string($0.description) },
            "code": interruption.map { .string($0.code.description) },
        ])
    }

    private func json(of service: GATTService) -> JSONLine {
        .object([
            "handle": .integer(Int(service.handles.lowerBound)), "end": .integer(Int(service.handles.upperBound)),
            "uuid": .string(service.uuid.description),
            "name": AssignedNumbers.label(ofService: service.uuid).map { .string($0) },
            "primary": .bool(service.isPrimary),
            "includes": service.includes.isEmpty
                ? nil
                : .array(
                    service.includes.map { include in
                        .object([
                            "handle": .integer(Int(include.handle)), "start": .integer(Int(include.handles.lowerBound)),
                            "end": .integer(Int(include.handles.upperBound)),
                            "uuid": include.uuid.map { .string($0.description) },
                        ])
                    }),
            "characteristics": .array(database.characteristics(of: service).map(json(of:))),
        ])
    }

    private func json(of characteristic: GATTCharacteristic) -> JSONLine {
        let name = AssignedNumbers.characteristicName(characteristic.uuid)
        var members: [JSONLine.Member] = [
            .init(key: "declaration", value: .integer(Int(characteristic.declarationHandle))),
            .init(key: "handle", value: .integer(Int(characteristic.valueHandle))),
            .init(key: "uuid", value: .string(characteristic.uuid.description)),
        ]
        if let name { members.append(.init(key: "name", value: .string(name))) }
        members.append(.init(key: "properties", value: .array(characteristic.properties.names.map { .string($0) })))
        members += reading(characteristic.valueHandle, characteristic.uuid)
        let descriptors = database.descriptors(of: characteristic).map(json(of:))
        members.append(.init(key: "descriptors", value: .array(descriptors)))
        return .object(members)
    }

    private func json(of descriptor: GATTDescriptor) -> JSONLine {
        var members: [JSONLine.Member] = [
            .init(key: "handle", value: .integer(Int(descriptor.handle))),
            .init(key: "uuid", value: .string(descriptor.uuid.description)),
        ]
        if let name = AssignedNumbers.descriptorName(descriptor.uuid) {
            members.append(.init(key: "name", value: .string(name)))
        }
        return .object(members + reading(descriptor.handle, descriptor.uuid))
    }

    private func reading(_ handle: AttributeHandle, _ uuid: BluetoothUUID) -> [JSONLine.Member] {
        switch values[handle] {
        case nil:
            return []
        case .refused(let error):
            let reason: [JSONLine.Member] = [
                .init(key: "error", value: .string(error.description)),
                .init(key: "code", value: .string(error.code.description)),
            ]
            guard let code = error.attError else { return reason }
            return reason + [.init(key: "attError", value: .integer(Int(code.rawValue)))]
        case .value(let bytes):
            let hex = JSONLine.Member(key: "hex", value: .string(Hex.encode(bytes)))
            return [hex] + (meaning(of: bytes, at: handle, uuid).map { [.init(key: "value", value: $0.json)] } ?? [])
        }
    }
}
