// Merges the results of procedures that list only one kind of attribute with the known database.
//
// A result is as a procedure returns it: sorted by handle, without overlaps. Both sides may have as many entries as a
// database allows, at the peer's choice, so no operation here compares every entry with every other.

extension GATTDatabase {
    /// Returns the database with these services. A service known unchanged keeps its contents; those that a new one
    /// overlaps are removed.
    package func including(_ found: [GATTService]) -> GATTDatabase {
        var kept: [GATTService] = []
        var gone = HandleRanges()
        for old in services {
            let first = found.firstSortedIndex { $0.handles.upperBound >= old.handles.lowerBound }
            let end = found.firstSortedIndex { $0.handles.lowerBound > old.handles.upperBound }
            let overlapping = found[first..<max(first, end)]
            if overlapping.allSatisfy({ $0.handles == old.handles && $0.uuid == old.uuid }) {
                kept.append(old)
            } else if overlapping.contains(where: { $0.uuid != old.uuid }) {
                gone.insert(old.handles)
            }
        }
        // A kept service that begins where a found one does is that one.
        let known = Set(kept.map { $0.handles.lowerBound })
        return bounded(
            GATTDatabase(
                services: kept + found.filter { !known.contains($0.handles.lowerBound) },
                characteristics: characteristics.filter { !gone.contains($0.declarationHandle) },
                descriptors: descriptors.filter { !gone.contains($0.handle) }, quirks: quirks))
    }

    /// Returns the database with these characteristics replacing those known at their handles.
    package func including(_ found: [GATTCharacteristic]) -> GATTDatabase {
        var renewed = HandleRanges()
        var found = found
        for (index, characteristic) in found.enumerated() {
            let own = min(characteristic.declarationHandle, characteristic.valueHandle)...characteristic.valueHandle
            renewed.insert(own)
            let place = characteristics.firstSortedIndex { $0.declarationHandle >= own.lowerBound }
            guard place < characteristics.count else { continue }
            let old = characteristics[place]
            if old.declarationHandle == own.lowerBound, old.valueHandle == own.upperBound {
                found[index].endHandle = min(characteristic.endHandle, old.endHandle)
            }
        }
        let kept = characteristics.filter { old in
            !renewed.contains(old.declarationHandle) && !renewed.contains(old.valueHandle)
        }
        return bounded(
            GATTDatabase(
                services: services, characteristics: kept + found,
                descriptors: descriptors.filter { !renewed.contains($0.handle) }, quirks: quirks))
    }

    /// Returns the database with these references in the services that contain them.
    package func including(_ found: [GATTService.Include]) -> GATTDatabase {
        var services = services
        var renewed = HandleRanges()
        for include in found { renewed.insert(include.handle) }
        for (index, service) in services.enumerated() {
            let first = found.firstSortedIndex { $0.handle >= service.handles.lowerBound }
            let end = found.firstSortedIndex { $0.handle > service.handles.upperBound }
            guard first < end else { continue }
            let kept = service.includes.filter { !renewed.contains($0.handle) }
            services[index].includes = (kept + found[first..<end]).sorted { $0.handle < $1.handle }
        }
        return bounded(
            GATTDatabase(
                services: services, characteristics: characteristics, descriptors: descriptors, quirks: quirks))
    }

    /// Returns the database with these descriptors.
    package func including(_ found: [GATTDescriptor]) -> GATTDatabase {
        var renewed = HandleRanges()
        for descriptor in found { renewed.insert(descriptor.handle) }
        let others = descriptors.filter { !renewed.contains($0.handle) }
        return bounded(
            GATTDatabase(
                services: services, characteristics: characteristics, descriptors: others + found, quirks: quirks))
    }

    /// Returns `database`, unless it exceeds the limit of attributes.
    private func bounded(_ database: GATTDatabase) -> GATTDatabase {
        database.attributeCount <= Self.attributeLimit ? database : self
    }
}
