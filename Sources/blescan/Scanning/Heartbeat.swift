import BLECore

/// That a scan is alive, and what it has done so far; also when there was nothing to hear.
struct Heartbeat: Hashable, Sendable {
    /// How many advertisements the radio has heard since the start, those that no line tells of included.
    var packets: Int
    /// How many devices were heard since the heartbeat before.
    var devices: Int
    /// How often the scan was silent for so long that it was started again.
    var restarts: Int
    /// The time since the start.
    var uptime: Duration

    /// The line for people; programs skip it as a comment.
    func text(lines: Int, dropped: Int, at time: String) -> String {
        "# \(time)  heartbeat  packets=\(packets)  devices=\(devices)  lines=\(lines)  dropped=\(dropped)"
            + "  restarts=\(restarts)  uptime=\(uptime.components.seconds)s"
    }
}

extension JSONLine {
    /// A heartbeat behind so many lines of devices.
    init(_ heartbeat: Heartbeat, lines: Int, origin: ScanLines.Origin) {
        self = .object(
            Self.members(of: origin, event: "heartbeat") + [
                Member(key: "packets", value: .integer(heartbeat.packets)),
                Member(key: "devices", value: .integer(heartbeat.devices)),
                Member(key: "lines", value: .integer(lines)),
                Member(key: "restarts", value: .integer(heartbeat.restarts)),
                Member(key: "uptimeSeconds", value: .integer(Int(heartbeat.uptime.components.seconds))),
            ])
    }
}
