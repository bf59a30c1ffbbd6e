/// The results of a discovery so far, and the handles that are still unexplained.
///
/// Duties
/// - Takes services, characteristics, includes and attribute types in whatever order the peer sends them, and
///   separates them by handle.
/// - Detects impossible values, drops or repairs them, and notes a quirk; in strict mode the first quirk ends the
///   discovery.
/// - Keeps track of the unexplained handles. A handle is explained when its attribute is known, or when the peer has
///   responded that there is none.
///
/// Invariants
/// - Services do not overlap; a characteristic's value lies after its declaration and before the next one.
/// - `types` has an entry for every attribute that is known to exist, so its count is what the cap is checked against.
/// - `open` never contains an explained handle.
struct Discovered: Sendable {
    private(set) var services: [GATTService] = []
    private(set) var characteristics: [GATTCharacteristic] = []
    private(set) var includes: [GATTService.Include] = []
    private(set) var types: [AttributeHandle: BluetoothUUID] = [:]
    /// The unexplained handles within the discovery's range.
    private(set) var open = HandleRanges()

    private let isStrict: Bool
    /// The only handles that are examined.
    private let bounds: ClosedRange<AttributeHandle>
    private var explained = HandleRanges()
    private var configurations = HandleRanges()
    private(set) var inferred: Set<AttributeHandle> = []
    private var withoutEnd: Set<AttributeHandle> = []
    private var withoutUUID: Set<AttributeHandle> = []
    private(set) var quirks: [GATTDatabase.Quirk] = []
    private var hasNewDeclarations = false

    init(isStrict: Bool, bounds: ClosedRange<AttributeHandle> = 1...0xFFFF) {
        self.isStrict = isStrict
        self.bounds = bounds
    }

    mutating func note(_ quirk: GATTDatabase.Quirk) throws(GATTFailure) {
        if isStrict { throw .quirk(quirk) }
        if quirks.count < GATTDatabase.quirkLimit { quirks.append(quirk) }
    }
}

// MARK: - Handles

extension Discovered {
    /// Adds `range`, as far as it lies in the bounds, to the handles that the discovery examines.
    mutating func lookAt(_ range: ClosedRange<AttributeHandle>) {
        guard range.overlaps(bounds) else { return }
        open.insert(range.clamped(to: bounds))
        for known in explained.intersection(range) { open.remove(known) }
    }

    /// Marks `range` as explained.
    mutating func explain(_ range: ClosedRange<AttributeHandle>) {
        explained.insert(range)
        open.remove(range)
    }

    /// Adds an attribute of `type` at `handle`.
    mutating func add(_ type: BluetoothUUID, at handle: AttributeHandle) throws(GATTFailure) {
        if types.updateValue(type, forKey: handle) == nil, types.count > GATTDatabase.attributeLimit {
            throw .databaseTooLarge(limit: GATTDatabase.attributeLimit)
        }
        if type == .clientCharacteristicConfiguration { configurations.insert(handle) }
        inferred.remove(handle)
        explain(handle...handle)
    }

    /// Whether the type at `handle` was inferred and not requested.
    func isInferred(_ handle: AttributeHandle) -> Bool { inferred.contains(handle) }

    /// Whether all attributes in `range` are known to have types with a short form, or not to exist.
    func hasOnlyShortTypes(in range: ClosedRange<AttributeHandle>) -> Bool {
        range.allSatisfy { types[$0].map { $0.short != nil } ?? explained.contains($0) }
    }

    /// Returns the handles from `handle` to the last one before the next known service or characteristic.
    func regionBegun(at handle: AttributeHandle) -> ClosedRange<AttributeHandle> {
        var end = bounds.upperBound
        let service = services.firstSortedIndex { $0.handles.lowerBound > handle }
        if service < services.count { end = min(end, services[service].handles.lowerBound &- 1) }
        if let around = self.service(containing: handle) { end = min(end, around.handles.upperBound) }
        let next = characteristics.firstSortedIndex { $0.declarationHandle > handle }
        if next < characteristics.count { end = min(end, characteristics[next].declarationHandle &- 1) }
        return handle...max(handle, end)
    }

    /// Returns the handles from `handle` to the last one before the next known service.
    func serviceRegionBegun(at handle: AttributeHandle) -> ClosedRange<AttributeHandle> {
        let next = services.firstSortedIndex { $0.handles.lowerBound > handle }
        return handle...max(handle, next < services.count ? services[next].handles.lowerBound &- 1 : bounds.upperBound)
    }

    func service(containing handle: AttributeHandle) -> GATTService? {
        let index = services.firstSortedIndex { $0.handles.lowerBound > handle }
        guard index > 0, services[index - 1].handles.contains(handle) else { return nil }
        return services[index - 1]
    }

    /// Returns the handles around `handle` up to the neighbouring services, if it lies in none.
    func gap(around handle: AttributeHandle) -> ClosedRange<AttributeHandle>? {
        let index = services.firstSortedIndex { $0.handles.lowerBound > handle }
        var lower = bounds.lowerBound
        if index > 0 {
            let before = services[index - 1].handles.upperBound
            guard before < handle else { return nil }
            lower = before &+ 1
        }
        let upper = index < services.count ? services[index].handles.lowerBound &- 1 : bounds.upperBound
        return lower <= upper ? lower...upper : nil
    }
}

// MARK: - Services

extension Discovered {
    /// Adds a service; returns whether it was kept. `next` is the start of the one after it in the same response.
    mutating func add(
        _ service: GATTService, isHidden: Bool, next: AttributeHandle?
    ) throws(GATTFailure) -> Bool {
        var service = service
        let start = service.handles.lowerBound
        if let next, next > start, service.handles.upperBound == .max {
            service.handles = start...(next &- 1)
            try note(.serviceEndClamped(start))
        }
        let index = services.firstSortedIndex { $0.handles.lowerBound >= start }
        if index > 0, services[index - 1].handles.upperBound >= start {
            let before = services[index - 1].handles.lowerBound
            // An end of 0xFFFF is sent by peers that do not know the end; any other end is trusted.
            guard isHidden, services[index - 1].handles.upperBound == .max else {
                try note(.serviceDropped(start))
                return false
            }
            services[index - 1].handles = before...(start &- 1)
            try note(.serviceEndClamped(before))
        }
        if index < services.count {
            let following = services[index].handles.lowerBound
            guard following > start else {
                // Two searches between known services may meet the same declaration.
                let isKnown = isHidden && following == start && services[index].uuid == service.uuid
                if !isKnown { try note(.serviceDropped(start)) }
                return false
            }
            if service.handles.upperBound >= following {
                service.handles = start...(following &- 1)
                try note(.serviceEndClamped(start))
            }
        }
        if isHidden, service.isPrimary { try note(.serviceHidden(start)) }
        services.insert(service, at: index)
        hasNewDeclarations = true
        try add(service.isPrimary ? .primaryServiceDeclaration : .secondaryServiceDeclaration, at: start)
        return true
    }

    /// The service that begins at `handle` has no end; it extends to the next one, once there is a next one.
    mutating func markWithoutEnd(_ handle: AttributeHandle) throws(GATTFailure) {
        withoutEnd.insert(handle)
        try note(.serviceEndMissing(handle))
    }

    /// No more services follow: those without an end extend to the next one, or to the last handle.
    mutating func closeServices() {
        for start in withoutEnd {
            let index = services.firstSortedIndex { $0.handles.lowerBound >= start }
            guard index < services.count, services[index].handles.lowerBound == start else { continue }
            let next = services.dropFirst(index + 1).first?.handles.lowerBound
            services[index].handles = start...max(start, next.map { $0 &- 1 } ?? bounds.upperBound)
        }
        withoutEnd = []
    }
}

// MARK: - Characteristics

extension Discovered {
    /// Adds a characteristic; `next` is the declaration after it in the same response.
    mutating func add(_ characteristic: GATTCharacteristic, next: AttributeHandle?) throws(GATTFailure) {
        let declaration = characteristic.declarationHandle
        let value = characteristic.valueHandle
        try add(.characteristicDeclaration, at: declaration)
        let index = characteristics.firstSortedIndex { $0.declarationHandle >= declaration }
        var limit = next.map(Int.init) ?? Int(AttributeHandle.max) + 1
        if index < characteristics.count { limit = min(limit, Int(characteristics[index].declarationHandle)) }
        if let region = service(containing: declaration)?.handles ?? gap(around: declaration) {
            limit = min(limit, Int(region.upperBound) + 1)
        }
        guard value > declaration, Int(value) < limit else { return try note(.characteristicDropped(declaration)) }
        if index > 0, characteristics[index - 1].valueHandle >= declaration {
            // The earlier one claims a value after this declaration, so it is the invalid one.
            let before = characteristics.remove(at: index - 1)
            try note(.characteristicDropped(before.declarationHandle))
            characteristics.insert(characteristic, at: index - 1)
        } else {
            characteristics.insert(characteristic, at: index)
        }
        hasNewDeclarations = true
        try add(characteristic.uuid, at: value)
    }

    /// Whether a characteristic is declared at `handle`.
    func declaresCharacteristic(at handle: AttributeHandle) -> Bool {
        let index = characteristics.firstSortedIndex { $0.declarationHandle >= handle }
        return index < characteristics.count && characteristics[index].declarationHandle == handle
    }

    /// Returns the handles after the value of the characteristic at `index`, up to the next declaration or the
    /// service's end.
    func descriptorHandles(ofCharacteristicAt index: Int) -> ClosedRange<AttributeHandle>? {
        let characteristic = characteristics[index]
        let region = regionBegun(at: characteristic.declarationHandle)
        guard region.upperBound > characteristic.valueHandle else { return nil }
        return (characteristic.valueHandle &+ 1)...region.upperBound
    }

    /// Returns the unexplained handles after values that can be subscribed to and whose configuration is not known
    /// yet.
    func openSubscribableGaps() -> [ClosedRange<AttributeHandle>] {
        var gaps: [ClosedRange<AttributeHandle>] = []
        for index in characteristics.indices where characteristics[index].properties.canSubscribe {
            guard let handles = descriptorHandles(ofCharacteristicAt: index) else { continue }
            if configurations.intersection(handles).isEmpty { gaps += open.intersection(handles) }
        }
        return gaps
    }

    /// Returns the number of configurations in `range` that were inferred.
    func inferredCount(in range: ClosedRange<AttributeHandle>) -> Int {
        inferred.count { range.contains($0) }
    }

    /// A value that can be subscribed to must have a configuration; if there is only one handle left, that is it.
    mutating func inferConfigurations() throws(GATTFailure) {
        guard hasNewDeclarations else { return }
        hasNewDeclarations = false
        for index in characteristics.indices where characteristics[index].properties.canSubscribe {
            guard service(containing: characteristics[index].declarationHandle) != nil,
                let handles = descriptorHandles(ofCharacteristicAt: index), handles.count == 1,
                types[handles.lowerBound] == nil, open.contains(handles.lowerBound)
            else { continue }
            try add(.clientCharacteristicConfiguration, at: handles.lowerBound)
            inferred.insert(handles.lowerBound)
        }
    }
}

// MARK: - Includes

extension Discovered {
    mutating func add(_ include: GATTService.Include) throws(GATTFailure) {
        try add(.includeDeclaration, at: include.handle)
        includes.append(include)
    }

    /// Returns the start of an included service whose UUID is unknown.
    func includeWithoutUUID() -> AttributeHandle? {
        for include in includes where include.uuid == nil {
            let start = include.handles.lowerBound
            if !withoutUUID.contains(start), service(startingAt: start) == nil { return start }
        }
        return nil
    }

    /// Sets the UUID of every reference to the service at `start`; `nil` if the peer refused to report it.
    mutating func resolveIncludes(of start: AttributeHandle, as uuid: BluetoothUUID?) throws(GATTFailure) {
        if uuid == nil { withoutUUID.insert(start) }
        for index in includes.indices where includes[index].handles.lowerBound == start {
            includes[index].uuid = uuid
            if uuid == nil { try note(.includeWithoutUUID(includes[index].handle)) }
        }
    }

    func service(startingAt handle: AttributeHandle) -> GATTService? {
        service(containing: handle).flatMap { $0.handles.lowerBound == handle ? $0 : nil }
    }
}
