import ArgumentParser
import BLECapture
import BLECore
import BareBLE
import Glibc

/// Prints recorded packets; needs no radio.
struct Replay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the packets of a recording, check them, or make a test of them.",
        usage: """
            blescan replay (<file> [--only <kind>|--screen|--check|--as-fixture
            <name>|--as-scan] | --hex <bytes>) [--json]
            """,
        discussion: """
            EXAMPLES
              blescan replay capture.btsnoop
              blescan replay capture.btsnoop --only att
              blescan replay capture.btsnoop --only adv --json
              blescan replay capture.btsnoop --screen --speed 10
              blescan replay capture.btsnoop --screen --sensors
              blescan replay capture.btsnoop --check
              blescan replay capture.btsnoop --as-scan --format theengs
              blescan replay capture.btsnoop --as-fixture Fixtures/visit
              blescan replay --hex 02010603030d18060950756c7365
              blescan replay capture.btsnoop.gz --as-scan

            Reads btsnoop (--record, btmon -w, Android's HCI log), pcap, pcapng and
            PacketLogger files with traffic between a host and its controller or with
            what a sniffer of Bluetooth LE has heard, and dialogues, such as --trace
            prints, all also compressed by gzip; the content shows which. < goes from the
            host to the controller, > comes back; responses show their delay. A sniffer's
            advertisements are shown as to a host that scans, its links as to the central.

            Times are local, or with --utc in UTC; a line with the date is above the first
            packet of each day.

            --check runs the recorded links through the request queue and the discovery
            of a live one. The first packet that breaks the protocol is reported, and
            the status is 76. Requests without a response are counted: a link may end
            at any time.

            --as-fixture writes each of these links as a text, NAME.dialogue, that
            ScriptedPeripheral of BareBLETestKit plays in a test, and `replay` prints.
            It contains all values in clear.

            --screen shows the advertisements in the live table, where Enter shows a
            device and c what was recorded of a link with it: attributes and values,
            up to that time. Nothing new can be read. l lists all recorded links. Without
            advertisements the first link is shown at once, and Esc shows the list. ] and
            [ go 10 s forward and back, } and { a minute; long pauses are shortened. With
            --sensors only measurements are shown.

            --as-scan prints the lines that a scan would have printed at that time:
            to test a program that reads them, or to search a recording.
            """)

    /// The packets to print.
    enum Layer: String, ExpressibleByArgument, CaseIterable {
        case att, hci, adv, l2cap

        /// The packets of the layer, in messages.
        var words: String {
            switch self {
            case .att: "ATT packets"
            case .hci: "HCI packets"
            case .adv: "advertisements"
            case .l2cap: "L2CAP packets"
            }
        }

        /// `hci` excludes the packets of the other layers.
        func shows(_ layer: PrintedPacket.Layer) -> Bool {
            switch self {
            case .att: layer == .att
            case .adv: layer == .advertising
            case .hci: layer == .hci || layer == .note
            case .l2cap: layer == .l2cap
            }
        }
    }

    /// What is made of the packets, and which of them.
    struct Mode: ParsableArguments {
        @Option(help: ArgumentHelp("Print only these packets.", valueName: "kind"))
        var only: Layer?

        @Flag(help: "Check the recorded links against the protocol, instead of printing packets.")
        var check = false

        @Option(
            help: ArgumentHelp(
                "Write each link to NAME.dialogue, NAME-2.dialogue and so on, as a test for ScriptedPeripheral.",
                valueName: "name")
        )
        var asFixture: String?

        @Flag(
            help:
                "Show the advertisements in the live table of `scan`, as they came, and recorded links; q quits, ? shows the keys."
        )
        var screen = false

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp("How many times faster than recorded --screen shows them.", valueName: "factor"),
            transform: SpeedArgument.parse)
        var speed: Double?

        @Flag(help: "Print the advertisements as `scan` does, instead of packets.")
        var asScan = false
    }

    @Argument(
        help: "A capture, btsnoop, pcap, pcapng or PacketLogger, or a dialogue; - or nothing is standard input.",
        completion: .file())
    var file: String?

    @OptionGroup(title: "Modes") var mode: Mode

    @OptionGroup(title: "With --as-scan") var lines: LineOptions

    @OptionGroup(title: "With --as-scan") var filters: FilterOptions

    @OptionGroup var color: ColorOptions

    @Flag(
        name: [.long, .customShort("j")],
        help: "Print one JSON object per packet, or for each link that was written, or for the check.")
    var json = false

    @Option(
        help: ArgumentHelp("Explain this payload as `decode --hex` does, instead of a file.", valueName: "bytes"))
    var hex: String?

    @OptionGroup var keys: KeyOptions

    /// The file to read, `-` for standard input; `nil` if there is neither.
    private var source: String? {
        file ?? (hex == nil && isatty(STDIN_FILENO) != 1 ? "-" : nil)
    }

    func validate() throws {
        if file != nil, hex != nil { throw ValidationError("Give a file or --hex, not both.") }
        if source == nil, hex == nil { throw ValidationError("Name a capture, or give a payload with --hex.") }
        let modes = [hex.map { _ in "--hex" }, mode.only.map { _ in "--only" }, mode.check ? "--check" : nil]
        if let other = modes.compactMap(\.self).first, mode.asFixture != nil {
            throw ValidationError("--as-fixture prints no packets; leave out \(other).")
        }
        if mode.check, let other = modes.compactMap(\.self).first, other != "--check" {
            throw ValidationError("--check prints no packets; leave out \(other).")
        }
        if mode.asFixture != nil, source == "-" {
            throw ValidationError("--as-fixture needs a file, not standard input.")
        }
        try validateScreen()
        if mode.asScan {
            _ = try lines.format(orJSON: json)
            let others = modes + [mode.asFixture.map { _ in "--as-fixture" }, mode.screen ? "--screen" : nil]
            if let other = others.compactMap(\.self).first {
                throw ValidationError("--as-scan prints lines of a scan; leave out \(other).")
            }
        } else if lines.redact, !mode.screen, hex == nil {
            throw ValidationError(
                "--redact masks advertisements, with --as-scan or --screen. Packets, and the addresses and values in "
                    + "them, cannot be masked: leave it out.")
        } else if let option = (lines.given + filters.given).first(where: { !allowed.contains($0) }) {
            throw ValidationError("\(option) is for the lines of --as-scan; add that, or leave out \(option).")
        }
        try keys.validate(with: lines, mode.asScan ? try lines.format(orJSON: json) : nil)
        if keys.file != nil, mode.check || mode.asFixture != nil {
            throw ValidationError(
                "--keys is for advertisements; leave it out, or \(mode.check ? "--check" : "--as-fixture").")
        }
        if mode.asFixture == "" { throw ValidationError("--as-fixture takes the name of a file.") }
    }

    /// The options of `--as-scan` that the table, or printed packets, have as well.
    private var allowed: [String] {
        if mode.screen { return ["--redact", "--sensors"] }
        return mode.check || mode.asFixture != nil || hex != nil ? [] : ["--utc"]
    }

    private func validateScreen() throws {
        guard mode.screen else {
            if mode.speed != nil { throw ValidationError("--speed is for the live table; add --screen.") }
            return
        }
        let others = [
            hex.map { _ in "--hex" }, mode.only.map { _ in "--only" }, mode.check ? "--check" : nil,
            mode.asFixture.map { _ in "--as-fixture" }, json ? "--json" : nil,
        ]
        if let other = others.compactMap(\.self).first {
            throw ValidationError("--screen shows a live table; leave out \(other).")
        }
        if source == "-" { throw ValidationError("--screen needs a file; standard input is for the keys.") }
        if let obstacle = Terminal.obstacle {
            throw ValidationError("--screen needs a full terminal: \(obstacle); use --as-scan for plain lines.")
        }
    }

    func run() async throws {
        try keys.read()
        if let hex {
            let choice = color.color.map { ["--color", $0.rawValue] } ?? []
            return try await Decode.parse(["--hex", hex] + choice + (json ? ["--json"] : [])).run()
        }
        guard let file = source else { return }
        if mode.asScan {
            var scan = ScanReplay(
                filters.filter,
                lines.lines(
                    try lines.format(orJSON: json) ?? .plain, onlySensors: filters.sensors, look: color.look),
                limit: lines.count)
            return try scan.run(file)
        }
        if mode.check { return try CheckOutput(path: file, json: json).run() }
        if mode.screen {
            let shown = ReplayScreen(
                path: file, speed: mode.speed ?? 1, look: ScreenLook(color.color ?? .auto), redacts: lines.redact,
                onlySensors: filters.sensors)
            return try await Interrupt.cancelling { try await shown.run() }
        }
        if let name = mode.asFixture { return try FixtureOutput(path: file, name: name, json: json).run() }
        var output = ReplayOutput(only: mode.only, json: json, look: color.look)
        do {
            output.warning = try Recording.read(file) { packet in
                output.show(packet)
            } dialogue: { dialogue in
                for step in dialogue.steps { output.show(step) }
            }
        } catch {
            output.finish()
            throw error
        }
        output.finish()
        if output.shownCount == 0 {
            let name = InputFile.name(of: file)
            throw Failure(
                message: "\(name) has no \(mode.only?.words ?? "packets")",
                hint: mode.only.map { _ in "Without --only all packets are printed." }, status: .notFound)
        }
    }
}

/// The speed of a recording on the command line.
enum SpeedArgument {
    /// Parses a factor.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    static func parse(_ text: String) throws(BadValue) -> Double {
        guard let factor = Double(text), (0.01...1000).contains(factor) else {
            throw BadValue(description: "it takes a factor from 0.01 to 1000.")
        }
        return factor
    }
}
