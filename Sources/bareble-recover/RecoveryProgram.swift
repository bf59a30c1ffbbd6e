import BLECore
import BLELinux
import Glibc

/// Takes one step of recovery, with rights that a daemon does not have: for a service manager, which starts it with
/// each connection to its socket as the standard input, and for root by hand.
@main enum RecoveryProgram {
    private static let usage = """
        Usage: bareble-recover STEP ADAPTER [--with-links]
               bareble-recover            (the request comes from a socket as standard input)

        Takes one step that may make a Bluetooth adapter work again. All links of all
        programs to the adapter end; while any is up, --with-links is needed.

        STEP     power (off and on), radio-switch (rfkill), usb-port (reset the port),
                 driver (unbind it from the device and bind it again)
        ADAPTER  its name or its address: hci0, AA:BB:CC:DD:EE:FF

        Ends with 0 when the adapter is back and on, 64 for wrong arguments, 69 if there
        is no such adapter or it did not come back, 75 if it may be tried later, 77 if
        this is not permitted, else with 70.
        """

    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.isEmpty { exit(serve()) }
        if arguments.contains("--help") || arguments.contains("-h") {
            print(usage)
            exit(0)
        }
        exit(run(Array(arguments)))
    }

    // MARK: By hand

    private static func run(_ arguments: [String]) -> Int32 {
        let endsLinks = arguments.contains("--with-links")
        let words = arguments.filter { $0 != "--with-links" }
        guard words.count == 2, !words.contains(where: { $0.hasPrefix("-") }) else {
            return fail("give a step and an adapter", 64, hint: "See bareble-recover --help.")
        }
        guard let step = RecoveryPolicy.Step(name: words[0]), step.endsLinks else {
            return fail(
                "\(words[0]) is no step", 64, hint: "Steps are power, radio-switch, usb-port and driver.")
        }
        let failure: RecoveryFailure
        do throws(RecoveryFailure) {
            let adapter = try find { $0.name == words[1] || $0.address.description == words[1].uppercased() }
            try take(step, adapter, endsLinks: endsLinks)
            print("\(words[1]): \(step) is done; the adapter is on")
            return 0
        } catch {
            failure = error
        }
        let text = "\(step), \(words[1])"
        switch failure {
        case .notPermitted(let reason): return fail("\(text): not permitted: \(reason)", 77, hint: "Run it as root.")
        case .linksOfOthers(let count), .linksInUse(let count):
            return fail("\(text): \(count) links are up, and would end", 75, hint: "Add --with-links to end them.")
        case .blocked:
            return fail("\(text): the radio is blocked", 69, hint: "Unblock it: rfkill unblock bluetooth.")
        case .notApplicable:
            return fail("\(text): the adapter has no part for this step", 69, hint: "Try another step.")
        case .adapterGone:
            return fail("\(text): there is no such adapter, or it did not come back", 69, hint: "Plug it in again.")
        case .underWay:
            return fail(
                "\(text): another program takes a recovery step for this adapter", 75,
                hint:
                    "Try it again in a minute. `ss -xap | grep bareble-recovery` as root names the program, which can be ended."
            )
        case .refused(let reason), .unavailable(let reason):
            return fail("\(text): \(reason)", 75, hint: "Try it later.")
        case .noResponse(let reason), .failed(let reason):
            return fail("\(text): \(reason)", 70, hint: "`sudo blescan doctor` and dmesg may show more.")
        }
    }

    private static func fail(_ text: String, _ status: Int32, hint: String) -> Int32 {
        report("bareble-recover: \(text)\n\(hint)")
        return status
    }

    // MARK: For a service manager

    private static func serve() -> Int32 {
        guard var socket = RequestSocket.standardInput else {
            return fail("standard input is no socket with packets", 64, hint: "See bareble-recover --help.")
        }
        guard let text = socket.request() else {
            return fail("no request has come in time", 64, hint: "It is a packet: STEP ADDRESS [links].")
        }
        guard let request = RecoveryRequest(text) else {
            socket.respond(RecoveryRequest.response(.failed("this is no request")))
            return fail("this is no request", 64, hint: "It is a packet: STEP ADDRESS [links].")
        }
        var failure: RecoveryFailure?
        do throws(RecoveryFailure) {
            let adapter = try find { $0.address == request.adapter }
            try take(request.step, adapter, endsLinks: request.endsLinks)
        } catch {
            failure = error
        }
        let response = RecoveryRequest.response(failure)
        socket.respond(response)
        // In the journal.
        report("\(request.text): \(response)")
        return 0
    }

    // MARK: Both

    private static func report(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        // Where nobody reads it, nobody misses it.
        _ = unsafe write(STDERR_FILENO, bytes, bytes.count)
    }

    private static func find(_ matches: (ControllerInfo) -> Bool) throws(RecoveryFailure) -> ControllerInfo {
        let all: [ControllerInfo]
        do throws(SystemCallError) {
            all = try Controllers.list()
        } catch {
            throw .failed("\(error.meaning.sentence) [\(error)]")
        }
        let found = all.filter(matches)
        guard let adapter = found.first else { throw .adapterGone }
        // Clones share an address.
        guard found.count == 1 else { throw .failed("\(found.count) adapters have this address; name one by hand") }
        return adapter
    }

    private static func take(
        _ step: RecoveryPolicy.Step, _ adapter: ControllerInfo, endsLinks: Bool
    ) throws(RecoveryFailure) {
        if !endsLinks {
            guard let count = (try? Controllers.handlesOfLinks(of: adapter.index))?.count else {
                throw .failed("the links that are up cannot be seen")
            }
            if count > 0 { throw .linksOfOthers(count) }
        }
        let folder = unsafe getenv("RUNTIME_DIRECTORY").map { unsafe String(cString: $0) } ?? "/run/bareble"
        try RecoveryRecord.makeFolder(folder)
        let record = try RecoveryRecord(of: adapter.address, in: folder)
        // They stay blocked: what follows is the report of the step, and then the program ends.
        let signals = EndSignals()
        let recovery = AdapterRecovery(isEnding: { signals.haveCome })
        try recovery.take(step, adapter) { () throws(RecoveryFailure) in try record.noteStep() }
    }
}
