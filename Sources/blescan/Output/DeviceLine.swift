import BLECore

/// One device of a scan on one line: how loud, who, its name, what it says and how often.
struct DeviceLine {
    static let heading = " RSSI  ADDRESS            TYPE     NAME              SAYS" + spaces(40) + "EVERY"

    private let sighting: Sighting

    init(_ sighting: Sighting) {
        self.sighting = sighting
    }

    var text: String {
        let rssi = sighting.averageRSSI.map { String(Int($0.rounded())) } ?? "?"
        let kind = sighting.peer.map { $0.kind.rawValue } ?? "-"
        let columns: [(String, Int)] = [
            (Self.spaces(5 - rssi.count) + rssi, 5),
            (sighting.peer?.address.description ?? "anonymous", 17),
            (kind, 7),
            (sighting.name.map { $0.printable } ?? "-", 16),
            (says, 42),
            (sighting.interval.map { Self.seconds($0) } ?? "", 0),
        ]
        return columns.map { text, width in text + Self.spaces(width - text.count) }.joined(separator: "  ")
    }

    /// What the advertisement offers, the most telling first.
    private var says: String {
        var parts: [String] = []
        let services = sighting.serviceUUIDs.map { AssignedNumbers.serviceName($0) ?? $0.description }
        if !services.isEmpty { parts.append(services.joined(separator: ", ")) }
        for data in sighting.serviceData {
            let name = AssignedNumbers.serviceName(data.service) ?? data.service.description
            parts.append("\(name) data \(data.data.count) B")
        }
        for data in sighting.manufacturerData {
            let name = AssignedNumbers.companyName(data.company) ?? "company \(data.company)"
            parts.append("\(name) \(data.data.count) B")
        }
        if sighting.isConnectable { parts.append("connectable") }
        return parts.joined(separator: " · ").printable
    }

    private static func seconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    private static func spaces(_ count: Int) -> String {
        String(repeating: " ", count: max(0, count))
    }
}
