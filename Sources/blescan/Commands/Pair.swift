import ArgumentParser
import BLECore
import BLELinux
import BareBLE

struct Pair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pair with a peer and keep the bond.",
        usage: "blescan pair <peer> [--passkey <digits>] [--require <what>] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan pair AA:BB:CC:DD:EE:FF
              sudo blescan pair AA:BB:CC:DD:EE:FF --passkey 123456
              sudo blescan pair AA:BB:CC:DD:EE:FF --require authenticated --json
              blescan pair demo:lock --passkey 123456

            In a terminal it shows a passkey, or asks for the one that the peer shows,
            or whether both show the same number; what is asked depends on the peer.
            In a script, give the passkey with --passkey.

            The bond is on the disk when the command ends. From then on each command
            encrypts its link to this peer before the first byte; a peer that has lost
            the bond is reported, and never paired again by itself. A peer with a bond
            is not paired again: forget the bond first. A bond with a virtual device
            ends with the command.

            Pairing needs CAP_NET_ADMIN, and switches the adapter off and on once,
            which ends its links. bluetoothd must not use the same adapter. The commands
            that use the bond later need CAP_NET_RAW alone.
            """)

    @Argument(
        help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public] or demo:NAME.",
        completion: Completions.knownPeer,
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The passkey that the peer shows, or that is printed on it; nothing is asked then.", valueName: "digits"),
        transform: PasskeyArgument.init(argument:))
    var passkey: PasskeyArgument?

    @Option(
        help: ArgumentHelp(
            "What the pairing must achieve, or it fails: encrypted, legacy-passkey (a passkey, even if listeners can "
                + "find it out), or authenticated (LE Secure Connections with a passkey or number). (default: "
                + "encrypted)",
            valueName: "what"))
    var require: Requirement?

    @Option(help: ArgumentHelp("A name for the bond, shown in the list of bonds.", valueName: "text"))
    var name: String?

    @OptionGroup var link: LinkOptions

    @OptionGroup var color: ColorOptions

    @OptionGroup var output: OutputOptions

    /// What a pairing must achieve.
    enum Requirement: String, ExpressibleByArgument, CaseIterable, Sendable {
        case encrypted
        case legacyPasskey = "legacy-passkey"
        case authenticated

        var security: PairingOptions.RequiredSecurity {
            switch self {
            case .encrypted: .encrypted
            case .legacyPasskey: .legacyPasskey
            case .authenticated: .authenticated
            }
        }
    }

    func validate() throws {
        if name?.isEmpty == true { throw ValidationError("--name takes a text.") }
    }

    func run() async throws {
        var options = try OperationOptions.parse([])
        options.connection.link = link
        options.output = output
        let request = PairingRequest(
            passkey: passkey?.passkey, require: require?.security ?? .encrypted, name: name,
            timeout: link.timeout?.duration)
        let (bond, isNew) = try await Connection.pair(with: peer, options, request)
        if output.json {
            Console.out(bond.json(isNew: isNew, as: peer).text)
        } else {
            Console.out(bond.result(isNew: isNew, as: peer).painted(color.look))
            if case .demo = peer { Console.note("the bond with \(peer), a virtual device, ends with this command") }
        }
    }
}
