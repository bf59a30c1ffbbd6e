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
            ("s", "sort by the next of: strength, name, address, last seen"),
            ("/  f", "filter by a part of name, address, type or what it says"),
            ("", "Enter keeps the filter, Esc clears it"),
            ("arrows  j k", "select a device; also the page keys, Home and End"),
            ("Enter", "everything about the selected device; Esc goes back"),
            ("r", "structures of the selected device in the table"),
            ("Esc", "clear the filter, then the selection"),
            ("^L", "redraw the screen"),
            ("^Z", "stop; `fg` resumes"),
        ]
        let marks: [(String, String)] = [
            (look.isUnicode ? "↓" : "*", "in the headings: what the table is sorted by"),
            (look.isUnicode ? "▴ · ▾" : "+ = -", "after the bar: comes nearer, stays, goes away"),
        ]
        return keys.flatMap { helpLines($0, $1) } + [empty] + marks.flatMap { helpLines($0, $1) }
    }

    /// Returns a key with its description beside it, or below it on a narrow screen.
    private func helpLines(_ key: String, _ meaning: String) -> [ScreenLine] {
        let isNarrow = columns < 40
        let indent = isNarrow ? 3 : 13
        let texts = Self.wrapped(meaning, to: max(8, columns - indent))
        var lines: [ScreenLine] = isNarrow && !key.isEmpty ? [line(" " + key, .bold)] : []
        for (number, text) in texts.enumerated() {
            var line = empty
            if number == 0, !isNarrow { line.add(" " + key, .bold, column: indent) } else { line.skip(indent) }
            line.add(text)
            lines.append(line)
        }
        return lines
    }

    /// Returns the words in lines of at most this number of characters, unless a word is longer.
    private static func wrapped(_ text: String, to width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = last + " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
