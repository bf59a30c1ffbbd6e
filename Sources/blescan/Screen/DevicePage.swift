import BLECore

/// A page with all that is known of one device of the live table.
struct DevicePage {
    let row: ScreenRow
    let area: ScreenArea
    let now: BootInstant

    /// A line of the page, and the column in which its continuation begins.
    private struct Fact {
        var text: String
        var indent = 0
    }

    /// Returns the page from a line on, in this number of rows below the heading, which stays.
    ///
    /// - Returns: The lines, and the first one that there is a reason to begin with.
    func lines(from first: Int, rows: Int) -> (lines: [ScreenLine], first: Int) {
        let lines = facts.flatMap(wrapped)
        let start = max(0, min(first, lines.count - rows))
        return ([title] + lines[start...].prefix(rows), start)
    }

    private var title: ScreenLine {
        var parts: [(String, ScreenStyle)] = [
            (row.scanResult.id.peer?.address.description ?? "anonymous", .bold),
            ("  " + (row.scanResult.id.peer?.kind.rawValue ?? "-"), []),
        ]
        if let name = row.name { parts.append(("  " + name, .bold)) }
        let needed = parts.reduce(0) { $0 + ScreenText.width(ScreenText.shown($1.0, area.look)) }
        let keys = ["c connect · Esc back · q quit", "Esc back · q quit"]
        return .title(
            parts, keys: keys.first { needed + $0.count + 2 <= area.columns } ?? "Esc back", area.columns, area.look)
    }

    private func wrapped(_ fact: Fact) -> [ScreenLine] {
        let text = ScreenText.shown(fact.text, area.look)
        guard ScreenText.width(text) > area.columns else { return [area.line(fact.text)] }
        // On a narrow screen there would be no room below the first line.
        let indent = fact.indent + 20 <= area.columns ? fact.indent : 2
        let head = text.prefix(indent)
        let rest = String(text.dropFirst(head.count)).wrapped(to: area.columns - indent)
        return rest.enumerated().map { number, part in
            area.line((number == 0 ? String(head) : String(repeating: " ", count: indent)) + part)
        }
    }

    private var facts: [Fact] {
        let scanResult = row.scanResult
        var strength = scanResult.rssi.map { "\($0) dBm" } ?? "not measured"
        if let average = row.strength, let range = row.range {
            strength += ", \(average) on average, between \(range.lowerBound) and \(range.upperBound)"
        }
        var facts = [
            "RSSI      \(strength)", trace,
            "packets   \(scanResult.count), the first \(Self.ago(now - scanResult.firstSeen)), "
                + "the last \(Self.ago(row.silence(at: now)))",
        ]
        if let interval = scanResult.interval {
            var text = "every     " + DeviceLine.seconds(interval)
            if let gaps = row.history.gaps {
                text +=
                    ", \(DeviceLine.seconds(gaps.mean)) on average, between \(DeviceLine.seconds(gaps.least))"
                    + " and \(DeviceLine.seconds(gaps.most))"
            }
            facts.append(text)
        }
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

    /// The RSSI of the last two minutes, or of as many seconds as there are columns for, between -100 and -36 dBm.
    private var trace: String {
        let count = max(1, min(SignalHistory.stepCount, area.columns - 10))
        let title = "last " + ScreenRow.age(SignalHistory.step * count)
        let strengths = row.history.strengths(of: count, at: now).map { $0.map(Double.init) }
        return title.padded(to: 10) + Sparkline.text(strengths, between: -100, and: -36, area.look)
    }

    private static func ago(_ duration: Duration) -> String {
        let age = ScreenRow.age(duration)
        return age == "now" ? age : age + " ago"
    }
}
