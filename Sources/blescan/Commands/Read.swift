import ArgumentParser
import BLECore
import BareBLE

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read one value, however long.",
        usage: "blescan read <peer> <attribute> [--hex-only] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan read AA:BB:CC:DD:EE:FF battery-level
              sudo blescan read AA:BB:CC:DD:EE:FF 0x0022 --json
              blescan read demo:heart-rate 2a19
            """)

    @Argument(help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.")
    var peer: PeerArgument

    @Argument(
        help: "What to read: a UUID, a name such as battery-level, or a handle such as 0x0022.",
        transform: AttributeArgument.init(argument:))
    var attribute: AttributeArgument

    @Flag(help: "Print the bytes only.")
    var hexOnly = false

    @OptionGroup var options: ConnectionOptions

    func run() async throws {
        let (attribute, timeout) = (attribute, options.valueTimeout)
        let found = try await Connection.run(with: peer, options, cache: attribute.isHandle ? .consulted : .unneeded) {
            peripheral in
            try await peripheral.readAttribute(attribute.reference, timeout: timeout)
        }
        let meaning = ValueDescription.of(found.value, uuid: found.uuid)
        if options.json {
            Console.out(
                JSONLine.object([
                    "v": 1, "peer": .string(peer.description), "handle": .integer(Int(found.handle)),
                    "uuid": found.uuid.map { .string($0.description) }, "hex": .string(Hex.encode(found.value)),
                    "value": meaning?.json,
                ]).text)
        } else {
            let line = hexOnly ? nil : meaning?.line
            Console.out([Hex.encode(found.value), line].compactMap(\.self).joined(separator: "  "))
        }
    }
}
