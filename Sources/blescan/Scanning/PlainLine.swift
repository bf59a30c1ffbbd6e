import BLECore
import BLEProfiles

/// One report of a scan on one line, for users and for `grep`.
enum PlainLine {
    static func text(of scanResult: ScanResult, at time: String) -> String {
        let rssi = scanResult.rssi.map(String.init) ?? "?"
        var parts = [
            time, String(repeating: " ", count: max(0, 4 - rssi.count)) + rssi,
            (scanResult.peer?.address.description ?? "anonymous").padded(to: 17),
            (scanResult.peer?.kind.rawValue ?? "-").padded(to: 7), (scanResult.name?.printable ?? "-").padded(to: 16),
        ]
        let services = scanResult.serviceUUIDs.map(\.description)
        if !services.isEmpty { parts.append("uuids=" + services.joined(separator: ",")) }
        for data in scanResult.serviceData { parts.append("\(data.service)=\(Hex.encode(data.data))") }
        for data in scanResult.manufacturerData {
            parts.append("company-\(JSONLine.companyKey(data.company))=\(Hex.encode(data.data))")
        }
        if scanResult.isConnectable { parts.append("connectable") }
        for meaning in scanResult.decoded { parts.append(meaning.line) }
        return parts.joined(separator: "  ")
    }
}
