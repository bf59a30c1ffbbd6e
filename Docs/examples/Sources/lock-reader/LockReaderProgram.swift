import BareBLE
import BareBLECrypto
import Glibc
import LockReading

/// `lock-reader BONDS ADDRESS[/random] UUID`: prints a protected value of a lock, in hexadecimal.
///
/// BONDS is a directory, which is created. The first run asks for the passkey, the others ask for nothing.
@main
enum LockReaderProgram {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count == 3, let lock = PeerID(arguments[1]) ?? PeerID(arguments[1] + "/public"),
            let state = BluetoothUUID(arguments[2])
        else {
            print("usage: lock-reader BONDS ADDRESS[/random] UUID")
            exit(64)
        }
        do {
            var configuration = Configuration()
            configuration.security = SecurityConfiguration(bonds: try BondStore(directory: arguments[0]))
            // A lock with private addresses is recognized by its bond.
            configuration.addressHash = { $0.hash }
            let central = Central(configuration)
            try await central.ready(powerOn: true)
            print(Hex.encode(try await readLock(lock, .uuid(state), of: central)))
        } catch {
            print(error)
            exit(1)
        }
    }
}
