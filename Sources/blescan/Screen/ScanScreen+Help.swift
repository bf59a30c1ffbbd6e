extension ScanScreen {
    /// Returns the description of the keys, from a line on; the heading stays.
    mutating func keyLines(from first: Int) -> [ScreenLine] {
        let keys: [(String, String)] = [
            ("q  ^C", "quit"),
            ("s  S", "sort by the next of: strength, name, address, last seen; reverse"),
            ("/  f", "filter by a part of name, address, type or data"),
            ("", "Enter keeps the filter, Esc clears it"),
            ("d", "hide devices without a name"),
            ("Space  p", "freeze the table; again: go on"),
            ("arrows  j k", "select a device; also the page keys, Home and End"),
            ("Enter", "details; Esc goes back, ← → show the next device"),
            ("c", "connect to the device, and browse its services and values"),
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
        let page = HelpPage(columns: columns, rows: rows, look: look)
        let (lines, start) = page.lines([keys, marks], from: first, quits: "q quit")
        pageBegins(with: start)
        return lines
    }
}
