import ArgumentParser
import BLECore
import BLEProfiles
import BareBLE

struct Notify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print values as the peer sends them.",
        usage: """
            blescan notify <peer> <attribute> ... [--after <attribute>=<bytes>]
            [--count <n>] [--hex-only|--format csv|--json] [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan notify AA:BB:CC:DD:EE:FF 2a37
              sudo blescan notify AA:BB:CC:DD:EE:FF 0x0012 --count 3 --json
              sudo blescan notify AA:BB:CC:DD:EE:FF 2a37 battery-level
              blescan notify demo:heart-rate heart-rate-measurement --for 5s
              blescan notify demo:heart-rate heart-rate-measurement --plot
              blescan notify demo:heart-rate 2a37 -n 9 --format csv > pulse.csv
              blescan notify demo:uart nordic-uart-tx --mtu 23 -n 2 \\
                  --after 0x0008=0102030405060708090a0b0c0d0e0f101112131415

            Where several attributes are named, each line names the one that its value
            is of. One that cannot be subscribed to ends the command before any value
            is printed.

            A peer may send several values for one write, as most battery monitors do.
            demo:uart does: it sends back what is written to it, in values that fit a
            packet.

            A subscription waits for values as long as it takes, also for the number of
            --count: --for limits that. --timeout is for the steps before.
            """)

    @OptionGroup var target: PeerOptions

    @Argument(
        help: "What to subscribe to: UUIDs, names, or handles such as 0x0022.",
        completion: Completions.attribute,
        transform: AttributeArgument.init(argument:))
    var attribute: [AttributeArgument]

    @OptionGroup var limit: LimitOptions

    @Option(
        help: ArgumentHelp(
            "Once subscribed, write these bytes, which make the peer respond. May be given several times.",
            valueName: "attribute=bytes"),
        completion: Completions.written,
        transform: AfterArgument.init(argument:))
    var after: [AfterArgument] = []

    @Flag(help: "Prefer indications where the characteristic has both.")
    var indications = false

    @OptionGroup var values: ValueLineOptions

    @OptionGroup var plotting: PlotOptions

    @OptionGroup var times: TimeOptions

    @OptionGroup var options: OperationOptions

    var peer: PeerDesignation { target.peer }

    func validate() throws {
        try values.validate(json: options.json)
        try plotting.validate(with: values, json: options.json)
    }

    func run() async throws {
        let command = self
        let peer = try await Connection.find(target.peer, options.connection)
        let (received, isInterrupted) = try await Connection.run(with: peer, options, changesPeer: !after.isEmpty) {
            peripheral in
            let database = try await peripheral.discover(timeout: command.options.timeout?.duration)
            for attribute in command.attribute { try attribute.expectValue(in: database) }
            let values = try await command.subscribe(to: peripheral, database)
            let waiting = "\(peer): subscribed, waiting for values"
            Console.progress.update(waiting)
            // A value that does not change is not sent: without a progress line nothing would show that this waits.
            if !Console.progress.isOn, !command.options.json { Console.note(waiting) }
            let known = await peripheral.database
            let labels = AttributeLabels(
                values.handles.map { ($0, known?.type(at: $0)) }, isAlone: values.handles.count == 1)
            let received: Result<Int, any Error>
            do {
                for request in command.after { try await command.write(request, to: peripheral, database) }
                received = await command.printed(values, labels, of: peer)
            } catch {
                received = .failure(error)
            }
            // After ^C the task is cancelled, but the peer must still be asked to stop.
            let unsubscription = await Task { try await values.unsubscribe() }.result
            let count = try received.get()
            try unsubscription.get()
            // A reader of objects sees the end of them.
            if !command.options.json { Console.note("unsubscribed") }
            return (count, Task.isCancelled)
        }
        let advice =
            after.isEmpty
            ? "The peer sends when something changes, or after a write: allow more time with --for, or write with "
                + "--after."
            : "The peer sends when something changes; allow more time with --for."
        try limit.expect(received, isInterrupted: isInterrupted, "came", advice: advice)
    }

    /// Writes with a response where the characteristic has one.
    private func write(
        _ request: AfterArgument, to peripheral: Peripheral, _ database: GATTDatabase
    ) async throws(BLEError) {
        let reference = request.attribute.reference
        let target = reference.valueHandle(in: database).flatMap { database.characteristic(valueHandle: $0) }
        let isCommand = target.map { !$0.properties.contains(.write) && $0.properties.contains(.writeWithoutResponse) }
        do throws(BLEError) {
            try await peripheral.write(
                request.bytes, to: reference, isCommand == true ? .withoutResponse : .withResponse,
                timeout: options.valueTimeout)
        } catch {
            throw await request.attribute.advised(error, peripheral)
        }
    }

    private func subscribe(
        to peripheral: Peripheral, _ database: GATTDatabase
    ) async throws(BLEError) -> ValueSequence {
        do throws(BLEError) {
            return try await peripheral.subscribe(
                to: references(in: database),
                SubscribeOptions(
                    preferred: indications ? .indications : .notifications, capacity: 65_536,
                    timeout: options.valueTimeout))
        } catch {
            guard
                let unknown = attribute.first(where: { attribute in
                    switch attribute.reference {
                    case .handle(let handle):
                        database.characteristic(containing: handle)?.properties.canSubscribe != true
                    case .uuid(let uuid, let service, _):
                        database.characteristics(uuid, in: service).allSatisfy { !$0.properties.canSubscribe }
                    case .characteristic: false
                    }
                })
            else { throw error }
            throw await unknown.advised(error, peripheral, subscribing: true)
        }
    }

    /// Returns the named attributes, without duplicates under other names: their values are printed once.
    private func references(in database: GATTDatabase) -> [CharacteristicReference] {
        var seen: Set<AttributeHandle> = []
        return attribute.map(\.reference).filter { reference in
            guard let handle = reference.valueHandle(in: database) else { return true }
            return seen.insert(handle).inserted
        }
    }

    /// Prints beside the event loop, never on it: a reader that is slow, or has stopped, stops neither the link nor
    /// ^C.
    private func printed(
        _ values: ValueSequence, _ labels: AttributeLabels, of peer: PeerArgument
    ) async -> Result<Int, any Error> {
        let output = LineOutput()
        let printer = ValuePrinter(
            self.values.lines(of: peer, json: options.json),
            plots: plotting.plots(of: labels.count, look: self.values.look), to: output)
        let printing = Task { try await print(values, labels, by: printer) }
        return await withTaskCancellationHandler {
            await printing.result
        } onCancel: {
            printing.cancel()
            output.giveUp()
        }
    }

    private func print(
        _ values: ValueSequence, _ labels: AttributeLabels, by printer: ValuePrinter
    ) async throws -> Int {
        var printer = printer
        defer { printer.end() }
        let most = limit.count ?? .max
        let deadline = limit.duration.map { duration in
            Task {
                try await Task.sleep(for: duration.duration)
                try await values.unsubscribe()
            }
        }
        defer { deadline?.cancel() }
        try await printer.begin()
        var received = 0
        for try await value in values {
            let (uuid, label) = (labels.uuids[value.handle], labels.text(of: value.handle))
            if try await printer.print(value, uuid, label: label) { received += 1 }
            if Task.isCancelled || received == most { break }
        }
        return received
    }
}

/// An attribute and the bytes to write to it on the command line: `fff2=dda50300fffd77`.
struct AfterArgument: Hashable, Sendable {
    let attribute: AttributeArgument
    let bytes: [UInt8]

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        guard let sign = argument.firstIndex(of: "=") else {
            throw BadValue(description: "write the attribute, an equals sign and the bytes, such as fff2=dda5.")
        }
        do {
            attribute = try AttributeArgument(argument: String(argument[..<sign]))
        } catch {
            throw BadValue(description: error.description)
        }
        guard let bytes = try? Hex.decode(argument[argument.index(after: sign)...]), !bytes.isEmpty else {
            throw BadValue(description: "after the equals sign come bytes in hexadecimal digits, such as fff2=dda5.")
        }
        self.bytes = bytes
    }
}
