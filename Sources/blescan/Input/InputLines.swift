import Glibc

/// The lines of a file or of standard input, one at a time: memory does not grow with the input. A million recorded
/// events take 15 MB from the first line to the last.
struct InputLines: ~Copyable {
    /// Whether the lines come from a terminal.
    let isTerminal: Bool

    private var file: InputFile
    private var chunk: [UInt8] = []
    private var used = 0
    private var isAtEnd = false
    /// The failure that ended the input before its end.
    private(set) var failure: Failure?
    /// The first bytes, as many as show that the input is a capture and no text.
    private(set) var beginning: [UInt8] = []

    /// The progress; `nil` for lines from a terminal.
    private var progress: FileProgress?

    /// Opens a file, or standard input without a path.
    ///
    /// - Parameter unpacks: Whether a file that was compressed by gzip is read as what it was before.
    /// - Throws: `Failure` if it cannot be opened, or is a directory.
    init(
        path: String?, advice: String = "Check the name, or give the bytes with --hex.", unpacks: Bool = false
    ) throws(Failure) {
        let path = path ?? "-"
        file = try InputFile(path, advice: advice, unpacks: unpacks)
        isTerminal = isatty(file.descriptor) == 1
        progress = isTerminal ? nil : FileProgress(file.descriptor, named: InputFile.name(of: path))
    }

    deinit {
        progress?.end()
    }

    /// Returns the next line; `nil` after the last one.
    mutating func next() -> InputLine? {
        var line: [UInt8] = []
        while true {
            if used == chunk.count && !fill() { return line.isEmpty ? nil : InputLine(line) }
            let end = chunk[used...].firstIndex(of: 0x0A) ?? chunk.count
            // One more shows that the line is too long.
            let room = max(0, InputLine.longestBeforeLineFeed + 1 - line.count)
            line.append(contentsOf: chunk[used..<end].prefix(room))
            used = min(end + 1, chunk.count)
            if end < chunk.count { return InputLine.ended(line) }
        }
    }

    /// Waits until `next()` need not wait, or this time is over, which is `false`. A terminal is not waited for.
    mutating func isReady(within limit: Duration) -> Bool {
        let clock = ContinuousClock()
        let deadline = clock.now + limit
        repeat {
            if hasLine { return true }
            guard !isTerminal, file.isReady(within: max(.zero, clock.now.duration(to: deadline))) else { return false }
            _ = fill()
        } while clock.now < deadline
        return hasLine
    }

    /// Whether `next()` need not read: a pipe may have given the beginning of a line alone.
    private var hasLine: Bool {
        isAtEnd || chunk.count - used >= InputLine.limit || chunk[used...].contains(0x0A)
    }

    /// Reads more bytes, after those that are not taken yet.
    private mutating func fill() -> Bool {
        guard !isAtEnd else { return false }
        var more: [UInt8] = []
        do throws(Failure) {
            more = try file.next()
        } catch {
            failure = error
        }
        beginning += more.prefix(Recording.longestMagic - beginning.count)
        progress?.advance(by: more.count, isCompressed: file.isCompressed)
        chunk = used == chunk.count ? more : Array(chunk[used...]) + more
        used = 0
        isAtEnd = more.isEmpty
        return !isAtEnd
    }
}
