import Glibc

/// Small files as bytes.
enum FileBytes {
    /// Returns the bytes of the file, or of the pipe, at `path`.
    ///
    /// - Throws: `Failure` if it cannot be read or has more than `limit` bytes.
    static func read(_ path: String, atMost limit: Int) throws(Failure) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(cannot: "open", path, for: .reading, errno: errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(cannot: "read", path, for: .reading, errno: errno) }
            if count == 0 { return bytes }
            bytes += chunk.prefix(count)
            guard bytes.count <= limit else {
                throw Failure(message: "\(path) has more than \(limit) bytes. Give a smaller file.", status: .usage)
            }
        }
    }
}
