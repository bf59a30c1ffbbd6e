/// How much of a peer's database was looked at.
///
/// What was looked for and not found is covered too: it need not be looked for again.
public enum DiscoveryCoverage: Hashable, Sendable {
    /// Only the services of these kinds, each to its level; none of them when the dictionary is empty.
    case services([BluetoothUUID: DiscoveryLevel])
    /// All services, to this level.
    case whole(DiscoveryLevel)

    /// Nothing was looked at.
    public static let nothing = DiscoveryCoverage.services([:])

    /// Whether everything was looked at, to `level` or further.
    public func includesAll(to level: DiscoveryLevel) -> Bool {
        if case .whole(let reached) = self { reached >= level } else { false }
    }

    /// Whether the services of the kind `uuid` were looked for, to `level` or further.
    public func includes(_ uuid: BluetoothUUID, to level: DiscoveryLevel) -> Bool {
        self.level(of: uuid).map { $0 >= level } ?? false
    }

    /// How far the services of the kind `uuid` were looked at; `nil` when they were not looked for.
    func level(of uuid: BluetoothUUID) -> DiscoveryLevel? {
        switch self {
        case .whole(let reached): reached
        case .services(let levels): levels[uuid]
        }
    }

    /// This, and what a search for `services` to `level` has covered; `nil`: a search for all.
    ///
    /// What the search found takes the place of what was known, also where that went further.
    func adding(_ services: [BluetoothUUID]?, to level: DiscoveryLevel) -> DiscoveryCoverage {
        guard let services else { return .whole(level) }
        guard !services.isEmpty else { return self }
        switch self {
        case .whole(let reached): return .whole(min(reached, level))
        case .services(var levels):
            for service in services { levels[service] = level }
            return .services(levels)
        }
    }
}

extension DiscoveryLevel: Comparable {
    /// Whether the left level goes less far than the right one.
    public static func < (left: DiscoveryLevel, right: DiscoveryLevel) -> Bool {
        left.depth < right.depth
    }

    /// Its place among the levels; what cached databases are stored with.
    var depth: UInt8 {
        switch self {
        case .structure: 0
        case .subscribable: 1
        case .full: 2
        }
    }

    init?(depth: UInt8) {
        switch depth {
        case 0: self = .structure
        case 1: self = .subscribable
        case 2: self = .full
        default: return nil
        }
    }
}
