import ArgumentParser
import BLECore
import BLELinux
import BareBLE

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Find out why Bluetooth does not work here.",
        usage: "blescan doctor [--connect <peer>] [--fix <what>] [--report] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan doctor
              sudo blescan doctor --connect AA:BB:CC:DD:EE:FF
              sudo blescan doctor --fix rfkill --fix up
              sudo blescan doctor --report > report.txt

            Sixteen checks, from the kernel to the air, and of the bonds; the check of
            the adapters knows defects of controllers. Each warning or failure is
            followed by a remedy. Nothing is changed without --fix, but for a short
            passive scan, which --no-scan leaves out. Ends with 0 unless something
            failed, else with 69 (no usable adapter), 77 (not permitted) or the status
            of the failed connection.
            """)

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Check only this adapter: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @Option(
        help: ArgumentHelp("Connect to this peer too, and measure the time.", valueName: "peer"),
        completion: Completions.knownPeer,
        transform: PeerArgument.init(argument:))
    var connect: PeerArgument?

    @OptionGroup var bonds: BondOptions

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("How long to scan; 3s by default.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    @Flag(name: .customLong("no-scan"), help: "Make no scan.")
    var withoutScan = false

    @Option(
        help: ArgumentHelp(
            "Fix this first: rfkill (clear the soft block), up (power on adapters), le (switch Low Energy on), "
                + "stale-scan (end a stale scan), cycle (switch adapters off and on; not while a link is up). May be "
                + "given several times.",
            valueName: "what"))
    var fix: [Fix] = []

    @OptionGroup var recording: RecordingOptions

    @Flag(help: "Print the data for a bug report, without addresses, names and the host's name.")
    var report = false

    @Option(
        help: ArgumentHelp(
            "Diagnose a simulated machine: the files in this directory replace /proc, /sys and /dev, and its "
                + "bluetooth.json the responses of sockets.",
            valueName: "dir"))
    var root: String?

    @OptionGroup var color: ColorOptions

    @Flag(
        name: [.long, .customShort("j")], help: "Print one JSON object per finding, and one with their counts.")
    var json = false

    func validate() throws {
        if withoutScan, duration != nil {
            throw ValidationError("--for sets the length of the scan; leave out --no-scan.")
        }
        if recording.record != nil, connect == nil {
            throw ValidationError("--record records a connection; name the peer with --connect.")
        }
        if report, recording.record != nil {
            throw ValidationError(
                "The file of --record has everything in clear, --report or not. Leave one of them out.")
        }
        if let root, !SystemFiles.isFolder(root) {
            throw ValidationError("\(root): no such folder.")
        }
        guard root != nil, let real = fix.first(where: { $0 != .rfkill }) else { return }
        throw ValidationError("--fix \(real.rawValue) needs a real adapter; leave out --root.")
    }

    func run() async throws {
        let command = self
        var (facts, repairs) = try await Interrupt.cancelling { () async throws -> (SystemFacts, [Repair]) in
            let repairs = try await command.repair()
            Console.progress.begin("checking the adapters, and listening")
            defer { Console.progress.end() }
            let facts = try await command.facts(scanning: !command.withoutScan)
            try Task.checkCancellation()
            return (facts, repairs)
        }
        if let connect {
            facts.connection = try await ConnectionFacts(
                of: connect, adapter: adapter, bonds: bonds, recording: recording)
        }
        show(facts, repairs)
        let status = repairs.compactMap(\.failure).first ?? Diagnosis(facts).status
        if status != .done { throw ExitCode(status.rawValue) }
    }

    /// Makes the repairs that `--fix` names, one after the other: each may depend on the one before.
    private func repair() async throws -> [Repair] {
        var repairs: [Repair] = []
        for wanted in Fix.allCases where fix.contains(wanted) {
            let facts = try await facts(scanning: false)
            try Task.checkCancellation()
            repairs += await Repair.all(wanted, facts, root: root)
        }
        return repairs
    }

    private func facts(scanning: Bool) async throws -> SystemFacts {
        let selector = adapter?.selector ?? .first
        var facts = SystemFacts(
            root: root ?? "", bonds: bonds.directory, access: RootAccess.current.withLock { $0 })
        if let root {
            facts.radio = try RadioProbe.pretendedFacts(root: root, selector)
        } else {
            facts.radio = try RadioProbe.kernelFacts(selector)
            await RadioProbe.ask(
                &facts.radio, mayCommand: facts.privileges.has(.netRaw),
                scanning: scanning ? duration?.duration ?? .seconds(3) : nil)
        }
        return facts
    }

    private func show(_ original: SystemFacts, _ repairs: [Repair]) {
        var masking = report ? Masking(hostName: original.hostName) : nil
        let facts = masking?.mask(original) ?? original
        let found = Diagnosis(facts)
        let diagnosis = Diagnosis(
            lines: found.lines.map { line in
                Diagnosis.Line(check: line.check, finding: masking?.mask(line.finding) ?? line.finding)
            })
        if json {
            for repair in repairs { Console.out(JSONLine(repair).text) }
            for line in diagnosis.lines { Console.out(JSONLine(line).text) }
            let kernel = masking?.mask(facts.kernelRelease)
            Console.out(JSONLine(summaryOf: diagnosis, kernel: kernel).text)
            return
        }
        // A report is copied.
        let screen = DoctorScreen(
            diagnosis: diagnosis, repairs: repairs, width: report ? nil : Console.width, isReport: report)
        for line in screen.lines { Console.out(line.painted(color.look)) }
        guard report else { return }
        for line in DoctorReport(facts: facts).lines { Console.out(masking?.mask(line) ?? line) }
    }
}

extension Fix: ExpressibleByArgument {}
