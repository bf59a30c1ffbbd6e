internal import Glibc

/// The small text files in which the kernel describes the system.
package enum SystemFiles {
    /// Returns the file's text without the newline at its end; `nil` if it cannot be read. Longer files are cut at 64
    /// KiB.
    package static func text(_ path: String) -> String? { SystemFile(path)?.text }

    /// Returns whether a directory exists.
    package static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns whether something exists there that is not a socket.
    package static func isOther(thanSocket path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFSOCK
    }

    /// Returns the names in a directory, without `.` and `..`, sorted; empty if it cannot be read.
    package static func names(in directory: String) -> [String] {
        guard let stream = unsafe opendir(directory) else { return [] }
        return unsafe names(readingAndClosing: stream)
    }

    /// Returns the names in an open directory, without `.` and `..`, sorted.
    static func names(readingAndClosing stream: OpaquePointer) -> [String] {
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Returns the target of a symbolic link; `nil` if it cannot be read.
    package static func destination(ofLink path: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = unsafe readlink(path, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }
}

/// One of these files, open for reading: the kernel checks the permission once, when it is opened.
package final class SystemFile: Sendable {
    private let file: OwnedDescriptor

    /// The length in bytes from which a text is cut.
    static let limit = 65_536

    /// Opens a file; `nil` if this process may not.
    package init?(_ path: String) {
        let number = SystemCallError.repeated { unsafe open(path, O_RDONLY | O_CLOEXEC) }
        guard number >= 0 else { return nil }
        file = OwnedDescriptor(number)
    }

    /// The text as it is now, without the newline at its end; `nil` if it cannot be read.
    /// A longer one is cut at 64 KiB.
    package var text: String? {
        _ = lseek(file.number, 0, SEEK_SET)
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while bytes.count < Self.limit {
            let count = SystemCallError.repeated { unsafe read(file.number, &part, part.count) }
            guard count > 0 else {
                if count < 0 { return nil }
                break
            }
            bytes += part.prefix(count)
        }
        if bytes.last == 0x0A { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The kernel's log, open for reading: the kernel checks the permission once, when it is opened.
package final class KernelLog: Sendable {
    private let file: OwnedDescriptor

    /// Opens the log; `nil` if this process may not.
    package init?(_ path: String = "/dev/kmsg") {
        let number = SystemCallError.repeated { unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard number >= 0 else { return nil }
        file = OwnedDescriptor(number)
    }

    /// The largest number of messages that are returned.
    private static let limit = 1000

    /// Returns the newest messages that pass `isWanted`, oldest first and at most 1,000, each without the prefix of its
    /// text.
    package func messages(where isWanted: (String) -> Bool) -> [String] {
        // What was read before is read again.
        _ = lseek(file.number, 0, SEEK_SET)
        var wanted: [String] = []
        var rest = ""
        // A read returns one message, and a line of a plain file may need two.
        var part = [UInt8](repeating: 0, count: 8192)
        while true {
            let count = unsafe read(file.number, &part, part.count)
            // Messages that were overwritten while this read are left out.
            if count < 0, errno == EPIPE || errno == EINTR { continue }
            guard count > 0 else { break }
            let lines = (rest + String(decoding: part.prefix(count), as: UTF8.self)).split(
                separator: "\n", omittingEmptySubsequences: false)
            rest = String(lines.last ?? "")
            wanted += lines.dropLast().compactMap { line -> String? in
                let text = String(line.split(separator: ";", maxSplits: 1).last ?? "")
                return isWanted(text) ? text : nil
            }
            if wanted.count > 2 * Self.limit { wanted.removeFirst(wanted.count - Self.limit) }
        }
        return Array(wanted.suffix(Self.limit))
    }
}
