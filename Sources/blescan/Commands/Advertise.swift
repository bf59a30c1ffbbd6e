import ArgumentParser
import BLECore
import BareBLE

struct Advertise: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Advertise: a name, services, data, or a beacon.",
        usage: "blescan advertise [--name <text>] [--service <uuid>] ... [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan advertise --name Thermometer --service 1809
              sudo blescan advertise --manufacturer 0x0059=0102ff
              sudo blescan advertise --ibeacon 1b9d1c68-37c1-45f5-8c1f-46be7dd8f9c5/1/7
              sudo blescan advertise --url https://example.org --for 10m

            Nobody can connect: `blescan serve` does that. The parts are placed in the
            order above, first in the 31 bytes of the advertisement, then in the 31 of
            its scan response. What does not fit is an error. The advertisement is
            kept on air until ^C, also after other programs have disturbed it.
            """)

    @Option(help: ArgumentHelp("The device's name.", valueName: "text"))
    var name: String?

    @Option(
        help: ArgumentHelp("A service: a UUID or a name. May be given several times.", valueName: "uuid"),
        transform: ServiceArgument.init(argument:))
    var service: [ServiceArgument] = []

    @Option(
        help: ArgumentHelp("Data of a company: its number and the bytes.", valueName: "id=hex"),
        transform: CompanyDataArgument.init(argument:))
    var manufacturer: CompanyDataArgument?

    @Option(
        name: .customLong("ibeacon"),
        help: ArgumentHelp("An iBeacon: its UUID, major and minor numbers.", valueName: "uuid/major/minor"),
        transform: BeaconArgument.init(argument:))
    var beacon: BeaconArgument?

    @Option(help: ArgumentHelp("A web address, as an Eddystone-URL beacon.", valueName: "url"))
    var url: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Time between two advertisements, 20ms to 10.24s; 100ms by default.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var interval: DurationArgument?

    @Flag(help: "Send extended PDUs, which have more room, and which older devices do not receive.")
    var extended = false

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time: 10s, 500ms, 2m; a bare number is seconds.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line.")
    var json = false

    func validate() throws {
        if name == nil, service.isEmpty, manufacturer == nil, beacon == nil, url == nil {
            throw ValidationError("there is nothing to advertise; give a --name, for example.")
        }
    }

    func run() async throws {
        var configuration = Configuration()
        configuration.adapter = adapter?.selector ?? .first
        let advertisement = try advertisement()
        let command = self
        try await Interrupt.cancelling { [configuration] in
            let central = Central(configuration)
            try await central.run {
                let local = LocalPeripheral(on: central)
                let lease = try await local.advertise(advertisement)
                if command.json {
                    Console.out(JSONLine.object(["v": 1, "t": .string(Timestamp.now()), "event": "advertising"]).bytes)
                } else {
                    Console.note("advertising; ^C ends it")
                }
                try? await central.clock.sleep(for: command.duration?.duration ?? .seconds(1_000_000_000))
                // A task of its own: ^C has cancelled this one.
                await Task {
                    await lease.stop()
                    await local.stop()
                }.value
            }
        }
    }

    private func advertisement() throws(BLEError) -> Advertisement {
        var elements: [AdvertisementData.Element] = []
        if let beacon {
            elements.append(.flags([.generalDiscoverable, .classicNotSupported]))
            elements.append(
                .iBeacon(beacon.uuid, major: beacon.major, minor: beacon.minor, measuredPower: -59))
        }
        if let name { elements.append(.localName(name)) }
        if !service.isEmpty { elements.append(.services(service.map(\.uuid))) }
        if let manufacturer { elements.append(.manufacturerData(manufacturer.data, company: manufacturer.company)) }
        if let url {
            do throws(AdvertisementData.Invalid) {
                elements.append(try .eddystoneURL(url, txPower: -20))
            } catch {
                throw BLEError(
                    .invalidArgument, subject: url, during: "advertise", because: "\(error)",
                    hint: "Give a short address that begins with http:// or https://.")
            }
        }
        let time = interval?.duration ?? .milliseconds(100)
        return Advertisement(
            AdvertisementData(elements), kind: extended ? .nonconnectable : .scannable,
            interval:
                time...(time + time / 2 > .milliseconds(10_240)
                ? max(time, .milliseconds(10_240)) : time + time / 2),
            usesExtendedPDUs: extended)
    }
}

/// Data of a company on the command line, `0059=0102ff`.
struct CompanyDataArgument: Hashable, Sendable {
    let company: UInt16
    let data: [UInt8]

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let digits = parts[0].hasPrefix("0x") ? parts[0].dropFirst(2) : parts[0]
        guard parts.count == 2, digits.utf8.count <= 4, let company = UInt16(digits, radix: 16),
            let data = try? Hex.decode(String(parts[1]))
        else { throw BadValue(description: "write the company's number and its data in hexadecimal: 0x0059=0102ff.") }
        self.company = company
        self.data = data
    }
}

/// An iBeacon on the command line.
struct BeaconArgument: Hashable, Sendable {
    let uuid: BluetoothUUID
    let major: UInt16
    let minor: UInt16

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which describes valid values.
    init(argument: String) throws(BadValue) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let uuid = BluetoothUUID(String(parts[0])), uuid.short == nil,
            let major = UInt16(parts[1]), let minor = UInt16(parts[2])
        else { throw BadValue(description: "write a UUID of 32 digits and two numbers: UUID/1/7.") }
        self.uuid = uuid
        self.major = major
        self.minor = minor
    }
}
