// What the procedures that list only one kind of attribute have found, put together with what was known before.

extension GATTDatabase {
    /// The same database with these services. One that is known as it is keeps what is in it; what a new one overlaps goes.
    package func including(_ found: [GATTService]) -> GATTDatabase {
        var kept = services
        var gone: [ClosedRange<AttributeHandle>] = []
        for service in found {
            if kept.contains(where: { $0.handles == service.handles && $0.uuid == service.uuid }) { continue }
            for old in kept where old.handles.overlaps(service.handles) && old.uuid != service.uuid {
                gone.append(old.handles)
            }
            kept.removeAll { $0.handles.overlaps(service.handles) }
            kept.append(service)
        }
        func isKept(_ handle: AttributeHandle) -> Bool { !gone.contains { $0.contains(handle) } }
        return bounded(
            GATTDatabase(
                services: kept, characteristics: characteristics.filter { isKept($0.declarationHandle) },
                descriptors: descriptors.filter { isKept($0.handle) }, quirks: quirks))
    }

    /// The same database with these characteristics in place of those that were known at their handles.
    package func including(_ found: [GATTCharacteristic]) -> GATTDatabase {
        var kept = characteristics
        var descriptors = descriptors
        for characteristic in found {
            var characteristic = characteristic
            let own = min(characteristic.declarationHandle, characteristic.valueHandle)...characteristic.valueHandle
            if let old = kept.first(where: { $0.declarationHandle == own.lowerBound }),
                old.valueHandle == own.upperBound
            {
                characteristic.endHandle = min(characteristic.endHandle, old.endHandle)
            }
            kept.removeAll { old in own.contains(old.declarationHandle) || own.contains(old.valueHandle) }
            kept.append(characteristic)
            descriptors.removeAll { own.contains($0.handle) }
        }
        return bounded(
            GATTDatabase(services: services, characteristics: kept, descriptors: descriptors, quirks: quirks))
    }

    /// The same database with these references in the services that hold them.
    package func including(_ found: [GATTInclude]) -> GATTDatabase {
        var services = services
        for include in found {
            guard let index = services.firstIndex(where: { $0.handles.contains(include.handle) }) else { continue }
            services[index].includes.removeAll { $0.handle == include.handle }
            services[index].includes.append(include)
            services[index].includes.sort { $0.handle < $1.handle }
        }
        return bounded(
            GATTDatabase(
                services: services, characteristics: characteristics, descriptors: descriptors, quirks: quirks))
    }

    /// The same database with these descriptors.
    package func including(_ found: [GATTDescriptor]) -> GATTDatabase {
        let others = descriptors.filter { old in !found.contains { $0.handle == old.handle } }
        return bounded(
            GATTDatabase(
                services: services, characteristics: characteristics, descriptors: others + found, quirks: quirks))
    }

    /// `database`, unless it has become larger than one may be.
    private func bounded(_ database: GATTDatabase) -> GATTDatabase {
        database.attributeCount <= Self.attributeLimit ? database : self
    }
}
