import BLECore
import BLELinux
import Glibc

/// The two streams of the program: results on standard output, everything else on standard error.
enum Console {
    /// The progress line, if standard error is a terminal that can clear a line.
    static let progress = Progress(
        isOn: isatty(STDERR_FILENO) == 1 && Terminal.limitation == nil,
        width: { width(of: STDERR_FILENO) },
        write: { if !Terminal.isTaken { _ = write(Array($0.utf8), to: STDERR_FILENO) } })

    /// The line of `--plot` on standard output, which is rewritten where that is a terminal.
    static let plotLine = RewrittenLine()

    /// Whether `--json` is given; taken from the arguments themselves, because it also applies to an invalid command
    /// line.
    static let isJSONWanted = isJSONWanted(by: Blescan.commandLine)

    /// Returns the same for any command line; --format json is an equivalent spelling.
    static func isJSONWanted(by arguments: ArraySlice<String>) -> Bool {
        let words = ValueOptions.withoutTexts(arguments).prefix { $0 != "--" }
        return words.contains { ["--json", "-j", "--format=json"].contains($0) }
            || zip(words, words.dropFirst()).contains { $0 == ("--format", "json") }
    }

    /// Writes one line of results, whole and at once.
    ///
    /// If the reader closed the pipe the program ends silently: the reader has what it needs. Any other error, such as
    /// a full disk, ends it with a message. Later output is dropped.
    static func out(_ line: String) {
        out(Array(spelled(line).utf8))
    }

    /// Returns a line of results in characters that the terminal can show, if there is one.
    static func spelled(_ line: String) -> String {
        isTerminal && isASCIIWanted ? line.ascii : line
    }

    /// The same for a line with styles.
    static func spelled(_ line: StyledText) -> StyledText {
        isTerminal && isASCIIWanted ? line.ascii : line
    }

    /// Whether the terminal has only ASCII. Objects, files and pipes have UTF-8 in any locale.
    private static let isASCIIWanted = !isJSONWanted && !ScreenLook(.never).isUnicode

    /// The same for a line in UTF-8.
    static func out(_ line: [UInt8]) {
        outRaw(line + [0x0A])
    }

    /// The same for bytes that are no line.
    static func outRaw(_ bytes: [UInt8]) {
        guard Interrupt.status == nil else { return }
        let failure = besideProgress { write(bytes, to: STDOUT_FILENO) }
        if failure == EPIPE { return Interrupt.end(.done) }
        guard failure != 0 else { return }
        report(Failure(unwritable: failure))
        Interrupt.end(.linkLost)
    }

    /// If the results go to a file, they do not disturb the line.
    private static func besideProgress<Value>(_ body: () -> Value) -> Value {
        progress.isOn && isTerminal ? progress.makingRoom(for: body) : body()
    }

    /// How messages look. They may go to a terminal where the results do not, and the other way round.
    private static let messageLook: ScreenLook = {
        let choice = ColorChoice(in: Blescan.commandLine) ?? .auto
        return ScreenLook(choice == .auto && isatty(STDERR_FILENO) != 1 ? .never : choice)
    }()

    /// Returns a message with the name of the program, which is in this style.
    static func titled(_ message: String, _ style: ScreenStyle) -> StyledText {
        var line = StyledText("blescan:", style)
        line.add(" " + message)
        line.isProse = true
        return line
    }

    /// Returns the line of a sentence about what to do next.
    static func hint(_ text: String) -> StyledText {
        var line = StyledText("hint: " + text)
        line.isProse = true
        return line
    }

    /// Writes a message for users. A path or a name in it cannot control the terminal.
    static func note(_ line: String) {
        note(StyledText(line))
    }

    /// The same for a line with styles.
    static func note(_ line: StyledText) {
        guard Interrupt.status == nil, !Terminal.deferring(line) else { return }
        let text = messageBytes(line) + [0x0A]
        let isOnTerminal = isatty(STDERR_FILENO) == 1
        Prompt.hidden {
            progress.makingRoom { _ = write(isOnTerminal ? plotLine.above(text) : text, to: STDERR_FILENO) }
        }
    }

    /// Returns a message for users as standard error shows it, without the newline at its end. On a terminal sentences
    /// are in as many lines as they need.
    static func messageBytes(_ line: StyledText) -> [UInt8] {
        let isOnTerminal = isatty(STDERR_FILENO) == 1
        let columns = isOnTerminal && line.isProse ? width(of: STDERR_FILENO) : nil
        let spelled = isASCIIWanted && isOnTerminal ? line.ascii : line
        let lines = columns.map { spelled.wrapped(to: $0) } ?? [spelled]
        return Array(lines.map { $0.painted(messageLook) }.joined(separator: "\n").utf8)
    }

    /// Reports something that is neither a result nor a fatal error; with `--json` as an object.
    static func warn(_ message: String) { note(warning(message)) }

    /// Returns the line of a warning.
    static func warning(_ message: String) -> StyledText {
        isJSONWanted
            ? StyledText(JSONLine.object(["v": 1, "warning": .string(message)]).text) : titled(message, .warning)
    }

    /// Reports a failure that does not end the command.
    static func warn(_ failure: Failure) {
        guard isJSONWanted else {
            warn(failure.message)
            if let hint = failure.hint { note(Self.hint(hint)) }
            return
        }
        note(
            JSONLine.object([
                "v": 1, "warning": .string(failure.message), "hint": failure.hint.map { .string($0) },
            ]).text)
    }

    /// Opens those of the standard descriptors that are closed, so that no socket or file gets their number and
    /// receives messages. Using them fails as before.
    static func fillStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = unsafe open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Takes standard output for something else than results, which go to standard error from now on.
    ///
    /// Call it before anything is written.
    ///
    /// - Returns: A descriptor of what was standard output; `nil` with `errno` set if there is none.
    static func takeStandardOutput() -> Int32? {
        let taken = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
        guard taken >= 0, dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 else { return nil }
        return taken
    }

    /// Whether standard output is a terminal.
    static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// The width of the terminal on standard output; `nil` if it is not a terminal, or does not report it.
    static var width: Int? { width(of: STDOUT_FILENO) }

    /// The number of columns that lines of results fit; `nil` if they do not go to a terminal. One that does not report
    /// its width is taken for an ordinary one.
    static var resultWidth: Int? { isTerminal ? width ?? 80 : nil }

    /// The columns of a terminal; `nil` if the descriptor is none, or it does not report them.
    static func width(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Writes all of `bytes`; returns the number of the error that stopped it, or 0.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            }
            if count > 0 {
                written += count
            } else if errno == EAGAIN {
                // Another process that shares the descriptor made it non-blocking.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&wanted, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}

extension StringProtocol {
    /// The text with everything escaped that could control a terminal, or has no shape there.
    var printable: String {
        // Nearly all text is plain.
        if utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return String(self) }
        var result = ""
        for scalar in unicodeScalars {
            if scalar.isUnprintable {
                result += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension String {
    /// Returns the text as messages quote it: of a long one the beginning and the end. Input has any length.
    func excerpt(upTo limit: Int = 80) -> String {
        // Not by characters: a single one may have any number of marks.
        guard unicodeScalars.count > limit else { return self }
        let (start, end) = (unicodeScalars.prefix(limit / 2), unicodeScalars.suffix(limit / 2))
        return String(String.UnicodeScalarView(start)) + "…" + String(String.UnicodeScalarView(end))
    }
}

extension Unicode.Scalar {
    /// Whether it could control a terminal, or has no shape there.
    var isUnprintable: Bool { AdvertisedName.isUnprintable(self) }
}
