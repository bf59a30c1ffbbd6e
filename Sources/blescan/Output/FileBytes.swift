import Glibc

/// Small files as bytes.
enum FileBytes {
    /// The bytes of the file at `path`.
    ///
    /// - Throws: `Failure` when it cannot be read or has more than `limit` bytes.
    static func read(_ path: String, atMost limit: Int) throws -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(message: "cannot open \(path): \(unsafe String(cString: strerror(errno))).", status: .usage)
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: limit + 1)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count >= 0 else {
            throw Failure(message: "cannot read \(path): \(unsafe String(cString: strerror(errno))).", status: .usage)
        }
        guard count <= limit else {
            throw Failure(message: "\(path) has more than the \(limit) bytes that a value may have.", status: .usage)
        }
        return Array(bytes.prefix(count))
    }
}
