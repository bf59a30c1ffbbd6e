import BLECore

extension ScanScreen {
    /// The structures of advertisement and scan response, as `decode` shows them.
    func structures(of sighting: Sighting) -> [String] {
        var text = ""
        if let advertisement = sighting.advertisement {
            AdvertisementTable.append(advertisement.advertisingData, to: &text)
        }
        if let response = sighting.scanResponse {
            text += " scan response\n"
            AdvertisementTable.append(response.advertisingData, to: &text)
        }
        return text.split(separator: "\n").map(String.init)
    }

    /// One device with everything that is known of it, from a line on; the heading stays.
    mutating func deviceLines(_ id: AdvertiserID, from first: Int, at now: BootInstant) -> [ScreenLine] {
        guard let row = devices[id] else {
            view = .table
            return frame(at: now)
        }
        var title = line(row.sighting.peer?.address.description ?? "anonymous", .bold)
        title.add("  " + (row.sighting.peer?.kind.rawValue ?? "-"))
        if let name = row.name { title.add("  " + name, .bold) }
        let keys = "Esc back · q quit"
        if columns - title.width >= keys.count + 2 {
            title.add(keys, .dim, column: columns - title.width, isRightAligned: true)
        }
        let lines = facts(of: row, at: now).map { line($0) }
        let room = max(0, rows - 1)
        let start = max(0, min(first, lines.count - room))
        // Otherwise the way back would be as long as the way beyond the end.
        view = .device(id, line: start)
        return [title] + lines[start...].prefix(room)
    }

    private func facts(of row: ScreenRow, at now: BootInstant) -> [String] {
        let sighting = row.sighting
        var strength = sighting.rssi.map { "\($0) dBm" } ?? "not measured"
        if let average = row.strength, let range = row.range {
            strength += ", \(average) on average, between \(range.lowerBound) and \(range.upperBound)"
        }
        var facts = [
            "RSSI      \(strength)",
            "packets   \(sighting.count), the first \(Self.ago(now - sighting.firstSeen)), "
                + "the last \(Self.ago(row.silence(at: now)))",
        ]
        if let interval = sighting.interval { facts.append("every     " + DeviceLine.seconds(interval)) }
        if let set = sighting.id.sid { facts.append("set       \(set)") }
        if !row.says.isEmpty { facts.append("says      " + row.says) }
        for (title, report) in [
            ("ADVERTISEMENT", sighting.advertisement), ("SCAN RESPONSE", sighting.scanResponse),
        ] {
            guard let report else { continue }
            facts += ["", title + "  " + AdvertisementTable.properties(report)]
            var text = ""
            AdvertisementTable.append(report.advertisingData, to: &text)
            facts += text.split(separator: "\n").map(String.init)
        }
        return facts
    }

    private static func ago(_ duration: Duration) -> String {
        let age = ScreenRow.age(duration)
        return age == "now" ? age : age + " ago"
    }

    /// What the keys do.
    func keyLines() -> [ScreenLine] {
        let keys: [(String, String)] = [
            ("q  ^C", "quit"),
            ("s", "sort by the next of: strength, name, address, last seen"),
            ("/  f", "filter by a part of name, address, type or what it says"),
            ("", "  Enter keeps the filter, Esc clears it"),
            ("arrows  j k", "select a device; also the page keys, Home and End"),
            ("Enter", "everything about the selected device; Esc goes back"),
            ("r", "structures of the selected device in the table"),
            ("Esc", "clear the filter, then the selection"),
            ("^L", "draw the screen anew"),
            ("^Z", "stop; `fg` goes on"),
        ]
        var lines = [line("KEYS", .bold)]
        for (key, meaning) in keys {
            var line = empty
            line.add(" " + key, .bold, column: 13)
            line.add(meaning)
            lines.append(line)
        }
        let trend = look.isUnicode ? "▴ · ▾" : "+ = -"
        return lines + [
            empty, line(" \(trend) behind RSSI: comes nearer, stays, goes away"), line(" any key goes back", .dim),
        ]
    }
}
