import BLECore
import TestSupport

extension ModelDatabase {
    /// What a discovery should have found and did not, and what it found that is not there.
    ///
    /// Counted is every attribute up to the end of the last primary service; at lower levels only what they promise.
    func differences(from found: GATTDatabase, level: DiscoveryLevel) -> [String] {
        var differences: [String] = []
        let end = lastPrimaryEnd
        let primaries = attributes.filter { $0.type == .primaryServiceDeclaration }
        for attribute in attributes where attribute.handle <= end {
            guard level.promises(attribute.type) else { continue }
            if level != .full {
                guard
                    primaries.contains(where: { $0.handle <= attribute.handle && attribute.handle <= $0.groupEnd ?? 0 })
                else { continue }
            }
            if level == .subscribable, attribute.type == .clientCharacteristicConfiguration {
                // Some peers have one where nothing can be subscribed to.
                let owner = found.characteristic(containing: attribute.handle)
                guard owner?.properties.canSubscribe != false else { continue }
            }
            let type = found.type(at: attribute.handle)
            if type != attribute.type {
                differences.append("\(attribute.handle) is \(attribute.type), not \(type?.description ?? "unknown")")
            }
        }
        let known = Set(attributes.map(\.handle))
        for descriptor in found.descriptors where !known.contains(descriptor.handle) {
            differences.append("\(descriptor.handle) does not exist")
        }
        for service in primaries {
            guard let match = found.service(containing: service.handle) else { continue }
            if match.handles.upperBound != service.groupEnd || match.uuid.attBytes != service.value {
                differences.append("service \(service.handle) is \(match)")
            }
        }
        let values = Dictionary(uniqueKeysWithValues: attributes.map { ($0.handle, $0.value) })
        for characteristic in found.characteristics {
            let value = values[characteristic.declarationHandle]
            let expected =
                [characteristic.properties.rawValue] + characteristic.valueHandle.wireBytes
                + characteristic.uuid.attBytes
            if value != expected { differences.append("characteristic \(characteristic)") }
        }
        if level == .full {
            let includes = found.services.flatMap(\.includes)
            for attribute in attributes where attribute.type == .includeDeclaration && attribute.handle <= end {
                guard let include = includes.first(where: { $0.handle == attribute.handle }), include.uuid != nil,
                    Array(attribute.value.prefix(4))
                        == include.handles.lowerBound.wireBytes + include.handles.upperBound.wireBytes
                else {
                    differences.append("include \(attribute.handle) is missing")
                    continue
                }
            }
        }
        return differences
    }
}

extension DiscoveryLevel {
    /// Whether attributes of this type in a primary service are found at this level.
    fileprivate func promises(_ type: BluetoothUUID) -> Bool {
        switch (self, type) {
        case (.full, _), (_, .primaryServiceDeclaration), (_, .characteristicDeclaration): true
        case (.subscribable, .clientCharacteristicConfiguration): true
        default: false
        }
    }
}
