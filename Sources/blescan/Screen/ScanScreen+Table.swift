internal import BLECore

extension ScanScreen {
    /// Returns the screen at a moment, a line for each row of the terminal.
    mutating func frame(at now: BootInstant) -> [ScreenLine] {
        let now = shownTime(now)
        var lines: [ScreenLine]
        switch view {
        case .table: lines = tableLines(at: now)
        case .device(let id, let line): lines = deviceLines(id, from: line, at: now)
        case .keys(let line): lines = keyLines(from: line)
        }
        lines = Array(lines.prefix(rows))
        while lines.count < rows { lines.append(empty) }
        return lines
    }

    /// A line without text.
    var empty: ScreenLine { ScreenLine(columns, look) }

    func line(_ text: String, _ style: ScreenStyle = []) -> ScreenLine { ScreenLine(text, columns, look, style) }

    private mutating func tableLines(at now: BootInstant) -> [ScreenLine] {
        let shown = visible
        var lines = [headingLine(at: now)]
        let hasSets = shown.contains { $0.sid != nil }
        let layout = ScreenColumn.layout(for: columns - 1, hasSets: hasSets)
        if rows >= 4 { lines.append(columnsLine(layout)) }
        let showsFilter = (isTyping || !filter.isEmpty || hidesUnnamed) && rows >= 2
        let room = max(0, rows - lines.count - (showsFilter ? 1 : 0))
        scroll(shown, room)
        for id in shown[min(top, shown.count)...].prefix(room) {
            guard let row = devices[id] else { continue }
            lines.append(rowLine(row, layout, at: now))
            if showsStructures, id == selected { lines += structures(of: row.scanResult).map { line("    " + $0) } }
        }
        let notices = showsFilter ? [] : notice.map { noticeLines($0) } ?? []
        let end = rows - (showsFilter ? 1 : notices.count)
        lines = Array(lines.prefix(end))
        if showsFilter || !notices.isEmpty {
            while lines.count < end { lines.append(empty) }
            lines += showsFilter ? [filterLine(shown.count)] : notices
        }
        return lines
    }

    /// Keeps the selected row on the screen, with its structures as far as there is room.
    private mutating func scroll(_ shown: [AdvertiserID], _ room: Int) {
        var top = max(0, min(top, shown.count - room))
        defer { tableBegins(with: top) }
        guard let selected, let place = shown.firstIndex(of: selected) else { return }
        var height = 1
        if showsStructures, let row = devices[selected] { height += structures(of: row.scanResult).count }
        top = max(top, place + min(height, room) - room)
        top = min(top, place)
    }

    private func columnsLine(_ layout: [(column: ScreenColumn, width: Int)]) -> ScreenLine {
        var line = empty
        for (column, width) in layout {
            // The mark of the order may stand in the gap after a full column.
            line.skip(column.gap)
            let arrow = isReversed ? "↑" : "↓"
            let mark = column == order.column ? (look.isUnicode ? arrow : isReversed ? "^" : "*") : ""
            line.add(column.heading + mark, .dim, column: width, isRightAligned: column.isRightAligned)
        }
        return line
    }

    private func rowLine(
        _ row: ScreenRow, _ layout: [(column: ScreenColumn, width: Int)], at now: BootInstant
    ) -> ScreenLine {
        var line = empty
        let isSelected = row.scanResult.id == selected
        let silence = row.silence(at: now)
        line.style = isSelected ? .reverse : silence >= Self.fadesAfter ? .dim : []
        let showsAddress = layout.contains { $0.column == .address }
        for (column, width) in layout {
            if column == .strength { line.add(isSelected ? ">" : " ") } else { line.skip(column.gap) }
            let address = row.scanResult.id.peer?.address.description ?? "anonymous"
            switch column {
            case .strength:
                line.add(row.shownStrength.map(String.init) ?? "?", column: width, isRightAligned: true)
            case .bar:
                line.add(bar(row.shownStrength), isSelected ? [] : Self.colour(row.shownStrength), column: 8)
                line.skip(1)
                line.add(mark(row.trend))
            case .address:
                // A device with several advertising sets has a row for each.
                line.add(address + (row.scanResult.id.sid.map { " #\($0)" } ?? ""), column: width)
            case .kind: line.add(row.scanResult.id.peer?.kind.short ?? "-", column: width)
            case .name:
                let name = row.name ?? (showsAddress ? "-" : ScreenText.clippedInFront(address, to: width, look))
                line.add(name, .bold, column: width)
            case .data: line.add(row.data, column: width)
            case .interval:
                line.add(
                    row.scanResult.interval.map { DeviceLine.seconds($0) } ?? "", column: width, isRightAligned: true)
            case .seen: line.add(ScreenRow.age(silence), column: width, isRightAligned: true)
            }
        }
        return line
    }

    private func filterLine(_ count: Int) -> ScreenLine {
        let showsText = isTyping || !filter.isEmpty
        var line =
            showsText ? self.line("/" + filter + (isTyping ? (look.isUnicode ? "▏" : "_") : "") + "  ", .bold) : empty
        line.add("\(count) of \(devices.count.counted("device"))")
        if hidesUnnamed { line.add("  with a name · d show all", .dim) }
        if showsText { line.add(isTyping ? "  Enter keep · Esc clear" : "  / change · Esc clear", .dim) }
        return line
    }

    /// Returns eight characters for -100 to -36 dBm, in eighths if the terminal has them.
    private func bar(_ strength: Int?) -> String {
        let eighths = min(max((strength ?? -100) + 100, 0), 64)
        guard look.isUnicode else { return String(repeating: "#", count: (eighths + 4) / 8) }
        let rest = eighths % 8
        let pieces = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
        return String(repeating: "█", count: eighths / 8) + pieces[rest]
    }

    private func mark(_ trend: ScreenRow.Trend) -> String {
        switch trend {
        case .rising: look.isUnicode ? "▴" : "+"
        case .falling: look.isUnicode ? "▾" : "-"
        case .steady: look.isUnicode ? "·" : "="
        }
    }

    private static func colour(_ strength: Int?) -> ScreenStyle {
        guard let strength else { return [] }
        return strength >= -60 ? .green : strength >= -80 ? .yellow : .red
    }
}

extension ScanScreen {
    /// Returns the source, the mode, the counts, and the keys. If there is no room for all, the key to the others stays
    /// longest, then the number of devices; the source is clipped before the mode is removed.
    func headingLine(at now: BootInstant) -> ScreenLine {
        let counts = [devices.count.counted("device"), "\(rate.perSecond(at: now)) adv/s", "\(lossCount) dropped"]
        let least = [counts[0], counts[2]]
        let (all, some, keys) = ("q quit · s sort · / filter · r raw · ? keys", "? keys · q quit", "? keys")
        let state = isFrozen ? "FROZEN" : nil
        let (mode, brief) = (state ?? heading.mode, state ?? heading.brief)
        let whole = [[heading.source, heading.address].compactMap(\.self).joined(separator: " "), mode] + counts
        let forms: [(leastSource: Int?, parts: [String], keys: String)] = [
            (nil, whole, all), (nil, whole, some), (24, [mode] + counts, some), (12, [mode] + counts, some),
            (8, [mode] + least, some), (nil, [mode] + least, some), (nil, [brief].compactMap(\.self) + counts, some),
            (nil, [brief].compactMap(\.self) + least, some), (nil, [brief].compactMap(\.self) + least, keys),
            (nil, least, keys), (nil, [counts[0]], keys),
        ]
        for form in forms {
            var parts = form.parts
            var needed = parts.reduce(0) { $0 + ScreenText.width(ScreenText.shown($1, look)) + 2 } + form.keys.count
            if let leastSource = form.leastSource {
                let source = ScreenText.shown(heading.source, look)
                let room = min(24, columns - needed - 2)
                guard room >= min(leastSource, ScreenText.width(source)) else { continue }
                parts.insert(ScreenText.clipped(source, to: room, look), at: 0)
                needed += ScreenText.width(parts[0]) + 2
            }
            guard needed <= columns else { continue }
            var line = self.line(parts.joined(separator: "  "), .bold)
            line.add(form.keys, .dim, column: columns - line.width, isRightAligned: true)
            return line
        }
        return line(keys, .dim)
    }
}
