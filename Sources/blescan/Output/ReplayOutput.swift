import BLECore
import Synchronization

/// What `blescan replay` prints: packets as they are read, then the devices that advertised, then the counts.
struct ReplayOutput {
    private let only: Replay.Layer?
    private let json: Bool
    private var printer = PacketPrinter()
    private var devices = DeviceTable()
    private var advertisements = 0
    private(set) var shownCount = 0
    /// What went wrong at the end of the file, for people.
    var warning: String?

    init(only: Replay.Layer?, json: Bool) {
        self.only = only
        self.json = json
    }

    mutating func show(_ packet: CapturedPacket) {
        show(printer.print(packet))
    }

    mutating func show(_ step: Dialogue.Step) {
        show(printer.print(step))
    }

    mutating func finish() {
        if !json, shownCount > 0 {
            if only == nil || only == .adv { showDevices() }
            Console.out(printer.summary.description)
        }
        if let warning { Console.warn(warning) }
    }

    private mutating func show(_ printed: PrintedPacket) {
        let now = BootInstant(nanoseconds: (printed.timestamp ?? .zero).saturatedNanoseconds)
        // Programs that read the objects count for themselves.
        for report in printed.reports where !json {
            advertisements += 1
            _ = devices.record(report, at: now)
        }
        if let only, !only.shows(printed.layer) { return }
        shownCount += 1
        if json { Console.out(JSONLine(printed).bytes) } else { Console.out(printed.text()) }
    }

    private func showDevices() {
        let sightings = devices.sightings.sorted { ($0.averageRSSI ?? -200) > ($1.averageRSSI ?? -200) }
        guard !sightings.isEmpty else { return }
        Console.out("")
        Console.out("\(sightings.count.counted("device")) in \(advertisements.counted("advertisement"))")
        Console.out(DeviceLine.heading)
        for sighting in sightings { Console.out(DeviceLine(sighting).text) }
        Console.out("")
    }
}

extension JSONLine {
    /// A packet; the reports of an advertisement have the keys that `decode` gives them.
    init(_ printed: PrintedPacket) {
        let direction: JSONLine? =
            switch printed.direction {
            case .sent: "sent"
            case .received: "received"
            case .none: nil
            }
        self = .object([
            "v": 1,
            "n": .integer(printed.number),
            "t": printed.timestamp.map { .string(Timestamp.text(sinceEpoch: $0)) },
            "direction": direction,
            "layer": .string(printed.layer.rawValue),
            "title": .string(printed.title),
            "details": printed.details.isEmpty ? nil : Self.details(of: printed),
            "replyMilliseconds": printed.elapsed.map { .number(($0 / .milliseconds(1) * 1000).rounded() / 1000) },
            "bytes": .string(Hex.encode(printed.bytes)),
            "reports": printed.reports.isEmpty ? nil : .array(printed.reports.map { JSONLine($0) }),
        ])
    }

    /// What was printed last of the payloads, and the lines that it was made of.
    private static let rendered = Mutex<[[UInt8]: (lines: [String], bytes: [UInt8])]>([:])

    private static func details(of printed: PrintedPacket) -> JSONLine {
        let lines = printed.details
        guard printed.reports.count == 1, let payload = printed.reports.first?.data else {
            return .array(lines.map { .string($0) })
        }
        // The printer repeats the lines of a payload, so that comparing them costs nothing.
        if let known = rendered.withLock({ $0[payload] }), known.lines == lines { return .rendered(known.bytes) }
        let bytes = JSONLine.array(lines.map { .string($0) }).bytes
        rendered.withLock { rendered in
            if rendered.count >= mostPayloads { rendered.removeAll(keepingCapacity: true) }
            rendered[payload] = (lines, bytes)
        }
        return .rendered(bytes)
    }
}
