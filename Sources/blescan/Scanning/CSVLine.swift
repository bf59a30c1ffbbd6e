import BLECore
import BLEProfiles

/// A column of `--format csv`.
enum CSVField: Hashable, Sendable {
    case time, event, address, addressType, addressKind, identity, name, rssi, connectable, services, hex, responseHex,
        decoded
    /// A measurement by its key, such as `temperature`.
    case measurement(String)

    /// The columns without `--fields`.
    static let usual: [CSVField] = [
        .time, .address, .addressKind, .name, .rssi, .services, .measurement("temperature"), .measurement("humidity"),
        .measurement("battery"), .decoded,
    ]

    private static let fixed: [(name: String, field: CSVField)] = [
        ("t", .time), ("event", .event), ("address", .address), ("addressType", .addressType),
        ("addressKind", .addressKind), ("identity", .identity), ("name", .name), ("rssi", .rssi),
        ("connectable", .connectable), ("services", .services), ("hex", .hex), ("scanResponseHex", .responseHex),
        ("decoded", .decoded),
    ]
    /// The measurements that all formats name in the same way.
    private static let measurements = ["temperature", "humidity", "pressure", "battery", "voltage", "illuminance"]

    /// The names of all columns, for users.
    static var names: String {
        (fixed.map(\.name) + measurements).joined(separator: ", ") + ", and decoded.KEY for any other key"
    }

    /// Creates the column of this name; `nil` if there is none.
    init?(named name: String) {
        if let known = Self.fixed.first(where: { $0.name == name }) {
            self = known.field
        } else if Self.measurements.contains(name) {
            self = .measurement(name)
        } else if let key = name.dropped(prefix: "decoded."), !key.isEmpty,
            key.allSatisfy({ $0.isLetter || $0.isNumber })
        {
            self = .measurement(key)
        } else {
            return nil
        }
    }

    /// The name in the header.
    var name: String {
        if case .measurement(let key) = self { return Self.measurements.contains(key) ? key : "decoded." + key }
        return Self.fixed.first { $0.field == self }?.name ?? ""
    }
}

/// The columns of `--fields` on the command line.
struct FieldsArgument: Hashable, Sendable {
    let fields: [CSVField]

    /// Parses an argument.
    ///
    /// - Throws: `BadValue`, which lists the columns.
    init(argument: String) throws(BadValue) {
        var fields: [CSVField] = []
        for name in argument.split(separator: ",", omittingEmptySubsequences: false) {
            guard let field = CSVField(named: String(name)) else {
                throw BadValue(description: "there is no field '\(name)'. The fields are \(CSVField.names).")
            }
            fields.append(field)
        }
        self.fields = fields
    }
}

/// Lines of comma-separated values.
///
/// Spec: RFC 4180, with LF as the end of a line. A text of a device that a spreadsheet would take for a formula begins
/// with an apostrophe. So does one that begins with an apostrophe itself: a reader removes one, and has the text. An
/// empty cell that is alone in its line is `""`: many readers skip a line without characters.
enum CSVLine {
    /// Returns the first line.
    static func header(_ fields: [CSVField]) -> [UInt8] {
        Array(fields.map(\.name).joined(separator: ",").utf8)
    }

    /// Returns the line of a scan result.
    static func bytes(
        _ scanResult: ScanResult, _ fields: [CSVField], event: ScanLines.Event, at time: String
    ) -> [UInt8] {
        let decoded = SensorKeys.decoded(scanResult)
        let cells = fields.map { cell($0, scanResult, decoded, event, time) }
        return Array((cells == [""] ? "\"\"" : cells.joined(separator: ",")).utf8)
    }

    private static func cell(
        _ field: CSVField, _ scanResult: ScanResult, _ decoded: [DecodedAdvertisement], _ event: ScanLines.Event,
        _ time: String
    ) -> String {
        switch field {
        case .time: time
        case .event: event.rawValue
        case .address: scanResult.peer?.address.description ?? ""
        case .addressType: scanResult.peer.map { $0.type == .public ? "public" : "random" } ?? ""
        case .addressKind: scanResult.peer?.kind.rawValue ?? ""
        case .identity: scanResult.identity?.description ?? ""
        case .name: text(scanResult.name ?? "")
        case .rssi: scanResult.rssi.map(String.init) ?? ""
        case .connectable: scanResult.isConnectable ? "true" : "false"
        case .services: scanResult.serviceUUIDs.map(\.description).joined(separator: " ")
        case .hex: scanResult.advertisement.map { Hex.encode($0.data) } ?? ""
        case .responseHex: scanResult.scanResponse.map { Hex.encode($0.data) } ?? ""
        case .decoded: text(decoded.map(\.description).joined(separator: "; "))
        case .measurement(let key):
            decoded.lazy.compactMap { $0.fields.first { $0.key == key } }.first.map(value) ?? ""
        }
    }

    /// Returns a device's text as a cell.
    static func text(_ text: String) -> String {
        // Spreadsheets skip blanks before a formula, and take full-width signs too.
        let start = text.unicodeScalars.first { !$0.properties.isWhitespace }
        let isFormula = start.map { "=+-@\u{FF1D}\u{FF0B}\u{FF0D}\u{FF20}".unicodeScalars.contains($0) } ?? false
        let isMarked = text.unicodeScalars.first == "'"
        return quoted((isFormula || isMarked ? "'" : "") + text.printable)
    }

    /// Scalar by scalar: a mark after a comma or a quote makes another character of it, and no other separator.
    private static func quoted(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x2C || $0 == 0x22 }) else { return text }
        var cell = "\"".unicodeScalars
        for scalar in text.unicodeScalars {
            if scalar == "\"" { cell.append(scalar) }
            cell.append(scalar)
        }
        cell.append("\"")
        return String(cell)
    }

    /// Returns a quantity as its number, and anything else in words, as a cell; an unknown value is empty.
    static func value(_ field: ValueField) -> String {
        switch field.content {
        case .integer, .decimal, .flag: field.json.text
        case .float(let number): number.isFinite ? field.json.text : ""
        case .text(let text), .quoted(let text): self.text(text)
        // The column has the field's name.
        case .named, .list: text(ValueField(field.content, unit: field.unit).text)
        case .missing: ""
        }
    }
}
