import BLECore
import BareBLE

/// What `explore` found, as a screen and as JSON.
struct AttributeTree: Sendable {
    /// What became of reading one value.
    enum Reading: Sendable {
        case value([UInt8])
        case refused(BLEError)
    }

    let peer: String
    let mtu: Int
    let connecting: Duration
    let discovering: Duration
    let discoveryRequests: Int
    let allRequests: Int
    let database: GATTDatabase
    let values: [AttributeHandle: Reading]

    /// The handles worth reading: values that may be read, and descriptors.
    static func readable(in database: GATTDatabase) -> [AttributeHandle] {
        let characteristics = database.characteristics.filter { $0.properties.contains(.read) }.map(\.valueHandle)
        let descriptors = database.descriptors.filter { $0.uuid.short != nil }.map(\.handle)
        return (characteristics + descriptors).sorted()
    }
}

// MARK: - The screen

extension AttributeTree {
    private static let nameWidth = 54
    private static let propertyWidth = 24

    var lines: [String] {
        var lines = [
            "\(peer)   connected \(connecting.milliseconds) ms   MTU \(mtu)   discovered "
                + "\(counted(database.attributeCount, "attribute")) in \(discovering.milliseconds) ms, "
                + counted(discoveryRequests, "request"),
            line(" HANDLE", "SERVICE / CHARACTERISTIC / descriptor", "CAN", "VALUE"),
        ]
        for service in database.services { lines += screen(of: service) }
        let orphans = database.descriptors.filter { database.characteristic(containing: $0.handle) == nil }
        for descriptor in orphans { lines.append(screen(of: descriptor, indent: 2)) }
        lines.append(footer)
        return lines
    }

    private func screen(of service: GATTService) -> [String] {
        let handles = "\(hex(service.handles.lowerBound))-\(hex(service.handles.upperBound))"
        let kind = service.isPrimary ? "" : "  (secondary)"
        var lines = [
            " \(handles)    \(label(service.uuid, AssignedNumbers.serviceName) ?? "Vendor service") \(service.uuid)\(kind)"
        ]
        for include in service.includes {
            let target = "\(hex(include.handles.lowerBound))-\(hex(include.handles.upperBound))"
            lines.append(
                line("   \(hex(include.handle))", "  includes \(target) \(include.uuid?.description ?? "")", "", ""))
        }
        for characteristic in database.characteristics(of: service) {
            let name = AssignedNumbers.characteristicName(characteristic.uuid).map { $0 + " " } ?? ""
            lines.append(
                line(
                    "   \(hex(characteristic.valueHandle))", "  \(name)\(characteristic.uuid)",
                    characteristic.properties.description, shown(characteristic.valueHandle, characteristic.uuid)))
            for descriptor in database.descriptors(of: characteristic) {
                lines.append(screen(of: descriptor, indent: 4))
            }
        }
        return lines
    }

    private func screen(of descriptor: GATTDescriptor, indent: Int) -> String {
        let space = String(repeating: " ", count: indent)
        let name = AssignedNumbers.descriptorName(descriptor.uuid).map { $0 + " " } ?? ""
        return line(
            " \(space)\(hex(descriptor.handle))", "\(space)\(name)\(descriptor.uuid)", "",
            shown(descriptor.handle, descriptor.uuid))
    }

    private func shown(_ handle: AttributeHandle, _ uuid: BluetoothUUID) -> String {
        switch values[handle] {
        case nil:
            return ""
        case .refused(let error):
            return "! \(error.reason) \(error.underlyingCodes ?? "")"
        case .value(let bytes):
            let meaning = Meaning.text(of: bytes, uuid: uuid)
            if bytes.isEmpty { return "(empty)" }
            if let meaning, meaning.hasPrefix("\"") { return meaning }
            let digits =
                bytes.count > 32 ? Hex.encode(bytes.prefix(32)) + "… (\(bytes.count) bytes)" : Hex.encode(bytes)
            return [digits, meaning].compactMap(\.self).joined(separator: "  ")
        }
    }

    private var footer: String {
        var parts = [counted(allRequests, "request") + " used"]
        let read = values.values.filter { if case .value = $0 { true } else { false } }.count
        if !values.isEmpty { parts.append("\(counted(read, "value")) read") }
        let security = values.values.filter {
            if case .refused(let e) = $0 { e.code == .insufficientSecurity } else { false }
        }
        let refused = values.count - read
        if refused > 0 { parts.append("\(refused) refused") }
        if !security.isEmpty { parts.append("\(security.count) of them need pairing, which blescan does not do") }
        if !database.quirks.isEmpty { parts.append("\(counted(database.quirks.count, "quirk")) of the peer tolerated") }
        return parts.joined(separator: ", ")
    }

    private func line(_ handle: String, _ name: String, _ properties: String, _ value: String) -> String {
        var text =
            handle.padded(to: 13) + name.padded(to: Self.nameWidth) + " " + properties.padded(to: Self.propertyWidth)
        text += value
        while text.last == " " { text.removeLast() }
        return text
    }

    private func counted(_ count: Int, _ noun: String) -> String {
        count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
    }
}

// MARK: - JSON

extension AttributeTree {
    var json: JSONLine {
        .object([
            "v": 1, "peer": .string(peer), "mtu": .integer(mtu), "attributes": .integer(database.attributeCount),
            "discoveryRequests": .integer(discoveryRequests), "requests": .integer(allRequests),
            "services": .array(database.services.map(json(of:))),
            "quirks": database.quirks.isEmpty ? nil : .array(database.quirks.map { .string("\($0)") }),
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
        let members: [JSONLine.Member] = [
            .init(key: "handle", value: .integer(Int(descriptor.handle))),
            .init(key: "uuid", value: .string(descriptor.uuid.description)),
        ]
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
            return [hex] + (Meaning.json(of: bytes, uuid: uuid).map { [.init(key: "value", value: $0)] } ?? [])
        }
    }

    private func label(_ uuid: BluetoothUUID, _ table: (BluetoothUUID) -> String?) -> String? {
        table(uuid) ?? AssignedNumbers.memberName(uuid)
    }

    private func hex(_ handle: AttributeHandle) -> String {
        Hex.encode([UInt8(truncatingIfNeeded: handle >> 8), UInt8(truncatingIfNeeded: handle)])
    }
}

extension Duration {
    /// Whole milliseconds.
    var milliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}

extension String {
    func padded(to width: Int) -> String {
        let missing = width - count
        return missing > 0 ? self + String(repeating: " ", count: missing) : self
    }
}
