internal import CBluetooth
internal import Glibc

/// A file that one process locks at a time, for as long as the value lives. It names that process.
///
/// The lock is released with the value, even if a process that was just started has a copy of its descriptor; the
/// kernel releases it when the process ends, in whatever way, or executes another program. The file stays.
package struct FileLock: ~Copyable, Sendable {
    /// The reason that the file is not locked.
    package enum Failure: Error, Hashable, Sendable {
        /// Another process has locked it; with its number, if the file contains one.
        case held(by: Int32?)
        case system(SystemCallError)
    }

    private let file: OwnedDescriptor

    /// Locks the file, and creates it if necessary.
    package init(_ path: String) throws(Failure) {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let number = SystemCallError.repeated { unsafe open(path, flags, 0o600) }
        guard number >= 0 else { throw .system(SystemCallError(call: "open", errno: errno)) }
        let file = OwnedDescriptor(number)
        let result = SystemCallError.repeated { flock(file.number, LOCK_EX | LOCK_NB) }
        guard result == 0 else {
            let reason = errno
            guard reason == EWOULDBLOCK else { throw .system(SystemCallError(call: "flock", errno: reason)) }
            let text = (try? StoredFile.readAll(of: file, limit: 64)).map { String(decoding: $0, as: UTF8.self) }
            throw .held(by: text?.split(separator: "\n").first.flatMap { Int32($0) })
        }
        // The number is informative; if it cannot be written, on a full disk, nothing changes.
        let emptied = SystemCallError.repeated { ftruncate(file.number, 0) }
        if emptied == 0 { try? StoredFile.writeAll(Array("\(getpid())\n".utf8), to: file.number) }
        self.file = file
    }

    deinit {
        release()
    }

    /// Releases the lock before the value goes away.
    package func release() {
        flock(file.number, LOCK_UN)
    }
}
