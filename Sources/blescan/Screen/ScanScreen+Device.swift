import BLECore

extension ScanScreen {
    /// Returns the structures of advertisement and scan response, as `decode` shows them.
    func structures(of scanResult: ScanResult) -> [String] {
        var text = ""
        if let advertisement = scanResult.advertisement {
            AdvertisementTable.append(advertisement.advertisingData, to: &text)
        }
        if let response = scanResult.scanResponse {
            text += " scan response\n"
            AdvertisementTable.append(response.advertisingData, to: &text)
        }
        return text.split(separator: "\n").map(String.init)
    }

    /// Returns one device with all its data, from a line on; the heading stays.
    mutating func deviceLines(_ id: AdvertiserID, from first: Int, at now: BootInstant) -> [ScreenLine] {
        guard let row = devices[id] else {
            closeDevice()
            return frame(at: now)
        }
        var parts: [(String, ScreenStyle)] = [
            (row.scanResult.id.peer?.address.description ?? "anonymous", .bold),
            ("  " + (row.scanResult.id.peer?.kind.rawValue ?? "-"), []),
        ]
        if let name = row.name { parts.append(("  " + name, .bold)) }
        let needed = parts.reduce(0) { $0 + ScreenText.width(ScreenText.shown($1.0, look)) }
        let keys = ["c connect · Esc back · q quit", "Esc back · q quit", "Esc back"]
        let title = ScreenLine.title(
            parts, keys: keys.first { needed + $0.count + 2 <= columns } ?? "Esc back", columns, look)
        let lines = facts(of: row, at: now).flatMap(wrapped)
        let notices = notice.map { noticeLines($0) } ?? []
        let room = max(0, rows - 1 - notices.count)
        let start = max(0, min(first, lines.count - room))
        pageBegins(with: start)
        var shown = [title] + lines[start...].prefix(room)
        while !notices.isEmpty, shown.count < rows - notices.count { shown.append(empty) }
        return shown + notices
    }

    /// Returns the lines of a notice, at most a third of the screen.
    func noticeLines(_ notice: String) -> [ScreenLine] {
        ScreenText.shown(notice, look).wrapped(to: columns).prefix(max(1, rows / 3)).map { line($0, .yellow) }
    }

    /// A line of the page, and the column in which its continuation begins.
    private struct Fact {
        var text: String
        var indent = 0
    }

    private func wrapped(_ fact: Fact) -> [ScreenLine] {
        let text = ScreenText.shown(fact.text, look)
        guard ScreenText.width(text) > columns else { return [line(fact.text)] }
        // On a narrow screen there would be no room below the first line.
        let indent = fact.indent + 20 <= columns ? fact.indent : 2
        let head = text.prefix(indent)
        let rest = String(text.dropFirst(head.count)).wrapped(to: columns - indent)
        return rest.enumerated().map { number, part in
            line((number == 0 ? String(head) : String(repeating: " ", count: indent)) + part)
        }
    }

    private func facts(of row: ScreenRow, at now: BootInstant) -> [Fact] {
        let scanResult = row.scanResult
        var strength = scanResult.rssi.map { "\($0) dBm" } ?? "not measured"
        if let average = row.strength, let range = row.range {
            strength += ", \(average) on average, between \(range.lowerBound) and \(range.upperBound)"
        }
        var facts = [
            "RSSI      \(strength)",
            "packets   \(scanResult.count), the first \(Self.ago(now - scanResult.firstSeen)), "
                + "the last \(Self.ago(row.silence(at: now)))",
        ]
        if let interval = scanResult.interval { facts.append("every     " + DeviceLine.seconds(interval)) }
        if scanResult.identity != nil, let peer = scanResult.peer { facts.append("on air    \(peer.address)") }
        if let set = scanResult.id.sid { facts.append("set       #\(set)") }
        if !row.data.isEmpty { facts.append("data      " + row.data) }
        var lines = facts.map { Fact(text: $0, indent: 10) }
        for (title, report) in [
            ("ADVERTISEMENT", scanResult.advertisement), ("SCAN RESPONSE", scanResult.scanResponse),
        ] {
            guard let report else { continue }
            lines += [Fact(text: ""), Fact(text: title + "  " + AdvertisementTable.properties(report), indent: 2)]
            var text = ""
            AdvertisementTable.append(report.advertisingData, to: &text)
            lines += text.split(separator: "\n").map { Fact(text: String($0), indent: AdvertisementTable.valueColumn) }
        }
        return lines
    }

    private static func ago(_ duration: Duration) -> String {
        let age = ScreenRow.age(duration)
        return age == "now" ? age : age + " ago"
    }
}
