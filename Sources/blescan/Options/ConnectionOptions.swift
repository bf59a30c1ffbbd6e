import ArgumentParser
import BLECore
import BareBLE

/// What every command that makes a connection understands.
struct ConnectionOptions: ParsableArguments {
    @Option(help: "Adapter to use: hci0, or its address.")
    var adapter: AdapterArgument?

    @Option(help: "How long connecting, and then each answer, may take: 10s, 500ms, 2m.")
    var timeout = DurationArgument(duration: .seconds(15), description: "15s")

    @Option(help: "Largest ATT packet to ask for, 23 to 517.")
    var mtu = 517

    @Flag(help: "Print every ATT packet to standard error.")
    var trace = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func validate() throws {
        guard (23...517).contains(mtu) else {
            throw ValidationError("--mtu \(mtu) is not possible: ATT packets have 23 to 517 bytes.")
        }
    }

    var configuration: Configuration {
        var configuration = Configuration()
        configuration.adapter = adapter?.selector ?? .first
        configuration.preferredMTU = mtu
        if trace { configuration.trace = { Trace.print($0) } }
        return configuration
    }

    var connectOptions: ConnectOptions {
        ConnectOptions(timeout: timeout.duration, mtu: mtu)
    }
}

/// An adapter as people write it.
struct AdapterArgument: Hashable, Sendable, ExpressibleByArgument {
    let selector: AdapterSelector

    init?(argument: String) {
        if let address = BluetoothAddress(argument) {
            selector = .address(address)
        } else if let number = argument.dropped(prefix: "hci"), UInt16(number) != nil {
            selector = .named(argument)
        } else {
            return nil
        }
    }
}
