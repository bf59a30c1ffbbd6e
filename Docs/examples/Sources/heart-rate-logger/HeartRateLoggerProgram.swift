import Glibc
import HeartRateLogging
import SystemService

/// `heart-rate-logger PEER`: the measurements of one belt on standard output, a line each, for as long as it runs.
@main
enum HeartRateLoggerProgram {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 1, let peer = arguments.first.flatMap(PeerArgument.init) else {
            Daemon.refuse("heart-rate-logger ADDRESS[/random] | unix:PATH")
        }
        let write: @Sendable (String) -> Void = { line in
            print(line)
            // Whoever reads a pipe or a file wants the line now.
            fflush(nil)
        }
        await Daemon.run("heart-rate-logger") { central in
            let session = try await peer.session(of: central, onReady: HeartRateLogger.handshake(write))
            return (session, HeartRateLogger(session, write: write))
        }
    }
}
