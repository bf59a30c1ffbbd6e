import BareBLE
import Glibc
import HeartRateLogging
import SystemService

/// `heart-rate-logger [--state FILE] [PEER]`: the measurements of one belt on standard output, one line each, for as
/// long as it runs.
///
/// With a state it continues with the belt and the subscription of the last run, however that ended; the belt is given
/// for the first run only.
@main
enum HeartRateLoggerProgram {
    static func main() async {
        let usage = "heart-rate-logger ADDRESS[/random] | unix:PATH | --state FILE [ADDRESS[/random]]"
        var arguments = Array(CommandLine.arguments.dropFirst())
        var store: StateStore?
        if arguments.first == "--state" {
            guard arguments.count > 1 else { Daemon.refuse(usage) }
            store = StateStore(file: arguments[1])
            arguments.removeFirst(2)
        }
        let peer = arguments.first.flatMap(PeerArgument.init)
        guard arguments.count <= 1, arguments.isEmpty ? store != nil : peer != nil else { Daemon.refuse(usage) }
        let write: @Sendable (String) -> Void = { line in
            print(line)
            // A program that reads a pipe or a file needs the line now.
            fflush(nil)
        }
        let state = store
        await Daemon.run("heart-rate-logger", keeping: state) { central in
            switch (state, peer) {
            case (_?, .address(let belt)?):
                return try await restored(by: central, with: belt, write)
            case (_, nil):
                return try await restored(by: central, with: nil, write)
            case (nil, let peer?):
                let session = try await peer.session(of: central, onReady: HeartRateLogger.handshake(write))
                return (session, HeartRateLogger(session, write: write))
            case (_?, .socket):
                Daemon.refuse(usage)
            }
        }
    }

    private static func restored(
        by central: Central, with peer: PeerID?, _ write: @escaping @Sendable (String) -> Void
    ) async throws -> (Session, HeartRateLogger) {
        try await central.ready(powerOn: true)
        let (session, logger) = try await HeartRateLogger.restored(by: central, with: peer, write: write)
        return (session, logger)
    }
}
