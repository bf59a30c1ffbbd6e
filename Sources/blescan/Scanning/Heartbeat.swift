import BLECore

/// A sign that a scan is running, with its counts; also if nothing was heard.
struct Heartbeat: Hashable, Sendable {
    /// The number of advertisements that the radio has heard since the start, including those without a line.
    var packets: Int
    /// The number of devices heard since the previous heartbeat.
    var devices: Int
    /// The number of times that the scan was restarted after a silence.
    var restarts: Int
    /// The time since the start.
    var uptime: Duration

    /// Returns the line for users; programs skip it as a comment.
    func text(lines: Int, dropped: Int, at time: String) -> String {
        "# \(time)  heartbeat  packets=\(packets)  devices=\(devices)  lines=\(lines)  dropped=\(dropped)"
            + "  restarts=\(restarts)  uptime=\(uptime.components.seconds)s"
    }
}

extension JSONLine {
    /// Creates a heartbeat after this number of lines about devices.
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
