import ArgumentParser
import BLECore
import BareBLE

struct Explore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a peer offers: services, characteristics, descriptors and values.",
        usage: "blescan explore <peer> [--service <uuid>] [--flat] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan explore AA:BB:CC:DD:EE:FF
              sudo blescan explore AA:BB:CC:DD:EE:FF --no-read --json
              blescan explore demo:heart-rate --service battery
              blescan explore demo:heart-rate --flat | grep notify

            On a narrow terminal the properties are letters: R read, W write, w write
            without response, N notify, I indicate, B broadcast, S signed write,
            X extended.
            """)

    @OptionGroup var target: PeerOptions

    @Flag(name: .customLong("no-read"), help: "List the attributes without reading their values.")
    var withoutValues = false

    @Option(
        help: ArgumentHelp(
            "Show only this service: a UUID or a name. May be given several times.", valueName: "uuid"),
        completion: Completions.service,
        transform: ServiceArgument.init(argument:))
    var service: [ServiceArgument] = []

    @Flag(help: "Print one line for each attribute, with its service, for grep.")
    var flat = false

    @OptionGroup var color: ColorOptions

    @OptionGroup var options: OperationOptions

    var peer: PeerDesignation { target.peer }

    func validate() throws {
        if flat, options.json { throw ValidationError("--flat and --json exclude each other.") }
    }

    func run() async throws {
        let options = options
        let peer = try await Connection.find(target.peer, options.connection)
        let clock = ContinuousClock()
        let started = clock.now
        let tree = try await Connection.run(with: peer, options, cache: .kept(.whenPossible)) { [self] peripheral in
            let connected = clock.now
            // Checking a cache is part of connecting, and the MTU exchange does not count.
            let before = await peripheral.statistics.requestsSent
            let isFromCache = await peripheral.database != nil
            var found = try await explore(peripheral, of: peer, believing: isFromCache)
            if found.isOutdated {
                Console.warn("the peer has changed since the cache was saved; exploring it again")
                found = try await explore(peripheral, of: peer, believing: false)
            }
            return AttributeTree(
                peer: peer.description, kind: peripheral.id?.kind, mtu: await peripheral.mtu,
                connecting: connected - started,
                discovering: found.discovered - connected,
                isFromCache: isFromCache && found.requestsBefore == before, isUnchecked: found.isUnchecked,
                discoveryRequests: found.requestsBefore - (options.largestPacket > 23 ? 1 : 0),
                allRequests: await peripheral.statistics.requestsSent, database: found.database,
                services: try services(of: found.database, of: peer), values: found.values,
                interruption: found.interruption?.advised(peer), pairingAdvice: peer.pairingAdvice)
        }
        if options.json {
            Console.out(tree.json.text)
        } else if flat {
            for line in AttributeLines.lines(of: tree) { Console.out(line) }
        } else {
            let screen = AttributeScreen(tree, width: Console.width, spelled: Console.spelled)
            for line in screen.styled { Console.out(line.painted(color.look)) }
        }
        if let interruption = tree.interruption { throw interruption }
    }

    /// Returns the services to show.
    private func services(of database: GATTDatabase, of peer: PeerArgument) throws(Failure) -> [GATTService] {
        guard !service.isEmpty else { return database.services }
        let found = database.services.filter { found in service.contains { $0.uuid == found.uuid } }
        guard found.isEmpty else { return found }
        let names = service.map(\.uuid.description).joined(separator: ", ")
        throw Failure(
            message: "\(peer) has no service \(names)",
            hint: "Leave out --service for the services that it has.", status: .notFound)
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
    private func explore(
        _ peripheral: Peripheral, of peer: PeerArgument, believing isFromCache: Bool
    ) async throws -> Findings {
        Console.progress.step(nil)
        let database = try await peripheral.discover(level: .full, timeout: options.timeout?.duration)
        let discovered = ContinuousClock().now
        let requests = await peripheral.statistics.requestsSent
        let isUnchecked = isFromCache ? try await peripheral.cache()?.databaseHash == nil : false
        var found = Findings(
            database: database, discovered: discovered, isUnchecked: isUnchecked, requestsBefore: requests)
        let readable =
            withoutValues ? [] : AttributeTree.readable(in: database, of: try services(of: database, of: peer))
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
                // Such a failure is a result.
                guard error.isOfOneAttribute else { throw error }
                found.values[handle] = .refused(error.named(as: peer))
            }
        }
        // If the wrong handles are equal by now, no read has failed.
        found.isOutdated = isFromCache ? await peripheral.database != database : false
        return found
    }
}
