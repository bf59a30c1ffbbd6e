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
        case .noAdapter, .adapterDown, .blocked, .lowEnergyOff, .unsupported:
            self = .noAdapter
        case .notPermitted:
            self = .notPermitted
        case .disconnected, .valuesLost:
            self = .linkLost
        case .timedOut, .busy, .adapterShared, .queueFull:
            self = .timedOut
        case .connectFailed:
            // A Unix socket that does not exist, is not a socket, or not one for packets; the radio does not use these
            // numbers.
            self = [ENOENT, ENOTSOCK, EPROTOTYPE].contains(error.errorNumber) ? .noAdapter : .timedOut
        case .refusedByPeer where error.attError == .invalidHandle:
            self = .notFound
        case .refusedByPeer, .insufficientSecurity, .malformedReply, .malformedValue, .notSupported, .servicesChanged,
            .notBonded, .bondRejected, .pairingFailed, .pairingRefused, .keyTooShort:
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

/// A failure of the program itself: a message for users, and the exit status.
struct Failure: Error {
    let message: String
    let status: ExitStatus
}

extension Blescan {
    /// Runs the command line; every exit passes here.
    static func main() async {
        // Writing to a closed pipe is then an error that can be handled, not a signal.
        signal(SIGPIPE, SIG_IGN)
        // So is writing more than `ulimit -f` allows.
        signal(SIGXFSZ, SIG_IGN)
        Console.fillStandardDescriptors()
        if let word = unknownCommand(CommandLine.arguments.dropFirst()) {
            let names = configuration.subcommands.map { $0._commandName }.joined(separator: ", ")
            end("there is no command '\(word)'. The commands are \(names); without one, blescan scans.", .usage)
        }
        do {
            var command = try parsed()
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
            end("interrupted", .interrupted)
        } catch is CancellationError {
            end("interrupted", .interrupted)
        } catch let error as BLEError {
            end(error.description + advice(error.code), ExitStatus(error), code: error.code, attError: error.attError)
        } catch let error as Failure {
            end(error.message, error.status)
        } catch {
            let code = exitCode(for: error)
            if code == .success {
                // Help and the version are results.
                Console.out(HelpScreen.text(for: error))
                Glibc.exit(code.rawValue)
            }
            Console.progress.end()
            // The defect of the arguments stands above their usage.
            if Console.isJSONWanted, code == .validationFailure { end(message(for: error), .usage) }
            // The parser repeats arguments as they are, and a script may have passed on a device's name.
            let text = fullMessage(for: error)
            guard !text.isEmpty else { Glibc.exit(code.rawValue) }
            Console.note(
                text.split(separator: "\n", omittingEmptySubsequences: false).map(\.printable).joined(separator: "\n"))
            Glibc.exit(code.rawValue)
        }
    }

    /// Returns the requested command, with no more privileges than it needs.
    private nonisolated static func parsed() throws -> any ParsableCommand {
        let command = try parseAsRoot()
        try (command as? any ConfinedCommand)?.giveUpRights()
        return command
    }

    /// Returns the advice for failures of this machine.
    private static func advice(_ code: BLEError.Code) -> String {
        switch code {
        case .unsupported, .noAdapter, .adapterDown, .blocked, .lowEnergyOff, .notPermitted:
            " `blescan doctor` finds out more."
        default:
            ""
        }
    }

    /// Returns the word in the place of a command, also after `help`, if it is not a command. Otherwise it would be
    /// reported as a surplus argument of the default command, or not at all.
    private static func unknownCommand(_ words: ArraySlice<String>) -> String? {
        guard let word = words.first, !word.hasPrefix("-") else { return nil }
        if word == "help" { return unknownCommand(words.dropFirst()) }
        return configuration.subcommands.contains { $0._commandName == word } ? nil : word
    }

    /// Failures are not results, so they go to standard error, with `--json` as an object of one line.
    private static func end(
        _ message: String, _ status: ExitStatus, code: BLEError.Code? = nil, attError: ATTErrorCode? = nil
    ) -> Never {
        if let status = Interrupt.status { Glibc.exit(status.rawValue) }
        if Console.isJSONWanted {
            Console.note(
                JSONLine.object([
                    "v": 1, "error": .string(message), "code": code.map { .string($0.description) },
                    "attError": attError.map { .integer(Int($0.rawValue)) }, "status": .integer(Int(status.rawValue)),
                ]).text)
        } else {
            Console.note("blescan: \(message.printable)")
        }
        Glibc.exit(status.rawValue)
    }
}
