import ArgumentParser
import BLECore
import BLEProfiles
import BareBLE
import Glibc

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read values, however long.",
        usage: """
            blescan read <peer> <attribute> ...
            [--hex-only|--raw|--format csv|--json] [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan read AA:BB:CC:DD:EE:FF battery-level
              sudo blescan read AA:BB:CC:DD:EE:FF 0x0022 --json
              blescan read demo:heart-rate 2a19
              blescan read demo:heart-rate device-name battery-level
              blescan read demo:heart-rate device-information
              blescan read demo:long-value fff1 --raw > value.bin

            A service stands for all its values that can be read. Where several values
            are requested, each line shows which one it is. One that cannot be read is
            reported, and the others are read; the status is that of the first failure.

            On a terminal, a value of more than 32 bytes is printed as a table of its
            bytes; --hex-only prints any value on one line.
            """)

    @OptionGroup var target: PeerOptions

    @OptionGroup var reading: ReadOptions

    @Flag(help: "Write the bytes of one value as they are, to a file or another program.")
    var raw = false

    @OptionGroup var values: ValueLineOptions

    @OptionGroup var options: OperationOptions

    var peer: PeerDesignation { target.peer }

    func validate() throws {
        try values.validate(json: options.json)
        if raw { try validateRaw() }
    }

    private func validateRaw() throws {
        if options.json { throw ValidationError("--raw writes no json; leave one of them out.") }
        if values.hexOnly { throw ValidationError("--raw and --hex-only exclude each other.") }
        if let format = values.format {
            throw ValidationError("--raw writes no lines; leave out --format \(format.rawValue).")
        }
        if case .service(let service)? = reading.attribute.first, reading.attribute.count == 1 {
            throw ValidationError(
                "--raw is for one value, and \(service) is a service; name one of its characteristics.")
        }
        // Where one value ends and the next begins could not be seen.
        guard reading.isAlone else { throw ValidationError("--raw is for one value; name one attribute.") }
        if options.output.recording.record == "-" {
            throw ValidationError("--raw needs standard output; --record takes a file here.")
        }
        // The bytes could control it.
        if isatty(STDOUT_FILENO) == 1 {
            throw ValidationError("--raw writes to standard output, which is a terminal; add > FILE or | PROGRAM.")
        }
    }

    func run() async throws {
        let (arguments, options) = (reading.attribute, options)
        let peer = try await Connection.find(target.peer, options.connection)
        let findsTypes = !values.hexOnly && !raw
        let found = try await Connection.run(with: peer, options, cache: reading.cacheUse) {
            (peripheral) -> [Result<ReadValue, BLEError>] in
            let reader = ValueReader(
                peripheral: peripheral, peer: peer, timeout: options.valueTimeout, isPaired: options.pair,
                findsTypes: findsTypes)
            var found: [Result<ReadValue, BLEError>] = []
            for argument in arguments {
                found += await reader.results(of: argument)
                // Without a link the others cannot be read.
                if case .failure(let error)? = found.last, error.code == .disconnected || error.code == .cancelled {
                    return found
                }
            }
            return found
        }
        if raw, found.contains(where: { (try? $0.get())?.isOfService == true }), let service = arguments.first?.text {
            throw Failure(
                message: "\(service) is a service, and --raw is for one value",
                hint: "Name one of its characteristics; `blescan explore` lists them.", status: .usage)
        }
        try FailureAfterOthers.end(with: show(found, of: peer))
    }

    /// Prints the values, and returns the failures.
    private func show(_ found: [Result<ReadValue, BLEError>], of peer: PeerArgument) -> [BLEError] {
        let readings = found.compactMap { try? $0.get() }
        if raw {
            for reading in readings { Console.outRaw(reading.value) }
        } else {
            printLines(of: readings, peer)
        }
        return found.compactMap { result in
            guard case .failure(let error) = result else { return nil }
            return error.afterDisconnect
        }
    }

    private func printLines(of readings: [ReadValue], _ peer: PeerArgument) {
        let output = values.lines(of: peer, json: options.json)
        let labels = AttributeLabels(
            readings.map { ($0.handle, $0.uuid) },
            isAlone: reading.isAlone && !readings.contains(where: \.isOfService))
        if let header = output.header { Console.out(header) }
        for reading in readings {
            let lines = output.lines(
                ofReading: reading.value, at: reading.handle, labels.uuids[reading.handle],
                label: labels.text(of: reading.handle))
            for line in lines { Console.out(line) }
        }
    }
}
