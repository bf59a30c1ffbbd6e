internal import CBluetooth
internal import Glibc

/// A small file that is read whole, and replaced whole: whoever reads it sees the old bytes or the new ones.
package enum StoredFile {
    /// The file's bytes; `nil` when there is no such file.
    ///
    /// - Throws: `SystemCallError`; with EFBIG for more than `limit` bytes and EINVAL for what is no plain file.
    package static func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8]? {
        // A pipe would keep the call waiting for a writer.
        let number = SystemCallError.repeated { unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard number >= 0 else {
            if errno == ENOENT { return nil }
            throw SystemCallError(call: "open", errno: errno)
        }
        let file = OwnedDescriptor(number)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else { throw SystemCallError(call: "fstat", errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemCallError(call: "open", errno: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
        }
        return try readAll(of: file, limit: limit)
    }

    /// What is left to read of an open file.
    static func readAll(of file: borrowing OwnedDescriptor, limit: Int) throws(SystemCallError) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = SystemCallError.repeated { unsafe Glibc.read(file.number, &part, part.count) }
            guard count >= 0 else { throw SystemCallError(call: "read", errno: errno) }
            guard count > 0 else { return bytes }
            bytes += part.prefix(count)
            guard bytes.count <= limit else { throw SystemCallError(call: "read", errno: EFBIG) }
        }
    }

    /// Puts `bytes` in the place of the file, readable by its owner only. They are on the disk when the call returns.
    ///
    /// A symbolic link stays one, and what it leads to is replaced, where that is wanted; else the link itself is replaced, so that
    /// nobody who may write in the directory says what else is written. What writers of this file have left behind that were killed goes.
    ///
    /// - Throws: `SystemCallError`; with EISDIR or EINVAL for what is no plain file, and for a link that leads nowhere.
    package static func replace(
        _ path: String, with bytes: [UInt8], followingLink: Bool = false
    ) throws(SystemCallError) {
        let path = try replaceable(path, followingLink: followingLink)
        let name = parts(of: path).name
        removeRemains(in: directory(of: path)) { $0 == name }
        let temporary = try makeTemporary(beside: path)
        do throws(SystemCallError) {
            try write(bytes, to: temporary.file)
            guard unsafe rename(temporary.path, path) == 0 else {
                throw SystemCallError(call: "rename", errno: errno)
            }
        } catch {
            _ = unsafe unlink(temporary.path)
            throw error
        }
        // The new name is on the disk when the directory is. A file system that cannot do that is no reason to fail.
        let folderPath = directory(of: path)
        let number = SystemCallError.repeated { unsafe open(folderPath, O_RDONLY | O_CLOEXEC | O_DIRECTORY) }
        guard number >= 0 else { return }
        let folder = OwnedDescriptor(number)
        _ = SystemCallError.repeated { fsync(folder.number) }
    }

    /// The plain file that `path` leads to, or `path` itself where there is nothing yet: a name that is put in the place of
    /// a device or a pipe would take it away.
    private static func replaceable(_ path: String, followingLink: Bool) throws(SystemCallError) -> String {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            if errno == ENOENT { return path }
            throw SystemCallError(call: "lstat", errno: errno)
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            return path
        case S_IFDIR:
            throw SystemCallError(call: "open", errno: EISDIR)
        case S_IFLNK:
            guard followingLink else { return path }
            guard let resolved = unsafe realpath(path, nil) else {
                throw SystemCallError(call: "realpath", errno: errno == ENOENT ? EINVAL : errno)
            }
            defer { unsafe free(resolved) }
            return try replaceable(unsafe String(cString: resolved), followingLink: true)
        default:
            throw SystemCallError(call: "open", errno: EINVAL)
        }
    }

    /// A file that is not there yet under its own name.
    private struct Temporary: ~Copyable {
        let path: String
        let file: OwnedDescriptor
    }

    private static let temporaryCount = Lock(0)

    /// A new file that nobody else writes, in the same directory.
    private static func makeTemporary(beside path: String) throws(SystemCallError) -> Temporary {
        while true {
            let number = temporaryCount.withLock { count in
                count += 1
                return count
            }
            let temporary = "\(path).\(getpid()).\(number).tmp"
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
            let descriptor = SystemCallError.repeated { unsafe open(temporary, flags, 0o600) }
            guard descriptor >= 0 else {
                // Somebody of the same number left it behind.
                guard errno == EEXIST else { throw SystemCallError(call: "open", errno: errno) }
                continue
            }
            let file = OwnedDescriptor(descriptor)
            // The lock says that it is being written. Who takes it for a remain in the moment before may remove it.
            let locked = SystemCallError.repeated { flock(file.number, LOCK_EX | LOCK_NB) }
            let isTaken = locked != 0 && errno == EWOULDBLOCK
            var status = stat()
            guard unsafe fstat(file.number, &status) == 0 else {
                let reason = errno
                _ = unsafe unlink(temporary)
                throw SystemCallError(call: "fstat", errno: reason)
            }
            if !isTaken, status.st_nlink > 0 { return Temporary(path: temporary, file: file) }
        }
    }

    /// Removes what writers have left behind that were killed, of each file in `directory` whose name passes `isWanted`.
    ///
    /// What somebody writes at this moment is locked, and stays; on a file system without locks everything does.
    package static func removeRemains(in directory: String, of isWanted: (String) -> Bool) {
        for name in SystemFiles.names(in: directory) where name.hasSuffix(".tmp") {
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count > 3, parts.dropLast().suffix(2).allSatisfy({ Int($0) != nil }),
                isWanted(parts.dropLast(3).joined(separator: "."))
            else { continue }
            let path = "\(directory)/\(name)"
            let number = SystemCallError.repeated { unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
            guard number >= 0 else { continue }
            let file = OwnedDescriptor(number)
            if SystemCallError.repeated({ flock(file.number, LOCK_EX | LOCK_NB) }) == 0 { _ = unsafe unlink(path) }
        }
    }

    private static func write(_ bytes: [UInt8], to file: borrowing OwnedDescriptor) throws(SystemCallError) {
        guard fchmod(file.number, 0o600) == 0 else { throw SystemCallError(call: "fchmod", errno: errno) }
        try writeAll(bytes, to: file.number)
        let result = SystemCallError.repeated { fsync(file.number) }
        guard result == 0 else { throw SystemCallError(call: "fsync", errno: errno) }
    }

    static func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(SystemCallError) {
        var written = 0
        while written < bytes.count {
            let rest = Array(bytes.dropFirst(written))
            let count = SystemCallError.repeated { unsafe Glibc.write(descriptor, rest, rest.count) }
            guard count > 0 else { throw SystemCallError(call: "write", errno: errno) }
            written += count
        }
    }

    /// Gives a file another name, in the place of what has that name.
    package static func move(_ path: String, to other: String) throws(SystemCallError) {
        guard unsafe rename(path, other) == 0 else { throw SystemCallError(call: "rename", errno: errno) }
    }

    /// Removes the file; that there is none is no error.
    package static func remove(_ path: String) throws(SystemCallError) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else { throw SystemCallError(call: "unlink", errno: errno) }
    }

    /// The names in `directory` that end in `suffix`, the one that was not written for longest first.
    package static func names(in directory: String, endingIn suffix: String) -> [String] {
        var files: [(name: String, seconds: Int, nanoseconds: Int)] = []
        for name in SystemFiles.names(in: directory) where name.hasSuffix(suffix) {
            var status = stat()
            guard unsafe stat(directory + "/" + name, &status) == 0 else { continue }
            files.append((name, status.st_mtim.tv_sec, status.st_mtim.tv_nsec))
        }
        return files.sorted { ($0.seconds, $0.nanoseconds) < ($1.seconds, $1.nanoseconds) }.map(\.name)
    }

    /// The directory of `path`, and the name in it.
    static func parts(of path: String) -> (directory: String, name: String) {
        (directory(of: path), String(path.dropFirst(path.lastIndex(of: "/").map { path[...$0].count } ?? 0)))
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
