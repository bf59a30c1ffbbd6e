import BLECore
import BareBLE

/// The file of `--cache`. Trouble with it is told once and is no failure of the command, and a file that is not a cache of
/// this peer is left as it is: whoever mistypes a name must not lose what has it.
struct CacheFile: Sendable {
    private let file: GATTCacheFile
    private var loaded: GATTCache?
    private var isToldOfTrouble = false

    /// The file for `peer`, whose name it has inside.
    init(_ path: String, of peer: PeerArgument) {
        file = GATTCacheFile(path, of: peer.identity.printable)
    }

    /// What the file holds; `nil` for one that is not there or cannot be used.
    mutating func load() -> GATTCache? {
        do {
            loaded = try file.load()
        } catch {
            Console.warn(error.description)
            isToldOfTrouble = true
        }
        return loaded
    }

    /// Writes what is known of the peer, where the file does not hold that already, or more.
    func keep(_ peripheral: Peripheral) async {
        do {
            guard let cache = try await peripheral.cache(), cache != loaded, !cache.isPart(of: loaded),
                file.mayBeReplaced
            else { return }
            try file.save(cache)
        } catch {
            if !isToldOfTrouble { Console.warn(error.description) }
        }
    }
}

extension GATTCache {
    /// Whether `other` goes deeper, and nothing here contradicts it: its peer was asked less this time, and has not changed.
    func isPart(of other: GATTCache?) -> Bool {
        guard let other, coverage != other.coverage, databaseHash == nil || databaseHash == other.databaseHash else {
            return false
        }
        switch coverage {
        case .whole(let level):
            return other.coverage.includesAll(to: level) && database.services == other.database.services
                && database.characteristics == other.database.characteristics
        case .services(let levels):
            guard levels.allSatisfy({ other.coverage.includes($0.key, to: $0.value) }) else { return false }
            return levels.keys.allSatisfy { uuid in
                let (mine, theirs) = (database.services(uuid), other.database.services(uuid))
                return mine == theirs
                    && mine.allSatisfy { database.characteristics(of: $0) == other.database.characteristics(of: $0) }
            }
        }
    }
}
