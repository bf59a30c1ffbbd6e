import AdvertisementLogging
import BareBLE
import Glibc
import SystemService

/// `advertisement-logger [none|rescan|power|usb]`: what is heard on standard output, one line each.
///
/// The argument says what may be done when the adapter has stopped reporting: see `RecoveryPolicy`.
@main
enum AdvertisementLoggerProgram {
    static func main() async {
        let policies: [String: RecoveryPolicy] = ["none": .none, "rescan": .rescan, "power": .power, "usb": .usb]
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count <= 1, let recovery = policies[arguments.first ?? "rescan"] else {
            Daemon.refuse("advertisement-logger [none|rescan|power|usb]")
        }
        await Daemon.listen("advertisement-logger", recovery: recovery) { central in
            try await central.ready(powerOn: true)
            return AdvertisementLogger(central) { line in
                print(line)
                fflush(nil)
            }
        }
    }
}
