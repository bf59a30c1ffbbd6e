import BLECore
import BLELinux
import BareBLE

/// The file of `--cache`. A problem with it is reported once and is not a failure of the command, and a file that is
/// not a cache of this peer is left as it is: a mistyped name must not destroy another file.
struct CacheFile: Sendable {
    private let file: GATTCacheFile
    private var loaded: GATTCache?
    private var hasWarned = false

    /// Creates a reference to the file for `peer`, which contains the peer's name.
    init(_ path: String, of peer: PeerArgument) {
        file = GATTCacheFile(path, of: peer.identity.printable)
    }

    /// Returns the file's cache; `nil` if it does not exist or cannot be used.
    mutating func load() -> GATTCache? {
        do {
            loaded = try file.load()
        } catch {
            Self.warn(error)
            hasWarned = true
        }
        return loaded
    }

    /// Returns the same for a command that does not write the file: a directory that does not exist, which writing
    /// would report, is reported here.
    mutating func consult() -> GATTCache? {
        let cache = load()
        if cache == nil, !hasWarned, !SystemFiles.isFolder(folder) {
            let error = BLEError(
                .system, subject: file.path, during: "load the cache", because: "its directory does not exist",
                hint: "Create the directory first.")
            Self.warn(error)
            hasWarned = true
        }
        return cache
    }

    /// Reports a problem with the file, which is no failure of the command.
    private static func warn(_ error: BLEError) {
        let failure = Failure(error)
        Console.warn(
            Failure(
                message: "\(failure.message); the command goes on without it", hint: error.hint, status: failure.status)
        )
    }

    /// The path of the directory that contains the file.
    private var folder: String {
        guard let end = file.path.lastIndex(of: "/") else { return "." }
        return String(file.path[...end])
    }

    /// Writes what is known of the peer, unless the file already contains that or more.
    func keep(_ peripheral: Peripheral) async {
        do {
            guard let cache = try await peripheral.cache(), cache != loaded, !cache.isPart(of: loaded),
                file.mayBeReplaced
            else { return }
            try file.save(cache)
        } catch {
            if !hasWarned { Self.warn(error) }
        }
    }
}

extension GATTCache {
    /// Whether `other` is more complete, and nothing here contradicts it: less was requested this time, and the peer
    /// is unchanged.
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
