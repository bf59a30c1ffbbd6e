import ArgumentParser
import BLECore
import BLELinux
import BareBLE

struct Forget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove the bond with a peer.",
        usage: """
            blescan forget <peer> [--adapter <hciN>] [--bonds <dir>]
            [--color <when>] [--json]
            """,
        discussion: """
            EXAMPLES
              sudo blescan forget AA:BB:CC:DD:EE:FF
              sudo blescan forget AA:BB:CC:DD:EE:FF --adapter hci1

            Name the peer as `blescan bonds` does. The key is removed from the disk,
            then from the kernel, and a link to the peer ends. The peer keeps its own
            record of the bond; remove it there too, or it may refuse to pair again.
            """)

    @Argument(
        help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public].", completion: Completions.bond,
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Only the bond of this adapter: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @OptionGroup var bonds: BondOptions

    @OptionGroup var color: ColorOptions

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line.")
    var json = false

    /// A bond that the arguments name.
    struct Target: Hashable, Sendable {
        let adapter: BluetoothAddress
        let identity: PeerID
    }

    func validate() throws {
        guard peer.isInTheAir || VirtualPeer(peer)?.isProtected == true else {
            throw ValidationError("There are no bonds with \(peer).")
        }
    }

    func run() async throws {
        let directory = try BondDirectory(bonds)
        let targets = try targets(in: directory)
        guard !targets.isEmpty else {
            let owner = adapter.map { "\($0.selector.description) has" } ?? "there is"
            throw Failure(
                message: "\(owner) no bond with \(peer) in \(directory.path)",
                hint: peer.isInTheAir
                    ? "A bond belongs to the address of one adapter: `blescan bonds` lists those of all."
                    : "A bond with a virtual device ends with the command that makes it.",
                status: .notFound)
        }
        for target in targets {
            try await Interrupt.cancelling { try await Self.forget(target, in: directory) }
            if json {
                Console.out(
                    JSONLine.object([
                        "v": 1, "peer": .string(target.identity.description),
                        "adapter": .string(target.adapter.description), "forgotten": true,
                    ]).text)
            } else {
                var line = StyledText("forgot", .title)
                line.add(" the bond with \(target.identity); remove it on the device too")
                Console.out(line.painted(color.look))
            }
        }
    }

    /// Returns the bonds that the arguments name.
    func targets(in directory: BondDirectory) throws -> [Target] {
        let selected: BluetoothAddress? =
            switch adapter?.selector {
            case .address(let address): address
            case .named(let name): try Central.adapters().first { $0.name == name }?.address ?? .zero
            case .first, nil: nil
            }
        return try directory.stored().filter { selected == nil || $0.adapter == selected }.flatMap {
            stored -> [Target] in
            let known = stored.records.map(\.identity)
            // Those that were moved aside are forgotten too.
            let lost = stored.lostPeers.subtracting(known).sorted { "\($0)" < "\($1)" }
            return (known + lost).filter { isMeant($0, of: stored.adapter) }
                .map { Target(adapter: stored.adapter, identity: $0) }
        }
    }

    private func isMeant(_ identity: PeerID, of adapter: BluetoothAddress) -> Bool {
        switch peer {
        case .address(let address, let type): identity.address == address && (type == nil || identity.type == type)
        // Earlier versions stored such a bond where --bonds was given. No other virtual device pairs.
        case .demo: adapter == VirtualPeer.adapter && identity == VirtualPeer.identity
        case .unix: false
        }
    }

    private static func forget(_ target: Target, in directory: BondDirectory) async throws {
        let store = try directory.store()
        guard (try? Central.adapters())?.contains(where: { $0.address == target.adapter }) == true else {
            // The kernel has no keys of an adapter that is not there.
            _ = try store.open(adapter: target.adapter).forget(target.identity)
            return
        }
        var configuration = Configuration()
        configuration.adapter = .address(target.adapter)
        configuration.security = SecurityConfiguration(bonds: store)
        let central = Central.ofCommand(configuration)
        try await central.run { try await forget(target, central) }
    }

    /// Forgets a bond of the central's adapter. If only the kernel refuses, that is a warning.
    ///
    /// - Throws: `BLEError` if the bond still exists.
    static func forget(
        _ target: Target, _ central: Central, warn: (String) -> Void = Console.warn
    ) async throws(BLEError) {
        guard let refusal = try await central.removeBond(with: target.identity) else { return }
        warn("the bond is forgotten, but the kernel may keep its key until keys are loaded again: \(refusal)")
    }
}
