import ArgumentParser
import BLECore
import BareBLE
import BareBLECrypto

/// The options of a link, for every command that connects.
struct ConnectionOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Largest ATT packet to request, 23 to 517. (default: 517)", valueName: "bytes"))
    var mtu: Int?

    @Option(
        help: ArgumentHelp(
            "Cache the peer's attributes in this file, valid while its Database Hash is unchanged; without a hash, only "
                + "explore uses it. read uses it for handles and services, and never writes it.",
            valueName: "file"), completion: .file())
    var cache: String?

    @Flag(help: "Pair with the peer first, if there is no bond with it.")
    var pair = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The passkey for --pair: the one that the peer shows, or that is printed on it.", valueName: "digits"),
        transform: PasskeyArgument.init(argument:))
    var passkey: PasskeyArgument?

    @Flag(
        name: .customLong("no-bond"),
        help: "Connect without encryption, also to a device that there is a bond with: another one may use its address."
    )
    var ignoresBonds = false

    @OptionGroup var link: LinkOptions

    func validate() throws {
        if let mtu, !(23...517).contains(mtu) {
            throw ValidationError("--mtu \(mtu) is not possible: ATT packets have 23 to 517 bytes.")
        }
        if cache == "" { throw ValidationError("--cache takes the name of a file.") }
        if ignoresBonds, pair { throw ValidationError("--no-bond and --pair exclude each other.") }
        if passkey != nil, !pair { throw ValidationError("--passkey is for pairing; add --pair.") }
    }

    var adapter: AdapterArgument? { link.adapter }

    /// The ATT MTU that is requested.
    var largestPacket: Int { mtu ?? 517 }

    var timeout: DurationArgument? { link.timeout }

    /// How `--pair` pairs; `nil` without it.
    var pairing: PairingRequest? {
        pair ? PairingRequest(passkey: passkey?.passkey, timeout: timeout?.duration) : nil
    }

    /// Returns the configuration of a central; `traces` prints the packets of its links.
    func configuration(traces: Bool) -> Configuration {
        var configuration = Configuration()
        configuration.adapter = adapter?.selector ?? .first
        configuration.preferredMTU = largestPacket
        configuration.databaseHash = { $0.hash }
        if traces {
            let trace = Trace()
            configuration.trace = { trace.print($0) }
        }
        return configuration
    }

    func connectOptions(cache: GATTCache?, validation: GATTCache.Validation) -> ConnectOptions {
        // A command is too short for changes of the services to matter.
        ConnectOptions(
            timeout: timeout?.duration ?? Self.usualTimeout, mtu: largestPacket, cache: cache, validation: validation,
            observesServiceChanges: false)
    }

    private static let usualTimeout: Duration = .seconds(15)

    /// The longest time for one value.
    var valueTimeout: Duration { timeout?.duration ?? Self.usualTimeout }
}

/// The options of every command that performs operations on a link, and prints their results.
struct OperationOptions: ParsableArguments {
    @OptionGroup var connection: ConnectionOptions

    @OptionGroup var output: OutputOptions

    var largestPacket: Int { connection.largestPacket }
    var pair: Bool { connection.pair }
    var timeout: DurationArgument? { connection.timeout }
    var valueTimeout: Duration { connection.valueTimeout }
    var json: Bool { output.json }
}

/// An adapter on the command line.
struct AdapterArgument: Hashable, Sendable {
    let selector: AdapterSelector

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if let address = BluetoothAddress(argument) {
            selector = .address(address)
        } else if let number = argument.dropped(prefix: "hci"), UInt16(number) != nil {
            selector = .named(argument)
        } else {
            throw BadValue(description: "write hci0, or its address; `blescan doctor` lists the adapters.")
        }
    }
}
