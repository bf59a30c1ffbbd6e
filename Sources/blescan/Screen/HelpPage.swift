/// A page that describes the keys of a screen.
struct HelpPage {
    let area: ScreenArea

    /// Returns the descriptions of the keys in groups, from a line on; the heading stays.
    ///
    /// - Parameter quits: The key that is no way back, and its effect.
    /// - Returns: The lines, and the first one that there is a reason to begin with.
    func lines(
        _ groups: [[(String, String)]], from first: Int, quits: String
    ) -> (lines: [ScreenLine], first: Int) {
        let lines = Array(
            groups.map { group in group.flatMap { self.lines($0.0, $0.1) } }.joined(separator: [area.empty]))
        let room = max(0, area.rows - 1)
        let arrows = lines.count > room ? (area.look.isUnicode ? "↑ ↓ more · " : "j k more | ") : ""
        let hints = [arrows + quits + " · any other key goes back", arrows + quits, quits]
        let hint = hints.first { $0.count + 6 <= area.columns } ?? ""
        let start = max(0, min(first, lines.count - room))
        return ([.title([("KEYS", .bold)], keys: hint, area.columns, area.look)] + lines[start...].prefix(room), start)
    }

    /// Returns a key with its description beside it, or below it on a narrow screen.
    private func lines(_ key: String, _ meaning: String) -> [ScreenLine] {
        let isNarrow = area.columns < 40
        let indent = isNarrow ? 3 : 13
        let texts = ScreenText.shown(meaning, area.look).wrapped(to: max(8, area.columns - indent))
        var lines = isNarrow && !key.isEmpty ? [area.line(" " + key, .bold)] : []
        for (number, text) in texts.enumerated() {
            var line = area.empty
            if number == 0, !isNarrow { line.add(" " + key, .bold, column: indent) } else { line.skip(indent) }
            line.add(text)
            lines.append(line)
        }
        return lines
    }
}
