import ArgumentParser
import BLECore
import BareBLE

struct Explore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a peer offers: services, characteristics, descriptors and values.",
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
        let (peer, readsValues, timeout) = (peer, !withoutValues, options.timeout.duration)
        let clock = ContinuousClock()
        let started = clock.now
        let tree = try await Session.run(with: peer, options) { peripheral in
            let connected = clock.now
            let before = await peripheral.statistics.requestsSent
            let database = try await peripheral.discover(.full)
            let discovered = clock.now
            let requests = await peripheral.statistics.requestsSent - before
            var values: [AttributeHandle: AttributeTree.Reading] = [:]
            if readsValues {
                for handle in AttributeTree.readable(in: database) {
                    do throws(BLEError) {
                        values[handle] = .value(try await peripheral.read(.handle(handle), timeout: timeout))
                    } catch {
                        guard error.attError != nil || error.code == .timedOut else { throw error }
                        values[handle] = .refused(error)
                    }
                }
            }
            return AttributeTree(
                peer: peer.description, mtu: await peripheral.mtu, connecting: connected - started,
                discovering: discovered - connected, discoveryRequests: requests,
                allRequests: await peripheral.statistics.requestsSent, database: database, values: values)
        }
        if options.json {
            Console.out(tree.json.text)
        } else {
            for line in tree.lines { Console.out(line) }
        }
    }
}
