/// The contents of a file in chunks, with their progress.
struct FileChunks: ~Copyable {
    private var file: InputFile
    private let name: String
    private var progress: FileProgress

    /// Opens the file at `path`, `-` for standard input; what gzip has compressed is unpacked.
    ///
    /// - Throws: `Failure` if it cannot be opened, or is a directory.
    init(_ path: String) throws(Failure) {
        name = InputFile.name(of: path)
        file = try InputFile(path, advice: "Check the name.", unpacks: true)
        progress = FileProgress(file.descriptor, named: name)
    }

    deinit {
        progress.end()
    }

    /// Returns the next chunk; `nil` at the end of the file.
    ///
    /// - Throws: `Failure` if the file cannot be read to its end.
    mutating func next() throws(Failure) -> [UInt8]? {
        let bytes = try file.next()
        progress.advance(by: bytes.count, isCompressed: file.isCompressed)
        return bytes.isEmpty ? nil : bytes
    }
}
