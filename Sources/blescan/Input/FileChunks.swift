import Glibc

/// A file in chunks: memory does not grow with its size.
struct FileChunks: ~Copyable {
    private let file: InputFile
    private let name: String
    private var progress: FileProgress

    /// Opens the file at `path`; `-` is standard input.
    ///
    /// - Throws: `Failure` if it cannot be opened, or is a directory.
    init(_ path: String) throws(Failure) {
        name = InputFile.name(of: path)
        file = try InputFile(path, advice: "Check the name.")
        progress = FileProgress(file.descriptor, named: name)
    }

    deinit {
        progress.end()
    }

    /// Returns the next chunk; `nil` at the end of the file.
    ///
    /// - Throws: `Failure` if the file cannot be read to its end.
    mutating func next() throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file.descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw Failure(
                    message: "cannot read \(name): \(unsafe String(cString: strerror(errno)))",
                    hint: "What came before is shown.",
                    status: .badData)
            }
            guard count > 0 else { return nil }
            bytes.removeLast(bytes.count - count)
            progress.advance(by: count)
            return bytes
        }
    }
}
