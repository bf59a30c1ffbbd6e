package import BLECore

/// One attribute of a server that is made after a recording.
package struct RecordedAttribute {
    package var handle: UInt16
    package var type: BluetoothUUID
    package var value: [UInt8] = []
    /// The last handle of the group; for service declarations.
    package var groupEnd: UInt16?
}

extension GATTVectors.Findings {
    /// The attributes of a server that has what was found, by handle. What is known in part only is completed: `range`
    /// is put into a service, and `valueHandle` into a characteristic, where the recording names neither.
    package func attributes(
        in range: ClosedRange<UInt16>? = nil, valueHandle: UInt16? = nil, configurations: Set<UInt16> = []
    ) throws -> [RecordedAttribute] {
        var attributes: [UInt16: RecordedAttribute] = [:]
        func add(_ handle: UInt16, _ type: BluetoothUUID, _ value: [UInt8] = [], groupEnd: UInt16? = nil) {
            guard attributes[handle] == nil else { return }
            attributes[handle] = RecordedAttribute(handle: handle, type: type, value: value, groupEnd: groupEnd)
        }
        for service in services ?? [] {
            add(
                service.start, service.primary == false ? .secondaryServiceDeclaration : .primaryServiceDeclaration,
                try GATTVectors.uuid(service.uuid).attBytes, groupEnd: service.end)
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
            let uuid = try GATTVectors.uuid(include.uuid)
            let target = include.start.wireBytes + include.end.wireBytes
            add(include.handle ?? 0, .includeDeclaration, target + (uuid.short == nil ? [] : uuid.attBytes))
            add(include.start, .secondaryServiceDeclaration, uuid.attBytes, groupEnd: include.end)
        }
        for characteristic in characteristics ?? [] {
            let uuid = try GATTVectors.uuid(characteristic.uuid)
            add(
                characteristic.declarationHandle, .characteristicDeclaration,
                [characteristic.properties] + characteristic.valueHandle.wireBytes + uuid.attBytes)
            add(characteristic.valueHandle, uuid)
        }
        for descriptor in descriptors ?? [] { add(descriptor.handle, try GATTVectors.uuid(descriptor.uuid)) }
        // The recorded client took what it had not asked about for a configuration, and wrote it.
        for handle in configurations { add(handle, .clientCharacteristicConfiguration, [0, 0]) }
        return attributes.values.sorted { $0.handle < $1.handle }
    }
}

extension GATTVectors.Database {
    package func recordedAttributes() throws -> [RecordedAttribute] {
        try attributes.map { entry in
            RecordedAttribute(
                handle: entry.handle, type: try GATTVectors.uuid(entry.type), value: try Hex.decode(entry.value),
                groupEnd: services.first { $0.start == entry.handle }?.end)
        }
    }
}

extension GATTVectors.Case {
    /// What the responses to Read By Type list: more than a search with a filter reports.
    package func listedCharacteristics() throws -> [GATTVectors.Characteristic] {
        let responses = try script.compactMap(\.s2c).map { try Hex.decode($0) }
        return try responses.filter { $0.first == ATTReadByTypeResponse.opcode.rawValue }.flatMap { response in
            try ATTReadByTypeResponse(response).entries.map { entry in
                let name = Array(entry.value.dropFirst(3))
                guard let uuid = BluetoothUUID(littleEndian: name.span) else {
                    throw GATTVectors.NoUUID(text: "\(name)")
                }
                return GATTVectors.Characteristic(
                    declarationHandle: entry.handle, valueHandle: UInt16(entry.value[1]) | UInt16(entry.value[2]) << 8,
                    properties: entry.value[0], uuid: uuid.dashed)
            }
        }
    }
}

extension UInt16 {
    /// The two bytes of a field, the least significant first.
    package var wireBytes: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(truncatingIfNeeded: self >> 8)] }
}
