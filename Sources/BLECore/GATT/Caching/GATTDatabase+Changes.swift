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
        try replacing(HandleRanges(wholeServices(touching: range)), with: part, in: HandleRanges(range))
    }

    /// The same database, where `part` is all there is of the kinds `uuids`.
    ///
    /// - Throws: `.databaseTooLarge`.
    package func merging(_ part: GATTDatabase, of uuids: [BluetoothUUID]) throws(GATTFailure) -> GATTDatabase {
        // First what goes and then all at once: a peer may have thousands of services of a kind.
        var gone = HandleRanges()
        var found = HandleRanges()
        for service in services where uuids.contains(service.uuid) { gone.insert(service.handles) }
        for service in part.services {
            gone.insert(wholeServices(touching: service.handles))
            found.insert(service.handles)
        }
        return try replacing(gone, with: part, in: found)
    }

    /// The same database, without what is at `gone`, and with what `part` has at `found`. Whole services go.
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
