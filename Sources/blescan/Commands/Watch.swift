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

    @OptionGroup var target: PeerOptions

    @OptionGroup var reading: ReadOptions

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

    var peer: PeerDesignation { target.peer }

    private static let usualInterval: Duration = .seconds(5)

    func validate() throws {
        try values.validate(json: options.json)
        try plotting.validate(with: values, json: options.json)
    }

    func run() async throws {
        let command = self
        let peer = try await Connection.find(target.peer, options.connection)
        let (printed, isInterrupted) = try await Connection.run(with: peer, options, cache: reading.cacheUse) {
            peripheral in
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
        var requested: [RequestedValue] = []
        for argument in reading.attribute { requested += try await reader.values(of: argument) }
        let isAlone = reading.isAlone && !requested.contains(where: \.isOfService)
        var printer = ValuePrinter(
            values.lines(of: peer, json: options.json),
            plots: plotting.plots(of: requested.count, look: values.look), to: output)
        defer { printer.end() }
        var due = clock.now
        var printed = 0
        while !Task.isCancelled {
            var failures: [BLEError] = []
            for index in requested.indices {
                switch await reader.result(of: &requested[index]) {
                case .success(let reading):
                    let labels = AttributeLabels([(reading.handle, reading.uuid)], isAlone: isAlone)
                    guard try await printer.print(reading, label: labels.text(of: reading.handle)) else {
                        return printed
                    }
                    printed += 1
                case .failure(let error):
                    if error.code == .cancelled { return printed }
                    failures.append(error)
                }
                if printed == limit.count { return printed }
                if failures.last?.code == .disconnected { break }
            }
            // The end of the link is always the last failure. What could not be read at all at first is not tried
            // again.
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
}
