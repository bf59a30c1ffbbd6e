// A database is immutable; later discoveries create a new one.

extension GATTDatabase {
    /// Returns the database with these descriptors of `characteristic` replacing those known before.
    package func replacing(
        descriptorsOf characteristic: GATTCharacteristic, with found: [GATTDescriptor]
    ) -> GATTDatabase {
        let others = descriptors.filter { !characteristic.handles.contains($0.handle) }
        return GATTDatabase(
            services: services, characteristics: characteristics, descriptors: others + found, quirks: quirks)
    }

    /// Returns the database with everything in `range` replaced by the contents of `part`.
    ///
    /// A service that reaches into the range is removed as a whole; `wholeServices(touching:)` returns a range that
    /// cuts none.
    ///
    /// - Throws: `.databaseTooLarge`.
    package func replacing(
        range: ClosedRange<AttributeHandle>, with part: GATTDatabase
    ) throws(GATTFailure) -> GATTDatabase {
        try replacing(HandleRanges(wholeServices(touching: range)), with: part, in: HandleRanges(range))
    }

    /// Returns the database in which `part` holds all services with `uuids`.
    ///
    /// - Throws: `.databaseTooLarge`.
    package func merging(_ part: GATTDatabase, of uuids: [BluetoothUUID]) throws(GATTFailure) -> GATTDatabase {
        // Removals are applied at once at the end: a peer may have thousands of services of a kind.
        var gone = HandleRanges()
        var found = HandleRanges()
        for service in services where uuids.contains(service.uuid) { gone.insert(service.handles) }
        for service in part.services {
            gone.insert(wholeServices(touching: service.handles))
            found.insert(service.handles)
        }
        return try replacing(gone, with: part, in: found)
    }

    /// Returns the database without what is at `gone`, and with the contents of `part` at `found`. Whole services are
    /// removed.
    private func replacing(
        _ gone: HandleRanges, with part: GATTDatabase, in found: HandleRanges
    ) throws(GATTFailure) -> GATTDatabase {
        let database = GATTDatabase(
            services: services.filter { !gone.contains($0.handles.lowerBound) }
                + part.services.filter { found.contains($0.handles.lowerBound) },
            characteristics: characteristics.filter { !gone.contains($0.declarationHandle) }
                + part.characteristics.filter { found.contains($0.declarationHandle) },
            descriptors: descriptors.filter { !gone.contains($0.handle) }
                + part.descriptors.filter { found.contains($0.handle) },
            quirks: Self.joined(quirks.filter { !gone.contains($0.handle) }, part.quirks))
        guard database.attributeCount <= Self.attributeLimit else {
            throw .databaseTooLarge(limit: Self.attributeLimit)
        }
        return database
    }

    /// Returns only the services with these UUIDs, with their contents.
    package func restricted(to uuids: [BluetoothUUID]) -> GATTDatabase {
        let kept = services.filter { uuids.contains($0.uuid) }
        func isKept(_ handle: AttributeHandle) -> Bool {
            service(containing: handle).map { uuids.contains($0.uuid) } ?? false
        }
        return GATTDatabase(
            services: kept, characteristics: characteristics.filter { isKept($0.declarationHandle) },
            descriptors: descriptors.filter { isKept($0.handle) }, quirks: quirks.filter { isKept($0.handle) })
    }

    /// Returns `range` extended to all of every service that it touches.
    package func wholeServices(touching range: ClosedRange<AttributeHandle>) -> ClosedRange<AttributeHandle> {
        var lower = range.lowerBound
        var upper = range.upperBound
        if let first = service(containing: lower) { lower = first.handles.lowerBound }
        if let last = service(containing: upper) { upper = last.handles.upperBound }
        return lower...upper
    }

    /// The maximum number of quirks: a hostile peer must not fill the memory with them.
    static let quirkLimit = 256

    private static func joined(_ old: [Quirk], _ new: [Quirk]) -> [Quirk] {
        var all = old
        for quirk in new where all.count < quirkLimit && !all.contains(quirk) { all.append(quirk) }
        return all
    }
}
