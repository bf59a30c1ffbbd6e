internal import BLECore
internal import BLEProfiles
internal import BareBLE

/// Makes the lines of a live or recorded scan, with their counts and origin.
struct ScanLines {
    /// The reason for a line.
    enum Event: String {
        case found, updated
    }

    /// The origin of a line, and its place among the others.
    struct Origin {
        let time: String
        let scanner: String
        let adapter: String
        /// Counted from 1; heartbeats have numbers too.
        let sequence: Int
        /// The number of reports dropped so far.
        let dropped: Int
    }

    let format: LineFormat
    let scanner: String
    /// What has a line.
    let each: Verbosity
    private let look: ScreenLook
    private let fields: [CSVField]
    /// Those of `fields` in which a change is news.
    private let comparedFields: [CSVField]
    private let onlySensors: Bool
    private(set) var redaction: AdvertisementRedaction?
    /// The number of lines about devices.
    private(set) var count = 0
    private var sequence = 0
    /// The number of reports that were dropped because the reader was too slow.
    var dropped = 0
    /// The last line about each device without its time, if lines without news are left out.
    private var lastLines: [AdvertiserID: Int]?
    /// The devices that have had a line, if those without a measurement have none.
    private var measuring: Set<AdvertiserID> = []
    /// The number of devices that are remembered, as many as a scan has.
    private static let mostDevices = 4096

    /// Creates the lines of a scan.
    ///
    /// - Parameters:
    ///   - each: What has a line. Where that is no packet, a plain or CSV line is left out that differs from the last
    ///     one about its device in time, event and RSSI alone; in objects everything is new that was. Where it is a
    ///     device, that has no line after the one with which it was found.
    ///   - comparesRSSI: Whether a CSV line with another RSSI is no repetition.
    ///   - onlySensors: Whether a report without a measurement has no line.
    ///   - look: How plain lines look.
    init(
        format: LineFormat, scanner: String, fields: [CSVField] = CSVField.usual,
        redaction: AdvertisementRedaction? = nil, each: Verbosity = .packet, comparesRSSI: Bool = false,
        onlySensors: Bool = false, look: ScreenLook = .plain
    ) {
        self.look = look
        self.onlySensors = onlySensors
        self.each = each
        lastLines = each != .packet && (format == .plain || format == .csv) ? [:] : nil
        self.format = format
        self.fields = fields
        comparedFields = fields.filter { ![.time, .event].contains($0) && ($0 != .rssi || comparesRSSI) }
        self.scanner = scanner
        self.redaction = redaction
    }

    /// The line before all others; `nil` if the format has none.
    var header: [UInt8]? { format == .csv ? CSVLine.header(fields) : nil }

    /// Returns the lines about a device, without newlines: one, or with Theengs one for each entry of its data.
    ///
    /// `time` is when it was heard, since 1970-01-01 00:00 UTC. There are at most `limit` lines in total.
    mutating func lines(
        of scanResult: ScanResult, _ event: Event, adapter: String, at time: Duration, limit: Int? = nil
    ) -> [[UInt8]] {
        let room = limit.map { max(0, $0 - count) } ?? .max
        guard room > 0, let event = self.event(event, of: scanResult) else { return [] }
        let scanResult = redaction?.redacted(scanResult) ?? scanResult
        switch format {
        case .plain:
            guard isNews(scanResult) else { return [] }
            count += 1
            return [Array(Console.spelled(plain(scanResult, at: Timestamp.local(sinceEpoch: time))).utf8)]
        case .json:
            count += 1
            return [JSONLine(scanResult, event: event, origin: origin(adapter, time)).bytes]
        case .csv:
            guard isNews(scanResult) else { return [] }
            count += 1
            let line = CSVLine.bytes(scanResult, fields, event: event, at: Timestamp.local(sinceEpoch: time))
            return [line]
        case .theengs:
            let lines = TheengsLine.lines(of: scanResult).prefix(room).map(\.bytes)
            count += lines.count
            return lines
        }
    }

    private func plain(_ scanResult: ScanResult, at time: String) -> String {
        look.isColoured
            ? PlainLine.styled(scanResult, at: time).painted(look) : PlainLine.text(of: scanResult, at: time)
    }

    /// Returns the event of a line about a device; `nil` for no line.
    private mutating func event(_ event: Event, of scanResult: ScanResult) -> Event? {
        let event = onlySensors ? eventOfSensor(event, scanResult) : event
        return each == .device && event == .updated ? nil : event
    }

    /// Returns the event of a line about a measurement; `nil` if there is none. The first one finds a sensor, also if
    /// something else had been heard of it before.
    private mutating func eventOfSensor(_ event: Event, _ scanResult: ScanResult) -> Event? {
        if event == .found { measuring.remove(scanResult.id) }
        guard scanResult.hasMeasurement else { return nil }
        if measuring.count == Self.mostDevices { measuring.removeAll(keepingCapacity: true) }
        return measuring.insert(scanResult.id).inserted ? .found : event
    }

    private mutating func isNews(_ scanResult: ScanResult) -> Bool {
        guard lastLines != nil else { return true }
        if lastLines?.count == Self.mostDevices { lastLines?.removeAll(keepingCapacity: true) }
        let words =
            format == .csv
            ? CSVLine.bytes(scanResult, comparedFields, event: .updated, at: "").hashValue
            : PlainLine.contents(of: scanResult).hashValue
        return lastLines?.updateValue(words, forKey: scanResult.id) != words
    }

    /// Returns the heartbeat line; `nil` if the format has none.
    mutating func line(of heartbeat: Heartbeat, adapter: String, at time: Duration) -> [UInt8]? {
        switch format {
        case .plain:
            Array(
                StyledText(
                    heartbeat.text(lines: count, dropped: dropped, at: Timestamp.local(sinceEpoch: time)), .background
                ).painted(look).utf8)
        case .json: JSONLine(heartbeat, lines: count, origin: origin(adapter, time)).bytes
        case .theengs, .csv: nil
        }
    }

    /// Returns the line about an event of recovery; `nil` if the format has none: users read it on standard error.
    mutating func line(of event: RecoveryEvent, adapter: String, at time: Duration) -> [UInt8]? {
        guard format == .json else { return nil }
        return JSONLine(event, origin: origin(adapter, time)).bytes
    }

    private mutating func origin(_ adapter: String, _ time: Duration) -> Origin {
        sequence += 1
        return Origin(
            time: Timestamp.text(sinceEpoch: time), scanner: scanner, adapter: adapter, sequence: sequence,
            dropped: dropped)
    }
}

extension JSONLine {
    /// Returns the members with which every line of a scan begins.
    static func members(of origin: ScanLines.Origin, event: String) -> [Member] {
        [
            Member(key: "v", value: 1),
            Member(key: "t", value: .string(origin.time)),
            Member(key: "event", value: .string(event)),
            Member(key: "scanner", value: .string(origin.scanner)),
            Member(key: "adapter", value: .string(origin.adapter)),
            Member(key: "seq", value: .integer(origin.sequence)),
            Member(key: "dropped", value: .integer(origin.dropped)),
        ]
    }
}

/// One report of a scan on one line, for users and for `grep`.
enum PlainLine {
    private typealias Part = (text: String, style: ScreenStyle)

    static func text(of scanResult: ScanResult, at time: String) -> String {
        "\(time)  \(strength(of: scanResult))  \(contents(of: scanResult))"
    }

    /// Returns the same in the styles of the live table.
    static func styled(_ scanResult: ScanResult, at time: String) -> StyledText {
        var line = StyledText(time, .background)
        line.add("  ")
        line.add(strength(of: scanResult), .strength(scanResult.rssi.map { Int($0) }))
        for part in parts(of: scanResult) {
            line.add("  ")
            line.add(part.text, part.style)
        }
        return line
    }

    /// Returns the line without time and RSSI.
    static func contents(of scanResult: ScanResult) -> String {
        parts(of: scanResult).map(\.text).joined(separator: "  ")
    }

    private static func strength(of scanResult: ScanResult) -> String {
        let rssi = scanResult.rssi.map(String.init) ?? "?"
        return String(repeating: " ", count: max(0, 4 - rssi.count)) + rssi
    }

    /// Returns the columns and words, without characters that could control a terminal.
    private static func parts(of scanResult: ScanResult) -> [Part] {
        let address = scanResult.peer?.address.description ?? "anonymous"
        let kind = scanResult.peer?.kind.short ?? "-"
        let name = scanResult.shownName?.printable ?? "-"
        var parts: [Part] = [
            (address.padded(to: 17), []), (kind.padded(to: 8), []), (name.padded(to: 16), .title),
        ]
        // The bytes may be longer than a row of the terminal.
        for decoded in SensorKeys.decoded(scanResult) { parts.append((decoded.line, .meaning)) }
        let services = scanResult.serviceUUIDs.map(\.description)
        if !services.isEmpty { parts.append(("uuids=" + services.joined(separator: ","), [])) }
        for data in scanResult.serviceData {
            parts.append(("\(data.service)=\(Hex.encode(data.data))", .background))
        }
        for data in scanResult.manufacturerData {
            let key = JSONLine.companyKey(data.company)
            parts.append(("company-\(key)=\(Hex.encode(data.data))", .background))
        }
        if scanResult.isConnectable { parts.append(("connectable", [])) }
        let reports = [scanResult.advertisement, scanResult.scanResponse].compactMap(\.self)
        if reports.contains(where: { !$0.advertisingData.defects.isEmpty }) { parts.append(("malformed", .defect)) }
        if let identity = scanResult.identity { parts.append(("identity=\(identity)", [])) }
        return parts
    }
}

/// The format in which OpenMQTTGateway publishes on `…/BTtoMQTT/undecoded` for Theengs Gateway to decode: one object
/// for each entry of service data.
///
/// The keys, their spelling and their values are those of TheengsDecoder: data in hexadecimal digits, manufacturer
/// data after the company identifier as sent on air, 16-bit services as four digits, `mac_type` 0 for a public address
/// and 1 for a random one.
enum TheengsLine {
    /// Returns the objects of one scan result; none for a device without an address, which Theengs cannot handle.
    static func lines(of scanResult: ScanResult) -> [JSONLine] {
        guard let peer = scanResult.id.peer else { return [] }
        let (services, companies) = (scanResult.serviceData, scanResult.manufacturerData)
        return (0..<max(services.count, companies.count, 1)).map { index in
            // If there are fewer of one kind, the last of them is repeated in the remaining lines.
            let service = services.dropFirst(index).first ?? services.last
            let company = companies.dropFirst(index).first ?? companies.last
            return .object([
                "id": .string(peer.address.description),
                "mac_type": peer.type == .public ? 0 : 1,
                "rssi": scanResult.rssi.map { .integer(Int($0)) },
                "name": scanResult.name.map { .string($0) },
                "servicedatauuid": service.map { .string($0.service.description) },
                "servicedata": service.map { .string(Hex.encode($0.data)) },
                "manufacturerdata": company.map { .string(Hex.encode(bytes(of: $0))) },
                "txpower": scanResult.txPower.map { .integer(Int($0)) },
            ])
        }
    }

    private static func bytes(of data: AdvertisingData.ManufacturerData) -> [UInt8] {
        [UInt8(truncatingIfNeeded: data.company), UInt8(truncatingIfNeeded: data.company >> 8)] + data.data
    }
}
