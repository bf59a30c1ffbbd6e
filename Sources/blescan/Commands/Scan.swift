import ArgumentParser
import BLECore
import BareBLE

struct Scan: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the devices around, as they are heard.",
        usage: "blescan [scan] [--for <time>] [--count <n>] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan                                        a live table, until q
              sudo blescan scan --for 5s --json                   one JSON object a line
              sudo blescan scan --service heart-rate --count 1    the first heart rate belt

            On a terminal there is a live table, in which ? shows the keys. Elsewhere,
            and with --plain, --json, --each or --count, what is heard is printed, one
            line each time.
            """)

    /// How chatty the scan is.
    enum Verbosity: String, ExpressibleByArgument, CaseIterable {
        case packet, change, device
    }

    @Option(name: .customLong("for"), help: ArgumentHelp("End after this time: 10s, 500ms, 2m.", valueName: "time"))
    var duration: DurationArgument?

    @Option(help: ArgumentHelp("End after so many lines.", valueName: "n"))
    var count: Int?

    @Option(
        help: ArgumentHelp(
            "A line for each packet, for each change of what a device says, as without this option, or once for each "
                + "device.", valueName: "what"))
    var each: Verbosity?

    @OptionGroup var filters: FilterOptions

    @Flag(help: "Only listen: ask no device for its scan response.")
    var passive = false

    @Flag(help: "Listen on the coded PHY too, where the adapter can.")
    var longRange = false

    @Option(help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"))
    var adapter: AdapterArgument?

    @OptionGroup var recording: RecordingOptions

    @Flag(help: "Print one JSON object a line.")
    var json = false

    @OptionGroup var screen: ScreenOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count takes a number from 1.") }
        if passive && longRange { throw ValidationError("--long-range scans actively; leave out --passive.") }
    }

    func run() async throws {
        let command = self
        let heard = try await SessionRecording.during(recording) { recording in
            try await Interrupt.cancelling { try await command.scan(recording) }
        }
        guard heard == 0, let duration else { return }
        throw Failure(
            message: "no device that matches was heard in \(duration). Move closer, wake it, or allow more time.",
            status: .notFound)
    }

    /// Prints until the time is over, enough was printed, or the task is cancelled; answers how many lines that were.
    private func scan(_ recording: SessionRecording?) async throws -> Int {
        var configuration = Configuration()
        configuration.adapter = adapter?.selector ?? .first
        recording?.attach(to: &configuration)
        let central = Central(configuration)
        try await central.ready(powerOn: true, timeout: .seconds(2))
        let adapterName = await central.adapterName
        if showsScreen { return try await scanOnScreen(central, adapterName) }
        return try await central.run { [self] in
            var lines = 0
            for try await event in central.scan(filters.filter, settings, duration: duration?.duration) {
                switch event {
                case .found(let sighting):
                    show(sighting, "found", adapterName)
                    lines += 1
                case .updated(let sighting):
                    guard each != .device else { continue }
                    show(sighting, "updated", adapterName)
                    lines += 1
                case .dropped(let count):
                    Console.warn("\(count.counted("report")) dropped, because the output is slow")
                case .paused:
                    throw Self.adapterGone(adapterName)
                case .lost, .resumed:
                    continue
                }
                if let count, lines >= count { break }
            }
            return lines
        }
    }

    static func adapterGone(_ name: String) -> Failure {
        Failure(
            message: "\(name) went down or away in the middle of the scan. Plug it in or switch it on, and scan again.",
            status: .noAdapter)
    }

    var settings: ScanSettings {
        let settings: ScanSettings = passive ? .passive : longRange ? .longRange : .balanced
        return settings.duplicates(each == .packet ? .all : .changed)
    }

    private func show(_ sighting: Sighting, _ event: String, _ adapterName: String) {
        Console.out(
            json
                ? JSONLine(sighting, event: event, adapter: adapterName).text
                : PlainLine.text(of: sighting, at: Timestamp.now()))
    }
}
