import BareBLE
import Glibc
import Provisioning
import SystemService

/// `wifi-provisioning BONDS MINUTES PROGRAM`: takes the credentials of a wireless network over Bluetooth, for this
/// long, and has PROGRAM apply them.
///
/// PROGRAM gets the name of the network and the passphrase in two lines on its standard input, and ends with status 0
/// if the machine has a network then. BONDS is a directory, which is created.
@main
enum WiFiProvisioningProgram {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 3, let minutes = Int(arguments[1]), (1...1_440).contains(minutes),
            let place = ServingPlace(arguments.dropFirst(3))
        else {
            Daemon.refuse("wifi-provisioning BONDS MINUTES PROGRAM [unix:PATH]")
        }
        await Daemon.serve("wifi-provisioning", bonds: arguments[0]) { central in
            let peripheral = LocalPeripheral(.init(name: "Set up"), on: central)
            let hook = Hook(arguments[2], clock: central.clock)
            let provisioning = try await WiFiProvisioning(
                peripheral, for: .seconds(60 * minutes), clock: central.clock
            ) { credentials in
                try await hook.run([credentials.name, credentials.passphrase]) == 0
            } report: { line in
                print(line)
                fflush(nil)
            }
            // Credentials need an encrypted link, and nothing shows a passkey: every central may pair.
            let advertising = try await place.open(
                peripheral, of: central, WiFiProvisioning.advertisement, pairing: .justWorks)
            return (peripheral, OnAir(advertising, provisioning))
        }
    }
}
