import ArgumentParser
import BLECore
import BLEProfiles
import BareBLE

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read values, however long.",
        usage: """
            blescan read <peer> <attribute> ... [--hex-only|--format csv|--json]
            [<options>]
            """,
        discussion: """
            EXAMPLES
              sudo blescan read AA:BB:CC:DD:EE:FF battery-level
              sudo blescan read AA:BB:CC:DD:EE:FF 0x0022 --json
              blescan read demo:heart-rate 2a19
              blescan read demo:heart-rate device-name battery-level
              blescan read demo:heart-rate device-information

            A service stands for all its values that can be read. Where several values
            are requested, each line says which one it is. One that cannot be read is
            reported, and the others are read; the status is that of the first failure.
            """)

    @OptionGroup var target: PeerOptions

    @OptionGroup var reading: ReadOptions

    @OptionGroup var values: ValueLineOptions

    @OptionGroup var options: OperationOptions

    var peer: PeerDesignation { target.peer }

    func validate() throws {
        try values.validate(json: options.json)
    }

    func run() async throws {
        let (arguments, options) = (reading.attribute, options)
        let peer = try await Connection.find(target.peer, options.connection)
        let findsTypes = !values.hexOnly
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
        let failures = show(found, of: peer)
        guard let first = failures.first else { return }
        // The last one is reported at the end of the program, with its status or that of the first.
        for failure in failures.dropLast() { Console.report(failure) }
        throw failures.count == 1 ? first : FailureAfterOthers(last: failures.last ?? first, status: ExitStatus(first))
    }

    /// Prints the values, and returns the failures.
    private func show(_ found: [Result<ReadValue, BLEError>], of peer: PeerArgument) -> [BLEError] {
        let output = values.lines(of: peer, json: options.json)
        let readings = found.compactMap { try? $0.get() }
        let labels = AttributeLabels(readings.map { ($0.handle, $0.uuid) }, isAlone: reading.isAlone)
        if let header = output.header { Console.out(header) }
        for reading in readings {
            Console.out(
                output.line(
                    ofReading: reading.value, at: reading.handle, labels.uuids[reading.handle],
                    label: labels.text(of: reading.handle)))
        }
        return found.compactMap { result in
            guard case .failure(let error) = result else { return nil }
            return error
        }
    }
}
