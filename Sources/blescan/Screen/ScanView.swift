// Draws the live table: a value that reads the state of the screen and changes nothing. What has been drawn goes back
// to the screen as the first row or line that there was room for, see `ScanScreen.frame`.

import BLECore

/// The drawing of the live table, of one device and of the keys.
struct ScanView {
    private let screen: ScanScreen
    private let now: BootInstant

    private var area: ScreenArea { screen.area }

    init(_ screen: ScanScreen, at now: BootInstant) {
        self.screen = screen
        self.now = screen.shownTime(now)
    }

    /// The screen, a line for each row of the terminal, and the first row or line of its contents that is shown.
    var drawn: (lines: [ScreenLine], first: Int) {
        let drawn =
            switch screen.view {
            case .table: table
            case .device(let id, let line): page(of: id, from: line)
            case .keys(let line): keys(from: line)
            }
        return (area.filled(drawn.lines), drawn.first)
    }

    // MARK: The table

    /// What a place of the table has.
    enum Place: Hashable {
        case heading(ScreenColumn)
        case device(AdvertiserID)
    }

    /// Returns what is at a place of the table, counted from 0; `nil` if nothing there can be clicked.
    func place(column: Int, row: Int) -> Place? {
        let shown = screen.visible
        if hasColumnsLine, row == 1 {
            var end = 0
            for (name, width) in layout(of: shown) {
                end += name.gap + width
                if column < end { return .heading(name) }
            }
            return nil
        }
        let start = hasColumnsLine ? 2 : 1
        let room = max(0, area.rows - start - (showsFilter ? 1 : 0))
        guard row >= start, row < area.rows - lastLines(shown.count).count else { return nil }
        var next = start
        for id in shown[min(first(of: shown, in: room), shown.count)...].prefix(room) {
            guard let device = screen.devices[id] else { continue }
            next += height(of: device)
            if row < next { return .device(id) }
        }
        return nil
    }

    private var hasColumnsLine: Bool { area.rows >= 4 }

    private var showsFilter: Bool {
        (screen.isTyping || !screen.filter.isEmpty || screen.hidesUnnamed) && area.rows >= 2
    }

    private func layout(of shown: [AdvertiserID]) -> [(column: ScreenColumn, width: Int)] {
        let hasSets = shown.contains { $0.sid != nil }
        return ScreenColumn.layout(for: area.columns - 1, hasSets: hasSets, without: screen.hiddenColumns)
    }

    /// Returns the lines that a row takes, with the structures of the selected one.
    private func height(of row: ScreenRow) -> Int {
        guard screen.showsStructures, row.scanResult.id == screen.selected else { return 1 }
        return 1 + structures(of: row.scanResult).count
    }

    private var table: (lines: [ScreenLine], first: Int) {
        let shown = screen.visible
        var lines = [headingLine]
        let layout = self.layout(of: shown)
        if hasColumnsLine { lines.append(columnsLine(layout)) }
        let room = max(0, area.rows - lines.count - (showsFilter ? 1 : 0))
        let top = first(of: shown, in: room)
        for id in shown[min(top, shown.count)...].prefix(room) {
            guard let row = screen.devices[id] else { continue }
            lines.append(rowLine(row, layout))
            if screen.showsStructures, id == screen.selected {
                lines += structures(of: row.scanResult)
            }
        }
        if let vacancy = screen.vacancy { lines += area.wrapped(vacancy, .dim, limit: room) }
        let last = lastLines(shown.count)
        let end = max(0, area.rows - last.count)
        lines = Array(lines.prefix(end))
        if !last.isEmpty {
            while lines.count < end { lines.append(area.empty) }
            lines += last
        }
        return (lines, top)
    }

    /// Returns the first row with which the selected one is on the screen, with its structures as far as there is room.
    private func first(of shown: [AdvertiserID], in room: Int) -> Int {
        let top = max(0, min(screen.top, shown.count - room))
        guard let selected = screen.selected, let place = shown.firstIndex(of: selected) else { return top }
        let height = screen.devices[selected].map { self.height(of: $0) } ?? 1
        return min(max(top, place + min(height, room) - room), place)
    }

    private func columnsLine(_ layout: [(column: ScreenColumn, width: Int)]) -> ScreenLine {
        var line = area.empty
        for (column, width) in layout {
            // The mark of the order may stand in the gap after a full column.
            line.skip(column.gap)
            let mark = column == screen.order.column ? orderMark : ""
            line.add(column.heading + mark, .heading, column: width, isRightAligned: column.isRightAligned)
        }
        return line
    }

    private var orderMark: String {
        if area.look.isUnicode { return screen.isReversed ? "↑" : "↓" }
        return screen.isReversed ? "^" : "*"
    }

    private func rowLine(
        _ row: ScreenRow, _ layout: [(column: ScreenColumn, width: Int)]
    ) -> ScreenLine {
        var line = area.empty
        let isSelected = row.scanResult.id == screen.selected
        let silence = row.silence(at: now)
        line.style = isSelected ? .reverse : silence >= ScanScreen.fadesAfter ? .dim : []
        let showsAddress = layout.contains { $0.column == .address }
        for (column, width) in layout {
            if column == .strength { line.add(isSelected ? ">" : " ") } else { line.skip(column.gap) }
            let address = row.scanResult.id.peer?.address.description ?? "anonymous"
            switch column {
            case .strength:
                line.add(row.shownStrength.map(String.init) ?? "?", column: width, isRightAligned: true)
            case .bar:
                line.add(bar(row.shownStrength), isSelected ? [] : .strength(row.shownStrength), column: 8)
                line.skip(1)
                line.add(mark(row.trend))
            case .address:
                // A device with several advertising sets has a row for each.
                let set = row.scanResult.id.sid.map { " #\($0)" } ?? ""
                let shown = ScreenText.clippedInFront(address, to: width - set.count, area.look)
                line.add(shown + set, column: width)
            case .kind: line.add(row.scanResult.id.peer?.kind.short ?? "-", column: width)
            case .name:
                let name = row.name ?? (showsAddress ? "-" : ScreenText.clippedInFront(address, to: width, area.look))
                line.add(name, .title, column: width)
            case .data: line.add(row.data, column: width)
            case .interval:
                line.add(
                    row.scanResult.interval.map { DeviceLine.seconds($0) } ?? "", column: width, isRightAligned: true)
            case .seen: line.add(ScreenRow.age(silence), column: width, isRightAligned: true)
            }
        }
        return line
    }

    /// The lines at the end of the screen: the message about the last key, and the filter.
    private func lastLines(_ count: Int) -> [ScreenLine] {
        noticeLines + (showsFilter ? [filterLine(count)] : [])
    }

    private func filterLine(_ count: Int) -> ScreenLine {
        let (filter, isTyping) = (screen.filter, screen.isTyping)
        let showsText = isTyping || !filter.isEmpty
        let cursor = isTyping ? (area.look.isUnicode ? "▏" : "_") : ""
        var line = showsText ? area.line("/" + filter + cursor + "  ", .bold) : area.empty
        line.add("\(count) of \(screen.devices.count.counted("device"))")
        if screen.hidesUnnamed { line.add("  with a name or measurements · d show all", .dim) }
        if showsText { line.add(isTyping ? "  Enter keep · Esc clear" : "  / change · Esc clear", .dim) }
        return line
    }

    /// The message about the last key, on at most a third of the screen.
    private var noticeLines: [ScreenLine] {
        screen.notice.map { area.wrapped($0, .yellow, limit: area.rows / 3) } ?? []
    }

    /// The columns before the structures of a device.
    private static let structureIndent = 4

    /// Returns the structures of advertisement and scan response, as `decode` shows them.
    private func structures(of scanResult: ScanResult) -> [ScreenLine] {
        var text = ""
        if let advertisement = scanResult.advertisement {
            AdvertisementTable.append(advertisement.advertisingData, to: &text)
        }
        if let response = scanResult.scanResponse {
            text += " scan response\n"
            AdvertisementTable.append(response.advertisingData, to: &text)
        }
        let room = max(1, area.columns - Self.structureIndent)
        return text.split(separator: "\n").flatMap { row in
            ScreenText.shown(String(row), area.look).wrapped(to: room, indent: AdvertisementTable.valueColumn)
        }.map { area.line(String(repeating: " ", count: Self.structureIndent) + $0) }
    }

    /// Returns eight characters for -100 to -36 dBm, in eighths if the terminal has them.
    private func bar(_ strength: Int?) -> String {
        let eighths = min(max((strength ?? -100) + 100, 0), 64)
        guard area.look.isUnicode else { return String(repeating: "#", count: (eighths + 4) / 8) }
        let rest = eighths % 8
        let pieces = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
        return String(repeating: "█", count: eighths / 8) + pieces[rest]
    }

    private func mark(_ trend: ScreenRow.Trend) -> String {
        switch trend {
        case .rising: area.look.isUnicode ? "▴" : "+"
        case .falling: area.look.isUnicode ? "▾" : "-"
        case .steady: area.look.isUnicode ? "·" : "="
        }
    }

    // MARK: The heading

    /// The source, the mode, how far a recording is, the counts, and the keys. If there is no room for all, the key to
    /// the others stays longest, then the number of devices; the source is clipped before the mode is removed.
    private var headingLine: ScreenLine {
        let heading = screen.heading
        let counts = [
            screen.devices.count.counted("device"), "\(screen.rate.perSecond(at: now)) adv/s",
            "\(screen.lossCount) dropped",
        ]
        let least = [counts[0], counts[2]]
        let (all, some, keys) = ("q quit · s sort · / filter · r raw · ? keys", "? keys · q quit", "? keys")
        let state = screen.isFrozen ? "FROZEN" : nil
        let position = screen.position(at: now).map { "at " + $0 }
        let mode = [state ?? heading.mode, position].compactMap(\.self).joined(separator: " ")
        let brief = [[state ?? heading.brief, position].compactMap(\.self).joined(separator: " ")].filter {
            !$0.isEmpty
        }
        let whole = [[heading.source, heading.address].compactMap(\.self).joined(separator: " "), mode] + counts
        let forms: [(leastSource: Int?, parts: [String], keys: String)] = [
            (nil, whole, all), (nil, whole, some), (24, [mode] + counts, some), (12, [mode] + counts, some),
            (8, [mode] + least, some), (nil, [mode] + least, some), (nil, brief + counts, some),
            (nil, brief + least, some), (nil, brief + least, keys),
            (nil, least, keys), (nil, [counts[0]], keys),
        ]
        for form in forms {
            var parts = form.parts
            var needed =
                parts.reduce(0) { $0 + ScreenText.width(ScreenText.shown($1, area.look)) + 2 } + form.keys.count
            if let leastSource = form.leastSource {
                let source = ScreenText.shown(heading.source, area.look)
                let room = min(24, area.columns - needed - 2)
                guard room >= min(leastSource, ScreenText.width(source)) else { continue }
                parts.insert(ScreenText.clipped(source, to: room, area.look), at: 0)
                needed += ScreenText.width(parts[0]) + 2
            }
            guard needed <= area.columns else { continue }
            var line = area.line(parts.joined(separator: "  "), .bold)
            line.add(form.keys, .dim, column: area.columns - line.width, isRightAligned: true)
            return line
        }
        return area.line(keys, .dim)
    }

    // MARK: One device, and the keys

    private func page(of id: AdvertiserID, from first: Int) -> (lines: [ScreenLine], first: Int) {
        guard let row = screen.devices[id] else { return ([], first) }
        let notices = noticeLines
        let page = DevicePage(row: row, area: area, now: now, isRecorded: screen.isRecorded)
        let room = max(0, area.rows - 1 - notices.count)
        let (shown, start) = page.lines(from: first, rows: room)
        let padding = notices.isEmpty ? 0 : area.rows - notices.count - shown.count
        return (shown + Array(repeating: area.empty, count: max(0, padding)) + notices, start)
    }

    private func keys(from first: Int) -> (lines: [ScreenLine], first: Int) {
        let recording: [(String, String)] = [
            ("[ ]  { }", "back and forward in the recording: 10 s, 1 min; ends a freeze"),
            ("c", "show what was recorded of a link with the device"),
            ("l", "list the recorded links"),
        ]
        let air: [(String, String)] = [("c", "connect to the device, and browse its services and values")]
        let keys: [(String, String)] = [
            ("q  ^C", "quit"),
            ("s  S", "sort by the next of: strength, name, address, last seen; reverse"),
            ("/  f", "filter by a part of name, address, type, data or measurement: /temp"),
            ("", "Enter keeps the filter, Esc clears it"),
            ("d", "hide devices with neither a name nor measurements"),
            ("Space  p", "freeze the table; again: go on"),
            ("arrows  j k", "select a device; also the page keys, Home and End"),
            ("Enter", "details; Esc goes back, ← → show the next device"),
        ]
        let others: [(String, String)] = [
            ("r", "structures of the selected device in the table"),
            ("Esc", "clear the filter, then the selection"),
            ("1-7", "show or hide a column: 1 bar, 2 address, 3 type, 4 name, 5 data, 6 every, 7 seen"),
            ("m", "mouse on or off; a click selects, another opens, one on a heading sorts"),
            ("^L", "redraw"),
            ("^Z", "suspend; `fg` resumes"),
        ]
        let marks: [(String, String)] = [
            (area.look.isUnicode ? "↓" : "*", "in the headings: what the table is sorted by"),
            (area.look.isUnicode ? "▴ · ▾" : "+ = -", "after the bar: comes nearer, stays, goes away"),
            ("#1", "after the address: one of the device's advertising sets"),
        ]
        let shown = keys + (screen.isRecorded ? recording : air) + others
        return HelpPage(area: area).lines([shown, marks], from: first, quits: "q quit")
    }
}
