public import BLECore
internal import BLELinux

/// The place of a daemon's restoration state between runs: one file in a directory, `IDENTIFIER.state`.
///
/// The file is replaced as a whole, so a reader finds either the old state or the new one, even after a crash or on a
/// full disk; only its owner can read it. One process holds the store at a time, by `IDENTIFIER.lock` in the same
/// directory. A file that is damaged, or that a newer version has written, is moved aside and not used.
public struct StateStore: Hashable, Sendable {
    /// The directory, which must exist. One that belongs to the daemon alone is best: systemd creates it
    /// (`StateDirectory=`).
    public let directory: String
    /// The identifier that distinguishes several daemons, or runs of one with different adapters: 1 to 64 letters,
    /// digits, `-`, `_` and `.`, not beginning with a dot.
    public let identifier: String

    /// Creates a reference to a store; nothing is opened.
    public init(directory: String, identifier: String) {
        self.directory = directory
        self.identifier = identifier
    }

    /// The path of the file with the state.
    public var path: String { "\(directory)/\(identifier).state" }
    /// The path to which an unusable file is moved; an earlier one is replaced.
    public var pathOfDamaged: String { path + ".damaged" }
    /// The path to which a file of a newer version is moved; an earlier one is replaced.
    public var pathOfOtherVersion: String { path + ".other-version" }
    /// The path of the lock file, which names the process that holds the store.
    public var lockPath: String { "\(directory)/\(identifier).lock" }
    /// The path of the file with what bonded centrals have configured in a `LocalPeripheral`. It is replaced and moved
    /// aside in the same way, and has a lock of its own.
    public var clientsPath: String { "\(directory)/\(identifier).clients" }

    /// Opens the store for this process, until the result goes away.
    ///
    /// It blocks for as long as the disk takes: keep it off the event loop. `Central.restore()` calls it itself.
    ///
    /// - Throws: `BLEError` with `.busy` if another process holds it, which the reason names; `.invalidArgument` for
    ///   an identifier that is not a valid file name; `.notPermitted`, `.diskFull`, `.system`.
    public func open() throws(BLEError) -> OpenStateStore {
        OpenStateStore(self, try open("\(identifier).state", lockPath: lockPath))
    }

    /// Opens a file of the store for this process, until the result goes away.
    func open(_ name: String, lockPath: String, longest: Int = 64) throws(BLEError) -> StateFile {
        guard isNamed(longest) else {
            throw BLEError(
                .invalidArgument, subject: identifier, during: "open the state store",
                because:
                    "an identifier has 1 to \(longest) letters, digits, '-', '_' and '.', and does not begin with a dot",
                hint: "Choose another identifier, such as `hub-1`.")
        }
        return try StateFile(directory: directory, name: name, lockPath: lockPath)
    }

    /// Opens another file of the store, whose name is the identifier and this ending, with a lock of its own. The
    /// identifier may have `longest` characters.
    package func openFile(_ ending: String, longest: Int) throws(BLEError) -> StateFile {
        let name = identifier + ending
        return try open(name, lockPath: "\(directory)/\(name)-lock", longest: longest)
    }

    /// Opens the file with what bonded centrals have configured.
    package func openClients() throws(BLEError) -> StateFile {
        // No name of a lock of another identifier.
        try open("\(identifier).clients", lockPath: clientsPath + "-lock")
    }

    /// Reads that file.
    package func loadClients(from file: StateFile) throws(BLEError) -> StateFile.Loaded<ClientTable> {
        try file.load(
            limit: ClientTable.byteLimit, what: "table of centrals", otherwise: "nothing is known of bonded centrals",
            isOtherVersion: ClientTable.isOtherVersion
        ) { bytes throws(MalformedPacket) in try ClientTable(bytes: bytes) }
    }

    private func isNamed(_ longest: Int) -> Bool {
        let allowed = identifier.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
            default: false
            }
        }
        return allowed && (1...max(1, longest)).contains(identifier.utf8.count) && !identifier.hasPrefix(".")
    }
}

/// A state store that this process has opened, with exclusive access.
///
/// The calls block for as long as the disk takes.
public final class OpenStateStore: Sendable {
    /// The contents of a store.
    public struct Contents: Sendable {
        /// The state; empty if there was none, or none that could be used.
        public var state = RestorationState()
        /// The reason that the file was not used (`.unusableState`); `nil` if it was used or missing.
        public var damage: BLEError?
        /// The path to which an unusable file was moved.
        public var movedTo: String?
    }

    /// The store that was opened.
    public let store: StateStore
    private let file: StateFile

    init(_ store: StateStore, _ file: StateFile) {
        self.store = store
        self.file = file
    }

    /// Returns the state.
    ///
    /// A file that cannot be used is moved aside, so that it is reported once, and a new state does not overwrite it.
    ///
    /// - Throws: `BLEError` with `.notPermitted`, `.system`.
    public func load() throws(BLEError) -> Contents {
        let loaded = try file.load(
            limit: RestorationState.byteLimit, what: "state", otherwise: "the daemon starts with nothing",
            isOtherVersion: RestorationState.isOtherVersion
        ) { bytes throws(MalformedPacket) in try RestorationState(bytes: bytes) }
        return Contents(state: loaded.value ?? RestorationState(), damage: loaded.damage, movedTo: loaded.movedTo)
    }

    /// Writes the state, replacing the previous one.
    ///
    /// - Throws: `BLEError` with `.diskFull`; `.tooLong` for a state of more than `RestorationState.byteLimit` bytes,
    ///   or with more entries of a kind than `RestorationState.limit`; `.notPermitted`, `.system`. Every failure leaves
    ///   the old state intact.
    public func save(_ state: RestorationState) throws(BLEError) {
        let operation = "save the state"
        func tooLong(_ what: String) -> BLEError {
            BLEError(
                .tooLong, subject: store.path, during: operation, because: "it has \(what)",
                hint: "Use fewer peers, or shorter filters.")
        }
        // What is cut would be missing after the restart, without a notice.
        if let excess = state.excess { throw tooLong(excess) }
        let bytes = state.bytes
        guard bytes.count <= RestorationState.byteLimit else { throw tooLong("\(bytes.count) bytes") }
        try file.replace(with: bytes, during: operation)
    }

    /// Releases the store for another process. Nothing may be written afterwards.
    func close() {
        file.close()
    }
}
