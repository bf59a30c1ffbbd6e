internal import CBluetooth
internal import Glibc

/// Bytes that are passed to another program together with descriptors: a file that exists in memory only.
package enum MemoryFile {
    /// Creates a file that holds `bytes`; the descriptor belongs to the caller.
    package static func make(_ name: String, holding bytes: [UInt8]) throws(SystemCallError) -> Int32 {
        let number = try SystemCallError.check("memfd_create", unsafe ble_memory_file(name))
        do throws(SystemCallError) {
            try StoredFile.writeAll(bytes, to: number)
            return number
        } catch {
            OwnedDescriptor.close(number)
            throw error
        }
    }

    /// Returns whether `descriptor` is a plain file, in memory or not, and not a socket.
    package static func isFile(_ descriptor: Int32) -> Bool {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Returns the contents from the beginning, and closes the file.
    ///
    /// - Throws: `SystemCallError`, with EFBIG for more than `limit` bytes.
    package static func take(_ descriptor: Int32, limit: Int) throws(SystemCallError) -> [UInt8] {
        let file = OwnedDescriptor(descriptor)
        guard lseek(file.number, 0, SEEK_SET) == 0 else { throw SystemCallError(call: "lseek", errno: errno) }
        return try StoredFile.readAll(of: file, limit: limit)
    }

    /// Closes an unused descriptor.
    package static func close(_ descriptor: Int32) {
        OwnedDescriptor.close(descriptor)
    }
}
