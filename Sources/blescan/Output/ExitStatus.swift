import ArgumentParser
import BLECore
import BareBLE
import Glibc

/// The exit statuses of the program. Scripts rely on these numbers.
enum ExitStatus: Int32 {
    case done = 0
    case notFound = 1
    case usage = 64
    case badData = 65
    case noAdapter = 69
    case linkLost = 74
    case timedOut = 75
    case refused = 76
    case notPermitted = 77
    case interrupted = 130

    /// Returns the exit status for a failure of the library.
    init(_ error: BLEError) {
        switch error.code {
        case .attributeNotFound:
            self = .notFound
        case .tooLong where error.origin == .peer:
            // The peer causes it, with endless attributes.
            self = .refused
        case .ambiguous, .invalidArgument, .tooLong, .unusableCache:
            self = .usage
        case .noAdapter, .adapterDown, .blocked, .lowEnergyOff, .unsupported, .pairingUnavailable:
            self = .noAdapter
        case .notPermitted:
            self = .notPermitted
        case .disconnected where error.origin == .peer:
            // It violated the protocol, and may do so on each link.
            self = .refused
        case .disconnected, .valuesLost:
            self = .linkLost
        case .timedOut, .busy, .adapterShared, .queueFull:
            self = .timedOut
        case .connectFailed:
            // A Unix socket that does not exist, is not a socket, or not one for packets, like any file that cannot be
            // used; the radio does not use these numbers.
            self = [ENOENT, ENOTSOCK, EPROTOTYPE].contains(error.errorNumber) ? .usage : .timedOut
        case .refusedByPeer where error.attError == .invalidHandle:
            self = .notFound
        case .refusedByPeer, .insufficientSecurity, .malformedReply, .malformedValue, .notSupported, .servicesChanged,
            .notBonded, .bondRejected, .pairingFailed, .pairingRefused, .wrongPasskey, .keyTooShort,
            .adapterMismatch:
            self = .refused
        case .bondNotStored:
            switch error.errorNumber {
            // The key itself is not fit for storage.
            case nil: self = .refused
            case EACCES, EPERM, EROFS: self = .notPermitted
            default: self = .linkLost
            }
        case .unusableState:
            self = .badData
        case .cancelled:
            self = .interrupted
        default:
            self = .noAdapter
        }
    }
}

extension ExitStatus {
    /// The code of a failure of the program itself, in JSON.
    var code: String {
        switch self {
        case .done: "done"
        case .notFound: "notFound"
        case .usage: "usage"
        case .badData: "badData"
        case .noAdapter: "noAdapter"
        case .linkLost: "linkLost"
        case .timedOut: "timedOut"
        case .refused: "refused"
        case .notPermitted: "notPermitted"
        case .interrupted: "cancelled"
        }
    }
}

/// A failure of the program itself: what failed and for whom, what to do next, and the exit status.
struct Failure: Error, Hashable {
    /// What failed, in one line, without a full stop.
    let message: String
    /// A sentence about what to do next; `nil` if nothing sensible can be suggested.
    let hint: String?
    let status: ExitStatus
    /// Whether results, or a recording, could not be written. The status of that is the one of a lost link.
    let isOfWriting: Bool
    /// The cause, where failures of the library have a code for it; `nil` if the status is specific enough.
    let cause: Cause?

    /// A cause that has a code of its own. One byte: the compiler of Swift 6.3 crashes on larger failures in release
    /// builds.
    enum Cause {
        case adapterDown, blocked, busy, unsupported

        fileprivate var code: BLEError.Code {
            switch self {
            case .adapterDown: .adapterDown
            case .blocked: .blocked
            case .busy: .busy
            case .unsupported: .unsupported
            }
        }
    }

    init(message: String, hint: String? = nil, status: ExitStatus, cause: Cause? = nil) {
        self.message = message
        self.hint = hint
        self.status = status
        self.cause = cause
        isOfWriting = false
    }

    /// Creates the failure of results, or of a recording, that could not be written.
    init(notWritten message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
        status = .linkLost
        cause = nil
        isOfWriting = true
    }

    /// The code in JSON.
    var code: String { isOfWriting ? "notWritten" : cause?.code.description ?? status.code }
}

extension Blescan {
    /// Runs the command line; every exit passes here.
    static func main() async {
        // Writing to a closed pipe is then an error that can be handled, not a signal.
        signal(SIGPIPE, SIG_IGN)
        // Where the caller ignores it, the end of a child could not be waited for.
        signal(SIGCHLD, SIG_DFL)
        // So is writing more than `ulimit -f` allows.
        signal(SIGXFSZ, SIG_IGN)
        Console.fillStandardDescriptors()
        let words = commandLine
        if let word = unknownCommand(words) { end(noCommand(word)) }
        do {
            var command = try parsed(Array(words))
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            Console.progress.end()
            if let status = Interrupt.status { Glibc.exit(status.rawValue) }
            // The request was fulfilled, but its file is incomplete.
            if SessionRecording.isBroken { Glibc.exit(ExitStatus.linkLost.rawValue) }
        } catch let error as BLEError where error.code == .cancelled {
            end(Failure(message: "interrupted", status: .interrupted))
        } catch is CancellationError {
            end(Failure(message: "interrupted", status: .interrupted))
        } catch let error as BLEError {
            end(Failure(error.ofEndedCommand), code: error.code, attError: error.attError)
        } catch let error as FailureAfterOthers {
            end(Failure(error.ofEndedCommand), code: error.last.code, attError: error.last.attError)
        } catch let error as Failure {
            end(error)
        } catch {
            let code = exitCode(for: error)
            if code == .success {
                // Help and the version are results.
                Console.out(HelpScreen.text(for: error))
                Glibc.exit(code.rawValue)
            }
            Console.progress.end()
            let text = message(for: error)
            guard !text.isEmpty else { Glibc.exit(code.rawValue) }
            end(wrongUsage(text, words))
        }
    }

    /// The command line of this process, with the command that a peer alone stands for.
    static let commandLine = words(of: CommandLine.arguments.dropFirst())

    private static func words(of words: ArraySlice<String>) -> ArraySlice<String> {
        if words == ["-V"] { return ["--version"] }
        guard let word = words.first, (try? PeerDesignation(argument: word)) != nil else {
            return CommandWords.apart(words)
        }
        return CommandWords.apart([Explore._commandName] + words)
    }

    /// Returns the failure for a command line that the parser refuses with `text`.
    private static func wrongUsage(_ text: String, _ words: ArraySlice<String>) -> Failure {
        let words = CommandWords(words)
        if let failure = words?.failure { return failure }
        return Failure(
            message: Failure.message(ofParser: text), hint: words.map { "`\($0.help)` explains the options." },
            status: .usage)
    }

    private static func noCommand(_ word: String) -> Failure {
        if word.contains(":"), word.allSatisfy({ $0.isHexDigit || $0 == ":" }) {
            return Failure(
                message: "'\(word)' is neither a command nor an address",
                hint: "An address has six pairs of digits, as AA:BB:CC:DD:EE:FF.", status: .usage)
        }
        let names = configuration.subcommands.map { $0._commandName }
        let near =
            synonyms[word].map { [$0] } ?? suggestion(meantBy: word).map { ["`\($0)`"] }
            ?? NearNames.slips(word, in: names)
        return Failure(
            message: "there is no command '\(word)'",
            hint: near.isEmpty
                ? "`blescan --help` lists the commands; without one, blescan scans."
                : "Did you mean \(NearNames.list(near))?",
            status: .usage)
    }

    /// Returns the command line for a word that is no command, but what one is about; `nil` for another word.
    private static func suggestion(meantBy word: String) -> String? {
        if isCapture(word) { return "blescan replay \(word.shellQuoted)" }
        if VirtualPeer(named: word) != nil { return "blescan explore demo:\(word)" }
        if let digits = word.dropped(prefix: "hci"), UInt16(digits) != nil { return "blescan scan --adapter \(word)" }
        if let peer = PeerDesignation.respelled(word) { return "blescan explore \(peer.shellQuoted)" }
        return nil
    }

    /// Returns whether a word is the name of a recording.
    static func isCapture(_ word: String) -> Bool {
        let endings = [".btsnoop", ".pcap", ".pcapng", ".pklg", ".dialogue", ".cfa", ".gz"]
        return endings.contains { word.lowercased().hasSuffix($0) }
    }

    /// The commands that other tools have under another name.
    private static let synonyms = [
        "connect": Explore._commandName, "info": Explore._commandName, "services": Explore._commandName,
        "discover": Explore._commandName, "subscribe": Notify._commandName, "poll": Watch._commandName,
        "list": Scan._commandName, "devices": Scan._commandName, "get": Read._commandName, "set": Write._commandName,
        "listen": Notify._commandName, "shell": Talk._commandName, "gatttool": Talk._commandName,
        "parse": Decode._commandName, "play": Replay._commandName, "status": Doctor._commandName,
        "check": Doctor._commandName, "peripheral": Serve._commandName, "beacon": Advertise._commandName,
        "version": "--version",
        "monitor": Scan._commandName, "unpair": Forget._commandName, "remove": Forget._commandName,
        "bond": Pair._commandName, "server": Serve._commandName,
    ]

    /// Returns the requested command, with no more privileges than it needs.
    private nonisolated static func parsed(_ words: [String]) throws -> any ParsableCommand {
        let command = try parseAsRoot(words)
        try (command as? any ConfinedCommand)?.giveUpRights()
        return command
    }

    /// Returns the word in the place of a command, also after `help`, if it is not a command. Otherwise it would be
    /// reported as a surplus argument of the default command, or not at all.
    private static func unknownCommand(_ words: ArraySlice<String>) -> String? {
        guard let word = words.first, !word.hasPrefix("-") else { return nil }
        if word == "help" { return unknownCommand(words.dropFirst()) }
        return configuration.subcommands.contains { $0._commandName == word } ? nil : word
    }

    /// Failures are not results, so they go to standard error, with `--json` as an object of one line.
    private static func end(_ failure: Failure, code: BLEError.Code? = nil, attError: ATTErrorCode? = nil) -> Never {
        if let status = Interrupt.status { Glibc.exit(status.rawValue) }
        Console.report(failure, code: code, attError: attError)
        Glibc.exit(failure.status.rawValue)
    }
}

extension Console {
    /// Returns the lines about a failure; with `--json` an object.
    static func lines(
        about failure: Failure, code: BLEError.Code? = nil, attError: ATTErrorCode? = nil
    ) -> [StyledText] {
        let message = failure.message.hasSuffix(".") ? String(failure.message.dropLast()) : failure.message
        guard isJSONWanted else {
            return [titled(message, .failure)] + (failure.hint.map { [hint($0)] } ?? [])
        }
        let object = JSONLine.object([
            "v": 1, "error": .string(message), "hint": failure.hint.map { .string($0) },
            "code": .string(code?.description ?? failure.code),
            "attError": attError.map { .integer(Int($0.rawValue)) },
            "status": .integer(Int(failure.status.rawValue)),
        ])
        return [StyledText(object.text)]
    }

    /// Reports a failure on standard error.
    fileprivate static func report(_ failure: Failure, code: BLEError.Code?, attError: ATTErrorCode?) {
        for line in lines(about: failure, code: code, attError: attError) { note(line) }
    }

    /// Reports the failure of one operation of several.
    static func report(_ error: any Error) {
        if let error = error as? BLEError {
            report(Failure(error), code: error.code, attError: error.attError)
        } else if let error = error as? FailureAfterOthers {
            report(Failure(error), code: error.last.code, attError: error.last.attError)
        } else if let failure = error as? Failure {
            report(failure, code: nil, attError: nil)
        }
    }
}

/// The last of several failures, which are all reported; the program ends with the status of the first.
struct FailureAfterOthers: Error {
    let last: BLEError
    let status: ExitStatus

    /// The same failures of a command that has ended, and its link with it.
    var ofEndedCommand: FailureAfterOthers {
        FailureAfterOthers(last: last.afterDisconnect.ofEndedCommand, status: status)
    }

    /// Reports all of these failures but the last one, and throws that with the status of the first. An interruption
    /// keeps its own status.
    static func end(with failures: [BLEError]) throws {
        for failure in failures.dropLast() { Console.report(failure) }
        guard let first = failures.first, let last = failures.last else { return }
        if failures.count == 1 || last.code == .cancelled { throw last }
        throw FailureAfterOthers(last: last, status: ExitStatus(first))
    }
}

extension Failure {
    /// Returns a message of the parser as those of this program are: its first alternative, not as a sentence, and with
    /// the values of an option after a colon.
    static func message(ofParser text: String) -> String {
        var text = text.split(separator: "\n").first.map(String.init) ?? text
        if let list = text.ranges(of: ". Please provide one of '").last {
            let (start, values) = (String(text[..<list.lowerBound]), String(text[list.upperBound...]))
            text = start + ": it takes " + values.filter { $0 != "'" }
        }
        let isSentence = text.first?.isUppercase == true && text.dropFirst().first?.isUppercase == false
        return isSentence ? text.prefix(1).lowercased() + text.dropFirst() : text
    }

    /// Returns whether an error concerns one operation, and others may follow.
    static func isOfOneOperation(_ error: any Error) -> Bool {
        if let error = error as? BLEError ?? (error as? FailureAfterOthers)?.last {
            return error.code != .disconnected && error.code != .cancelled
        }
        return error is Failure
    }

    /// Returns whether an error is the end of what was cancelled.
    static func isInterruption(_ error: any Error) -> Bool {
        error is CancellationError || (error as? BLEError ?? (error as? FailureAfterOthers)?.last)?.code == .cancelled
    }

    /// The last of several failures.
    fileprivate init(_ error: FailureAfterOthers) {
        self.init(error.last, status: error.status)
    }

    /// A failure of the library.
    init(_ error: BLEError, status: ExitStatus? = nil) {
        var message = "could not \(error.operation)"
        if let subject = error.subject { message += " (\(subject))" }
        message += ": \(error.reason)"
        if let codes = error.underlyingCodes { message += " \(codes)" }
        let hints = [error.hint, Self.advice(error.code)].compactMap(\.self)
        self.init(
            message: message, hint: hints.isEmpty ? nil : hints.joined(separator: " "),
            status: status ?? ExitStatus(error))
    }

    /// Returns the advice for failures of this machine.
    private static func advice(_ code: BLEError.Code) -> String? {
        switch code {
        case .unsupported, .noAdapter, .adapterDown, .blocked, .lowEnergyOff, .notPermitted, .pairingUnavailable:
            "`blescan doctor` shows more."
        default:
            nil
        }
    }
}
