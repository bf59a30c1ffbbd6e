import Glibc

/// Small files as bytes.
enum FileBytes {
    /// Returns the bytes of the file, or of the pipe, at `path`.
    ///
    /// - Throws: `Failure` if it cannot be read or has more than `limit` bytes.
    static func read(_ path: String, atMost limit: Int) throws(Failure) -> [UInt8] {
        let file = try InputFile(path, advice: "Check the path.")
        let name = InputFile.name(of: path)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(file.descriptor, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(cannot: "read", name, for: .reading, errno: errno) }
            if count == 0 { return bytes }
            bytes += chunk.prefix(count)
            guard bytes.count <= limit else {
                throw Failure(
                    message: "\(name) has more than \(limit) bytes", hint: "Give a smaller file.", status: .usage)
            }
        }
    }
}
