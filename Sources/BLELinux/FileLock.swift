internal import CBluetooth
internal import Glibc

/// A file that one process holds at a time, for as long as the value lives. It says who that is.
///
/// It is let go of with the value, also where a process that was just started has a copy of its descriptor; the kernel does so when the
/// process ends, in whatever way, or executes another program. The file stays.
package struct FileLock: ~Copyable, Sendable {
    /// Why the file is not held.
    package enum Failure: Error, Hashable, Sendable {
        /// Somebody else has it: which process, where it says so.
        case held(by: Int32?)
        case system(SystemCallError)
    }

    private let file: OwnedDescriptor

    /// Takes the file, and makes it if it is not there.
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
        // The number is for people; that it cannot be written, on a full disk, changes nothing.
        let emptied = SystemCallError.repeated { ftruncate(file.number, 0) }
        if emptied == 0 { try? StoredFile.writeAll(Array("\(getpid())\n".utf8), to: file.number) }
        self.file = file
    }

    deinit {
        release()
    }

    /// Lets go of the file before the value goes away.
    package func release() {
        flock(file.number, LOCK_UN)
    }
}
