import ArgumentParser
import BLECore

/// The devices that a scan reports: conditions of different kinds must all hold; of one kind, one is enough.
struct FilterOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only devices with this service: a UUID or a name. May be given several times.", valueName: "uuid"),
        completion: Completions.service,
        transform: ServiceArgument.init(argument:))
    var service: [ServiceArgument] = []

    @Option(help: ArgumentHelp("Only devices whose name contains this, in any case.", valueName: "text"))
    var name: String?

    @Option(
        help: "Only this device: AA:BB:CC:DD:EE:FF. May be given several times.",
        transform: AddressArgument.init(argument:))
    var address: [AddressArgument] = []

    @Option(
        help: ArgumentHelp(
            "Only devices with data of this company: its number, 004c, or its name, apple. May be given several times.",
            valueName: "id"),
        transform: CompanyArgument.init(argument:))
    var company: [CompanyArgument] = []

    @Option(
        name: .customLong("min-rssi"), parsing: .unconditional,
        help: ArgumentHelp("Only devices with an RSSI of at least this, such as -70.", valueName: "dBm"),
        transform: RSSIArgument.parse)
    var minimumRSSI: Int8?

    @Flag(help: "Only devices that send measurements, such as a temperature, in a known format.")
    var sensors = false

    func validate() throws {
        if name == "" { throw ValidationError("--name takes a part of a name.") }
    }

    /// The given options, in their spelling.
    var given: [String] {
        [
            service.isEmpty ? nil : "--service", name.map { _ in "--name" }, address.isEmpty ? nil : "--address",
            company.isEmpty ? nil : "--company", minimumRSSI.map { _ in "--min-rssi" },
            sensors ? "--sensors" : nil,
        ].compactMap(\.self)
    }

    /// The same as a filter of the library.
    var filter: ScanFilter {
        var filter = ScanFilter()
        filter.services = Set(service.map(\.uuid))
        filter.solicitedServices = filter.services
        filter.companies = Set(company.map(\.number))
        filter.nameContains = name
        filter.minimumRSSI = minimumRSSI
        for argument in address {
            for type in argument.type.map({ [$0] }) ?? [.public, .random] {
                filter.peers.insert(PeerID(address: argument.address, type: type))
            }
        }
        return filter
    }
}
