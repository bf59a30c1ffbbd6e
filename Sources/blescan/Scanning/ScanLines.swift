import BLECore

/// Makes the lines of a scan, live or recorded: it counts them, and knows what each has to say of its origin.
struct ScanLines {
    /// Why a device is told of.
    enum Event: String {
        case found, updated
    }

    /// Where a line comes from, and its place among the others.
    struct Origin {
        let time: String
        let scanner: String
        let adapter: String
        /// Counted from 1; heartbeats have numbers too.
        let sequence: Int
        /// How many reports had found no room so far.
        let dropped: Int
    }

    let format: LineFormat
    let scanner: String
    private(set) var redaction: Redaction?
    /// How many lines told of devices.
    private(set) var count = 0
    private var sequence = 0
    /// How many reports found no room, because nobody took the lines as fast as they came.
    var dropped = 0

    init(format: LineFormat, scanner: String, redaction: Redaction? = nil) {
        self.format = format
        self.scanner = scanner
        self.redaction = redaction
    }

    /// The lines that tell of a device, without line ends: one, or with Theengs one for each entry of its data.
    ///
    /// `time` is when it was heard, since 1970-01-01 00:00 UTC. With them there are at most `limit` since the beginning.
    mutating func lines(
        of sighting: Sighting, _ event: Event, adapter: String, at time: Duration, limit: Int? = nil
    ) -> [[UInt8]] {
        let room = limit.map { max(0, $0 - count) } ?? .max
        guard room > 0 else { return [] }
        let sighting = redaction?.redacted(sighting) ?? sighting
        switch format {
        case .plain:
            count += 1
            return [Array(Console.spelled(PlainLine.text(of: sighting, at: Timestamp.text(sinceEpoch: time))).utf8)]
        case .json:
            count += 1
            return [JSONLine(sighting, event: event, origin: origin(adapter, time)).bytes]
        case .theengs:
            let lines = TheengsLine.lines(of: sighting).prefix(room).map(\.bytes)
            count += lines.count
            return lines
        }
    }

    /// The line that says that the scan is alive; `nil` where the reader of the format could not take it.
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
    /// The members that every line of a scan begins with.
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
