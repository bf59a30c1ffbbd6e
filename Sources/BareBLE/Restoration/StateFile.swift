internal import BLECore
internal import BLELinux
internal import Glibc

/// A file of a `StateStore` that this process has opened, with exclusive access by a lock file.
///
/// The calls block for as long as the disk takes.
package final class StateFile: Sendable {
    /// The contents of a file.
    package struct Loaded<Value> {
        /// The decoded contents; `nil` if there are none, or none that can be used.
        package var value: Value?
        /// The reason that the file was not used (`.unusableState`).
        package var damage: BLEError?
        /// The path to which an unusable file was moved.
        package var movedTo: String?
    }

    /// The path of the file.
    package let path: String
    private let lock: FileLock

    /// - Throws: `BLEError` with `.busy` if another process has the lock, which the reason names; `.notPermitted`,
    ///   `.diskFull`, `.system`.
    init(directory: String, name: String, lockPath: String) throws(BLEError) {
        let operation = "open the state store"
        path = "\(directory)/\(name)"
        do {
            lock = try FileLock(lockPath)
            // Temporary files of processes that were killed while they wrote.
            StoredFile.removeRemains(in: directory) { $0 == name }
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

    /// Reads the file. One that cannot be used is moved aside, so that it is reported once, and new contents do not
    /// overwrite it.
    ///
    /// - Parameters:
    ///   - limit: The number of bytes that the file may have.
    ///   - what: What the file contains, for messages.
    ///   - consequence: What follows from an unusable file, for messages.
    ///   - isOtherVersion: Whether an error reports that the bytes are intact, but of another version.
    ///   - decode: Decodes the bytes.
    /// - Throws: `BLEError` with `.notPermitted`, `.system`.
    package func load<Value>(
        limit: Int, what: String, otherwise consequence: String, isOtherVersion: (MalformedPacket) -> Bool,
        decode: ([UInt8]) throws(MalformedPacket) -> Value
    ) throws(BLEError) -> Loaded<Value> {
        let operation = "load the state"
        var loaded = Loaded<Value>()
        do throws(SystemCallError) {
            guard let bytes = try StoredFile.read(path, limit: limit) else { return loaded }
            do throws(MalformedPacket) {
                loaded.value = try decode(bytes)
            } catch {
                let ending = isOtherVersion(error) ? ".other-version" : ".damaged"
                try setAside(&loaded, as: ending, because: "\(error)", consequence, during: operation)
            }
        } catch {
            guard [EFBIG, EINVAL, EISDIR].contains(error.errno) else {
                throw BLEError(error, stateFile: path, during: operation)
            }
            let reason = error.errno == EFBIG ? "it is too large for a \(what)" : "it is not a plain file"
            do throws(SystemCallError) {
                try setAside(&loaded, as: ".damaged", because: reason, consequence, during: operation)
            } catch {
                throw BLEError(error, stateFile: path, during: operation)
            }
        }
        return loaded
    }

    private func setAside<Value>(
        _ loaded: inout Loaded<Value>, as ending: String, because reason: String, _ consequence: String,
        during operation: String
    ) throws(SystemCallError) {
        try StoredFile.move(path, to: path + ending)
        loaded.movedTo = path + ending
        loaded.damage = BLEError(
            .unusableState, subject: path, during: operation, because: reason,
            hint: "It is now \(path + ending); \(consequence).")
    }

    /// Replaces the file as a whole. Every failure leaves the old one intact.
    ///
    /// - Throws: `BLEError` with `.diskFull`, `.notPermitted`, `.system`.
    package func replace(with bytes: [UInt8], during operation: String) throws(BLEError) {
        do {
            try StoredFile.replace(path, with: bytes)
        } catch {
            throw BLEError(error, stateFile: path, during: operation)
        }
    }

    /// Releases the lock for another process. Nothing may be written afterwards.
    func close() {
        lock.release()
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

extension StateFile.Loaded: Sendable where Value: Sendable {}
