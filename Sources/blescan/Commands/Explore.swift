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

    @Argument(
        help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.",
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument

    @Flag(name: .customLong("no-read"), help: "List the attributes without reading their values.")
    var withoutValues = false

    @OptionGroup var options: ConnectionOptions

    func run() async throws {
        let (peer, options) = (peer, options)
        let clock = ContinuousClock()
        let started = clock.now
        let tree = try await Connection.run(with: peer, options, cache: .kept(.whenPossible)) { [self] peripheral in
            let connected = clock.now
            // Checking a cache is part of connecting, and the MTU exchange does not count.
            let before = await peripheral.statistics.requestsSent
            let isFromCache = await peripheral.database != nil
            var found = try await explore(peripheral, believing: isFromCache)
            if found.isOutdated {
                Console.warn("the peer has changed since the cache was saved; exploring it again")
                found = try await explore(peripheral, believing: false)
            }
            return AttributeTree(
                peer: peer.description, kind: peripheral.id?.kind, mtu: await peripheral.mtu,
                connecting: connected - started,
                discovering: found.discovered - connected,
                isFromCache: isFromCache && found.requestsBefore == before, isUnchecked: found.isUnchecked,
                discoveryRequests: found.requestsBefore - (options.mtu > 23 ? 1 : 0),
                allRequests: await peripheral.statistics.requestsSent, database: found.database, values: found.values,
                interruption: found.interruption?.advised(peer), pairingAdvice: peer.pairingAdvice)
        }
        if options.json {
            Console.out(tree.json.text)
        } else {
            for line in AttributeScreen(tree, width: Console.width).lines { Console.out(line) }
        }
        if let interruption = tree.interruption { throw interruption }
    }

    /// The result of exploring the peer once.
    private struct Findings {
        let database: GATTDatabase
        let discovered: ContinuousClock.Instant
        /// Whether the peer has no hash to validate the cache with.
        let isUnchecked: Bool
        /// The number of requests before the first value was read.
        let requestsBefore: Int
        var values: [AttributeHandle: AttributeTree.Reading] = [:]
        /// Whether the cache turned out to be wrong.
        var isOutdated = false
        /// The lost link that ended the walk.
        var interruption: BLEError?
    }

    /// Discovers the attributes, and reads them.
    private func explore(_ peripheral: Peripheral, believing isFromCache: Bool) async throws -> Findings {
        Console.progress.step(nil)
        let database = try await peripheral.discover(level: .full, timeout: options.timeout?.duration)
        let discovered = ContinuousClock().now
        let requests = await peripheral.statistics.requestsSent
        let isUnchecked = isFromCache ? try await peripheral.cache()?.databaseHash == nil : false
        var found = Findings(
            database: database, discovered: discovered, isUnchecked: isUnchecked, requestsBefore: requests)
        let readable = withoutValues ? [] : AttributeTree.readable(in: database)
        for (index, handle) in readable.enumerated() {
            Console.progress.step("value \(index + 1) of \(readable.count)")
            do throws(BLEError) {
                found.values[handle] = .value(try await peripheral.read(.handle(handle), timeout: options.valueTimeout))
            } catch {
                if error.code == .servicesChanged, isFromCache {
                    found.isOutdated = true
                    return found
                }
                if error.code == .disconnected {
                    found.interruption = error
                    return found
                }
                // A refusal is a result.
                guard error.attError != nil || error.code == .timedOut else { throw error }
                found.values[handle] = .refused(error)
            }
        }
        // If the wrong handles are equal by now, no read has failed.
        found.isOutdated = isFromCache ? await peripheral.database != database : false
        return found
    }
}
