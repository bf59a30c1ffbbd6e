import ArgumentParser
import BLECore
import BareBLE
import BareBLECrypto

struct Scan: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List nearby devices, as they are heard.",
        usage: "blescan [scan] [--for <time>] [--count <n>] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan                                      a live table
              sudo blescan scan --for 5s --json                 lines of JSON
              sudo blescan scan --service heart-rate --count 1  a heart rate belt
              sudo blescan scan --keys sensors.keys             encrypted sensors
              sudo blescan scan --record - | wireshark -k -i -  live in Wireshark
              sudo blescan scan --json --heartbeat 30s | mosquitto_pub -l -t ble

            On a terminal there is a live table, in which ? shows the keys: Enter shows a
            device, c connects to it to read, write and subscribe, as `browse` does.
            Elsewhere, and with --plain, --format, --json, --heartbeat, --each or
            --count, what is heard is printed, one line each time.

            Every JSON object shows which scanner heard it, when, and how many reports
            were dropped before it because the reader was too slow.

            A bonded device that changes its private address is one device, with its
            identity beside the address.
            """)

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    @OptionGroup var lines: LineOptions

    @Flag(name: [.long, .customShort("j")], help: "The same as --format json.")
    var json = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Print a line in this interval that shows that the scan is running, even if nothing is heard.",
            valueName: "time"),
        transform: DurationArgument.init(argument:))
    var heartbeat: DurationArgument?

    @OptionGroup var filters: FilterOptions

    @OptionGroup var keys: KeyOptions

    @Flag(help: "Only listen: request no scan responses.")
    var passive = false

    @Flag(help: "Listen on the coded PHY too, where the adapter can.")
    var longRange = false

    @Option(
        help: ArgumentHelp(
            "How far recovery may go when the adapter has stopped reporting: none, rescan (begin the scan again), power (also "
                + "switch the adapter off and on) or usb (also reset the device; needs bareble-recover). Each step is reported. "
                + "With power and usb the scan waits for an adapter that goes away. (default: rescan, not reported)",
            valueName: "limit"))
    var recover: RecoveryChoice?

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @OptionGroup var bonds: BondOptions

    @OptionGroup var recording: RecordingOptions

    @OptionGroup var screen: ScreenOptions

    func validate() throws {
        let format = try lines.format(orJSON: json)
        if passive && longRange { throw ValidationError("--long-range scans actively; leave out --passive.") }
        if lines.redact, recording.record != nil {
            throw ValidationError(
                "The file of --record has everything in clear, --redact or not. Leave one of them out: the "
                    + "advertisements of a recording can be shown with replay --as-scan --redact.")
        }
        try keys.validate(with: lines, format)
        if let heartbeat {
            if format == .theengs {
                throw ValidationError("--format theengs has devices alone; leave out --heartbeat.")
            }
            if format == .csv { throw ValidationError("A table has lines about devices alone; leave out --heartbeat.") }
            if heartbeat.duration < .seconds(1) { throw ValidationError("--heartbeat takes a time from 1s.") }
        }
    }

    func run() async throws {
        let command = self
        try keys.read()
        let end = try await SessionRecording.during(recording) { recording in
            try await Interrupt.cancelling { try await command.scan(recording) }
        }
        // If the scan is ended earlier, with ^C or by closing the pipe, finding nothing is not a failure.
        guard end.reason == .timeIsOver, end.heard == 0, let duration else { return }
        throw Failure(
            message: "no device that matches was heard in \(duration.words)",
            hint: "Move closer, wake it, or allow more time.",
            status: .notFound)
    }

    /// Prints until the time is over, enough was printed, the reader is gone, or the task is cancelled.
    private func scan(_ recording: SessionRecording?) async throws -> ScanEnd {
        var configuration = Configuration()
        configuration.adapter = adapter?.selector ?? .first
        configuration.addressHash = { $0.hash }
        if let recover { configuration.recovery = recover.policy }
        recording?.attach(to: &configuration)
        let central = Central(configuration)
        try await central.ready(powerOn: true, timeout: .seconds(2))
        await central.setIdentityKeys(try identityKeys(of: central.adapterAddress))
        let adapterName = await central.adapterName
        if showsScreen { return try await scanOnScreen(central, adapterName) }
        let output = LineOutput()
        let report = ScanReport(
            central, adapter: adapterName,
            lines: lines.lines(
                try lines.format(orJSON: json) ?? .plain, onlySensors: filters.sensors, look: screen.color.look),
            limit: lines.count, recovery: recover, to: output)
        return try await withTaskCancellationHandler {
            try await report.run(
                central.scan(filters.filter, settings, duration: duration?.duration), heartbeat: heartbeat?.duration)
        } onCancel: {
            output.giveUp()
        }
    }

    /// Returns the keys of the bonds by which private addresses are recognized. A scan does without those of the usual
    /// directory that it may not read.
    private func identityKeys(of adapter: BluetoothAddress?) throws -> [PeerID: Secret128] {
        // A service may have no home directory.
        guard let directory = try? BondDirectory(bonds) else { return [:] }
        do {
            return try directory.identityKeys(of: adapter)
        } catch let error as BLEError where !directory.isNamed {
            Console.warn("bonded devices are not recognized by their private addresses: \(error)")
            return [:]
        }
    }

    static func adapterGone(_ name: String) -> Failure {
        Failure(
            message: "\(name) went down or away during the scan", hint: "Plug it in or switch it on, and scan again.",
            status: .noAdapter)
    }

    var settings: ScanSettings {
        let settings: ScanSettings = passive ? .passive : longRange ? .longRange : .balanced
        return settings.duplicates(lines.each == .packet ? .all : .changed)
    }
}

/// The options of the live table, and of the lines in its place.
struct ScreenOptions: ParsableArguments {
    @Flag(help: "Print lines on a terminal too, instead of the live table.")
    var plain = false

    @OptionGroup var color: ColorOptions
}
