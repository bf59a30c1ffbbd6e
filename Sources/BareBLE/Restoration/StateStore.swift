public import BLECore
internal import BLELinux
internal import Glibc

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

    /// Opens the store for this process, until the result goes away.
    ///
    /// It blocks for as long as the disk takes: keep it off the event loop. `Central.restore()` calls it itself.
    ///
    /// - Throws: `BLEError` with `.busy` if another process holds it, which the reason names; `.invalidArgument` for
    ///   an identifier that is not a valid file name; `.notPermitted`, `.diskFull`, `.system`.
    public func open() throws(BLEError) -> OpenStateStore {
        let operation = "open the state store"
        guard isNamed else {
            throw BLEError(
                .invalidArgument, subject: identifier, during: operation,
                because: "an identifier has 1 to 64 letters, digits, '-', '_' and '.', and does not begin with a dot")
        }
        do {
            let lock = try FileLock(lockPath)
            // Temporary files of processes that were killed while they wrote.
            StoredFile.removeRemains(in: directory) { $0 == "\(identifier).state" }
            return OpenStateStore(self, lock)
        } catch {
            switch error {
            case .held(let process):
                let isOwn = process == getpid()
                let holder = isOwn ? "this process" : process.map { "process \($0)" } ?? "another process"
                throw BLEError(
                    .busy, subject: lockPath, during: operation, because: "\(holder) has it",
                    hint: isOwn
                        ? "Another central of it has the store, or an earlier attempt still waits for the disk."
                        : "End that one first, or give this daemon an identifier of its own.")
            case .system(let error):
                throw BLEError(error, stateFile: lockPath, during: operation)
            }
        }
    }

    private var isNamed: Bool {
        let allowed = identifier.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
            default: false
            }
        }
        return allowed && (1...64).contains(identifier.utf8.count) && !identifier.hasPrefix(".")
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
    private let lock: FileLock

    init(_ store: StateStore, _ lock: consuming FileLock) {
        self.store = store
        self.lock = lock
    }

    /// Returns the state.
    ///
    /// A file that cannot be used is moved aside, so that it is reported once, and a new state does not overwrite it.
    ///
    /// - Throws: `BLEError` with `.notPermitted`, `.system`.
    public func load() throws(BLEError) -> Contents {
        let operation = "load the state"
        var contents = Contents()
        do throws(SystemCallError) {
            guard let bytes = try StoredFile.read(store.path, limit: RestorationState.byteLimit) else {
                return contents
            }
            do throws(MalformedPacket) {
                contents.state = try RestorationState(bytes: bytes)
            } catch {
                let isNewer = RestorationState.isOtherVersion(error)
                try setAside(
                    &contents, to: isNewer ? store.pathOfOtherVersion : store.pathOfDamaged, because: "\(error)",
                    during: operation)
            }
        } catch {
            guard [EFBIG, EINVAL, EISDIR].contains(error.errno) else {
                throw BLEError(error, stateFile: store.path, during: operation)
            }
            do throws(SystemCallError) {
                try setAside(
                    &contents, to: store.pathOfDamaged,
                    because: error.errno == EFBIG ? "it is too large for a state" : "it is not a plain file",
                    during: operation)
            } catch {
                throw BLEError(error, stateFile: store.path, during: operation)
            }
        }
        return contents
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
        do {
            try StoredFile.replace(store.path, with: bytes)
        } catch {
            throw BLEError(error, stateFile: store.path, during: operation)
        }
    }

    /// Releases the store for another process. Nothing may be written afterwards.
    func close() {
        lock.release()
    }

    private func setAside(
        _ contents: inout Contents, to path: String, because reason: String, during operation: String
    ) throws(SystemCallError) {
        try StoredFile.move(store.path, to: path)
        contents.movedTo = path
        contents.damage = BLEError(
            .unusableState, subject: store.path, during: operation, because: reason,
            hint: "It is now \(path); the daemon starts with nothing.")
    }
}

extension BLEError {
    fileprivate init(_ error: SystemCallError, stateFile path: String, during operation: String) {
        let (code, reason, hint): (Code, String, String?) =
            switch error.errno {
            case EACCES, EPERM, EROFS:
                (
                    .notPermitted, "this user may not do that to the file",
                    "Change its permissions, or name another directory."
                )
            case ENOSPC, EDQUOT: (.diskFull, "the disk is full", "Free some space; the old state is intact.")
            case ENOENT, ENOTDIR: (.system, "its directory does not exist", "Create the directory first.")
            case ELOOP: (.notPermitted, "it is a symbolic link", "Remove it.")
            default: (.system, "\(error.call) failed", error.remedy)
            }
        self.init(code, subject: path, during: operation, because: reason, hint: hint, errorNumber: error.errno)
    }
}
