import ArgumentParser
import BLECore
import BLEProfiles
import BareBLE

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read values again and again.",
        usage: """
            blescan watch <peer> <attribute> ... [--every <time>] [--count <n>]
            [--plot|--hex-only|--format csv|--json] [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan watch AA:BB:CC:DD:EE:FF battery-level --every 10m
              sudo blescan watch AA:BB:CC:DD:EE:FF temperature --plot
              blescan watch demo:battery battery-level --every 1s -n 3
              blescan watch demo:battery 2a19 --for 5s --format csv

            Reads over one link, at once and then in the interval. A value that cannot
            be read is reported, and is read again the next time; if no value can be
            read the first time, or the link ends, the command ends. What a device
            sends by itself is for notify.
            """)

    @Argument(
        help: "The peer: AA:BB:CC:DD:EE:FF[/random|/public], unix:PATH or demo:NAME.",
        completion: Completions.peer,
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument

    @Argument(
        help: "What to read: UUIDs, names such as battery-level, or handles such as 0x0022.",
        transform: AttributeArgument.init(argument:))
    var attribute: [AttributeArgument]

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The interval: 10s, 500ms, 2m; a bare number is seconds. (default: 5s)", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var every: DurationArgument?

    @Option(
        name: [.long, .customShort("n")], parsing: .unconditional,
        help: ArgumentHelp("Stop after this number of values, of all attributes together.", valueName: "n"),
        transform: NumberArgument.count)
    var count: Int?

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time: 10s, 500ms, 2m; a bare number is seconds.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    @OptionGroup var values: ValueLineOptions

    @OptionGroup var plotting: PlotOptions

    @OptionGroup var times: TimeOptions

    @OptionGroup var options: ConnectionOptions

    private static let usualInterval: Duration = .seconds(5)

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count takes a number from 1.") }
        try values.validate(json: options.json)
        try plotting.validate(with: values, json: options.json)
    }

    func run() async throws {
        let command = self
        let use: Connection.CacheUse = attribute.contains(where: \.isHandle) ? .consulted : .unneeded
        let (printed, isInterrupted) = try await Connection.run(with: peer, options, cache: use) { peripheral in
            let output = LineOutput()
            // ^C does not wait for a reader that takes nothing.
            let printed = try await withTaskCancellationHandler {
                try await command.watch(peripheral, to: output)
            } onCancel: {
                output.giveUp()
            }
            return (printed, Task.isCancelled)
        }
        guard let count, printed < count else { return }
        if isInterrupted { throw CancellationError() }
        throw Failure(
            message: "only \(printed) of \(count.counted("value")) could be read",
            hint: "Allow more time with --for, or ask for fewer.", status: .timedOut)
    }

    /// Reads and prints until there is enough, the time is over, or the task is cancelled; returns the number of values.
    private func watch(_ peripheral: Peripheral, to output: LineOutput) async throws -> Int {
        let clock = ContinuousClock()
        let end = duration.map { clock.now + $0.duration }
        let interval = every?.duration ?? Self.usualInterval
        var printer = WatchPrinter(
            lines: OperationOutput(
                peer: peer.description, form: values.form(json: options.json), look: values.look),
            plots: plotting.plots(of: attribute.count, look: values.look), output: output)
        defer { printer.end() }
        var due = clock.now
        var printed = 0
        while !Task.isCancelled {
            var failures: [BLEError] = []
            for attribute in attribute {
                do {
                    let reading = try await read(attribute, peripheral)
                    guard try await printer.print(reading, isAlone: self.attribute.count == 1) else { return printed }
                    printed += 1
                } catch let error as BLEError {
                    if error.code == .cancelled { return printed }
                    failures.append(await attribute.advised(error, peripheral).advised(peer, isBonded: options.pair))
                    if error.code == .disconnected { break }
                }
                if printed == count { return printed }
            }
            // The end of the link is always the last failure. What could not be read at all at first is not tried again.
            let ends = failures.last?.code == .disconnected || (printed == 0 && !failures.isEmpty)
            for failure in ends ? failures.dropLast() : failures[...] { Console.report(failure) }
            if ends, let last = failures.last { throw last }
            // A slow peer is not asked for what was missed.
            due = max(due + interval, clock.now)
            if let end, due >= end { break }
            await Self.wait(until: due, clock, or: peripheral)
        }
        return printed
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

    private func read(_ attribute: AttributeArgument, _ peripheral: Peripheral) async throws -> WatchPrinter.Reading {
        var reading = try await peripheral.readAttribute(attribute.reference, timeout: options.valueTimeout)
        if reading.uuid == nil {
            reading.uuid = try? await peripheral.attributeType(at: reading.handle, timeout: options.valueTimeout)
        }
        return reading
    }
}

/// The lines of `watch`.
private struct WatchPrinter {
    typealias Reading = (handle: AttributeHandle, uuid: BluetoothUUID?, value: [UInt8])

    let lines: OperationOutput
    var plots: PlotOutput?
    let output: LineOutput
    private var hasHeader = false

    init(lines: OperationOutput, plots: PlotOutput?, output: LineOutput) {
        self.lines = lines
        self.plots = plots
        self.output = output
    }

    /// No value follows.
    func end() {
        plots?.end()
    }

    /// Prints a value; returns false if the reader takes no more.
    mutating func print(_ reading: Reading, isAlone: Bool) async throws -> Bool {
        Console.progress.end()
        let labels = AttributeLabels([(reading.handle, reading.uuid)], isAlone: isAlone)
        let label = labels.text(of: reading.handle)
        if !hasHeader, let header = lines.header { guard try await write(header) else { return false } }
        hasHeader = true
        let line =
            plots?.line(of: reading.value, at: reading.handle, reading.uuid, label: label, in: Console.width ?? 80)
            ?? lines.line(ofReading: reading.value, at: reading.handle, reading.uuid, label: label, isTimed: true)
        return try await write(line)
    }

    private func write(_ line: [UInt8]) async throws -> Bool {
        switch try await output.write(line) {
        case .written:
            plots?.wrote()
            return true
        case .closed:
            Interrupt.end(.done)
            return false
        case .givenUp: return false
        }
    }
}
