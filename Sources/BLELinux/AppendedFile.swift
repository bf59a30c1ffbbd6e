internal import BLECore
internal import Glibc

/// A file that is written from its beginning, piece by piece.
package final class AppendedFile: Sendable {
    private let file: OwnedDescriptor
    /// The directory in which a new file was created, and the file's name there.
    private let folder: OwnedDescriptor?
    private let folderNumber: Int32
    private let name: String
    /// The bytes that the reader of a pipe has not taken yet; `nil` for a file.
    private let pending: Lock<[UInt8]>?

    /// The number of bytes that wait for the reader of a pipe, beside those in the pipe.
    package static let pipeCapacity = 1 << 20
    /// The longest time in which the reader of a pipe takes the rest, in milliseconds.
    private static let patience: Int32 = 2000

    /// Takes the descriptor of a pipe, or of what else is written and not positioned. It is closed with this object.
    ///
    /// Nothing waits for the reader: what it does not take now is kept, up to `pipeCapacity` bytes, and written
    /// together with what comes next.
    package init(adoptingPipe descriptor: Int32) {
        file = OwnedDescriptor(descriptor)
        folder = nil
        folderNumber = -1
        name = ""
        pending = Lock([])
    }

    /// Returns an existing FIFO for writing; `nil` if the path is not one. Waits until somebody reads it.
    ///
    /// - Parameter waiting: Called before that.
    /// - Throws: `SystemCallError`, with EPERM for a FIFO of a user who is neither this one nor root: packets are
    ///   secret.
    package static func fifo(_ path: String, waiting: () -> Void) throws(SystemCallError) -> AppendedFile? {
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
        let file = AppendedFile(adoptingPipe: number)
        var opened = stat()
        // Another file may have taken its place meanwhile.
        guard unsafe fstat(number, &opened) == 0, opened.st_dev == status.st_dev, opened.st_ino == status.st_ino
        else { throw SystemCallError(call: "open", errno: EEXIST) }
        // Nobody else may open it from now on. One of root's cannot be changed by another user.
        if opened.st_mode & 0o077 != 0 { _ = fchmod(number, 0o600) }
        return file
    }

    /// Creates the file, or truncates an existing one; only its owner may read it.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - isReplacing: Whether an existing file may be truncated. A device may be written to in any case.
    /// - Throws: `SystemCallError`, with EINVAL for a pipe, because a reader that goes away would end this process;
    ///   with ELOOP for a symbolic link, whose target another user might have chosen; and with EEXIST for a file that
    ///   may not be truncated.
    package init(_ path: String, isReplacing: Bool = true) throws(SystemCallError) {
        let flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW
        let making = flags | O_CREAT | (isReplacing ? O_TRUNC : O_EXCL)
        let (directory, last) = StoredFile.parts(of: path)
        folderNumber =
            isReplacing ? -1 : SystemCallError.repeated { unsafe open(directory, O_RDONLY | O_CLOEXEC | O_DIRECTORY) }
        folder = folderNumber < 0 ? nil : OwnedDescriptor(folderNumber)
        // Created relative to its directory, the file can be removed there, wherever the path leads by then.
        let (base, relative) = folderNumber < 0 ? (AT_FDCWD, path) : (folderNumber, last)
        name = last
        var number = SystemCallError.repeated { unsafe openat(base, relative, making, 0o600) }
        let isThere = number < 0 && errno == EEXIST
        // Opened without a change, to be checked below.
        if isThere { number = SystemCallError.repeated { unsafe openat(base, relative, flags) } }
        guard number >= 0 else { throw SystemCallError(call: "open", errno: isThere ? EEXIST : errno) }
        file = OwnedDescriptor(number)
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw SystemCallError(call: "fstat", errno: errno) }
        pending = nil
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFCHR else { throw SystemCallError(call: "open", errno: EINVAL) }
        guard !isThere || kind == S_IFCHR else { throw SystemCallError(call: "open", errno: EEXIST) }
        // An existing file may have been readable by others.
        guard kind != S_IFREG || fchmod(file.number, 0o600) == 0 else {
            throw SystemCallError(call: "fchmod", errno: errno)
        }
    }

    /// Removes the file that was created here, if it has no more than `size` bytes and its name still refers to it.
    ///
    /// Nothing happens to a device, to a file that may have existed before, or if another file has the name.
    package func remove(ifAtMost size: Int) {
        var (status, named) = (stat(), stat())
        let number = folderNumber
        guard number >= 0, unsafe fstat(file.number, &status) == 0,
            status.st_mode & S_IFMT == S_IFREG, status.st_size <= size,
            unsafe fstatat(number, name, &named, AT_SYMLINK_NOFOLLOW) == 0,
            named.st_dev == status.st_dev, named.st_ino == status.st_ino
        else { return }
        _ = unsafe unlinkat(number, name, 0)
    }

    /// Appends all bytes; may wait for the disk, but not for the reader of a pipe.
    ///
    /// - Throws: `SystemCallError`; some of the bytes may have been written. EPIPE if the reader of a pipe is gone, and
    ///   EAGAIN if it is too slow.
    package func append(_ bytes: [UInt8]) throws(SystemCallError) {
        guard pending == nil else { return try appendToPipe(bytes) }
        var written = 0
        while written < bytes.count {
            let rest = written == 0 ? bytes : Array(bytes.dropFirst(written))
            let count = SystemCallError.repeated { unsafe write(file.number, rest, rest.count) }
            guard count > 0 else { throw SystemCallError(call: "write", errno: errno) }
            written += count
        }
    }

    private func appendToPipe(_ bytes: [UInt8]) throws(SystemCallError) {
        let waiting = pending?.withLock { pending in
            pending += bytes
            return pending.count
        }
        try writePending(timeout: 0)
        if let waiting, waiting > Self.pipeCapacity { throw SystemCallError(call: "write", errno: EAGAIN) }
    }

    /// Waits for the reader of a pipe for a moment, so that it gets what was kept for it.
    ///
    /// - Throws: As `append(_:)`, if it has not taken everything.
    package func drain() throws(SystemCallError) {
        try writePending(timeout: Self.patience)
        if pending?.withLock({ $0.isEmpty }) == false { throw SystemCallError(call: "write", errno: EAGAIN) }
    }

    /// Writes what the reader takes, waiting at most `timeout` milliseconds for each piece.
    private func writePending(timeout: Int32) throws(SystemCallError) {
        var rest = (pending?.withLock { $0 } ?? [])[...]
        defer { pending?.withLock { $0 = Array(rest) } }
        while !rest.isEmpty {
            var wanted = pollfd(fd: file.number, events: Int16(POLLOUT), revents: 0)
            let ready = SystemCallError.repeated { unsafe poll(&wanted, 1, timeout) }
            guard ready >= 0 else { throw SystemCallError(call: "poll", errno: errno) }
            if ready == 0 { return }
            // A pipe that is ready takes as many without blocking.
            let piece = Array(rest.prefix(4096))
            let count = SystemCallError.repeated { unsafe write(file.number, piece, piece.count) }
            guard count > 0 else { throw SystemCallError(call: "write", errno: errno) }
            rest.removeFirst(count)
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
