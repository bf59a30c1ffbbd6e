public import BLECore
internal import BLELinux
internal import Glibc

/// The cache of one peer on the disk.
///
/// Saving writes a temporary file in the same directory, syncs it and renames it, so a reader finds either the old
/// cache or the new one, even after a crash. Only the file's owner can read it. The calls block for as long as the
/// disk takes: keep them off the event loop.
public struct GATTCacheFile: Hashable, Sendable {
    /// The path of the file.
    public let path: String
    /// The peer of the cache, if the file's name does not identify it.
    private let owner: String?

    /// Creates a reference to a file; nothing is opened.
    public init(_ path: String) {
        self.path = path
        owner = nil
    }

    /// Creates a reference to a file whose first line names its peer: a file of another peer is refused and left as it
    /// is.
    package init(_ path: String, of owner: String) {
        self.path = path
        self.owner = owner
    }

    /// Returns the cache; `nil` if there is no file.
    ///
    /// - Throws: `BLEError` with `.unusableCache` for a file that holds something else or is damaged, and for a path
    ///   that is not a plain file; `.notPermitted`, `.system`.
    public func load() throws(BLEError) -> GATTCache? {
        let operation = "load the cache"
        let bytes: [UInt8]?
        do {
            bytes = try StoredFile.read(path, limit: Self.byteLimit)
        } catch {
            throw BLEError(error, cacheFile: path, during: operation)
        }
        guard let bytes else { return nil }
        guard bytes.starts(with: heading) else {
            throw BLEError(
                .unusableCache, subject: path, during: operation, because: Self.whyNotOurs(bytes),
                hint: "Name another file, or remove this one.")
        }
        do {
            return try GATTCache(bytes: Array(bytes.dropFirst(heading.count)))
        } catch {
            throw BLEError(
                .unusableCache, subject: path, during: operation, because: "\(error)",
                hint: isOurs(bytes) ? "Remove the file; it is written again." : "Name another file, or remove this one."
            )
        }
    }

    /// The first line of a file that names its peer.
    private var heading: [UInt8] { owner.map { Self.headingStart + $0.utf8 + [0x0A] } ?? [] }

    private static let headingStart = Array("BareBLE cache of ".utf8)
    /// Room for the frame of the stored form and for the heading.
    private static let byteLimit = GATTCache.byteLimit + 1_024

    /// Returns why a file without our heading is refused.
    private static func whyNotOurs(_ bytes: [UInt8]) -> String {
        if GATTCache.isEnvelope(bytes) { return "it does not name its peer" }
        guard bytes.starts(with: headingStart) else { return "it is not a cache" }
        let rest = bytes.dropFirst(headingStart.count).prefix(256)
        let line = rest.prefix { $0 != 0x0A }
        // Where the end of the line is damaged, the bytes after it are no text.
        guard line.count < rest.count, let name = String(validating: line, as: UTF8.self),
            !name.unicodeScalars.contains(where: AdvertisedName.isUnprintable)
        else { return "its first line, which names the peer, is damaged" }
        return "it is the cache of another peer, \(name)"
    }

    /// Whether `bytes` are this peer's cache, damaged or not.
    private func isOurs(_ bytes: [UInt8]) -> Bool {
        owner == nil ? GATTCache.isEnvelope(bytes) : bytes.starts(with: heading)
    }

    /// A Boolean value that indicates whether saving a cache here loses nothing else: there is no file, or an empty
    /// one, or one with a cache of the same peer, damaged or not.
    package var mayBeReplaced: Bool {
        do throws(SystemCallError) {
            guard let bytes = try StoredFile.read(path, limit: Self.byteLimit) else { return true }
            return bytes.isEmpty || isOurs(bytes)
        } catch {
            return false
        }
    }

    /// Writes the cache, replacing the previous one.
    ///
    /// A symbolic link of this user or of root stays one, and its target is replaced. One of another user is refused.
    ///
    /// - Throws: `BLEError` with `.notPermitted`, also for a link of another user; `.unusableCache` for a path that is
    ///   a directory, a device, a pipe or a socket; `.diskFull`, `.system`.
    public func save(_ cache: GATTCache) throws(BLEError) {
        do {
            try StoredFile.replace(path, with: heading + cache.bytes, followingLink: true)
        } catch {
            throw BLEError(error, cacheFile: path, during: "save the cache")
        }
    }

    /// Removes the file, if there is one.
    ///
    /// - Throws: `BLEError` with `.notPermitted`, `.system`.
    public func remove() throws(BLEError) {
        do {
            try StoredFile.remove(path)
        } catch {
            throw BLEError(error, cacheFile: path, during: "remove the cache")
        }
    }
}

/// The caches of many peers: a directory with one file for each, named by address and type.
///
/// `Configuration.cacheDirectory` uses it by itself. Then a bonded peer has a file of its bond, filled on encrypted
/// links alone, which `load(for:)` and `save(_:for:)` do not use; when that is written, the other one is removed.
///
/// Caches that were loaded, because their peers came back, take precedence: `load(for:)` marks the file (with the
/// sticky bit, which has no other meaning on a plain file). Peers that were met once compete for the rest, so a flood
/// of addresses evicts no returning peer's cache.
public struct GATTCacheDirectory: Hashable, Sendable {
    /// The maximum number of peers. Beyond it, a cache that was never loaded is removed while there are more than
    /// `newcomerCapacity` of those, otherwise the least recently used one.
    public static let capacity = 1_024
    /// The number of caches that are kept in any case although they were never loaded.
    public static let newcomerCapacity = 256
    private static let suffix = ".gatt"
    /// In the name of the cache of a bond, before what distinguishes it from the peer's other bonds.
    private static let bondMark = "-bond-"

    /// The path of the directory, which must exist.
    public let path: String

    /// Creates a reference to a directory; nothing is opened.
    public init(_ path: String) {
        self.path = path
    }

    /// Returns the file of `peer`; `nil` for a peer whose address changes, because it would not be found again, and
    /// another peer might use the address.
    public func file(for peer: PeerID) -> GATTCacheFile? {
        name(for: peer).map { GATTCacheFile("\(path)/\($0)") }
    }

    /// The start of the names of all files of `peer`.
    private func stem(of peer: PeerID) -> String? {
        switch peer.kind {
        case .public, .static:
            return "\(peer)".split(separator: "/").joined(separator: "-").split(separator: ":").joined()
        case .resolvablePrivate, .nonResolvablePrivate, .reserved:
            return nil
        }
    }

    private func name(for peer: PeerID, _ bond: BondID? = nil) -> String? {
        guard let stem = stem(of: peer) else { return nil }
        guard let bond else { return stem + Self.suffix }
        return "\(stem)\(Self.bondMark)\(bond.generation)-\(bond.bondedAt)\(Self.suffix)"
    }

    /// Returns the cache of `peer` and marks it as used; `nil` if there is none.
    ///
    /// It is the cache of links that are not encrypted with the key of a bond.
    ///
    /// - Throws: `BLEError` as `GATTCacheFile.load()` does.
    public func load(for peer: PeerID) throws(BLEError) -> GATTCache? { try load(for: peer, nil) }

    /// As the public method, for the links that are encrypted with the key of `bond`, or for the others.
    func load(for peer: PeerID, _ bond: BondID?) throws(BLEError) -> GATTCache? {
        guard let name = name(for: peer, bond), let cache = try GATTCacheFile("\(path)/\(name)").load() else {
            return nil
        }
        if let folder = try? StoredFolder(path) { folder.mark(name) }
        return cache
    }

    /// Writes the cache of `peer`; does nothing for a peer whose address changes. A symbolic link with that name is
    /// replaced, not followed.
    ///
    /// It is the cache of links that are not encrypted with the key of a bond.
    ///
    /// - Throws: `BLEError` as `GATTCacheFile.save(_:)` does.
    public func save(_ cache: GATTCache, for peer: PeerID) throws(BLEError) { try save(cache, for: peer, nil) }

    /// As the public method, for the links that are encrypted with the key of `bond`, or for the others. That of a
    /// bond takes the place of all that the peer has.
    ///
    /// - Parameter isFormer: Whether the bond is a former one: then nothing is done. It is called after the other files
    ///   have been listed, so that no file of a later bond is among those that are removed.
    func save(
        _ cache: GATTCache, for peer: PeerID, _ bond: BondID?, unless isFormer: () -> Bool = { false }
    ) throws(BLEError) {
        guard let stem = stem(of: peer), let name = name(for: peer, bond) else { return }
        do throws(SystemCallError) {
            let folder = try StoredFolder(path)
            var names = folder.names()
            if isFormer() { return }
            // Also those of peers that do not come back.
            folder.removeRemains(among: names) { $0.hasSuffix(Self.suffix) }
            let isInUse = folder.isMarked(name)
            try folder.replace(name, with: cache.bytes)
            if isInUse { folder.mark(name) }
            names.removeAll { $0 == name || !$0.hasSuffix(Self.suffix) }
            if bond != nil {
                let former = names.filter { $0 == stem + Self.suffix || $0.hasPrefix(stem + Self.bondMark) }
                for name in former { try folder.remove(name) }
                names.removeAll { former.contains($0) }
            }
            try makeRoom(in: folder, among: names, isInUse: isInUse)
        } catch {
            throw BLEError(error, cacheFile: "\(path)/\(name)", during: "save the cache")
        }
    }

    /// Removes the caches of all bonds of `peer`.
    ///
    /// - Throws: `BLEError` as `GATTCacheFile.remove()` does.
    func removeBonds(of peer: PeerID) throws(BLEError) {
        guard let stem = stem(of: peer) else { return }
        do throws(SystemCallError) {
            let folder = try StoredFolder(path)
            try folder.removeLastingly(
                folder.names().filter { $0.hasPrefix(stem + Self.bondMark) && $0.hasSuffix(Self.suffix) })
        } catch {
            // Without a directory there are none.
            if error.errno == ENOENT { return }
            throw BLEError(error, cacheFile: path, during: "remove the cache of a bond")
        }
    }

    /// Removes excess files beside the one that was just written.
    private func makeRoom(
        in folder: borrowing StoredFolder, among names: [String], isInUse: Bool
    ) throws(SystemCallError) {
        var excess = names.count + 1 - Self.capacity
        // Files are examined only if there are too many.
        guard excess > 0 else { return }
        let files = folder.files(among: names)
        excess = min(excess, files.count)
        let newcomers = files.filter { !$0.isMarked }
        let newcomersInExcess = max(0, newcomers.count + (isInUse ? 0 : 1) - Self.newcomerCapacity)
        let gone = newcomers.prefix(min(excess, newcomersInExcess))
        for file in gone { try folder.remove(file.name) }
        let kept = files.filter { !gone.contains($0) }
        for file in kept.prefix(excess - gone.count) { try folder.remove(file.name) }
    }
}

extension BLEError {
    fileprivate init(_ error: SystemCallError, cacheFile path: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case EACCES, EPERM, EROFS:
                (.notPermitted, "this user may not do that to the file", "Change its permissions, or name another.")
            case ELOOP:
                (
                    .notPermitted, "it is a symbolic link that another user has made, or one of too many",
                    "Name the file itself, in a directory where no other user writes."
                )
            case EISDIR, EINVAL:
                (.unusableCache, "it is not a plain file", "Name a file; it need not exist.")
            case EFBIG:
                (.unusableCache, "it is too large for a cache", "Remove the file, or name another.")
            case ENOENT, ENOTDIR:
                (.system, "its directory does not exist", "Create the directory first.")
            case ENOSPC, EDQUOT:
                (.diskFull, "the disk is full", "Free some space; the old cache is intact.")
            default:
                (.system, "\(error.call) failed", error.remedy)
            }
        self.init(code, subject: path, during: operation, because: reason, hint: hint, errorNumber: error.errno)
    }
}
