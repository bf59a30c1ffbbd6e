import ArgumentParser
import BLECore
import BLEProfiles
import BareBLE

/// What is read again and again, on the command line.
enum WatchArgument: Hashable, Sendable {
    case value(ReadArgument)
    /// The signal strength of the link.
    case rssi

    /// Parses an argument.
    ///
    /// - Throws: `NotAnAttribute`, with suggestions.
    init(argument: String) throws(NotAnAttribute) {
        self = try argument == "rssi" ? .rssi : .value(ReadArgument(argument: argument))
    }

    /// The attribute or service; `nil` for the signal strength.
    var value: ReadArgument? {
        guard case .value(let value) = self else { return nil }
        return value
    }
}

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read values again and again.",
        usage: """
            blescan watch [<peer> <attribute> ...] [--every <time>] [--count <n>]
            [--plot|--hex-only|--format csv|--json] [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan watch AA:BB:CC:DD:EE:FF battery-level --every 10m
              sudo blescan watch AA:BB:CC:DD:EE:FF temperature --plot
              sudo blescan watch AA:BB:CC:DD:EE:FF battery-level rssi --every 10s
              blescan watch demo:battery battery-level --every 1s -n 3
              blescan watch demo:battery 2a19 --for 5s --format csv
              sudo blescan watch

            Reads over one link, at once and then in the interval. A value that cannot
            be read is reported, and is read again the next time; if no value can be
            read the first time, or the link ends, the command ends. What a device
            sends by itself is for notify. In place of an attribute, rssi is the signal
            strength of the link, as the adapter measures it.

            Without a peer it shows the sensors on air, from what they advertise: on a
            terminal without --count and --format as a row for each in the live table,
            otherwise as lines, which in a pipe are objects without --format; --count
            counts these.
            `blescan scan --sensors` is the same with all options of a scan.
            """)

    @Argument(
        help: ArgumentHelp(PeerOptions.help),
        completion: Completions.peer,
        transform: PeerDesignation.init(argument:))
    var peer: PeerDesignation?

    @Argument(
        help: ArgumentHelp(
            "What to read: UUIDs, names such as battery-level, handles such as 0x0022, services, for all that can be "
                + "read of them, or rssi."),
        completion: Completions.watched,
        transform: WatchArgument.init(argument:))
    var attribute: [WatchArgument] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The interval: 10s, 500ms, 1m30s; a bare number is seconds. (default: 5s)", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var every: DurationArgument?

    @OptionGroup var limit: LimitOptions

    @OptionGroup var values: ValueLineOptions

    @OptionGroup var plotting: PlotOptions

    @OptionGroup var times: TimeOptions

    @OptionGroup var options: OperationOptions

    /// One of the values, once services stand for their characteristics.
    private enum Watched {
        case value(RequestedValue)
        case rssi

        var isOfService: Bool {
            guard case .value(let value) = self else { return false }
            return value.isOfService
        }

        /// The failure of the read that has looked for it; `nil` once it was returned as a result.
        var firstFailure: BLEError? {
            guard case .value(let value) = self else { return nil }
            return value.firstFailure
        }
    }

    private static let usualInterval: Duration = .seconds(5)

    func validate() throws {
        try values.validate(json: options.json)
        try plotting.validate(with: values, json: options.json)
        if let peer { return try validate(with: peer) }
        if let option = givenForPeer.first {
            throw ValidationError("\(option) is for the values of a peer; name one, or leave out \(option).")
        }
    }

    private func validate(with peer: PeerDesignation) throws {
        if attribute.isEmpty {
            throw ValidationError("Name what to read, such as battery-level; `blescan explore` lists what a peer has.")
        }
        guard attribute.contains(.rssi) else { return }
        if !peer.isInTheAir { throw ValidationError("rssi is measured by an adapter, and this peer needs none.") }
        if values.hexOnly {
            throw ValidationError("--hex-only prints bytes, and rssi has none; leave one of them out.")
        }
    }

    /// The given options that have no meaning without a peer, in their spelling.
    private var givenForPeer: [String] {
        let connection = options.connection
        return [
            every.map { _ in "--every" }, values.hexOnly ? "--hex-only" : nil, plotting.plot ? "--plot" : nil,
            connection.mtu.map { _ in "--mtu" }, connection.cache.map { _ in "--cache" },
            connection.pair ? "--pair" : nil,
            connection.ignoresBonds ? "--no-bond" : nil, connection.timeout.map { _ in "--timeout" },
            options.output.trace ? "--trace" : nil,
        ].compactMap(\.self)
    }

    /// The scan that shows the sensors on air: in the table on a terminal, as objects elsewhere.
    func sensorScan() throws -> Scan {
        var scan = try Scan.parse([])
        scan.filters.sensors = true
        scan.duration = limit.duration
        scan.lines.count = limit.count
        scan.lines.format = values.format.flatMap { LineFormat(rawValue: $0.rawValue) }
        scan.json = options.json || (values.format == nil && !Console.isTerminal)
        scan.adapter = options.connection.adapter
        scan.bonds = options.connection.link.bonds
        scan.recording = options.output.recording
        scan.screen.color = values.color
        return scan
    }

    func run() async throws {
        guard let peer else { return try await sensorScan().run() }
        try await watch(try await Connection.find(peer, options.connection))
    }

    private func watch(_ peer: PeerArgument) async throws {
        let command = self
        let cacheUse = attribute.compactMap(\.value).cacheUse
        let (printed, isInterrupted) = try await Connection.run(with: peer, options, cache: cacheUse) { peripheral in
            let output = LineOutput()
            // ^C does not wait for a reader that takes nothing.
            let printed = try await withTaskCancellationHandler {
                try await command.watch(peripheral, of: peer, to: output)
            } onCancel: {
                output.giveUp()
            }
            return (printed, Task.isCancelled)
        }
        try limit.expect(printed, isInterrupted: isInterrupted, "could be read")
    }

    /// Reads and prints until there is enough, the time is over, or the task is cancelled;
    /// returns the number of values.
    private func watch(_ peripheral: Peripheral, of peer: PeerArgument, to output: LineOutput) async throws -> Int {
        let clock = ContinuousClock()
        let end = limit.duration.map { clock.now + $0.duration }
        let interval = every?.duration ?? Self.usualInterval
        let reader = ValueReader(
            peripheral: peripheral, peer: peer, timeout: options.valueTimeout, isPaired: options.pair,
            findsTypes: true)
        var (watched, failures) = try await self.watched(by: reader)
        let isAlone = attribute.count == 1 && watched.count == 1 && !watched.contains(where: \.isOfService)
        var printer = ValuePrinter(
            values.lines(of: peer, json: options.json),
            plots: plotting.plots(of: watched.count, look: values.look), to: output)
        defer { printer.end() }
        var due = clock.now
        var printed = 0
        while !Task.isCancelled {
            for index in watched.indices {
                do {
                    let isTaken = try await Self.show(&watched[index], reader, isAlone: isAlone, &printer)
                    guard isTaken else { return printed }
                    printed += 1
                } catch let error as BLEError {
                    if error.code == .cancelled { return printed }
                    failures.append(error)
                    if error.code == .disconnected { break }
                }
                if printed == limit.count {
                    // What was looked for without success may come after the last value.
                    for failure in failures + watched.compactMap(\.firstFailure) { Console.report(failure) }
                    return printed
                }
            }
            // The end of the link is always the last failure. What could not be read at all at first is not tried
            // again.
            let ends = failures.last?.code == .disconnected || (printed == 0 && !failures.isEmpty)
            for failure in ends ? failures.dropLast() : failures[...] { Console.report(failure) }
            if ends, let last = failures.last { throw last }
            failures = []
            // A slow peer is not asked for what was missed.
            due = max(due + interval, clock.now)
            if let end, due >= end { break }
            await Self.wait(until: due, clock, or: peripheral)
        }
        return printed
    }

    /// Returns what the arguments name, and a failure for each service of which nothing can be read.
    ///
    /// - Throws: `BLEError` for the end of the link, or of the task.
    private func watched(by reader: ValueReader) async throws(BLEError) -> ([Watched], failures: [BLEError]) {
        var watched: [Watched] = []
        var failures: [BLEError] = []
        for argument in attribute {
            guard let value = argument.value else {
                watched.append(.rssi)
                continue
            }
            do throws(BLEError) {
                for requested in try await reader.values(of: value) { watched.append(.value(requested)) }
            } catch {
                guard error.code == .disconnected || error.code == .cancelled else {
                    failures.append(error)
                    continue
                }
                for failure in failures { Console.report(failure) }
                throw error
            }
        }
        return (watched, failures)
    }

    /// Reads a value and prints it; returns whether the reader of the output has taken it.
    private static func show(
        _ watched: inout Watched, _ reader: ValueReader, isAlone: Bool, _ printer: inout ValuePrinter
    ) async throws -> Bool {
        switch watched {
        case .rssi:
            let rssi = try await reader.peripheral.rssi()
            return try await printer.print(rssi: rssi, label: isAlone ? nil : "RSSI")
        case .value(var value):
            let result = await reader.result(of: &value)
            watched = .value(value)
            let reading = try result.get()
            let labels = AttributeLabels([(reading.handle, reading.uuid)], isAlone: isAlone)
            return try await printer.print(reading, label: labels.text(of: reading.handle))
        }
    }

    /// Waits until a moment, or for the end of the link, which the next read then reports.
    private static func wait(until due: ContinuousClock.Instant, _ clock: ContinuousClock, or peripheral: Peripheral)
        async
    {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await clock.sleep(until: due) }
            group.addTask { _ = await peripheral.disconnected() }
            await group.next()
            group.cancelAll()
        }
    }
}
