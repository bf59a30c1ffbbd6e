import BareBLE
import Glibc
import SystemService
import WeightLogging

/// `weight-logger BONDS ADDRESS[/random]`: the weights that a scale measures on standard output, one line each.
///
/// BONDS is a directory, which is created. Put the scale into its pairing mode for the first run.
@main
enum WeightLoggerProgram {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count == 2, case .address(let scale)? = PeerArgument(arguments[1]) else {
            Daemon.refuse("weight-logger BONDS ADDRESS[/random]")
        }
        await Daemon.run("weight-logger", bonds: arguments[0]) { central in
            try await central.ready(powerOn: true)
            let session = try await central.session(with: scale, onReady: WeightLogger.bond)
            let logger = WeightLogger(session) { line in
                print(line)
                fflush(nil)
            }
            return (session, logger)
        }
    }
}
