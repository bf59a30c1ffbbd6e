extension GATTDatabase {
    /// The part of a peer's database that was discovered.
    ///
    /// What was not found is covered too: it need not be discovered again.
    public enum Coverage: Hashable, Sendable {
        /// Only the services with these UUIDs, each to its level; none if the dictionary is empty.
        case services([BluetoothUUID: DiscoveryLevel])
        /// All services, to this level.
        case whole(DiscoveryLevel)

        /// No part of the database.
        public static let nothing = Coverage.services([:])

        /// Returns a Boolean value that indicates whether everything was discovered, to `level` or further.
        public func includesAll(to level: DiscoveryLevel) -> Bool {
            if case .whole(let reached) = self { reached >= level } else { false }
        }

        /// Returns a Boolean value that indicates whether the services with `uuid` were discovered, to `level` or
        /// further.
        public func includes(_ uuid: BluetoothUUID, to level: DiscoveryLevel) -> Bool {
            self.level(of: uuid).map { $0 >= level } ?? false
        }

        /// Returns the level to which the services with `uuid` were discovered; `nil` if they were not.
        func level(of uuid: BluetoothUUID) -> DiscoveryLevel? {
            switch self {
            case .whole(let reached): reached
            case .services(let levels): levels[uuid]
            }
        }

        /// Returns this coverage extended by a discovery of `services` to `level`; `nil` is a discovery of all.
        ///
        /// What the discovery found replaces what was known, even if that went further.
        func adding(_ services: [BluetoothUUID]?, to level: DiscoveryLevel) -> Coverage {
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
}

/// The former name of `GATTDatabase.Coverage`.
@available(*, deprecated, renamed: "GATTDatabase.Coverage")
public typealias DiscoveryCoverage = GATTDatabase.Coverage

extension DiscoveryLevel: Comparable {
    /// Returns a Boolean value that indicates whether the left level is lower than the right one.
    public static func < (left: DiscoveryLevel, right: DiscoveryLevel) -> Bool {
        left.depth < right.depth
    }

    /// The position among the levels, with which cached databases are stored.
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
