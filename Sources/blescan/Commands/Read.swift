import ArgumentParser
import BLECore
import BLEProfiles
import BareBLE

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read values, however long.",
        usage: "blescan read <peer> <attribute> ... [--hex-only] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan read AA:BB:CC:DD:EE:FF battery-level
              sudo blescan read AA:BB:CC:DD:EE:FF 0x0022 --json
              blescan read demo:heart-rate 2a19
              blescan read demo:heart-rate device-name battery-level

            Where several attributes are named, each line says which one its value is.
            The first one that cannot be read ends the command; those before it are
            printed.
            """)

    @Argument(
        help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.",
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument

    @Argument(
        help: "What to read: UUIDs, names such as battery-level, or handles such as 0x0022.",
        transform: AttributeArgument.init(argument:))
    var attribute: [AttributeArgument]

    @Flag(help: "Print the bytes only.")
    var hexOnly = false

    @OptionGroup var options: ConnectionOptions

    private typealias Reading = (handle: AttributeHandle, uuid: BluetoothUUID?, value: [UInt8])

    /// The values that were read, and the failure that ended the reading.
    private struct Findings {
        var readings: [Reading] = []
        var failure: BLEError?
    }

    func run() async throws {
        let (attributes, timeout, showsBytesOnly) = (attribute, options.valueTimeout, hexOnly && !options.json)
        let use: Connection.CacheUse = attribute.contains(where: \.isHandle) ? .consulted : .unneeded
        let found = try await Connection.run(with: peer, options, cache: use) { (peripheral) -> Findings in
            var found = Findings()
            for attribute in attributes {
                do throws(BLEError) {
                    var reading = try await peripheral.readAttribute(attribute.reference, timeout: timeout)
                    if reading.uuid == nil, !showsBytesOnly {
                        // Without its type a value has no meaning; a peer that does not tell is no failure.
                        reading.uuid = try? await peripheral.attributeType(at: reading.handle, timeout: timeout)
                    }
                    found.readings.append(reading)
                } catch {
                    found.failure = await attribute.advised(error, peripheral)
                    return found
                }
            }
            return found
        }
        show(found.readings)
        if let failure = found.failure { throw failure.advised(peer, isBonded: options.pair) }
    }

    private func show(_ found: [Reading]) {
        let output = OperationOutput(peer: peer.description, isJSON: options.json)
        let labels = AttributeLabels(found.map { ($0.handle, $0.uuid) }, isAlone: attribute.count == 1)
        for reading in found {
            let uuid = labels.uuids[reading.handle]
            if hexOnly, !options.json {
                Console.out(Hex.encode(reading.value))
            } else {
                Console.out(
                    output.line(
                        ofReading: reading.value, at: reading.handle, uuid, label: labels.text(of: reading.handle)))
            }
        }
    }
}
