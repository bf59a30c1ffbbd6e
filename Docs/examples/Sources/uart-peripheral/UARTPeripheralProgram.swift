import BareBLE
import Glibc
import SystemService
import UARTServing

/// `uart-peripheral LINK`: a serial port at LINK for centrals that open an LE channel.
@main
enum UARTPeripheralProgram {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 1, let link = arguments.first else { Daemon.refuse("uart-peripheral LINK") }
        await Daemon.serve("uart-peripheral") { central in
            let peripheral = LocalPeripheral(.init(name: "UART"), on: central)
            try await central.ready(powerOn: true)
            let port = try await UARTPeripheral(peripheral, linkedAt: link) { line in
                print(line)
                fflush(nil)
            }
            let advertising = try await peripheral.advertise(UARTPeripheral.advertisement)
            return (peripheral, OnAir(advertising, port))
        }
    }
}
