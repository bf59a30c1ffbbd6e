import BLECapture
import BLECore

/// The output of `replay --as-scan`: the lines of a scan that heard the recording.
///
/// The reports go through the same table, the same gate and the same lines as those of a live scan, at the times of the
/// recording.
struct ScanReplay: ~Copyable {
    private var assembler = ReportAssembler()
    private var devices = DeviceTable()
    private var gate: ScanGate
    private var lines: ScanLines
    private let limit: Int?
    /// Whether the recording has any report, whatever it is about.
    private var hasReports = false

    /// Ends the reading.
    private struct Enough: Error {}

    init(_ filter: ScanFilter, _ lines: ScanLines, limit: Int?) {
        var settings = ScanSettings.balanced.duplicates(lines.each == .packet ? .all : .changed)
        settings.filter = filter
        gate = ScanGate(settings)
        devices.pin(filter.peers)
        self.lines = lines
        self.limit = limit
    }

    /// Prints the lines of the recording at `path`.
    ///
    /// - Throws: `Failure` for a file that cannot be read, and for one without a matching advertiser.
    mutating func run(_ path: String) throws {
        if let header = lines.header { Console.out(header) }
        do {
            let warning = try Recording.read(path) {
                show($0)
                // The source of standard input may never end.
                if let limit, lines.count >= limit { throw Enough() }
            } dialogue: { _ in
            }
            if let warning { Console.warn(warning) }
        } catch is Enough {}
        if !hasReports {
            throw Failure(
                message: "\(InputFile.name(of: path)) has no advertisements",
                hint: "`blescan replay \(InputFile.word(path))` prints what it has"
                    + (lines.redaction == nil ? "." : ", with addresses and values in clear."),
                status: .notFound)
        }
        if lines.count == 0 {
            throw Failure(
                message: "\(InputFile.name(of: path)) has no advertisements that match",
                hint: "Leave out a filter; --only adv prints all advertisements.", status: .notFound)
        }
    }

    private mutating func show(_ packet: CapturedPacket) {
        guard packet.kind == .event, case .advertisingReports(let batch) = try? HCIEvent(packet.bytes.span) else {
            return
        }
        hasReports = true
        let now = BootInstant(nanoseconds: packet.timestamp.saturatedNanoseconds)
        for fragment in batch.reports {
            guard let report = assembler.received(fragment, at: now), let outcome = devices.record(report, at: now)
            else { continue }
            for evicted in outcome.evicted { _ = gate.forget(evicted.id) }
            let scanResult = devices[outcome.place]
            switch gate.admit(scanResult, outcome.change, at: now, listened: now - .zero) {
            case .found: show(scanResult, .found, packet)
            case .updated: show(scanResult, .updated, packet)
            case nil: continue
            }
        }
    }

    private mutating func show(_ scanResult: ScanResult, _ event: ScanLines.Event, _ packet: CapturedPacket) {
        for line in lines.lines(
            of: scanResult, event, adapter: "hci\(packet.controller)", at: packet.timestamp, limit: limit)
        {
            Console.out(line)
        }
    }
}
