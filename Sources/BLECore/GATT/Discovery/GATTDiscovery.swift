/// Discovers a peer's database with as few requests as its responses allow.
///
/// Duties
/// - Requests the services, then all characteristics of all services in one sweep, and then only the handles that
///   those responses left unexplained: a handle whose type follows from the rules is never requested.
/// - Examines single services only, or a range of handles, if requested.
/// - Tolerates the known defects of peers in the field and notes them as quirks; in strict mode the first quirk is the
///   end.
/// - Ends for every peer: handles rise, no request is sent twice, the number of requests is bounded by the number of
///   attributes seen, and the number of attributes is limited. The caller watches the time.
///
/// The level sets the extent. `structure`: services and characteristics. `subscribable`: also the configuration of
/// every value that can be subscribed to. `full`: every attribute, with secondary services and includes.
///
/// Invariants
/// - `current` is the search whose request is outstanding; `pending` are searches that follow from responses.
/// - A search moves its cursor forward with every response, or ends. Cursors are `Int`, so that 0xFFFF has a
///   successor.
/// - The results are in `found` alone; searches only hold their positions.
///
/// Each kind of search has its file: +Services, +Characteristics, +Descriptors, +Includes.
package struct GATTDiscovery: GATTProcedure {
    /// One list that is being requested, piece by piece.
    enum Search: Sendable {
        case services(ServiceSearch)
        case namedServices(NamedServiceSearch)
        case characteristics(CharacteristicSearch)
        case configurations(ConfigurationSearch)
        case information(ClosedRange<AttributeHandle>)
        case includes(IncludeSearch)
        case includedService(AttributeHandle)
    }

    private enum Stage: Sendable {
        case services, characteristics, strays, explanations, includes
    }

    let mtu: Int
    let level: DiscoveryLevel
    var found: Discovered
    var pending: [Search] = []
    /// Whether the configurations may still be requested by type.
    var mayAskForConfigurations = true

    /// The handles that are examined.
    let range: ClosedRange<AttributeHandle>
    private let names: [BluetoothUUID]?
    private var current: Search?
    private var stage = Stage.services
    private var sent: Set<[UInt8]> = []

    /// Creates a discovery of everything in `range`, or, with `services`, only of the services with these UUIDs.
    ///
    /// The range must not begin or end inside a service; a service that ends after it is cut off there.
    package init(
        level: DiscoveryLevel = .subscribable, services: [BluetoothUUID]? = nil,
        in range: ClosedRange<AttributeHandle> = 1...0xFFFF, mtu: UInt16, isStrict: Bool = false
    ) {
        self.level = level
        self.range = max(1, range.lowerBound)...max(1, range.upperBound)
        self.mtu = Int(max(mtu, MTUExchange.minimum))
        names = services
        found = Discovered(isStrict: isStrict, bounds: self.range)
    }

    /// Whether all services in the range are discovered.
    var isWholeDatabase: Bool { names == nil }

    /// The number of requests sent so far.
    package var requestCount: Int { sent.count }

    package mutating func begin() -> GATTStep<GATTDatabase> {
        if let names {
            for name in names.reversed() {
                pending.append(.namedServices(NamedServiceSearch(uuid: name, range: range)))
            }
        } else {
            pending = [.services(ServiceSearch(range: range))]
        }
        return .attempt { () throws(GATTFailure) in try advance() }
    }

    package mutating func received(_ reply: ATTReply) -> GATTStep<GATTDatabase> {
        .attempt { () throws(GATTFailure) in
            guard let search = current else { throw .noProgress(at: 0) }
            switch search {
            case .services(let search): current = try received(reply, for: search)
            case .namedServices(let search): current = try received(reply, for: search)
            case .characteristics(let search): current = try received(reply, for: search)
            case .configurations(let search): current = try received(reply, for: search)
            case .information(let range): current = try received(reply, forInformation: range)
            case .includes(let search): current = try received(reply, for: search)
            case .includedService(let handle): current = try received(reply, forIncludedService: handle)
            }
            return try advance()
        }
    }

    /// Continues with the current search, else with a pending one, else with the next stage.
    private mutating func advance() throws(GATTFailure) -> GATTStep<GATTDatabase> {
        while true {
            if let current {
                if let request = try nextRequest(of: current) { return .send(request) }
                self.current = nil
            }
            if let next = pending.popLast() {
                current = next
                continue
            }
            switch stage {
            case .services:
                stage = .characteristics
                searchForCharacteristics()
            case .characteristics:
                stage = .strays
                if level != .full { searchAroundStrays(isPrimary: true) }
            case .strays:
                stage = .explanations
                if level != .full { searchAroundStrays(isPrimary: false) }
            case .explanations:
                try found.inferConfigurations()
                current = nextExplanation()
                if current == nil { stage = .includes }
            case .includes:
                guard let start = found.includeWithoutUUID() else { return .finished(try found.database()) }
                current = .includedService(start)
            }
        }
    }

    /// Returns the request to send for `search`; `nil` if another search has already sent it and had its response.
    private mutating func nextRequest(of search: Search) throws(GATTFailure) -> [UInt8]? {
        let (request, handle) = request(for: search)
        guard sent.count <= 2 * found.types.count + 64 else { throw .noProgress(at: handle) }
        if sent.insert(request).inserted { return request }
        switch search {
        case .information, .configurations, .includedService: throw .noProgress(at: handle)
        case .services, .namedServices, .characteristics, .includes: return nil
        }
    }

    private func request(for search: Search) -> ([UInt8], AttributeHandle) {
        switch search {
        case .services(let search): (search.request.bytes, search.request.startHandle)
        case .namedServices(let search): (search.request.bytes, search.request.startHandle)
        case .characteristics(let search): (search.request.bytes, search.request.startHandle)
        case .configurations(let search): (search.request.bytes, search.request.startHandle)
        case .includes(let search): (search.request.bytes, search.request.startHandle)
        case .information(let range):
            (
                ATTFindInformationRequest(startHandle: range.lowerBound, endHandle: range.upperBound).bytes,
                range.lowerBound
            )
        case .includedService(let handle): (ATTReadRequest(handle: handle).bytes, handle)
        }
    }
}

/// The state that all searches for declarations share: a range, and how far it has been searched.
struct SearchRange: Sendable {
    let range: ClosedRange<AttributeHandle>
    /// The next handle to request; one past the range at the end.
    var cursor: Int

    init(_ range: ClosedRange<AttributeHandle>) {
        self.range = range
        cursor = Int(range.lowerBound)
    }

    /// The next handle to request.
    var start: AttributeHandle { AttributeHandle(truncatingIfNeeded: cursor) }

    /// The number of handles left to request.
    var count: Int { Int(range.upperBound) - cursor + 1 }

    var isAtBeginning: Bool { cursor == Int(range.lowerBound) }

    /// Checks the first handle of a response: it must have been requested, and not have been received before.
    func check(_ handle: AttributeHandle) throws(GATTFailure) {
        guard range.contains(handle) else { throw .outOfRange(handle) }
        guard Int(handle) >= cursor else { throw .noProgress(at: handle) }
    }
}
