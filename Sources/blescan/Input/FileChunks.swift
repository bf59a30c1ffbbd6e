import Glibc

/// A file in pieces: memory does not grow with its size.
struct FileChunks: ~Copyable {
    private let descriptor: Int32
    private let name: String
    private var progress: FileProgress

    /// What messages call the file at `path`.
    static func name(of path: String) -> String { path == "-" ? "standard input" : path }

    /// Opens the file at `path`; `-` is standard input.
    ///
    /// - Throws: `Failure` when it cannot be opened, or is a directory.
    init(_ path: String) throws(Failure) {
        name = Self.name(of: path)
        descriptor = try Self.open(path)
        progress = FileProgress(descriptor, named: name)
    }

    private static func open(_ path: String) throws(Failure) -> Int32 {
        if path == "-" { return STDIN_FILENO }
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(
                message: "cannot open \(path): \(unsafe String(cString: strerror(errno))). Check the name.",
                status: .usage)
        }
        var byte: UInt8 = 0
        let result = unsafe pread(descriptor, &byte, 1, 0)
        if result < 0, errno == EISDIR {
            close(descriptor)
            throw Failure(message: "\(path) is a folder. Name a capture in it.", status: .usage)
        }
        return descriptor
    }

    deinit {
        progress.end()
        if descriptor != STDIN_FILENO { close(descriptor) }
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
                        "cannot read \(name): \(unsafe String(cString: strerror(errno))). What came before is shown.",
                    status: .badData)
            }
            guard count > 0 else { return nil }
            bytes.removeLast(bytes.count - count)
            progress.advance(by: count)
            return bytes
        }
    }
}
