internal import BLECore
internal import Glibc

/// A file that is written from its beginning, piece by piece.
package final class AppendedFile: Sendable {
    private let file: OwnedDescriptor

    /// Makes the file, or empties the one that is there; only its owner may read it.
    ///
    /// - Throws: `SystemCallError`, with EINVAL for a pipe: a reader that goes would take this process with it; and with ELOOP for
    ///   a symbolic link, behind which somebody else's choice of a file might be.
    package init(_ path: String) throws(SystemCallError) {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { throw SystemCallError(call: "open", errno: errno) }
        file = OwnedDescriptor(number)
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw SystemCallError(call: "fstat", errno: errno) }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFCHR else { throw SystemCallError(call: "open", errno: EINVAL) }
        // One that was there may have let others read.
        guard kind != S_IFREG || fchmod(file.number, 0o600) == 0 else {
            throw SystemCallError(call: "fchmod", errno: errno)
        }
    }

    /// Writes all of it behind what was written before; may wait for the disk.
    ///
    /// - Throws: `SystemCallError`; a part may have been written then.
    package func append(_ bytes: [UInt8]) throws(SystemCallError) {
        var written = 0
        while written < bytes.count {
            let rest = written == 0 ? bytes : Array(bytes.dropFirst(written))
            let count = unsafe write(file.number, rest, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemCallError(call: "write", errno: errno) }
            written += count
        }
    }
}

/// The time of day, which may jump.
package enum WallClock {
    /// The time since 1970-01-01 00:00 UTC.
    package static func now() -> Duration {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
