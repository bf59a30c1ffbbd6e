import BLELinux
import Dispatch
import Glibc

// The compressed bytes go through a pipe to the process, and the unpacked ones through another one back: what is in
// memory does not depend on the size of either. The process ends with its owner: by itself at the end of the data, and
// by a signal if nobody reads on.

/// Compressed bytes, unpacked by `gzip` in a process of its own.
final class Unpacking {
    /// The longest message of the process.
    private static let messageLimit = 1024
    /// The files that a warning was printed about: the live table reads a recording again for each seek back.
    private static let warned = Lock<Set<String>>([])

    private let name: String
    /// The pipe that the unpacked bytes come from.
    let output: Int32
    private let messages: Int32
    private let process: pid_t
    private var hasEnded = false
    /// The error that ended the reading of the compressed file.
    private let inputFailure = Lock<Int32>(0)

    /// Begins with bytes that were already read, and goes on with those of `descriptor`, which stays open.
    ///
    /// - Throws: `Failure` if there is no `gzip`, or no process for it.
    init(_ first: [UInt8], then descriptor: Int32, named name: String) throws(Failure) {
        self.name = name
        let source = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        let (input, output, messages) = (Self.pipe(), Self.pipe(), Self.pipe())
        let ends = [source, input.reading, input.writing, output.reading, output.writing, messages.reading]
        let failure = ends.contains(-1) ? errno : 0
        // The process never waits for a reader of its messages.
        _ = fcntl(messages.writing, F_SETFL, O_NONBLOCK)
        let started = failure == 0 ? Self.start(input.reading, output.writing, messages.writing) : .failure(failure)
        for end in [input.reading, output.writing, messages.writing] { close(end) }
        switch started {
        case .success(let process):
            (self.process, self.output, self.messages) = (process, output.reading, messages.reading)
        case .failure(let number):
            for end in [source, input.writing, output.reading, messages.reading] { close(end) }
            throw Self.cannotStart(name, number)
        }
        DispatchQueue(label: "unpacking").async { [inputFailure] in
            Self.copy(first, source, to: input.writing, inputFailure)
            close(input.writing)
            close(source)
        }
    }

    deinit {
        if !hasEnded {
            kill(process, SIGKILL)
            _ = Self.status(of: process)
        }
        close(output)
        close(messages)
    }

    /// Returns the next unpacked bytes; nothing at the end.
    ///
    /// - Throws: `Failure` if the compressed bytes are damaged, or end too early. What came before is right.
    func next() throws(Failure) -> [UInt8] {
        guard !hasEnded else { return [] }
        switch Self.chunk(output) {
        case .success(let bytes) where !bytes.isEmpty: return bytes
        case .success: break
        case .failure(let number): throw InputFile.failure(name, number)
        }
        hasEnded = true
        let status = Self.status(of: process)
        let number = inputFailure.withLock(\.self)
        if number != 0 { throw InputFile.failure(name, number) }
        guard status != 0 else { return [] }
        let message = message()
        // 2 is a warning: bytes after the compressed ones.
        if status == 2 << 8 {
            if Self.warned.withLock({ $0.insert(name).inserted }) { Console.warn("\(name): gzip: \(message)") }
            return []
        }
        throw Failure(
            message: "\(name) cannot be decompressed to its end: gzip: \(message)", hint: "What came before is shown.",
            status: .badData)
    }

    /// Returns what the process reports, without its name.
    private func message() -> String {
        guard case .success(let bytes) = Self.chunk(messages, Self.messageLimit) else { return "no message" }
        let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last.map(String.init) ?? ""
        let text = line.split(separator: ": ").drop { ["gzip", "stdin"].contains($0) }.joined(separator: ": ")
        return text.isEmpty ? "no message" : text
    }

    // MARK: The process

    /// Starts the program, with its name looked up in PATH and without a shell.
    private static func start(_ input: Int32, _ output: Int32, _ messages: Int32) -> Started {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        for (end, place) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (messages, STDERR_FILENO)] {
            unsafe posix_spawn_file_actions_adddup2(&actions, end, place)
        }
        // This program ignores the signal by which a pipe without a reader ends another one.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var process: pid_t = 0
        let failure = unsafe "gzip".withCString { program in
            unsafe "-dc".withCString { option in
                unsafe "LC_ALL=C".withCString { locale in
                    let words = unsafe [UnsafeMutablePointer(mutating: program), .init(mutating: option), nil]
                    let environment = unsafe [UnsafeMutablePointer(mutating: locale), nil]
                    return unsafe posix_spawnp(&process, program, &actions, &attributes, words, environment)
                }
            }
        }
        return failure == 0 ? .success(process) : .failure(failure)
    }

    private enum Started {
        case success(pid_t)
        case failure(Int32)
    }

    private static func cannotStart(_ name: String, _ number: Int32) -> Failure {
        guard number == ENOENT else {
            return Failure(
                message:
                    "\(name) is compressed, and gzip cannot be started: \(unsafe String(cString: strerror(number)))",
                hint: "Decompress the file first.", status: .badData)
        }
        return Failure(
            message: "\(name) is compressed, and there is no gzip in PATH",
            hint: "Install gzip, or decompress the file first.", status: .badData)
    }

    private static func status(of process: pid_t) -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0 {
            // Its end is not known, and so not whether that was all.
            guard errno == EINTR else { return -1 }
        }
        return status
    }

    // MARK: Pipes

    private static func pipe() -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe Glibc.pipe(&ends) == 0 else { return (-1, -1) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func chunk(_ descriptor: Int32, _ size: Int = InputFile.chunkSize) -> InputFile.Chunk {
        InputFile.chunk(descriptor, size)
    }

    /// Copies until there is no more, or nobody reads it.
    private static func copy(_ first: [UInt8], _ source: Int32, to sink: Int32, _ failure: Lock<Int32>) {
        var bytes = first
        while !bytes.isEmpty, Console.write(bytes, to: sink) == 0 {
            switch chunk(source) {
            case .success(let next): bytes = next
            case .failure(let number):
                failure.withLock { $0 = number }
                return
            }
        }
    }
}
