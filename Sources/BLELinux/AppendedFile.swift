internal import BLECore
internal import Glibc

/// A file that is written from its beginning, piece by piece.
package final class AppendedFile: Sendable {
    private let file: OwnedDescriptor
    /// The directory in which a new file was created, and the file's name there.
    private let folder: OwnedDescriptor?
    private let folderNumber: Int32
    private let name: String

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

    /// Appends all bytes; may wait for the disk.
    ///
    /// - Throws: `SystemCallError`; some of the bytes may have been written.
    package func append(_ bytes: [UInt8]) throws(SystemCallError) {
        var written = 0
        while written < bytes.count {
            let rest = written == 0 ? bytes : Array(bytes.dropFirst(written))
            let count = SystemCallError.repeated { unsafe write(file.number, rest, rest.count) }
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
