extension Discovered {
    /// Returns the complete database.
    mutating func database() throws(GATTFailure) -> GATTDatabase {
        var declared: Set<AttributeHandle> = []
        for service in services { declared.insert(service.handles.lowerBound) }
        var finished: [GATTCharacteristic] = []
        for index in characteristics.indices {
            var characteristic = characteristics[index]
            declared.insert(characteristic.declarationHandle)
            declared.insert(characteristic.valueHandle)
            if service(containing: characteristic.declarationHandle) == nil {
                try note(.characteristicOutsideService(characteristic.declarationHandle))
            }
            characteristic.endHandle =
                descriptorHandles(ofCharacteristicAt: index)?.upperBound ?? characteristic.valueHandle
            finished.append(characteristic)
        }
        var referring = services
        for var include in includes {
            declared.insert(include.handle)
            if include.uuid == nil { include.uuid = service(startingAt: include.handles.lowerBound)?.uuid }
            let index = referring.firstSortedIndex { $0.handles.lowerBound > include.handle }
            guard index > 0, referring[index - 1].handles.contains(include.handle) else { continue }
            referring[index - 1].includes.append(include)
        }
        for index in referring.indices { referring[index].includes.sort { $0.handle < $1.handle } }
        var descriptors: [GATTDescriptor] = []
        for (handle, type) in types where !declared.contains(handle) {
            descriptors.append(GATTDescriptor(handle: handle, uuid: type, isInferred: inferred.contains(handle)))
        }
        return GATTDatabase(services: referring, characteristics: finished, descriptors: descriptors, quirks: quirks)
    }
}
