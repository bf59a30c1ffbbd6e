import ArgumentParser
import BLECore
import BLELinux
import BareBLE

struct SelfTest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "selftest",
        abstract: "Test whether an adapter is fit for use.",
        usage: """
            blescan selftest [--adapter <hciN>] [--peer-adapter <hciN> |
            --peer <peer>] [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan selftest
              sudo blescan selftest --adapter hci0 --air --json > report.json
              sudo blescan selftest --adapter hci0 --peer-adapter hci1
              sudo blescan selftest --soak 24h
              blescan selftest --adapter demo:csr8510

            Takes about a minute with one adapter: its identity, the time of its
            responses, what it lists, the kernel's choice, scans, a connection attempt
            and refusals. A second adapter, which then advertises and serves, or a
            device of yours adds links: two minutes.

            Nothing of your machine's Bluetooth may be in use meanwhile: the adapter is
            switched off and on, and links and scans of other programs would end. Its
            power, its scans, its links, and whether it is bondable, are left as they were
            found. A check that cannot run reports why.

            The report, one JSON object with --json, holds all values; with --redact it
            has no addresses. Docs/users/adapters.md describes how to contribute one.

            The verdict of a check is fit, remark (it works with a restriction, which
            the last lines state), UNFIT, not run, or note: values without a judgement,
            such as those that depend on what is near. Only remarks make the status 1,
            among them a check that should have run and did not. A line with an arrow
            names a known property of the controller, a row of
            Docs/users/reliability.md, and what BareBLE does about it; by itself it is
            no remark.

            EXIT STATUS
               0  fit      1  fit, with remarks      2  unfit
               others: see `blescan --help`, or blescan(1)
            """)

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp(
            "The adapter: hci0, or its address; demo:NAME for a virtual one, demo:FILE.json for one that behaves as a "
                + "report states.", valueName: "hciN"),
        completion: Completions.testedAdapter,
        transform: SelfTestAdapterArgument.init(argument:))
    var adapter: SelfTestAdapterArgument?

    @Option(
        help: ArgumentHelp(
            "A second adapter, which advertises and serves for the checks of links.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var peerAdapter: AdapterArgument?

    @Option(
        help: ArgumentHelp("A device that accepts connections, for the checks of links.", valueName: "peer"),
        completion: Completions.bond,
        transform: PeerArgument.init(argument:))
    var peer: PeerArgument?

    @Flag(help: "Devices advertise nearby: if nothing is heard, the adapter is unfit.")
    var air = false

    @Flag(help: "Run although links are up or another program scans; they end.")
    var force = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Repeat the scans and connects for this time, and report the worst.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var soak: DurationArgument?

    @OptionGroup var recording: RecordingOptions

    @Flag(help: "Leave addresses and names out of the report.")
    var redact = false

    @OptionGroup var color: ColorOptions

    @Flag(name: [.long, .customShort("j")], help: "Print the report as one JSON object, and nothing else.")
    var json = false

    func validate() throws {
        if redact, recording.record != nil {
            throw ValidationError(
                "The file of --record has everything in clear, --redact or not. Leave one of them out.")
        }
        if peer != nil, peerAdapter != nil {
            throw ValidationError("--peer and --peer-adapter are two ways to have a peer; leave one out.")
        }
        if let peer, !peer.isInTheAir {
            throw ValidationError("--peer takes the address of a device on air, not \(peer).")
        }
        if let peerAdapter, case .kernel(peerAdapter.selector)? = adapter {
            throw ValidationError("--peer-adapter is the adapter under test; name another one.")
        }
        guard case .demo(let name)? = adapter else { return }
        if peerAdapter != nil || peer != nil {
            throw ValidationError("demo:\(name) has no peers; leave out --peer-adapter and --peer.")
        }
    }

    func run() async throws {
        let command = self
        let masking = Lock(redact ? Masking(hostName: SystemFiles.text("/proc/sys/kernel/hostname") ?? "") : nil)
        let report = try await SessionRecording.during(recording) { recording in
            var configuration = Configuration()
            recording?.attach(to: &configuration)
            let plan = SelfTestPlan(
                expectsReports: command.air, isForced: command.force, peerAdapter: command.peerAdapter?.selector,
                peer: command.peer, soak: command.soak?.duration, configuration: configuration)
            return try await Interrupt.cancelling { try await command.report(plan, masking) }
        }
        Console.progress.end()
        if json {
            Console.out(report.json(redacted: redact).bytes)
        } else {
            let screen = SelfTestScreen(width: Console.width, isUnicode: color.look.isUnicode)
            show(screen.lines(of: report, named: adapter?.virtualName), masking) {
                screen.styled(reportLine: $0, report.verdict)
            }
        }
        if report.isInterrupted { throw ExitCode(ExitStatus.interrupted.rawValue) }
        if report.status != 0 { throw ExitCode(report.status) }
    }

    private func report(_ plan: SelfTestPlan, _ masking: Lock<Masking?>) async throws -> SelfTestReport {
        let command = self
        guard case .demo(let name)? = adapter else {
            do {
                return try await command.report(plan, adapter?.selector ?? .first, on: .kernel(), masking)
            } catch let failure as Failure {
                throw Failure(
                    message: masked(failure.message, masking), hint: failure.hint.map { masked($0, masking) },
                    status: failure.status, cause: failure.cause)
            }
        }
        let report = try await SelfTestDemo.run(name) { machine in
            try await command.report(plan, .first, on: machine, masking)
        }
        guard let report else {
            throw Failure(
                message: "there is no demo:\(name.printable)", hint: SelfTestDemo.advice(for: name), status: .usage)
        }
        return report
    }

    private func report(
        _ plan: SelfTestPlan, _ selector: AdapterSelector, on machine: SelfTestMachine, _ masking: Lock<Masking?>
    ) async throws -> SelfTestReport {
        let screen = SelfTestScreen(width: Console.width, isUnicode: color.look.isUnicode)
        let runner = try await SelfTestRunner(selector, on: machine, plan) { check in
            Console.progress.begin("\(check.id) \(check.name)")
        } show: { result in
            guard !json else { return }
            show(screen.lines(of: result), masking) { screen.styled(checkLine: $0, result.judgement.verdict) }
        }
        return try await runner.run()
    }

    /// Prints lines, the first of which has a style.
    private func show(_ lines: [String], _ masking: Lock<Masking?>, first styled: (String) -> StyledText) {
        for (index, line) in lines.enumerated() {
            let line = masked(line, masking)
            Console.out(index == 0 ? styled(line).painted(color.look) : line)
        }
    }

    /// Without addresses and the host's name, if that is wanted: the same name for the same address in all lines.
    private func masked(_ line: String, _ masking: Lock<Masking?>) -> String {
        masking.withLock { $0?.mask(line) ?? line }
    }
}

/// The adapter of a self-test on the command line.
enum SelfTestAdapterArgument: Hashable, Sendable {
    case kernel(AdapterSelector)
    /// A virtual one, by the name of what it imitates.
    case demo(String)

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        if let name = argument.dropped(prefix: "demo:") {
            self = .demo(name)
        } else {
            self = .kernel(try AdapterArgument(argument: argument).selector)
        }
    }

    /// The name of a virtual one, which is another one in its virtual machine.
    var virtualName: String? {
        if case .demo(let name) = self { return "demo:" + name }
        return nil
    }

    var selector: AdapterSelector? {
        if case .kernel(let selector) = self { return selector }
        return nil
    }

    /// Whether it is the controller of a report in a file.
    var isFile: Bool {
        if case .demo(let name) = self { return SelfTestDemo.isFile(name) }
        return false
    }
}
