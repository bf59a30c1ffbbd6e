// A database does not change; what has been found out since makes a new one.

extension GATTDatabase {
    /// The same database, with these descriptors of `characteristic` in place of those known before.
    package func replacing(
        descriptorsOf characteristic: GATTCharacteristic, with found: [GATTDescriptor]
    ) -> GATTDatabase {
        let others = descriptors.filter { !characteristic.handles.contains($0.handle) }
        return GATTDatabase(
            services: services, characteristics: characteristics, descriptors: others + found, quirks: quirks)
    }

    /// The same database, with everything in `range` replaced by what `part` has there.
    ///
    /// A service that reaches into the range goes as a whole; `wholeServices(touching:)` makes a range that cuts none.
    ///
    /// - Throws: `.databaseTooLarge`.
    package func replacing(
        range: ClosedRange<AttributeHandle>, with part: GATTDatabase
    ) throws(GATTFailure) -> GATTDatabase {
        let gone = wholeServices(touching: range)
        let database = GATTDatabase(
            services: services.filter { !$0.handles.overlaps(gone) }
                + part.services.filter { range.contains($0.handles.lowerBound) },
            characteristics: characteristics.filter { !gone.contains($0.declarationHandle) }
                + part.characteristics.filter { range.contains($0.declarationHandle) },
            descriptors: descriptors.filter { !gone.contains($0.handle) }
                + part.descriptors.filter { range.contains($0.handle) },
            quirks: Self.joined(quirks.filter { !gone.contains($0.handle) }, part.quirks))
        guard database.attributeCount <= Self.attributeLimit else {
            throw .databaseTooLarge(limit: Self.attributeLimit)
        }
        return database
    }

    /// The same database, where `part` is all there is of the kinds `uuids`.
    ///
    /// - Throws: `.databaseTooLarge`.
    package func merging(_ part: GATTDatabase, of uuids: [BluetoothUUID]) throws(GATTFailure) -> GATTDatabase {
        var database = self
        for service in services where uuids.contains(service.uuid) {
            database = try database.replacing(range: service.handles, with: GATTDatabase())
        }
        for service in part.services {
            database = try database.replacing(range: service.handles, with: part)
        }
        return database
    }

    /// Only the services of these kinds, with what is in them.
    package func restricted(to uuids: [BluetoothUUID]) -> GATTDatabase {
        let kept = services.filter { uuids.contains($0.uuid) }
        func isKept(_ handle: AttributeHandle) -> Bool {
            service(containing: handle).map { uuids.contains($0.uuid) } ?? false
        }
        return GATTDatabase(
            services: kept, characteristics: characteristics.filter { isKept($0.declarationHandle) },
            descriptors: descriptors.filter { isKept($0.handle) }, quirks: quirks.filter { isKept($0.handle) })
    }

    /// `range`, and all of every service that it touches.
    package func wholeServices(touching range: ClosedRange<AttributeHandle>) -> ClosedRange<AttributeHandle> {
        var lower = range.lowerBound
        var upper = range.upperBound
        if let first = service(containing: lower) { lower = first.handles.lowerBound }
        if let last = service(containing: upper) { upper = last.handles.upperBound }
        return lower...upper
    }

    /// Quirks kept at most: a hostile peer must not fill the memory with them.
    static let quirkLimit = 256

    private static func joined(_ old: [GATTQuirk], _ new: [GATTQuirk]) -> [GATTQuirk] {
        var all = old
        for quirk in new where all.count < quirkLimit && !all.contains(quirk) { all.append(quirk) }
        return all
    }
}
