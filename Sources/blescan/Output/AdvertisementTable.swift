import BLECore

/// The usual table of structures: length, type, value, and the decoded value.
enum AdvertisementTable {
    /// Returns the lines for a decoded line of input, without a newline after the last one.
    ///
    /// - Parameters:
    ///   - line: Its number in the input, for a heading and error messages.
    ///   - isAlone: Whether it is the only line, which has no heading.
    static func text(of input: DecodedInput, line: Int? = nil, isAlone: Bool = false) -> String {
        var text = ""
        append(input, line: line, isAlone: isAlone, to: &text)
        return String(text.dropLast())
    }

    /// Returns a table in colours, the heading bold and defects red, and in lines of at most this number of columns.
    ///
    /// - Parameter columns: `nil` for another output than a terminal, whose reader may be a script.
    static func painted(_ table: String, _ look: ScreenLook, in columns: Int?) -> String {
        guard look.isColoured || columns != nil else { return table }
        let lines = table.split(separator: "\n", omittingEmptySubsequences: false).flatMap { row -> [StyledText] in
            let text = styled(row)
            return columns.map { text.wrapped(to: $0, indent: indent(of: row)) } ?? [text]
        }
        return lines.map { $0.painted(look) }.joined(separator: "\n")
    }

    private static func styled(_ row: Substring) -> StyledText {
        let style: ScreenStyle = row.hasPrefix(" LEN ") ? .bold : row.hasPrefix(defectMark) ? .red : []
        guard style.isEmpty, row.count > valueColumn else { return StyledText(String(row), style) }
        // The type and the value, which begins with the bytes, or with a UUID and its dashes.
        let value = row.dropFirst(valueColumn)
        var text = StyledText(String(row.prefix(valueColumn)))
        let bytes = value.prefix { $0.isHexDigit || $0 == "-" }
        text.add(String(bytes), .dim)
        text.add(String(value.dropFirst(bytes.count)), .green)
        return text
    }

    /// Returns the column in which a row goes on: below the value, below the text about a defect, or near the edge for
    /// the line about a sender.
    private static func indent(of row: Substring) -> Int {
        if row.hasPrefix(defectMark) { return defectMark.count }
        return row.hasPrefix(" ") ? valueColumn : 2
    }

    /// The beginning of a row about a defect.
    private static let defectMark = " !    "

    static func append(_ input: DecodedInput, line: Int? = nil, isAlone: Bool = false, to text: inout String) {
        let place = line.map { "line \($0): " } ?? ""
        let heading = isAlone ? "" : line.map { "line \($0)\n" } ?? ""
        switch input {
        case .payload(let data):
            text += heading
            append(data, to: &text)
        case .event(let reports, let problem):
            if !reports.isEmpty { text += heading }
            for (index, report) in reports.enumerated() {
                if index > 0 { text += "\n" }
                text += Self.heading(report) + "\n"
                append(report.advertisingData, from: report.address, to: &text)
            }
            if let problem { text += "\(defectMark)\(place)\(problem)\n" }
        case .unreadable(let reason):
            text += "\(defectMark)\(place)not hexadecimal: \(reason)\n"
        case .tooLong(let length):
            text += "\(defectMark)\(place)too long: \(length)\n"
        }
    }

    /// Appends the table of one payload.
    static func append(_ data: AdvertisingData, from sender: BluetoothAddress? = nil, to text: inout String) {
        let senders = sender.map { [$0] } ?? []
        var rows = ""
        for structure in data.structures {
            let type = Hex.encode([structure.type.rawValue]) + " " + structure.type.label
            let length = String(structure.value.count + 1)
            rows += padded("", 4 - length.count) + length + "  " + padded(type, 26)
            rows += lines(StructureText.lines(structure, of: data, from: senders)) + "\n"
        }
        if !rows.isEmpty { text += " LEN  TYPE                      VALUE\n" + rows }
        if rows.isEmpty && data.defects.isEmpty { text += " no advertising data\n" }
        for defect in data.defects { text += "\(defectMark)\(defect)\n" }
    }

    /// Returns one line about the sender of a report.
    static func heading(_ report: AdvertisingReport) -> String {
        var words = report.address?.description ?? "anonymous"
        if let peer = report.peer { words += " \(peer.kind.rawValue)" }
        words += report.rssi.map { "  \($0) dBm" } ?? "  no RSSI"
        if report.isScanResponse { words += "  scan response" }
        return words + properties(report)
    }

    /// Returns the sender's properties, and how the report came, each after two spaces.
    static func properties(_ report: AdvertisingReport) -> String {
        var words = ""
        if report.isConnectable { words += "  connectable" }
        if report.isScannable { words += "  scannable" }
        if let direct = report.directAddress {
            words += "  directed to \(direct)"
        } else if report.isDirected {
            words += "  directed"
        }
        if report.event == .extended && !report.isLegacy {
            words += "  extended, \(report.primaryPHY)"
            if let secondary = report.secondaryPHY { words += " and \(secondary)" }
            if let sid = report.sid { words += ", set \(sid)" }
            if let power = report.txPower { words += ", sent at \(power) dBm" }
        }
        switch report.dataStatus {
        case .complete: break
        case .incomplete: words += "  (a fragment: more follows)"
        case .truncated: words += "  (truncated: the rest is lost)"
        }
        return words
    }

    /// The column of the values.
    static let valueColumn = 32

    private static func lines(_ lines: [String]) -> String {
        lines.joined(separator: "\n" + padded("", valueColumn))
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

extension AdvertisingDataType {
    /// The type's name, short enough for a column of 22 characters.
    var label: String {
        switch self {
        case .incomplete16BitServiceUUIDs: "Services 16-bit, some"
        case .complete16BitServiceUUIDs: "Services 16-bit"
        case .incomplete32BitServiceUUIDs: "Services 32-bit, some"
        case .complete32BitServiceUUIDs: "Services 32-bit"
        case .incomplete128BitServiceUUIDs: "Services 128-bit, some"
        case .complete128BitServiceUUIDs: "Services 128-bit"
        case .shortenedLocalName: "Name, shortened"
        case .completeLocalName: "Name"
        case .txPowerLevel: "TX power"
        case .simplePairingHashC192: "Pairing hash C-192"
        case .simplePairingRandomizerR192: "Pairing random R-192"
        case .securityManagerTKValue: "Security Manager TK"
        case .securityManagerOutOfBandFlags: "Out of band flags"
        case .peripheralConnectionIntervalRange: "Connection interval"
        case .solicited16BitServiceUUIDs: "Solicits 16-bit"
        case .solicited32BitServiceUUIDs: "Solicits 32-bit"
        case .solicited128BitServiceUUIDs: "Solicits 128-bit"
        case .serviceData16Bit: "Service data 16-bit"
        case .serviceData32Bit: "Service data 32-bit"
        case .serviceData128Bit: "Service data 128-bit"
        case .advertisingIntervalLong: "Advertising interval"
        case .leDeviceAddress: "LE device address"
        case .simplePairingHashC256: "Pairing hash C-256"
        case .simplePairingRandomizerR256: "Pairing random R-256"
        case .secureConnectionsConfirmation: "SC confirmation"
        case .secureConnectionsRandom: "SC random"
        case .transportDiscoveryData: "Transport discovery"
        case .channelMapUpdateIndication: "Channel map update"
        case .resolvableSetIdentifier: "Resolvable set id"
        case .encryptedAdvertisingData: "Encrypted data"
        case .periodicAdvertisingResponseTiming: "Response timing"
        case .electronicShelfLabel: "Shelf label"
        case .threeDInformationData: "3D information"
        case .manufacturerSpecificData: "Manufacturer data"
        default: AssignedNumbers.adTypeName(rawValue) ?? "Unknown type"
        }
    }
}
