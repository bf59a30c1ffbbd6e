import ArgumentParser
import BareBLE
import Glibc

/// What the program says to the shell. Scripts rely on these numbers.
enum ExitStatus: Int32 {
    case done = 0
    case notFound = 1
    case usage = 64
    case noAdapter = 69
    case linkLost = 74
    case timedOut = 75
    case refused = 76
    case notPermitted = 77
    case interrupted = 130

    /// The status that a failure of the library ends the program with.
    init(_ error: BLEError) {
        switch error.code {
        case .attributeNotFound:
            self = .notFound
        case .ambiguous, .invalidArgument, .tooLong:
            self = .usage
        case .noAdapter, .adapterDown, .blocked, .lowEnergyOff, .unsupported:
            self = .noAdapter
        case .notPermitted:
            self = .notPermitted
        case .disconnected, .valuesLost:
            self = .linkLost
        case .timedOut, .busy, .queueFull:
            self = .timedOut
        case .connectFailed:
            self = error.hciStatus == nil && error.errorNumber == ENOENT ? .noAdapter : .timedOut
        case .refusedByPeer, .insufficientSecurity, .malformedReply, .notSupported:
            self = .refused
        case .cancelled:
            self = .interrupted
        default:
            self = .noAdapter
        }
    }
}

/// A failure of the program itself: a message for people, and the status to end with.
struct Failure: Error {
    let message: String
    let status: ExitStatus
}

extension Blescan {
    /// Runs the command line; every way out passes here.
    static func main() async {
        // Writing to a closed pipe is then an error that can be handled, not a signal.
        signal(SIGPIPE, SIG_IGN)
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as BLEError {
            Console.note("blescan: \(error.description.printable)")
            Glibc.exit(ExitStatus(error).rawValue)
        } catch let error as Failure {
            Console.note("blescan: \(error.message.printable)")
            Glibc.exit(error.status.rawValue)
        } catch {
            exit(withError: error)
        }
    }
}
