internal import CBluetooth
internal import Glibc

/// An open directory with files that are read and replaced as a whole.
///
/// All operations use a name in the opened directory, and follow no symbolic link of that name: a user who may write
/// in the directory, or exchange it, does not decide what else is written.
package struct StoredFolder: ~Copyable {
    /// A file and the time at which it was last written or marked.
    package struct File: Hashable, Sendable {
        /// The name in the directory.
        package let name: String
        /// A Boolean value that indicates whether it was marked.
        package let isMarked: Bool
        fileprivate let seconds: Int
        fileprivate let nanoseconds: Int
    }

    /// The reason that a file of secrets, or its directory, is not used.
    package enum Exposure: Error, Hashable, Sendable {
        /// It belongs to another user.
        case owner
        /// Other users may read or write it; with its permissions.
        case mode(UInt32)
        case system(SystemCallError)
    }

    private let descriptor: OwnedDescriptor

    /// Creates a directory that only its owner can use, in one that exists; does nothing if there is one.
    ///
    /// - Throws: `SystemCallError`.
    package static func create(_ path: String) throws(SystemCallError) {
        guard unsafe mkdir(path, 0o700) == 0 else {
            guard errno == EEXIST else { throw SystemCallError(call: "mkdir", errno: errno) }
            return
        }
        // The directory is on the disk when the one that contains it is.
        let parent = try open(StoredFile.parts(of: path).folder, from: AT_FDCWD)
        _ = SystemCallError.repeated { fsync(parent.number) }
    }

    /// Opens a directory.
    ///
    /// - Throws: `SystemCallError`.
    package init(_ path: String) throws(SystemCallError) {
        descriptor = try Self.open(path, from: AT_FDCWD)
    }

    /// Opens a directory by a path relative to another one.
    init(_ path: String, from other: borrowing StoredFolder) throws(SystemCallError) {
        descriptor = try Self.open(path, from: other.descriptor.number)
    }

    private static func open(_ path: String, from base: Int32) throws(SystemCallError) -> OwnedDescriptor {
        let flags = O_DIRECTORY | O_CLOEXEC
        var number = SystemCallError.repeated { unsafe openat(base, path, O_RDONLY | flags) }
        // If names may be created and not listed, that is enough.
        if number < 0, errno == EACCES {
            number = SystemCallError.repeated { unsafe openat(base, path, pathOnly | flags) }
        }
        guard number >= 0 else { throw SystemCallError(call: "open", errno: errno) }
        return OwnedDescriptor(number)
    }

    /// O_PATH, which Glibc defines only with all GNU extensions.
    private static let pathOnly: Int32 = 0o1000_0000
    /// Marks a file: Linux ignores the bit on a plain file, and a new file does not have it.
    private static let mark: mode_t = S_ISVTX

    /// Returns the names in it, sorted; empty if they cannot be listed.
    package func names() -> [String] { (try? listing()) ?? [] }

    /// Returns the names in it, sorted; where this process may not list them, those of `known` that are there.
    ///
    /// - Throws: `SystemCallError`.
    package func names(orAmong known: [String]) throws(SystemCallError) -> [String] {
        do throws(SystemCallError) {
            return try listing()
        } catch {
            guard error.errno == EACCES else { throw error }
            var found: [String] = []
            for name in known {
                if try status(of: name) != nil { found.append(name) }
            }
            return found
        }
    }

    private func listing() throws(SystemCallError) -> [String] {
        let number = SystemCallError.repeated {
            unsafe openat(descriptor.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard number >= 0 else { throw SystemCallError(call: "open", errno: errno) }
        guard let stream = unsafe fdopendir(number) else {
            let failure = SystemCallError(call: "fdopendir", errno: errno)
            OwnedDescriptor.close(number)
            throw failure
        }
        return unsafe SystemFiles.names(readingAndClosing: stream)
    }

    // MARK: Types of names

    /// Returns the target of the symbolic link `name`; `nil` if it is not a link or does not exist.
    ///
    /// - Throws: `SystemCallError`; with ELOOP for a link of a user who is neither this one nor root.
    func destination(ofLink name: String) throws(SystemCallError) -> String? {
        guard let status = try status(of: name), status.st_mode & S_IFMT == S_IFLNK else { return nil }
        // The link itself is opened, so that its owner and its target are of one link.
        let number = SystemCallError.repeated {
            unsafe openat(descriptor.number, name, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
        }
        guard number >= 0 else { throw SystemCallError(call: "open", errno: errno) }
        let link = OwnedDescriptor(number)
        var opened = stat()
        guard unsafe fstat(link.number, &opened) == 0 else { throw SystemCallError(call: "fstat", errno: errno) }
        guard opened.st_mode & S_IFMT == S_IFLNK, opened.st_uid == geteuid() || opened.st_uid == 0 else {
            throw SystemCallError(call: "open", errno: ELOOP)
        }
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe readlinkat(link.number, "", &bytes, bytes.count)
        guard count > 0, count < bytes.count else {
            throw SystemCallError(call: "readlinkat", errno: count < 0 ? errno : ENAMETOOLONG)
        }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// Returns whether `name` is a plain file, or a link that would be replaced; `false` if it does not exist.
    ///
    /// - Throws: `SystemCallError`; with EISDIR or EINVAL for other types: replacing a device or a pipe would remove
    ///   it.
    func hasFile(_ name: String) throws(SystemCallError) -> Bool {
        guard !name.isEmpty else { throw SystemCallError(call: "open", errno: EISDIR) }
        guard let status = try status(of: name) else { return false }
        switch status.st_mode & S_IFMT {
        case S_IFREG, S_IFLNK: return true
        case S_IFDIR: throw SystemCallError(call: "open", errno: EISDIR)
        default: throw SystemCallError(call: "open", errno: EINVAL)
        }
    }

    private func status(of name: String) throws(SystemCallError) -> stat? {
        var status = stat()
        if unsafe fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return status }
        if errno == ENOENT { return nil }
        throw SystemCallError(call: "lstat", errno: errno)
    }

    private func isOwnFile(_ status: stat?) -> Bool {
        status.map { $0.st_mode & S_IFMT == S_IFREG && $0.st_uid == geteuid() } ?? false
    }

    // MARK: Secrets

    /// Checks that the directory belongs to this user, and that no other user can replace what is in it.
    package func checkIsOwn() throws(Exposure) {
        _ = try Self.checkedStatus(of: descriptor, forbidden: S_IWGRP | S_IWOTH)
    }

    /// Returns the bytes of a file that belongs to this user, and that no other user can read; `nil` if there is none.
    ///
    /// - Throws: `Exposure`; `.system` with ELOOP for a symbolic link, EISDIR or EINVAL for other names that are not a
    ///   plain file, and EFBIG for more than `limit` bytes.
    package func readSecrets(_ name: String, limit: Int) throws(Exposure) -> [UInt8]? {
        let number = SystemCallError.repeated {
            unsafe openat(descriptor.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        }
        guard number >= 0 else {
            if errno == ENOENT { return nil }
            throw .system(SystemCallError(call: "open", errno: errno))
        }
        let file = OwnedDescriptor(number)
        return try Self.secrets(of: file, limit: limit)
    }

    /// Returns the bytes of a file that belongs to this user or to root, and that no other user can read; `nil` if
    /// there is none.
    ///
    /// - Throws: As `readSecrets(_:limit:)`; a symbolic link is followed.
    package static func readSecrets(at path: String, limit: Int) throws(Exposure) -> [UInt8]? {
        let number = SystemCallError.repeated { unsafe openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) }
        guard number >= 0 else {
            if errno == ENOENT { return nil }
            throw .system(SystemCallError(call: "open", errno: errno))
        }
        let file = OwnedDescriptor(number)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else {
            throw .system(SystemCallError(call: "fstat", errno: errno))
        }
        // A folder or a device is no file with wrong permissions.
        try checkIsPlain(status)
        return try secrets(of: file, limit: limit, orOfRoot: true)
    }

    private static func secrets(
        of file: borrowing OwnedDescriptor, limit: Int, orOfRoot: Bool = false
    ) throws(Exposure) -> [UInt8] {
        let status = try checkedStatus(of: file, forbidden: S_IRWXG | S_IRWXO, orOfRoot: orOfRoot)
        try checkIsPlain(status)
        guard status.st_size <= limit else { throw .system(SystemCallError(call: "read", errno: EFBIG)) }
        // As many as there are, so that growing the array leaves no copies.
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let result = unsafe bytes.withUnsafeMutableBytes { buffer in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                return SystemCallError.repeated { unsafe read(file.number, rest.baseAddress, rest.count) }
            }
            guard result >= 0 else {
                let reason = errno
                StoredFile.wipe(&bytes)
                throw .system(SystemCallError(call: "read", errno: reason))
            }
            guard result > 0 else { break }
            count += result
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    private static func checkIsPlain(_ status: stat) throws(Exposure) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            throw .system(SystemCallError(call: "open", errno: isFolder ? EISDIR : EINVAL))
        }
    }

    private static func checkedStatus(
        of file: borrowing OwnedDescriptor, forbidden: mode_t, orOfRoot: Bool = false
    ) throws(Exposure) -> stat {
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else {
            throw .system(SystemCallError(call: "fstat", errno: errno))
        }
        guard status.st_uid == geteuid() || orOfRoot && status.st_uid == 0 else { throw .owner }
        guard status.st_mode & forbidden == 0 else { throw .mode(status.st_mode & 0o7777) }
        return status
    }

    // MARK: Marks

    /// Returns whether `name` is a file of this user that was marked.
    package func isMarked(_ name: String) -> Bool {
        guard let status = try? status(of: name), isOwnFile(status) else { return false }
        return status.st_mode & Self.mark != 0
    }

    /// Marks a file of this user, and makes it the newest. If that is impossible, nothing happens.
    package func mark(_ name: String) {
        let number = SystemCallError.repeated {
            unsafe openat(descriptor.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        }
        guard number >= 0 else { return }
        let file = OwnedDescriptor(number)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0, isOwnFile(status) else { return }
        _ = fchmod(file.number, 0o600 | Self.mark)
        _ = futimens(file.number, nil)
    }

    /// Returns those of `names` that are plain files, the one that was written or marked longest ago first.
    package func files(among names: [String]) -> [File] {
        var files: [File] = []
        for name in names {
            guard let status = try? status(of: name), status.st_mode & S_IFMT == S_IFREG else { continue }
            files.append(
                File(
                    name: name, isMarked: status.st_mode & Self.mark != 0, seconds: status.st_mtim.tv_sec,
                    nanoseconds: status.st_mtim.tv_nsec))
        }
        return files.sorted { ($0.seconds, $0.nanoseconds) < ($1.seconds, $1.nanoseconds) }
    }

    // MARK: Writing

    /// Replaces the file of that name with `bytes`, readable by its owner only; a symbolic link is replaced, not
    /// followed.
    ///
    /// - Throws: `SystemCallError`; with EISDIR or EINVAL for a name that is not a plain file.
    package func replace(_ name: String, with bytes: [UInt8]) throws(SystemCallError) {
        _ = try hasFile(name)
        let temporary = try makeTemporary(of: name)
        do throws(SystemCallError) {
            try Self.write(bytes, to: temporary.file)
            guard unsafe renameat(descriptor.number, temporary.name, descriptor.number, name) == 0 else {
                throw SystemCallError(call: "rename", errno: errno)
            }
        } catch {
            _ = unsafe unlinkat(descriptor.number, temporary.name, 0)
            throw error
        }
        syncNames()
    }

    /// Removes the file; a missing file is not an error. After a power failure it may be back.
    ///
    /// - Throws: `SystemCallError`.
    package func remove(_ name: String) throws(SystemCallError) {
        guard unsafe unlinkat(descriptor.number, name, 0) == 0 || errno == ENOENT else {
            throw SystemCallError(call: "unlink", errno: errno)
        }
    }

    /// Removes files, and writes that and earlier removals to the disk: none of them is back after a power failure.
    /// Missing files are not an error.
    ///
    /// - Throws: `SystemCallError` at the first that is not removed.
    package func removeLastingly(_ names: some Sequence<String>) throws(SystemCallError) {
        // An earlier removal may not be on the disk either.
        defer { syncNames() }
        for name in names { try remove(name) }
    }

    /// Writes the names to the disk, as they are now: they are on it when the directory is. A file system that cannot
    /// sync it is not an error.
    private func syncNames() {
        _ = SystemCallError.repeated { fsync(descriptor.number) }
    }

    /// A file that does not have its final name yet.
    private struct Temporary: ~Copyable {
        let name: String
        let file: OwnedDescriptor
    }

    private static let temporaryCount = Lock(0)

    /// Creates a new file that no other process writes.
    private func makeTemporary(of name: String) throws(SystemCallError) -> Temporary {
        while true {
            let number = Self.temporaryCount.withLock { count in
                count += 1
                return count
            }
            let temporary = "\(name).\(getpid()).\(number).tmp"
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
            let opened = SystemCallError.repeated { unsafe openat(descriptor.number, temporary, flags, 0o600) }
            guard opened >= 0 else {
                // A process with the same number left it behind.
                guard errno == EEXIST else { throw SystemCallError(call: "open", errno: errno) }
                continue
            }
            let file = OwnedDescriptor(opened)
            // The lock marks it as being written. Until it is locked, another process may take it for a remnant and
            // remove it.
            let locked = SystemCallError.repeated { flock(file.number, LOCK_EX | LOCK_NB) }
            let isTaken = locked != 0 && errno == EWOULDBLOCK
            var status = stat()
            guard unsafe fstat(file.number, &status) == 0 else {
                let reason = errno
                _ = unsafe unlinkat(descriptor.number, temporary, 0)
                throw SystemCallError(call: "fstat", errno: reason)
            }
            if !isTaken, status.st_nlink > 0 { return Temporary(name: temporary, file: file) }
        }
    }

    /// Removes the temporary files of killed writers of this user, of each file whose name passes `isWanted`.
    ///
    /// A file that is being written is locked, and stays; on a file system without locks everything does. So do files
    /// of other users, and names that are not plain files.
    package func removeRemains(among names: [String], of isWanted: (String) -> Bool) {
        for name in names where name.hasSuffix(".tmp") {
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count > 3, parts.dropLast().suffix(2).allSatisfy({ Int($0) != nil }),
                isWanted(parts.dropLast(3).joined(separator: ".")), isOwnFile(try? status(of: name))
            else { continue }
            let number = SystemCallError.repeated {
                unsafe openat(descriptor.number, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            }
            guard number >= 0 else { continue }
            let file = OwnedDescriptor(number)
            if SystemCallError.repeated({ flock(file.number, LOCK_EX | LOCK_NB) }) == 0 {
                _ = unsafe unlinkat(descriptor.number, name, 0)
            }
        }
    }

    private static func write(_ bytes: [UInt8], to file: borrowing OwnedDescriptor) throws(SystemCallError) {
        guard fchmod(file.number, 0o600) == 0 else { throw SystemCallError(call: "fchmod", errno: errno) }
        try StoredFile.writeAll(bytes, to: file.number)
        let result = SystemCallError.repeated { fsync(file.number) }
        guard result == 0 else { throw SystemCallError(call: "fsync", errno: errno) }
    }
}
