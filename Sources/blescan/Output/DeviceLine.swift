import BLECore

/// One device of a scan on one line: strength, address, name, data and interval.
struct DeviceLine {
    static let heading = " RSSI  ADDRESS            TYPE      NAME              DATA" + spaces(40) + "EVERY"

    private let scanResult: ScanResult

    init(_ scanResult: ScanResult) {
        self.scanResult = scanResult
    }

    var text: String {
        columns.map { $0.text.padded(to: $0.width) }.joined(separator: "  ")
    }

    /// The same in the styles of the live table.
    var styled: StyledText {
        var line = StyledText()
        for column in columns {
            if line.width > 0 { line.add("  ") }
            line.add(column.text, column.style)
            line.add(Self.spaces(column.width - ScreenText.width(column.text)))
        }
        return line
    }

    private var columns: [(text: String, width: Int, style: ScreenStyle)] {
        let strength = scanResult.averageRSSI.map { Int($0.rounded()) }
        let rssi = strength.map(String.init) ?? "?"
        let address = scanResult.id.peer?.address.description ?? "anonymous"
        let kind = scanResult.id.peer?.kind.short ?? "-"
        let name = scanResult.shownName?.printable ?? "-"
        let interval = scanResult.interval.map { Self.seconds($0) } ?? ""
        return [
            (Self.spaces(5 - rssi.count) + rssi, 5, ScreenStyle.strength(strength)),
            (address, 17, []),
            (kind, 8, []),
            (name, 16, .title),
            (DeviceData(scanResult).text, 42, []),
            (interval, 0, []),
        ]
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

extension ScanResult {
    /// The name without the zeros that many devices fill it with; `nil` for a device without one.
    var unpaddedName: String? {
        guard let name else { return nil }
        var scalars = name.unicodeScalars
        while scalars.last == "\0" { scalars.removeLast() }
        return String(scalars)
    }

    /// The same in a form that shows that there is a name.
    var shownName: String? {
        guard let name = unpaddedName else { return nil }
        if name.isEmpty { return "(empty)" }
        return name.unicodeScalars.allSatisfy(\.properties.isWhitespace) ? "\"\(name)\"" : name
    }
}

extension BluetoothAddress.Kind {
    /// The kind in a column of eight characters.
    var short: String { self == .nonResolvablePrivate ? "non-res." : rawValue }
}
