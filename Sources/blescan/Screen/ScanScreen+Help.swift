extension ScanScreen {
    /// Returns the description of the keys, from a line on; the heading stays.
    mutating func keyLines(from first: Int) -> [ScreenLine] {
        let lines = helpLines()
        let room = max(0, rows - 1)
        let isLong = lines.count > room
        let arrows = look.isUnicode ? "↑ ↓ more · " : "j k more | "
        let hints = [
            (isLong ? arrows : "") + "q quit · any other key goes back", (isLong ? arrows : "") + "q quit", "q quit",
        ]
        let hint = hints.first { $0.count + 6 <= columns } ?? ""
        let start = max(0, min(first, lines.count - room))
        // Otherwise the way back would be as long as the way beyond the end.
        view = .keys(line: start)
        return [title([("KEYS", .bold)], keys: hint)] + lines[start...].prefix(room)
    }

    private func helpLines() -> [ScreenLine] {
        let keys: [(String, String)] = [
            ("q  ^C", "quit"),
            ("s  S", "sort by the next of: strength, name, address, last seen; reverse"),
            ("/  f", "filter by a part of name, address, type or data"),
            ("", "Enter keeps the filter, Esc clears it"),
            ("d", "hide devices without a name"),
            ("Space  p", "freeze the table; again: go on"),
            ("arrows  j k", "select a device; also the page keys, Home and End"),
            ("Enter", "details; Esc goes back, ← → show the next device"),
            ("r", "structures of the selected device in the table"),
            ("Esc", "clear the filter, then the selection"),
            ("^L", "redraw"),
            ("^Z", "suspend; `fg` resumes"),
        ]
        let marks: [(String, String)] = [
            (look.isUnicode ? "↓" : "*", "in the headings: what the table is sorted by"),
            (look.isUnicode ? "▴ · ▾" : "+ = -", "after the bar: comes nearer, stays, goes away"),
            ("#1", "after the address: one of the device's advertising sets"),
        ]
        return keys.flatMap { helpLines($0, $1) } + [empty] + marks.flatMap { helpLines($0, $1) }
    }

    /// Returns a key with its description beside it, or below it on a narrow screen.
    private func helpLines(_ key: String, _ meaning: String) -> [ScreenLine] {
        let isNarrow = columns < 40
        let indent = isNarrow ? 3 : 13
        let texts = meaning.wrapped(to: max(8, columns - indent))
        var lines: [ScreenLine] = isNarrow && !key.isEmpty ? [line(" " + key, .bold)] : []
        for (number, text) in texts.enumerated() {
            var line = empty
            if number == 0, !isNarrow { line.add(" " + key, .bold, column: indent) } else { line.skip(indent) }
            line.add(text)
            lines.append(line)
        }
        return lines
    }
}
