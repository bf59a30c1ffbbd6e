import Glibc

/// The lines of a file or of standard input, one at a time: memory does not grow with the input. A million recorded
/// events take 15 MB from the first line to the last.
struct InputLines: ~Copyable {
    /// Whether the lines come from a terminal.
    let isTerminal: Bool

    private let file: InputFile
    private var chunk = [UInt8](repeating: 0, count: 65536)
    private var filled = 0
    private var used = 0
    private var isAtEnd = false
    /// The error that ended the input before its end.
    private(set) var failure: Int32?

    /// The progress; `nil` for lines from a terminal.
    private var progress: FileProgress?

    /// Opens a file, or standard input without a path.
    ///
    /// - Throws: `Failure` if it cannot be opened, or is a directory.
    init(
        path: String?, advice: String = "Check the name, or give the bytes with --hex."
    ) throws(Failure) {
        let path = path ?? "-"
        file = try InputFile(path, advice: advice)
        isTerminal = isatty(file.descriptor) == 1
        progress = isTerminal ? nil : FileProgress(file.descriptor, named: InputFile.name(of: path))
    }

    deinit {
        progress?.end()
    }

    /// Returns the next line without its end; `nil` after the last one. Lines are cut at `limit` bytes.
    mutating func next() -> [UInt8]? {
        var line: [UInt8] = []
        while true {
            if used == filled && !fill() { return line.isEmpty ? nil : line }
            let part = chunk[used..<filled]
            let end = part.firstIndex(of: 0x0A) ?? filled
            let room = max(0, Self.limit - line.count)
            line.append(contentsOf: chunk[used..<end].prefix(room))
            used = min(end + 1, filled)
            if end < filled {
                if line.last == 0x0D { line.removeLast() }
                return line
            }
        }
    }

    private mutating func fill() -> Bool {
        guard !isAtEnd else { return false }
        var count: Int
        repeat {
            count = unsafe chunk.withUnsafeMutableBytes { unsafe read(file.descriptor, $0.baseAddress, $0.count) }
        } while count < 0 && errno == EINTR
        if count < 0 { failure = errno }
        filled = max(0, count)
        progress?.advance(by: filled)
        used = 0
        isAtEnd = filled == 0
        return !isAtEnd
    }

    /// Longer than any advertising data in any spelling.
    private static let limit = 65536
}
