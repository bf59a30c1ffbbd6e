import BLECore

/// One device of a scan on one line: strength, address, name, data and interval.
struct DeviceLine {
    static let heading = " RSSI  ADDRESS            TYPE      NAME              DATA" + spaces(40) + "EVERY"

    private let scanResult: ScanResult

    init(_ scanResult: ScanResult) {
        self.scanResult = scanResult
    }

    var text: String {
        let rssi = scanResult.averageRSSI.map { String(Int($0.rounded())) } ?? "?"
        let kind = scanResult.id.peer?.kind.short ?? "-"
        let columns: [(String, Int)] = [
            (Self.spaces(5 - rssi.count) + rssi, 5),
            (scanResult.id.peer?.address.description ?? "anonymous", 17),
            (kind, 8),
            (scanResult.name.map { $0.printable } ?? "-", 16),
            (DeviceData(scanResult).text, 42),
            (scanResult.interval.map { Self.seconds($0) } ?? "", 0),
        ]
        return columns.map { text, width in text + Self.spaces(width - text.count) }.joined(separator: "  ")
    }

    /// Returns a text such as `2.5 s` or `20 ms`.
    static func seconds(_ duration: Duration) -> String {
        if duration < .seconds(1) { return "\(Int((duration / .milliseconds(1)).rounded())) ms" }
        let tenths = Int((duration / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    private static func spaces(_ count: Int) -> String {
        String(repeating: " ", count: max(0, count))
    }
}

extension BluetoothAddress.Kind {
    /// The kind in a column of eight characters.
    var short: String { self == .nonResolvablePrivate ? "non-res." : rawValue }
}
