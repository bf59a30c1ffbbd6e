import BLECore

/// The list in which a recorded link is chosen: one that no device of the table has, or of a recording without
/// advertisements.
struct RecordedLinkList: Sendable {
    /// What a key requests.
    enum Choice: Hashable, Sendable {
        case stay
        case open(RecordedLinks.ID)
        /// The user goes back to the table.
        case leave
        case quit
    }

    /// The place of the selected entry.
    private var selected: Int
    /// The first entry that there was room for.
    private var top = 0
    /// The first line of the description of the keys; `nil` while the list is shown.
    private var keysLine: Int?
    /// The reason that the last key could do nothing, until the next key.
    private var notice: String?

    init(selecting place: Int = 0) {
        selected = place
    }

    var isReadingKeys: Bool { keysLine != nil }

    mutating func report(_ notice: String) {
        self.notice = notice
    }

    mutating func press(_ key: ScreenKey, _ links: RecordedLinks, rows: Int) -> Choice {
        notice = nil
        if key == .character("q") { return .quit }
        if let line = keysLine {
            keysLine = key.scrolled(line, rows: rows)
            return .stay
        }
        if let next = key.moved(from: selected, count: links.entries.count, page: max(1, rows - 3)) {
            selected = next
            return .stay
        }
        switch key {
        case .enter, .character("c"):
            guard links.entries.indices.contains(selected) else { return .stay }
            return .open(links.entries[selected].id)
        case .escape, .backspace, .character("l"): return .leave
        case .character("?"), .character("h"): keysLine = 0
        case .up, .down, .left, .right, .pageUp, .pageDown, .home, .end, .character, .delete, .clear, .redraw, .click:
            break
        }
        return .stay
    }

    /// Returns the list at a moment, a line for each row of the screen.
    mutating func frame(of links: RecordedLinks, under table: ScanScreen, at now: BootInstant) -> [ScreenLine] {
        let area = table.area
        if let line = keysLine {
            let page = HelpPage(area: area).lines([Self.keys], from: line, quits: "q quit")
            keysLine = page.first
            return area.filled(page.lines)
        }
        let keys = area.line("Enter shows the link · [ ] { } move · Esc table", .dim)
        let last = notice.map { area.wrapped($0, .yellow, limit: area.rows / 3) } ?? [keys]
        var lines = [heading(links, table, at: now)]
        if area.rows >= 4 { lines.append(columnsLine(area)) }
        // After a seek back there may be fewer.
        selected = max(0, min(selected, links.entries.count - 1))
        let room = max(1, area.rows - lines.count - last.count)
        top = min(max(top, selected - room + 1), selected)
        for place in links.entries.indices.dropFirst(top).prefix(room) {
            lines.append(line(of: links.entries[place], at: place, table))
        }
        let end = max(1, area.rows - last.count)
        lines = Array(lines.prefix(end))
        while lines.count < end { lines.append(area.empty) }
        return area.filled(lines + last)
    }

    private func heading(_ links: RecordedLinks, _ table: ScanScreen, at now: BootInstant) -> ScreenLine {
        let position = table.position(at: now).map { " at " + $0 } ?? ""
        let count = links.entries.count.counted("link") + (links.hasMore ? " and more" : "")
        return .title(
            [
                (count, .bold), ("  " + table.heading.mode + position, []),
                ("  " + table.heading.source, .dim),
            ], keys: "? keys · q quit", table.area.columns, table.area.look)
    }

    /// The columns of everything but the name.
    private static let fixedColumns = 1 + 5 + 20 + 1 + 9 + 7 + 9

    private func columnsLine(_ area: ScreenArea) -> ScreenLine {
        var line = area.empty
        add(["LINK", "PEER", "NAME", "AT", "LINKS", "PACKETS"], .heading, to: &line)
        return line
    }

    private func line(of entry: RecordedLinks.Entry, at place: Int, _ table: ScanScreen) -> ScreenLine {
        var line = table.area.empty
        let isSelected = place == selected
        if isSelected { line.style = .reverse }
        add(
            [
                "\(place + 1)", entry.screen.peer?.title ?? "not recorded", entry.screen.name ?? "-",
                table.position(at: entry.began) ?? "", "\(entry.links.count)", "\(entry.packetCount)",
            ], to: &line, mark: isSelected ? ">" : " ")
        return line
    }

    /// Adds the texts of the columns: number, peer, name, time, links, packets.
    private func add(_ texts: [String], _ style: ScreenStyle = [], to line: inout ScreenLine, mark: String = " ") {
        let name = max(8, line.limit - Self.fixedColumns)
        let columns: [(width: Int, isRightAligned: Bool)] = [
            (4, false), (19, false), (name, false), (9, true), (7, true), (9, true),
        ]
        line.add(mark)
        for (text, column) in zip(texts, columns) {
            line.add(text, style, column: column.width, isRightAligned: column.isRightAligned)
            if !column.isRightAligned { line.skip(1) }
        }
    }

    private static let keys: [(String, String)] = [
        ("q  ^C", "quit"),
        ("arrows  j k", "select a link; also the page keys, Home and End"),
        ("Enter  c", "show what was recorded of it"),
        ("[ ]  { }", "back and forward in the recording: 10 s, 1 min"),
        ("Esc  l", "the table of devices"),
        ("^L", "redraw"),
        ("^Z", "suspend; `fg` resumes"),
    ]
}
