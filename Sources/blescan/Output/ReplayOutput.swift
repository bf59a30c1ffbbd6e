import BLECapture
import BLECore
import BLELinux

/// The output of `blescan replay`: packets as they are read, then the devices that advertised, then the counts.
struct ReplayOutput: ~Copyable {
    private let only: Replay.Layer?
    private let json: Bool
    private let look: ScreenLook
    private var printer = PacketPrinter(keys: SensorKeys.all)
    private var devices = DeviceTable()
    private var advertisements = 0
    /// The day of the packet before.
    private var day: Timestamp.Day?
    private(set) var shownCount = 0
    /// A sentence about a damaged end of the file.
    var warning: String?

    init(only: Replay.Layer?, json: Bool, look: ScreenLook) {
        self.only = only
        self.json = json
        self.look = look
        printer.leavesOutAdvertisements = only.map { !$0.shows(.advertising) } ?? false
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
            Console.out(
                printer.summary.description(ofShown: shownCount, hasAttributes: only?.shows(.att) ?? true))
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
        if json { return Console.out(JSONWriter.line(of: printed)) }
        let day = printed.timestamp.map { Timestamp.Day(of: $0) }
        if let day, day != self.day {
            Console.out(StyledText(day.text, .background).painted(look))
            self.day = day
        }
        let offset = Duration.seconds(day?.offset ?? 0)
        guard look.isColoured else { return Console.out(printed.text(offset: offset)) }
        for line in printed.styled(offset: offset) { Console.out(line.painted(look)) }
    }

    private func showDevices() {
        let scanResults = devices.scanResults.sorted { ($0.averageRSSI ?? -200) > ($1.averageRSSI ?? -200) }
        guard !scanResults.isEmpty else { return }
        Console.out("")
        let counts = "\(scanResults.count.counted("device")) in \(advertisements.counted("advertisement"))"
        Console.out(StyledText(counts, .title).painted(look))
        Console.out(StyledText(DeviceLine.heading, .heading).painted(look))
        for scanResult in scanResults {
            let line = DeviceLine(scanResult)
            Console.out(look.isColoured ? line.styled.painted(look) : line.text)
        }
        Console.out("")
    }
}

extension PrintedPacket {
    /// Returns the lines of `text` in the styles of the live table.
    func styled(offset: Duration) -> [StyledText] {
        let lines = text(offset: offset).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return lines.enumerated().map { $0.offset == 0 ? styled(head: $0.element) : StyledText($0.element) }
    }

    /// Returns the first line, with its number and direction, its title, and its times.
    private func styled(head: String) -> StyledText {
        // A character at the border of two pieces could join them: the borders are counted in scalars.
        let scalars = Array(head.unicodeScalars)
        let markLength = "#\(number) < ".unicodeScalars.count
        let titleLength = title.unicodeScalars.count
        func text(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
            var text = String.UnicodeScalarView()
            text.append(contentsOf: scalars)
            return String(text)
        }
        var line = StyledText(text(scalars.prefix(markLength)), .background)
        line.add(text(scalars.dropFirst(markLength).prefix(titleLength)), titleStyle)
        line.add(text(scalars.dropFirst(markLength).dropFirst(titleLength)), .background)
        return line
    }

    private var titleStyle: ScreenStyle {
        switch layer {
        case .att: bytes.first == ATTOpcode.errorResponse.rawValue ? .defect : .title
        case .advertising: reports.contains { !$0.advertisingData.defects.isEmpty } ? .defect : .title
        case .hci, .l2cap: .title
        case .note: .background
        }
    }
}

extension JSONWriter {
    /// Returns the object of a packet; the reports of an advertisement have the same keys as in `decode`.
    static func line(of printed: PrintedPacket) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", 1)
            writer.member("n", printed.number)
            if let time = printed.timestamp { writer.member("t", Timestamp.text(sinceEpoch: time)) }
            switch printed.direction {
            case .sent: writer.member("direction", "sent")
            case .received: writer.member("direction", "received")
            case .none: break
            }
            writer.member("layer", printed.layer.rawValue)
            writer.member("title", printed.title)
            if !printed.details.isEmpty {
                writer.key("details")
                writer.details(of: printed)
            }
            if let elapsed = printed.elapsed {
                writer.key("replyMilliseconds")
                writer.literal(String((elapsed / .milliseconds(1) * 1000).rounded() / 1000))
            }
            writer.member("hex", hex: printed.bytes)
            // Also where none of them can be read.
            guard printed.layer == .advertising else { return }
            writer.key("reports")
            writer.array { writer in
                for report in printed.reports { writer.report(report) }
            }
        }
        return writer.bytes
    }

    /// The payloads that were written last, and the lines that they were made of.
    private static let details = Lock<[[UInt8]: (lines: [String], bytes: [UInt8])]>([:])

    private mutating func details(of printed: PrintedPacket) {
        let lines = printed.details
        guard printed.reports.count == 1, let payload = printed.reports.first?.data else { return strings(lines) }
        // The printer repeats the lines of a payload, so that comparing them costs nothing.
        if let known = Self.details.withLock({ $0[payload] }), known.lines == lines { return rendered(known.bytes) }
        var writer = JSONWriter()
        writer.strings(lines)
        Self.details.withLock { details in
            if details.count >= Self.mostPayloads { details.removeAll(keepingCapacity: true) }
            details[payload] = (lines, writer.bytes)
        }
        rendered(writer.bytes)
    }

    private mutating func strings(_ values: [String]) {
        array { writer in
            for value in values { writer.string(value) }
        }
    }
}
