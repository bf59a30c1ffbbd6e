import Glibc

/// A file that the user names, or standard input, opened for reading.
struct InputFile: ~Copyable {
    /// The bytes of one system call, or the number of its error.
    enum Chunk {
        case success([UInt8])
        case failure(Int32)
    }

    /// The most bytes that are read at once.
    static let chunkSize = 65_536

    let descriptor: Int32
    private let name: String
    private let unpacks: Bool
    private var isAtStart = true
    private var unpacking: Unpacking?

    /// Whether the bytes so far were compressed.
    var isCompressed: Bool { unpacking != nil }

    /// Returns the name of the file at `path` in messages.
    static func name(of path: String) -> String { path == "-" ? "standard input" : path }

    /// Returns the file at `path` in a command line that reads it again: what came by standard input has been read.
    static func word(_ path: String) -> String { path == "-" ? "FILE" : path.shellPath }

    /// Reports that standard input is read where that is a terminal: otherwise nothing would show that this waits.
    static func announce(_ contents: String, from path: String) {
        guard path == "-", isatty(STDIN_FILENO) == 1 else { return }
        Console.warn("reading \(contents) from the terminal; Ctrl-D ends")
    }

    /// Opens the file at `path`; `-` is standard input.
    ///
    /// - Parameter unpacks: Whether a file that was compressed by gzip is read as what it was before.
    /// - Throws: `Failure` if it cannot be opened, or is a directory; the message ends with `advice`.
    init(_ path: String, advice: String, unpacks: Bool = false) throws(Failure) {
        name = Self.name(of: path)
        self.unpacks = unpacks
        guard path != "-" else {
            descriptor = STDIN_FILENO
            return
        }
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(cannot: "open", path, for: .reading, errno: errno, advice: advice)
        }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            throw Failure(message: "\(path) is a directory", hint: "Name a file in it.", status: .usage)
        }
    }

    deinit {
        if descriptor > STDIN_FILENO { close(descriptor) }
    }

    /// Returns the next bytes; nothing at the end of the file.
    ///
    /// - Throws: `Failure` if the file cannot be read to its end.
    mutating func next() throws(Failure) -> [UInt8] {
        if let unpacking { return try unpacking.next() }
        var bytes = try read()
        guard unpacks, isAtStart else { return bytes }
        isAtStart = false
        while bytes == Array(Self.compressed.prefix(1)), case let more = try read(), !more.isEmpty { bytes += more }
        guard bytes.starts(with: Self.compressed) else { return bytes }
        unpacking = try Unpacking(bytes, then: descriptor, named: name)
        return try next()
    }

    /// Waits until there are more bytes, or the end of the file; `false` if neither comes within this time.
    func isReady(within limit: Duration) -> Bool {
        var wanted = pollfd(fd: unpacking?.output ?? descriptor, events: Int16(POLLIN), revents: 0)
        let milliseconds = Int32(limit / .milliseconds(1))
        while true {
            let count = unsafe poll(&wanted, 1, milliseconds)
            if count >= 0 || errno != EINTR { return count != 0 }
        }
    }

    private func read() throws(Failure) -> [UInt8] {
        switch Self.chunk(descriptor) {
        case .success(let bytes): return bytes
        case .failure(let number): throw Self.failure(name, number)
        }
    }

    /// The beginning of a file that gzip has compressed.
    static let compressed: [UInt8] = [0x1F, 0x8B]

    /// Returns the failure of a file whose contents are compressed as well: they were unpacked once.
    static func compressedTwice(_ name: String) -> Failure {
        Failure(message: "\(name) is compressed twice", hint: "Decompress it once first: `gunzip`.", status: .badData)
    }

    /// Reads once.
    static func chunk(_ descriptor: Int32, _ size: Int = chunkSize) -> Chunk {
        var bytes = [UInt8](repeating: 0, count: size)
        while true {
            let count = unsafe bytes.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .failure(errno) }
            bytes.removeLast(bytes.count - count)
            return .success(bytes)
        }
    }

    /// Returns the failure to read a file that is open.
    static func failure(_ name: String, _ number: Int32) -> Failure {
        Failure(
            message: "cannot read \(name): \(unsafe String(cString: strerror(number)))",
            hint: "What came before is shown.", status: .badData)
    }
}
