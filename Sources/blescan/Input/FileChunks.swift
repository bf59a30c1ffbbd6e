import Glibc

/// A file in pieces: memory does not grow with its size.
struct FileChunks: ~Copyable {
    private let descriptor: Int32
    private let path: String

    /// Opens the file at `path`.
    ///
    /// - Throws: `Failure` when it cannot be opened, or is a directory.
    init(_ path: String) throws {
        self.path = path
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(
                message: "cannot open \(path): \(unsafe String(cString: strerror(errno))). Check the name.",
                status: .usage)
        }
        var byte: UInt8 = 0
        let result = unsafe pread(descriptor, &byte, 1, 0)
        if result < 0, errno == EISDIR {
            throw Failure(message: "\(path) is a folder. Name a capture in it.", status: .usage)
        }
    }

    deinit {
        close(descriptor)
    }

    /// The next piece; `nil` at the end of the file.
    ///
    /// - Throws: `Failure` when the file cannot be read to its end.
    mutating func next() throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw Failure(
                    message:
                        "cannot read \(path): \(unsafe String(cString: strerror(errno))). What came before is shown.",
                    status: .badData)
            }
            guard count > 0 else { return nil }
            bytes.removeLast(bytes.count - count)
            return bytes
        }
    }
}
