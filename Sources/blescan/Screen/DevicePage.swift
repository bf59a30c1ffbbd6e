import BLECore

/// A page with all that is known of one device of the live table.
struct DevicePage {
    let row: ScreenRow
    let area: ScreenArea
    let now: BootInstant
    /// Whether it is a device of a recording.
    var isRecorded = false

    /// A line of the page, and the column in which its continuation begins.
    private struct Fact {
        var text: String
        var indent = 0
        /// Whether it was not there before the last change, and what was there in its place.
        var isChanged = false
        var former: String?
    }

    private static let changed: ScreenStyle = [.bold, .yellow]

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
        let open = isRecorded ? "c recorded link" : "c connect"
        let keys = [open + " · Esc back · q quit", "Esc back · q quit"]
        return .title(
            parts, keys: keys.first { needed + $0.count + 2 <= area.columns } ?? "Esc back", area.columns, area.look)
    }

    private func wrapped(_ fact: Fact) -> [ScreenLine] {
        let text = ScreenText.shown(fact.text, area.look)
        guard ScreenText.width(text) > area.columns else { return [line(text, fact)] }
        return text.wrapped(to: area.columns, indent: fact.indent).map {
            area.line($0, fact.isChanged ? Self.changed : [])
        }
    }

    /// Returns a line in which only what has changed stands out.
    private func line(_ text: String, _ fact: Fact) -> ScreenLine {
        guard fact.isChanged else { return area.line(fact.text) }
        let former = fact.former.map { ScreenText.shown($0, area.look) }
        var line = area.empty
        for piece in Self.pieces(of: text, since: former) {
            line.add(piece.text, piece.isChanged ? Self.changed : [])
        }
        return line
    }

    /// Returns a line of the table in pieces that differ from the former line, and pieces that do not. Of a byte both
    /// digits differ. Without a line of the same length all of the value does.
    private static func pieces(of text: String, since former: String?) -> [(text: String, isChanged: Bool)] {
        let (new, old) = (Array(text), former.map { Array($0) } ?? [])
        var changes = new.indices.map { $0 >= AdvertisementTable.valueColumn }
        if old.count == new.count {
            changes = zip(new, old).map { $0 != $1 }
            var place = AdvertisementTable.valueColumn
            while place + 1 < new.count, new[place].isHexDigit, new[place + 1].isHexDigit {
                let isChanged = changes[place] || changes[place + 1]
                changes[place] = isChanged
                changes[place + 1] = isChanged
                place += 2
                // Groups of bytes are one blank apart, the decoded value two.
                if place < new.count, new[place] == " " { place += 1 }
            }
        }
        var pieces: [(text: String, isChanged: Bool)] = []
        for (character, isChanged) in zip(new, changes) {
            if let last = pieces.indices.last, pieces[last].isChanged == isChanged {
                pieces[last].text.append(character)
            } else {
                pieces.append((String(character), isChanged))
            }
        }
        return pieces
    }

    private var facts: [Fact] {
        let scanResult = row.scanResult
        var strength = scanResult.rssi.map { "\($0) dBm" } ?? "not measured"
        if let average = row.average, let range = row.range {
            strength += ", \(average) on average, between \(range.lowerBound) and \(range.upperBound)"
        }
        var facts = [
            "RSSI      \(strength)", trace,
            "packets   \(row.count), the first \(Self.ago(now - row.began)), "
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
        for (title, report, former) in [
            ("ADVERTISEMENT", scanResult.advertisement, row.former.advertisement),
            ("SCAN RESPONSE", scanResult.scanResponse, row.former.scanResponse),
        ] {
            guard let report else { continue }
            lines += [Fact(text: ""), Fact(text: title + "  " + AdvertisementTable.properties(report), indent: 2)]
            lines += table(of: report.advertisingData, since: former)
        }
        return lines
    }

    /// Returns the structures of a payload, with what differs from the former one.
    private func table(of data: AdvertisingData, since former: AdvertisingData?) -> [Fact] {
        let (lines, old) = (Self.tableLines(of: data), former.map(Self.tableLines(of:)) ?? [])
        let known = Set(former == nil ? lines : old)
        return lines.enumerated().map { number, line in
            var fact = Fact(text: line, indent: AdvertisementTable.valueColumn)
            fact.isChanged = !known.contains(line)
            if old.count == lines.count { fact.former = old[number] }
            return fact
        }
    }

    private static func tableLines(of data: AdvertisingData) -> [String] {
        var text = ""
        AdvertisementTable.append(data, to: &text)
        return text.split(separator: "\n").map(String.init)
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
