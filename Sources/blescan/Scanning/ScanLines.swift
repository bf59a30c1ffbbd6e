import BLECore
import BLEProfiles

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
    private(set) var redaction: AdvertisementRedaction?
    /// The number of lines about devices.
    private(set) var count = 0
    private var sequence = 0
    /// The number of reports that were dropped because the reader was too slow.
    var dropped = 0

    init(format: LineFormat, scanner: String, redaction: AdvertisementRedaction? = nil) {
        self.format = format
        self.scanner = scanner
        self.redaction = redaction
    }

    /// Returns the lines about a device, without newlines: one, or with Theengs one for each entry of its data.
    ///
    /// `time` is when it was heard, since 1970-01-01 00:00 UTC. There are at most `limit` lines in total.
    mutating func lines(
        of scanResult: ScanResult, _ event: Event, adapter: String, at time: Duration, limit: Int? = nil
    ) -> [[UInt8]] {
        let room = limit.map { max(0, $0 - count) } ?? .max
        guard room > 0 else { return [] }
        let scanResult = redaction?.redacted(scanResult) ?? scanResult
        switch format {
        case .plain:
            count += 1
            return [Array(Console.spelled(PlainLine.text(of: scanResult, at: Timestamp.text(sinceEpoch: time))).utf8)]
        case .json:
            count += 1
            return [JSONLine(scanResult, event: event, origin: origin(adapter, time)).bytes]
        case .theengs:
            let lines = TheengsLine.lines(of: scanResult).prefix(room).map(\.bytes)
            count += lines.count
            return lines
        }
    }

    /// Returns the heartbeat line; `nil` if the format has none.
    mutating func line(of heartbeat: Heartbeat, adapter: String, at time: Duration) -> [UInt8]? {
        switch format {
        case .plain: Array(heartbeat.text(lines: count, dropped: dropped, at: Timestamp.text(sinceEpoch: time)).utf8)
        case .json: JSONLine(heartbeat, lines: count, origin: origin(adapter, time)).bytes
        case .theengs: nil
        }
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
