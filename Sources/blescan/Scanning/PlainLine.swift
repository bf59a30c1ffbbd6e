import BLECore
import BLEProfiles

/// One report of a scan on one line, for users and for `grep`.
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
