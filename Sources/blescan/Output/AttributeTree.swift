import BLECore
import BLEProfiles
import BareBLE

/// What `explore` found, as a screen and as JSON.
struct AttributeTree: Sendable {
    /// What became of reading one value.
    enum Reading: Sendable {
        case value([UInt8])
        case refused(BLEError)
    }

    let peer: String
    /// What kind of address the peer has; `nil` without a radio.
    let kind: AddressKind?
    let mtu: Int
    let connecting: Duration
    let discovering: Duration
    /// Whether nothing had to be discovered.
    let isFromCache: Bool
    /// Whether the peer has no hash by which a cache could be checked.
    let isUnchecked: Bool
    /// What it took to know the database: the discovery, and the check of a cache.
    let discoveryRequests: Int
    let allRequests: Int
    let database: GATTDatabase
    let values: [AttributeHandle: Reading]
    /// Why not everything could be read: the link was lost on the way.
    let interruption: BLEError?

    /// The handles worth reading: values that may be read, and descriptors.
    static func readable(in database: GATTDatabase) -> [AttributeHandle] {
        let characteristics = database.characteristics.filter { $0.properties.contains(.read) }.map(\.valueHandle)
        let descriptors = database.descriptors.filter { $0.uuid.short != nil }.map(\.handle)
        return (characteristics + descriptors).sorted()
    }
}

// MARK: - Meaning

extension AttributeTree {
    /// What the value at `handle` says, also by the presentation format that stands behind it.
    func meaning(of bytes: [UInt8], at handle: AttributeHandle, _ uuid: BluetoothUUID) -> ValueDescription? {
        ValueDescription.of(bytes, uuid: uuid, format: presentationFormat(of: handle))
    }

    private func presentationFormat(of handle: AttributeHandle) -> CharacteristicPresentationFormat? {
        guard let characteristic = database.characteristic(valueHandle: handle) else { return nil }
        let formats = database.descriptors(of: characteristic).filter { $0.uuid == 0x2904 }
        // Several of them describe the parts of an aggregate, none of them the whole.
        guard formats.count == 1, let format = formats.first, case .value(let bytes) = values[format.handle] else {
            return nil
        }
        return try? CharacteristicPresentationFormat(value: bytes)
    }
}

// MARK: - JSON

extension AttributeTree {
    var json: JSONLine {
        .object([
            "v": 1, "peer": .string(peer), "kind": kind.map { .string($0.rawValue) }, "mtu": .integer(mtu),
            "attributes": .integer(database.attributeCount),
            "cached": isFromCache ? .bool(true) : nil, "discoveryRequests": .integer(discoveryRequests),
            "requests": .integer(allRequests),
            "services": .array(database.services.map(json(of:))),
            "quirks": database.quirks.isEmpty ? nil : .array(database.quirks.map { .string("\($0)") }),
            "error": interruption.map { .string($0.description) },
        ])
    }

    private func json(of service: GATTService) -> JSONLine {
        .object([
            "handle": .integer(Int(service.handles.lowerBound)), "end": .integer(Int(service.handles.upperBound)),
            "uuid": .string(service.uuid.description),
            "name": label(service.uuid, AssignedNumbers.serviceName).map { .string($0) },
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
            return [.init(key: "error", value: .string(error.description))]
        case .value(let bytes):
            let hex = JSONLine.Member(key: "hex", value: .string(Hex.encode(bytes)))
            return [hex] + (meaning(of: bytes, at: handle, uuid).map { [.init(key: "value", value: $0.json)] } ?? [])
        }
    }

    func label(_ uuid: BluetoothUUID, _ table: (BluetoothUUID) -> String?) -> String? {
        // The list of assigned numbers has only the abbreviations of these two.
        switch uuid {
        case 0x1800: "Generic Access"
        case 0x1801: "Generic Attribute"
        default: table(uuid) ?? AssignedNumbers.memberName(uuid)
        }
    }
}
