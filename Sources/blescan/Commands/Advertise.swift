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
              sudo blescan advertise \\
                  --ibeacon 1b9d1c68-37c1-45f5-8c1f-46be7dd8f9c5/1/7
              sudo blescan advertise --url https://example.org --for 10m
              sudo blescan advertise \\
                  --eddystone-uid 8b0ca750095477cb3e77/000000000007
              sudo blescan advertise --eddystone-tlm 2950/21.5

            Nobody can connect: `blescan serve` does that. The parts are placed in the
            order above, first in the 31 bytes of the advertisement, then in the 31 of
            its scan response. What does not fit is an error. The advertisement is
            kept on air until ^C, also after other programs have disturbed it. It does
            not change: the counters of a telemetry frame stay as they are given.
            """)

    @Option(help: ArgumentHelp("The device's name.", valueName: "text"))
    var name: String?

    @Option(
        help: ArgumentHelp("A service: a UUID or a name. May be given several times.", valueName: "uuid"),
        completion: Completions.service,
        transform: ServiceArgument.init(argument:))
    var service: [ServiceArgument] = []

    @Option(
        help: ArgumentHelp("Data of a company: its number and the bytes.", valueName: "id=hex"),
        transform: CompanyDataArgument.init(argument:))
    var manufacturer: CompanyDataArgument?

    @Option(
        name: .customLong("ibeacon"),
        help: ArgumentHelp("An iBeacon: its UUID, major and minor numbers.", valueName: "uuid/major/minor"),
        transform: IBeaconArgument.init(argument:))
    var iBeacon: IBeaconArgument?

    @Option(
        help: ArgumentHelp("A web address, as an Eddystone-URL beacon.", valueName: "url"),
        transform: EddystoneArgument.parseURL)
    var url: EddystoneArgument?

    @Option(
        name: .customLong("eddystone-uid"),
        help: ArgumentHelp(
            "An Eddystone-UID beacon: 20 and 12 hexadecimal digits.", valueName: "namespace/instance"),
        transform: EddystoneArgument.parseIdentifier)
    var eddystoneUID: EddystoneArgument?

    @Option(
        name: .customLong("eddystone-tlm"), parsing: .unconditional,
        help: ArgumentHelp(
            "Eddystone telemetry: millivolts/degrees Celsius, - for what is not measured; with "
                + "/advertisements/seconds since power-on, 0/0 by default.",
            valueName: "battery/temperature"),
        transform: EddystoneArgument.parseTelemetry)
    var eddystoneTLM: EddystoneArgument?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The power that the beacon states: that of an iBeacon at 1 m, -59 by default; that of Eddystone-URL and "
                + "Eddystone-UID at 0 m, -20 by default.",
            valueName: "dBm"),
        transform: MeasuredPowerArgument.parse)
    var measuredPower: Int8?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Time between two advertisements, 20ms to 10.24s; 100ms by default.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var interval: DurationArgument?

    @Flag(help: "Send extended PDUs, which have more room, and which older devices do not receive.")
    var extended = false

    @Flag(
        help: ArgumentHelp(
            "Have the kernel advertise, beside other programs and under an address of its choice. It needs "
                + "CAP_NET_ADMIN."))
    var management = false

    @Option(
        name: [.long, .customShort("i")],
        help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"),
        completion: Completions.adapter,
        transform: AdapterArgument.init(argument:))
    var adapter: AdapterArgument?

    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time: 10s, 500ms, 1m30s; a bare number is seconds.", valueName: "time"),
        transform: DurationArgument.init(argument:))
    var duration: DurationArgument?

    @OptionGroup var color: ColorOptions

    @Flag(name: [.long, .customShort("j")], help: "Print one JSON object per line.")
    var json = false

    func validate() throws {
        if name == nil, service.isEmpty, manufacturer == nil, iBeacon == nil, frames.isEmpty {
            throw ValidationError("there is nothing to advertise; give a --name, for example.")
        }
        if frames.count > 1 {
            throw ValidationError(
                "an advertisement has one Eddystone frame: give one of --url, --eddystone-uid and --eddystone-tlm, and "
                    + "the other to a second `blescan advertise`.")
        }
        if let measuredPower { try validate(measuredPower) }
        try validateContents()
    }

    /// What no adapter sends needs no adapter to be refused.
    private func validateContents() throws {
        if let time = interval?.duration, time < .milliseconds(20) || time > .milliseconds(10_240) {
            throw ValidationError("--interval takes 20ms to 10.24s.")
        }
        let limits = AdvertisingPlan.limits(
            extended ? .nonconnectable : .scannable, usesExtendedPDUs: extended, maximum: .max)
        do throws(AdvertisementData.Invalid) {
            _ = try advertisement().data.payload(fitting: limits)
        } catch {
            throw ValidationError("\(error); leave something out, or shorten it.")
        }
    }

    private func validate(_ measuredPower: Int8) throws {
        let frame = frames.first { $0.statesPower }
        if iBeacon == nil, frame == nil {
            throw ValidationError("--measured-power needs --ibeacon, --url or --eddystone-uid.")
        }
        if iBeacon != nil, frame != nil {
            throw ValidationError(
                "--measured-power is for one beacon: an iBeacon states its power at 1 m, Eddystone at 0 m.")
        }
        if frame != nil, measuredPower < EddystoneArgument.lowestPower {
            throw ValidationError("the --measured-power of Eddystone is \(EddystoneArgument.lowestPower) to 20 dBm.")
        }
    }

    private var frames: [EddystoneArgument] { [url, eddystoneUID, eddystoneTLM].compactMap(\.self) }

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

    /// Returns the advertisement that the options describe.
    func advertisement() throws(AdvertisementData.Invalid) -> Advertisement {
        var elements: [AdvertisementData.Element] = []
        if let iBeacon {
            elements.append(.flags([.generalDiscoverable, .classicNotSupported]))
            elements.append(iBeacon.element(measuredPower: measuredPower))
        }
        if let name { elements.append(.localName(name)) }
        if !service.isEmpty { elements.append(.services(service.map(\.uuid))) }
        if let manufacturer { elements.append(.manufacturerData(manufacturer.data, company: manufacturer.company)) }
        for frame in frames { elements.append(try frame.element(power: measuredPower)) }
        let time = interval?.duration ?? .milliseconds(100)
        var advertisement = Advertisement(
            AdvertisementData(elements), kind: extended ? .nonconnectable : .scannable,
            interval:
                time...(time + time / 2 > .milliseconds(10_240)
                ? max(time, .milliseconds(10_240)) : time + time / 2),
            usesExtendedPDUs: extended)
        if management { advertisement.backEnd = .management }
        return advertisement
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
