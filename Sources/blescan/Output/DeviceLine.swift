import BLECore
import BLEProfiles

/// One device of a scan on one line: strength, address, name, data and interval.
struct DeviceLine {
    static let heading = " RSSI  ADDRESS            TYPE     NAME              SAYS" + spaces(40) + "EVERY"

    private let scanResult: ScanResult

    init(_ scanResult: ScanResult) {
        self.scanResult = scanResult
    }

    var text: String {
        let rssi = scanResult.averageRSSI.map { String(Int($0.rounded())) } ?? "?"
        let kind = scanResult.id.peer.map { $0.kind.rawValue } ?? "-"
        let columns: [(String, Int)] = [
            (Self.spaces(5 - rssi.count) + rssi, 5),
            (scanResult.id.peer?.address.description ?? "anonymous", 17),
            (kind, 7),
            (scanResult.name.map { $0.printable } ?? "-", 16),
            (says, 42),
            (scanResult.interval.map { Self.seconds($0) } ?? "", 0),
        ]
        return columns.map { text, width in text + Self.spaces(width - text.count) }.joined(separator: "  ")
    }

    /// The contents of the advertisement, the most informative first.
    var says: String {
        var parts: [String] = []
        let services = scanResult.serviceUUIDs.map { AssignedNumbers.serviceName($0) ?? $0.description }
        if !services.isEmpty { parts.append(services.joined(separator: ", ")) }
        let payload = scanResult.payload
        payload.forEachStructure { type, value in
            if let part = Self.says(type, value, in: payload) { parts.append(part) }
        }
        if scanResult.isConnectable { parts.append("connectable") }
        return parts.joined(separator: " · ").printable
    }

    /// Returns a structure's decoded value, or its owner and length if that is not known.
    private static func says(
        _ type: AdvertisingDataType, _ value: Span<UInt8>, in payload: AdvertisingData
    ) -> String? {
        var reader = ByteReader(value)
        let structure = AdvertisingData.Structure(type: type, value: reader.rest())
        if let meaning = payload.decoded(structure) { return meaning.description }
        let alone = AdvertisingData(joining: [structure])
        if let data = alone.serviceData.first {
            let name = AssignedNumbers.serviceName(data.service) ?? data.service.description
            return "\(name) data \(data.data.count) B"
        }
        if let data = alone.manufacturerData.first {
            let name = AssignedNumbers.companyName(data.company) ?? "company \(data.company)"
            return "\(name) \(data.data.count) B"
        }
        return nil
    }

    /// Returns a text such as `2.5 s`.
    static func seconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    private static func spaces(_ count: Int) -> String {
        String(repeating: " ", count: max(0, count))
    }
}
