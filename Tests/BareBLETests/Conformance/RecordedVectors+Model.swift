import BLECore
import BareBLETestKit

extension RecordedVectors.Findings {
    /// A server that has what was found. What is known in part only is completed: `range` is put into a service, and
    /// `valueHandle` into a characteristic, where the recording names neither.
    func table(
        in range: ClosedRange<UInt16>? = nil, valueHandle: UInt16? = nil, configurations: Set<UInt16> = []
    ) throws -> AttributeTable {
        var attributes: [ServedAttribute] = []
        func add(_ handle: UInt16, _ type: BluetoothUUID, _ value: [UInt8] = [], groupEnd: UInt16? = nil) {
            var attribute = ServedAttribute(handle: handle, type: type, value: value)
            attribute.writeError = nil
            if let groupEnd { attribute.role = .group(end: groupEnd) }
            attributes.append(attribute)
        }
        for service in services ?? [] {
            let type: BluetoothUUID =
                service.primary == false ? .secondaryServiceDeclaration : .primaryServiceDeclaration
            add(service.start, type, try uuid(service.uuid).attBytes, groupEnd: service.end)
        }
        if let range {
            let declaration = valueHandle.map { $0 - 2 } ?? range.lowerBound - 1
            add(declaration, .primaryServiceDeclaration, [0x0F, 0x18], groupEnd: range.upperBound)
        }
        if let valueHandle {
            add(valueHandle - 1, .characteristicDeclaration, [0x02] + valueHandle.wireBytes + [0x19, 0x2A])
            add(valueHandle, 0x2A19)
        }
        for include in includes ?? [] {
            let name = try uuid(include.uuid)
            let target = include.start.wireBytes + include.end.wireBytes
            add(include.handle ?? 0, .includeDeclaration, target + (name.short == nil ? [] : name.attBytes))
            add(include.start, .secondaryServiceDeclaration, name.attBytes, groupEnd: include.end)
        }
        for characteristic in characteristics ?? [] {
            let name = try uuid(characteristic.uuid)
            add(
                characteristic.declarationHandle, .characteristicDeclaration,
                [characteristic.properties] + characteristic.valueHandle.wireBytes + name.attBytes)
            add(characteristic.valueHandle, name)
        }
        for descriptor in descriptors ?? [] { add(descriptor.handle, try uuid(descriptor.uuid)) }
        // The recorded client took what it had not asked about for a configuration, and wrote it.
        for handle in configurations.sorted() { add(handle, .clientCharacteristicConfiguration, [0, 0]) }
        return AttributeTable(attributes)
    }

    /// What one recorded answer to Read By Type lists.
    static func characteristics(in answer: [UInt8]) throws -> [RecordedVectors.Characteristic] {
        guard answer.first == ATTReadByTypeResponse.opcode.rawValue else { return [] }
        return try ATTReadByTypeResponse(answer).entries.map { entry in
            let name = Array(entry.value.dropFirst(3))
            guard let uuid = BluetoothUUID(littleEndian: name.span) else { throw Mismatch("no UUID in an answer") }
            return RecordedVectors.Characteristic(
                declarationHandle: entry.handle, valueHandle: UInt16(entry.value[1]) | UInt16(entry.value[2]) << 8,
                properties: entry.value[0], uuid: uuid.dashed)
        }
    }
}

extension RecordedVectors.Database {
    var table: AttributeTable {
        get throws {
            AttributeTable(
                try attributes.map { entry in
                    var attribute = ServedAttribute(
                        handle: entry.handle, type: try uuid(entry.type), value: try bytes(entry.value))
                    if let service = services.first(where: { $0.start == entry.handle }) {
                        attribute.role = .group(end: service.end)
                    }
                    attribute.writeError = nil
                    return attribute
                })
        }
    }
}

extension UInt16 {
    var wireBytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)] }
}
