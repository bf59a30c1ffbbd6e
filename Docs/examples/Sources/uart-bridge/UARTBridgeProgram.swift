import Glibc
import SystemService
import UARTBridging

/// `uart-bridge LINK PEER`: a serial port at LINK that is a Nordic UART peripheral.
@main
enum UARTBridgeProgram {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 2, let link = arguments.first, let peer = arguments.last.flatMap(PeerArgument.init)
        else {
            Daemon.refuse("uart-bridge LINK ADDRESS[/random] | unix:PATH")
        }
        await Daemon.run("uart-bridge") { central in
            let session = try await peer.session(of: central)
            let bridge = UARTBridge(session, linkedAt: link) { line in
                print(line)
                fflush(nil)
            }
            return (session, bridge)
        }
    }
}
