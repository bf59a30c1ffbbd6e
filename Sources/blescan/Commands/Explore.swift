import ArgumentParser
import BLECore
import BareBLE

struct Explore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a peer offers: services, characteristics, descriptors and values.",
        usage: "blescan explore <peer> [--no-read] [--cache <file>] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan explore AA:BB:CC:DD:EE:FF
              sudo blescan explore AA:BB:CC:DD:EE:FF --no-read --json
              blescan explore demo:heart-rate
            """)

    @Argument(help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.")
    var peer: PeerArgument

    @Flag(name: .customLong("no-read"), help: "List the attributes without reading their values.")
    var withoutValues = false

    @OptionGroup var options: ConnectionOptions

    func run() async throws {
        let (peer, readsValues, options) = (peer, !withoutValues, options)
        let clock = ContinuousClock()
        let started = clock.now
        let tree = try await Session.run(with: peer, options, validation: .whenPossible) { peripheral in
            let connected = clock.now
            // The check of a cache is a part of connecting, and the exchange of the MTU is none of it.
            let before = await peripheral.statistics.requestsSent
            let isFromCache = await peripheral.database != nil
            let exchange = options.mtu > 23 ? 1 : 0
            let database = try await peripheral.discover(.full, timeout: options.timeout?.duration)
            let discovered = clock.now
            let requests = await peripheral.statistics.requestsSent - exchange
            let isUnchecked = isFromCache ? try await peripheral.cache()?.databaseHash == nil : false
            let isDiscovered = await peripheral.statistics.requestsSent > before
            let handles = readsValues ? AttributeTree.readable(in: database) : []
            let (values, interruption) = try await Self.read(handles, of: peripheral, timeout: options.valueTimeout)
            return AttributeTree(
                peer: peer.description, mtu: await peripheral.mtu, connecting: connected - started,
                discovering: discovered - connected, isFromCache: isFromCache && !isDiscovered,
                isUnchecked: isUnchecked, discoveryRequests: requests,
                allRequests: await peripheral.statistics.requestsSent, database: database, values: values,
                interruption: interruption)
        }
        if options.json {
            Console.out(tree.json.text)
        } else {
            for line in AttributeScreen(tree, width: Console.width).lines { Console.out(line) }
        }
        if let interruption = tree.interruption { throw interruption }
    }

    /// Reads one value after the other. A refusal is a result; a lost link ends it, and keeps what was read before.
    private static func read(
        _ handles: [AttributeHandle], of peripheral: Peripheral, timeout: Duration
    ) async throws(BLEError) -> ([AttributeHandle: AttributeTree.Reading], BLEError?) {
        var values: [AttributeHandle: AttributeTree.Reading] = [:]
        for handle in handles {
            do {
                values[handle] = .value(try await peripheral.read(.handle(handle), timeout: timeout))
            } catch  where error.code == .disconnected {
                return (values, error)
            } catch  where error.attError != nil || error.code == .timedOut {
                values[handle] = .refused(error)
            }
        }
        return (values, nil)
    }
}
