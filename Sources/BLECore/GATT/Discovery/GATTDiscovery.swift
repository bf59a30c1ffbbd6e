/// Finds out what a peer offers, in as few requests as its answers allow.
///
/// Duties
/// - Asks for the services, then for all characteristics of all services in one sweep, and then only about handles that
///   those answers left unexplained: a handle whose type follows from the rules is never asked about.
/// - Looks at single services only, or at a range of handles, when told which.
/// - Puts up with what peers in the field get wrong and notes it as a quirk; in strict mode the first quirk is the end.
/// - Ends for every peer: handles rise, no request is sent twice, the number of requests is bound to the number of
///   attributes seen, and the number of attributes has a cap. Time is the caller's to watch.
///
/// How far it goes is its level. `structure`: services and characteristics. `subscribable`: also the configuration of
/// every value that can be subscribed to. `full`: every attribute, with secondary services and includes.
///
/// Invariants
/// - `current` is the search whose request is out; `pending` are searches that answers gave rise to.
/// - A search moves its cursor forward with every answer, or ends. Cursors are `Int`, so that 0xFFFF has a successor.
/// - What is known lives in `found` alone; searches only say where they stand.
///
/// Each kind of search has its file: +Services, +Characteristics, +Descriptors, +Includes.
package struct GATTDiscovery: GATTProcedure {
    /// One list that is being asked for, piece by piece.
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
    /// Whether the configurations still may be asked for by type.
    var mayAskForConfigurations = true

    /// The handles that are looked at.
    let range: ClosedRange<AttributeHandle>
    private let names: [BluetoothUUID]?
    private var current: Search?
    private var stage = Stage.services
    private var sent: Set<[UInt8]> = []

    /// Discovers everything in `range`, or, with `services`, only the services of these kinds.
    ///
    /// The range must not begin or end inside a service; one that ends behind it is cut off there.
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

    /// Whether all services in the range are looked at.
    var isWholeDatabase: Bool { names == nil }

    /// How many requests were sent so far.
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

    /// Goes on with the current search, else with a pending one, else with the next stage.
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

    /// The request to send for `search`; `nil` when another search has sent it already and had its answer.
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

/// What all searches for declarations have in common: a range, and how far it has been searched.
struct SearchRange: Sendable {
    let range: ClosedRange<AttributeHandle>
    /// The next handle to ask about; one behind the range when it is done.
    var cursor: Int

    init(_ range: ClosedRange<AttributeHandle>) {
        self.range = range
        cursor = Int(range.lowerBound)
    }

    /// The next handle to ask about.
    var start: AttributeHandle { AttributeHandle(truncatingIfNeeded: cursor) }

    /// How many handles are left to ask about.
    var count: Int { Int(range.upperBound) - cursor + 1 }

    var isAtBeginning: Bool { cursor == Int(range.lowerBound) }

    /// Checks the first handle of an answer: nothing that was not asked for, and nothing twice.
    func check(_ handle: AttributeHandle) throws(GATTFailure) {
        guard range.contains(handle) else { throw .outOfRange(handle) }
        guard Int(handle) >= cursor else { throw .noProgress(at: handle) }
    }
}
