import ArgumentParser
import BLECore
import BareBLE
import FoundationEssentials

struct Scan: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the devices around, as they are heard.",
        usage: "blescan [scan] [--for <time>] [--count <n>] [--json] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan                                        until ^C
              sudo blescan scan --for 5s --json                   one JSON object a line
              sudo blescan scan --service heart-rate --count 1    the first heart rate belt
            """)

    /// How chatty the scan is.
    enum Verbosity: String, ExpressibleByArgument, CaseIterable {
        case packet, change, device
    }

    @Option(name: .customLong("for"), help: ArgumentHelp("End after this time: 10s, 500ms, 2m.", valueName: "time"))
    var duration: DurationArgument?

    @Option(help: ArgumentHelp("End after so many lines.", valueName: "n"))
    var count: Int?

    @Option(
        help: ArgumentHelp(
            "A line for each packet, for each change of what a device says, or once for each device.",
            valueName: "what"))
    var each = Verbosity.change

    @Option(
        help: ArgumentHelp(
            "Only devices with this service: a UUID or a name. May be given several times.", valueName: "uuid"),
        transform: ServiceArgument.init(argument:))
    var service: [ServiceArgument] = []

    @Option(help: ArgumentHelp("Only devices whose name begins with this.", valueName: "text"))
    var name: String?

    @Option(help: "Only this device: AA:BB:CC:DD:EE:FF. May be given several times.")
    var address: [AddressArgument] = []

    @Option(
        help: ArgumentHelp(
            "Only devices with data of this company: four hexadecimal digits. May be given several times.",
            valueName: "id"))
    var company: [CompanyArgument] = []

    @Option(
        name: .customLong("min-rssi"), parsing: .unconditional,
        help: ArgumentHelp("Only devices heard at least this well, such as -70.", valueName: "dBm"))
    var minimumRSSI: Int8?

    @Flag(help: "Only listen: ask no device for its scan response.")
    var passive = false

    @Flag(help: "Listen on the coded PHY too, where the adapter can.")
    var longRange = false

    @Option(help: ArgumentHelp("Adapter to use: hci0, or its address.", valueName: "hciN"))
    var adapter: AdapterArgument?

    @OptionGroup var recording: RecordingOptions

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count takes a number from 1.") }
        if passive && longRange { throw ValidationError("--long-range scans actively; leave out --passive.") }
    }

    func run() async throws {
        let command = self
        let heard = try await SessionRecording.during(recording) { recording in
            try await Interrupt.cancelling { try await command.scan(recording) }
        }
        guard heard == 0, let duration else { return }
        throw Failure(
            message: "no device that matches was heard in \(duration). Move closer, wake it, or allow more time.",
            status: .notFound)
    }

    /// Prints until the time is over, enough was printed, or the task is cancelled; answers how many lines that were.
    private func scan(_ recording: SessionRecording?) async throws -> Int {
        var configuration = Configuration()
        configuration.adapter = adapter?.selector ?? .first
        recording?.attach(to: &configuration)
        let central = Central(configuration)
        try await central.ready(powerOn: true, timeout: .seconds(2))
        let adapterName = await central.adapterName
        return try await central.run { [self] in
            var lines = 0
            for try await event in central.scan(filter, settings, duration: duration?.duration) {
                switch event {
                case .found(let sighting):
                    show(sighting, "found", adapterName)
                    lines += 1
                case .updated(let sighting):
                    guard each != .device else { continue }
                    show(sighting, "updated", adapterName)
                    lines += 1
                case .dropped(let count):
                    Console.note("blescan: \(count.counted("report")) dropped, because the output is slow")
                case .paused:
                    throw Failure(
                        message:
                            "\(adapterName) went down or away in the middle of the scan. Plug it in or switch it on, "
                            + "and scan again.", status: .noAdapter)
                case .lost, .resumed:
                    continue
                }
                if let count, lines >= count { break }
            }
            return lines
        }
    }

    private var filter: ScanFilter {
        var filter = ScanFilter()
        filter.services = Set(service.map(\.uuid))
        filter.solicitedServices = filter.services
        filter.companies = Set(company.map(\.number))
        filter.namePrefix = name
        filter.minimumRSSI = minimumRSSI
        for argument in address {
            for type in argument.type.map({ [$0] }) ?? [.public, .random] {
                filter.peers.insert(PeerID(address: argument.address, type: type))
            }
        }
        return filter
    }

    private var settings: ScanSettings {
        let settings: ScanSettings = passive ? .passive : longRange ? .longRange : .balanced
        return settings.duplicates(each == .packet ? .all : .changed)
    }

    private func show(_ sighting: Sighting, _ event: String, _ adapterName: String) {
        Console.out(
            json
                ? JSONLine(sighting, event: event, adapter: adapterName).text
                : PlainLine.text(of: sighting, at: Timestamp.now()))
    }
}

/// One report of a live scan on one line, for people and for `grep`.
enum PlainLine {
    static func text(of sighting: Sighting, at time: String) -> String {
        let rssi = sighting.rssi.map(String.init) ?? "?"
        var parts = [
            time, String(repeating: " ", count: max(0, 4 - rssi.count)) + rssi,
            (sighting.peer?.address.description ?? "anonymous").padded(to: 17),
            (sighting.peer?.kind.rawValue ?? "-").padded(to: 7), (sighting.name?.printable ?? "-").padded(to: 16),
        ]
        let services = sighting.serviceUUIDs.map(\.description)
        if !services.isEmpty { parts.append("uuids=" + services.joined(separator: ",")) }
        for data in sighting.serviceData { parts.append("\(data.service)=\(Hex.encode(data.data))") }
        for data in sighting.manufacturerData {
            parts.append("company-\(JSONLine.companyKey(data.company))=\(Hex.encode(data.data))")
        }
        if sighting.isConnectable { parts.append("connectable") }
        for meaning in sighting.meanings { parts.append(meaning.line) }
        return parts.joined(separator: "  ")
    }
}

extension JSONLine {
    /// What a scan knows of a device: advertisement and scan response together, and each of them as bytes.
    init(_ sighting: Sighting, event: String, adapter: String) {
        let together = (sighting.advertisement?.data ?? []) + (sighting.scanResponse?.data ?? [])
        let members: [JSONLine.Member?] = [
            .init(key: "v", value: 1),
            .init(key: "t", value: .string(Timestamp.now())),
            .init(key: "event", value: .string(event)),
            .init(key: "adapter", value: .string(adapter)),
            .init(key: "address", value: sighting.peer.map { .string($0.address.description) } ?? .null),
            .init(key: "addressType", value: sighting.peer.map { $0.type == .public ? "public" : "random" } ?? .null),
            .init(key: "kind", value: sighting.peer.map { .string($0.kind.rawValue) } ?? .null),
            .init(key: "rssi", value: sighting.rssi.map { .integer(Int($0)) } ?? .null),
            .init(key: "connectable", value: .bool(sighting.isConnectable)),
            sighting.name.map { .init(key: "name", value: .string($0)) },
            sighting.advertisement.map { .init(key: "raw", value: .string(Hex.encode($0.data))) },
            sighting.scanResponse.map { .init(key: "rawScanResponse", value: .string(Hex.encode($0.data))) },
        ]
        self = .object(members.compactMap(\.self) + Self.members(of: AdvertisingData(together)))
    }
}
