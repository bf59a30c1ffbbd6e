internal import BLECore
internal import Glibc

/// A pipe that is written piece by piece, and read meanwhile.
///
/// Nothing waits for the reader: what it does not take now is queued, up to `capacity` bytes, and written together with
/// what comes next.
package final class PipeWriter: Sendable {
    private let pipe: OwnedDescriptor
    /// The bytes that the reader has not taken yet.
    private let pending = Lock<[UInt8]>([])

    /// The number of bytes that wait for the reader, beside those in the pipe.
    package static let capacity = 1 << 20
    /// The longest time in which the reader takes the rest, in milliseconds.
    private static let writeTimeout: Int32 = 2000

    /// Takes the descriptor of a pipe, or of what else is written and not positioned. It is closed with this object.
    package init(adopting descriptor: Int32) {
        pipe = OwnedDescriptor(descriptor)
    }

    /// Returns an existing FIFO for writing; `nil` if the path is not one. Waits until somebody reads it.
    ///
    /// - Parameter waiting: Called before that.
    /// - Throws: `SystemCallError`, with EPERM for a FIFO of a user who is neither this one nor root: packets are
    ///   secret.
    package static func fifo(_ path: String, waiting: () -> Void) throws(SystemCallError) -> PipeWriter? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return nil }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw SystemCallError(call: "open", errno: EPERM)
        }
        let flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW
        var number = SystemCallError.repeated { unsafe open(path, flags | O_NONBLOCK) }
        if number < 0, errno == ENXIO {
            waiting()
            number = SystemCallError.repeated { unsafe open(path, flags) }
        }
        guard number >= 0 else { throw SystemCallError(call: "open", errno: errno) }
        let writer = PipeWriter(adopting: number)
        var opened = stat()
        // Another file may have taken its place meanwhile.
        guard unsafe fstat(number, &opened) == 0, opened.st_dev == status.st_dev, opened.st_ino == status.st_ino
        else { throw SystemCallError(call: "open", errno: EEXIST) }
        // Nobody else may open it from now on. One of root's cannot be changed by another user.
        if opened.st_mode & 0o077 != 0 { _ = fchmod(number, 0o600) }
        return writer
    }

    /// Writes all bytes, after those that wait; does not wait for the reader.
    ///
    /// - Throws: `SystemCallError`; some of the bytes may have been written. EPIPE if the reader is gone, and EAGAIN if
    ///   it is too slow.
    package func write(_ bytes: [UInt8]) throws(SystemCallError) {
        let waiting = pending.withLock { pending in
            pending += bytes
            return pending.count
        }
        try writePending(timeout: 0)
        if waiting > Self.capacity { throw SystemCallError(call: "write", errno: EAGAIN) }
    }

    /// Waits for the reader for a moment, so that it gets what was queued for it.
    ///
    /// - Throws: As `write(_:)`, if it has not taken everything.
    package func drain() throws(SystemCallError) {
        try writePending(timeout: Self.writeTimeout)
        if !pending.withLock(\.isEmpty) { throw SystemCallError(call: "write", errno: EAGAIN) }
    }

    /// Writes what the reader takes, waiting at most `timeout` milliseconds for each piece.
    private func writePending(timeout: Int32) throws(SystemCallError) {
        var rest = pending.withLock { $0 }[...]
        defer { pending.withLock { $0 = Array(rest) } }
        while !rest.isEmpty {
            var wanted = pollfd(fd: pipe.number, events: Int16(POLLOUT), revents: 0)
            let ready = SystemCallError.repeated { unsafe poll(&wanted, 1, timeout) }
            guard ready >= 0 else { throw SystemCallError(call: "poll", errno: errno) }
            if ready == 0 { return }
            // A pipe that is ready takes as many without blocking.
            let piece = Array(rest.prefix(4096))
            let count = SystemCallError.repeated { unsafe Glibc.write(pipe.number, piece, piece.count) }
            guard count > 0 else { throw SystemCallError(call: "write", errno: errno) }
            rest.removeFirst(count)
        }
    }
}
