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

            Where several attributes are named, each line says which one its value is.
            One that cannot be read is reported, and the others are read; the status
            is that of the first failure.
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

    @OptionGroup var values: ValueLineOptions

    @OptionGroup var options: ConnectionOptions

    private typealias Reading = (handle: AttributeHandle, uuid: BluetoothUUID?, value: [UInt8])

    func validate() throws {
        try values.validate(json: options.json)
    }

    func run() async throws {
        let (attributes, timeout, showsBytesOnly) = (attribute, options.valueTimeout, values.hexOnly)
        let use: Connection.CacheUse = attribute.contains(where: \.isHandle) ? .consulted : .unneeded
        let found = try await Connection.run(with: peer, options, cache: use) {
            (peripheral) -> [Result<Reading, BLEError>] in
            var found: [Result<Reading, BLEError>] = []
            for attribute in attributes {
                do throws(BLEError) {
                    var reading = try await peripheral.readAttribute(attribute.reference, timeout: timeout)
                    if reading.uuid == nil, !showsBytesOnly {
                        // Without its type a value has no meaning; a peer that does not tell is no failure.
                        reading.uuid = try? await peripheral.attributeType(at: reading.handle, timeout: timeout)
                    }
                    found.append(.success(reading))
                } catch {
                    found.append(.failure(await attribute.advised(error, peripheral)))
                    // Without a link the others cannot be read.
                    if error.code == .disconnected || error.code == .cancelled { return found }
                }
            }
            return found
        }
        let failures = show(found)
        guard let first = failures.first else { return }
        // The last one is reported at the end of the program, with its status or that of the first.
        for failure in failures.dropLast() { Console.report(failure) }
        throw failures.count == 1 ? first : FailureAfterOthers(last: failures.last ?? first, status: ExitStatus(first))
    }

    /// Prints the values, and returns the failures.
    private func show(_ found: [Result<Reading, BLEError>]) -> [BLEError] {
        let output = OperationOutput(peer: peer.description, form: values.form(json: options.json), look: values.look)
        let readings = found.compactMap { try? $0.get() }
        let labels = AttributeLabels(readings.map { ($0.handle, $0.uuid) }, isAlone: attribute.count == 1)
        if let header = output.header { Console.out(header) }
        for reading in readings {
            Console.out(
                output.line(
                    ofReading: reading.value, at: reading.handle, labels.uuids[reading.handle],
                    label: labels.text(of: reading.handle)))
        }
        return found.compactMap { result in
            guard case .failure(let error) = result else { return nil }
            return error.advised(peer, isBonded: options.pair)
        }
    }
}
