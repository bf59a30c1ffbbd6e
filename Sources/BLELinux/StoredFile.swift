internal import CBluetooth
internal import Glibc

/// A small file that is read and replaced as a whole: a reader sees either the old bytes or the new ones.
package enum StoredFile {
    /// Returns the file's bytes; `nil` if there is no such file.
    ///
    /// - Throws: `SystemCallError`; with EFBIG for more than `limit` bytes and EINVAL for a path that is not a plain
    ///   file.
    package static func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8]? {
        // A pipe would make the call wait for a writer.
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

    /// Returns the rest of an open file.
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

    /// Replaces the file with `bytes`, readable by its owner only. They are on the disk when the call returns.
    ///
    /// A symbolic link stays one, and its target is replaced, if that is requested and the link belongs to this user
    /// or to root; otherwise the link itself is replaced, so that other users with write access to the directory do
    /// not decide what else is written. Temporary files of killed writers of this file are removed.
    ///
    /// - Throws: `SystemCallError`; with EISDIR or EINVAL for a path that is not a plain file, and for a dangling
    ///   link; with ELOOP for a link of another user.
    package static func replace(
        _ path: String, with bytes: [UInt8], followingLink: Bool = false
    ) throws(SystemCallError) {
        var (folderPath, name) = parts(of: path)
        var folder = try StoredFolder(folderPath)
        var links = 0
        // From here on only names in opened directories: changes of a directory on the way have no effect.
        while followingLink, let target = try folder.destination(ofLink: name) {
            links += 1
            guard links <= linkLimit else { throw SystemCallError(call: "readlinkat", errno: ELOOP) }
            (folderPath, name) = parts(of: target)
            folder = try StoredFolder(folderPath, from: folder)
        }
        guard try folder.hasFile(name) || links == 0 else { throw SystemCallError(call: "open", errno: EINVAL) }
        folder.removeRemains(among: folder.names()) { $0 == name }
        try folder.replace(name, with: bytes)
    }

    /// The same number of links as the kernel follows.
    private static let linkLimit = 40

    /// Returns the directory and the name in it.
    static func parts(of path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let name = String(path[path.index(after: slash)...])
        return (slash == path.startIndex ? "/" : String(path[..<slash]), name)
    }

    /// Removes the temporary files of killed writers, of each file in `directory` whose name passes `isWanted`.
    package static func removeRemains(in directory: String, of isWanted: (String) -> Bool) {
        guard let folder = try? StoredFolder(directory) else { return }
        folder.removeRemains(among: folder.names(), of: isWanted)
    }

    static func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(SystemCallError) {
        var written = 0
        while written < bytes.count {
            // No copy of what may be a key, as long as everything fits into one call.
            let rest = written == 0 ? bytes : Array(bytes.dropFirst(written))
            let count = SystemCallError.repeated { unsafe Glibc.write(descriptor, rest, rest.count) }
            guard count > 0 else { throw SystemCallError(call: "write", errno: errno) }
            written += count
        }
    }

    /// Overwrites bytes that contained a key, and empties the array. Copies are not affected.
    package static func wipe(_ bytes: inout [UInt8]) {
        unsafe bytes.withUnsafeMutableBytes { buffer in
            if let start = buffer.baseAddress { unsafe explicit_bzero(start, buffer.count) }
        }
        bytes = []
    }

    /// Renames a file, replacing the one with that name.
    package static func move(_ path: String, to other: String) throws(SystemCallError) {
        guard unsafe rename(path, other) == 0 else { throw SystemCallError(call: "rename", errno: errno) }
    }

    /// Removes the file; a missing file is not an error.
    package static func remove(_ path: String) throws(SystemCallError) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else { throw SystemCallError(call: "unlink", errno: errno) }
    }
}
