import BLECore
import BareBLE

extension BrowseScreen {
    /// The time for which a changed value is marked.
    private static let freshFor: Duration = .seconds(2)

    /// The widths of the columns of the tree.
    private struct Layout {
        var name: Int
        var letters: Int
        var count: Int
        var value: Int
    }

    mutating func frame(at now: BootInstant) -> [ScreenLine] {
        if case .keys(let line) = view { return filled(keyLines(from: line)) }
        // The tree keeps at least half of the screen.
        let bottom = Array(bottomLines.suffix(max(0, min(rows - 2, rows / 2))))
        let room = max(0, rows - 1 - bottom.count)
        scroll(room)
        var lines = [titleLine(at: now)]
        let shown = attributes[min(top, attributes.count)...].prefix(room)
        let layout = layout
        lines += shown.map { line(of: $0, layout, at: now) }
        while lines.count < rows - bottom.count { lines.append(empty) }
        return filled(lines + bottom)
    }

    private func filled(_ lines: [ScreenLine]) -> [ScreenLine] {
        Array(lines.prefix(rows)) + Array(repeating: empty, count: max(0, rows - lines.count))
    }

    private var empty: ScreenLine { ScreenLine(columns, look) }

    private func line(_ text: String, _ style: ScreenStyle = []) -> ScreenLine {
        ScreenLine(text, columns, look, style)
    }

    /// Keeps the selected attribute on the screen, and the service that it belongs to if that is the line before.
    private mutating func scroll(_ room: Int) {
        var top = max(0, min(top, attributes.count - room))
        if let place = attributes.firstIndex(where: { $0.handle == selected }) {
            top = min(max(top, place - room + 1), place)
            if top == 1, room > 1 { top = 0 }
        }
        treeBegins(with: top)
    }

    // MARK: The title

    private func titleLine(at now: BootInstant) -> ScreenLine {
        var parts: [(String, ScreenStyle)] = []
        if let name { parts.append((name + "  ", .bold)) }
        parts.append((peer?.title ?? "a recorded link", name == nil ? .bold : []))
        let (state, style) = state(at: now)
        let whole = parts.reduce(state.count + 2) { $0 + ScreenText.width(ScreenText.shown($1.0, look)) }
        let isLinked = link != .none && link != .recorded
        let keys = [(isLinked ? "Esc disconnect" : "Esc back") + " · ? keys", "? keys"]
        let hint = keys.first { whole + $0.count + 2 <= columns } ?? ""
        // The state is what changes: it stays longest.
        let room = columns - state.count - 2
        var title = empty
        for (text, style) in parts where title.width < room {
            title.add(text, style, column: min(ScreenText.width(ScreenText.shown(text, look)), room - title.width))
        }
        if title.width > 0 { title.skip(2) }
        title.add(state, style)
        if !hint.isEmpty { title.add(hint, .dim, column: columns - title.width, isRightAligned: true) }
        return title
    }

    private func state(at now: BootInstant) -> (String, ScreenStyle) {
        switch link {
        case .connecting(let since, let isSearching):
            let seconds = max(0, (now - since).components.seconds)
            return ((isSearching ? "scanning for it" : "connecting") + " \(seconds) s", .yellow)
        case .discovering(let mtu): return ("discovering  MTU \(mtu)", .yellow)
        case .connected(let mtu): return ("connected  MTU \(mtu)", .green)
        case .none: return ("disconnected", .red)
        case .recorded: return ("recorded", .yellow)
        }
    }

    // MARK: The tree

    private var layout: Layout {
        let letters = max(1, attributes.map { $0.properties.letters.count }.max() ?? 1)
        let count = attributes.map { countText(of: value(of: $0.handle)).count }.max() ?? 0
        // The mark, the gaps, and the columns that are fixed.
        let room = columns - 2 - 2 - letters - (count > 0 ? count + 1 : 0)
        let longest = attributes.filter { $0.kind != .service }.map { ScreenText.width(title(of: $0)) }.max() ?? 0
        let name = max(1, min(longest, max(room / 2, room - 44)))
        return Layout(name: name, letters: letters, count: count, value: max(0, room - name))
    }

    private func title(of row: AttributeRow) -> String {
        let uuid = row.uuid.flatMap { $0.short == nil ? nil : $0.description }
        return String(repeating: "  ", count: row.level) + [row.name, uuid].compactMap(\.self).joined(separator: " ")
    }

    private func countText(of value: Value) -> String {
        value.count == 0 ? "" : (look.isUnicode ? "×" : "x") + String(value.count)
    }

    private func line(of row: AttributeRow, _ layout: Layout, at now: BootInstant) -> ScreenLine {
        let value = value(of: row.handle)
        var line = empty
        if row.handle == selected { line.style = .reverse }
        line.add(row.handle == selected ? ">" : " ")
        line.add(value.isSubscribed ? (look.isUnicode ? "●" : "*") : " ", .green)
        guard row.kind != .service else {
            let names = [row.name, row.uuid?.description, row.note.isEmpty ? nil : row.note]
            line.add(names.compactMap(\.self).joined(separator: " "), .bold)
            return line
        }
        line.add(title(of: row), column: layout.name)
        line.skip(1)
        line.add(row.properties.letters, .dim, column: layout.letters)
        line.skip(1)
        let isFresh = value.changed.map { now - $0 < Self.freshFor } ?? false
        if value.isBusy {
            line.add(look.isUnicode ? "…" : "...", .yellow, column: layout.value)
        } else {
            let text = text(of: row)
            // A selected line has one style, but for the mark of what has changed.
            let style: ScreenStyle = row.handle == selected ? [] : text?.style ?? []
            line.add(text?.line(in: layout.value) ?? "", isFresh ? style.union(.bold) : style, column: layout.value)
        }
        if layout.count > 0 {
            line.skip(1)
            line.add(
                countText(of: value), isFresh ? .bold : .dim, column: layout.count, isRightAligned: true)
        }
        return line
    }

    // MARK: Below the tree

    private var bottomLines: [ScreenLine] {
        var lines: [ScreenLine] = []
        if rows >= 12 {
            lines.append(line(String(repeating: look.isUnicode ? "─" : "-", count: columns), .dim))
            lines += detailLines
        }
        if let typed { return lines + inputLines(typed) }
        if rows >= 5, let command { lines += commandLines(command) }
        if let notice { return lines + noticeLines(notice) }
        return lines + [keysLine]
    }

    /// The selected attribute with all of its value, as far as there is room.
    private var detailLines: [ScreenLine] {
        guard let row = selectedRow else { return [] }
        var title = empty
        title.add(CharacteristicReference.handle(row.handle).description + "  ", .dim)
        let known = value(of: row.handle)
        let parts = [
            row.name, row.uuid?.description, row.properties.words.isEmpty ? nil : row.properties.words,
            known.dropped > 0 ? "\(known.dropped) dropped" : nil,
        ]
        let lines = parts.compactMap(\.self).joined(separator: "  ").wrapped(to: max(1, columns - title.width))
        let indent = title.width
        title.add(lines[0])
        var result = [title]
        for text in lines.dropFirst() {
            var line = empty
            line.skip(indent)
            line.add(text)
            result.append(line)
        }
        guard let value = text(of: row) else { return result }
        let most = max(1, rows / 6)
        let texts = value.lines(in: max(1, columns - 8))
        for (number, text) in texts.prefix(most).enumerated() {
            var line = empty
            line.skip(8)
            let isCut = number == most - 1 && texts.count > most
            line.add(isCut ? text + (look.isUnicode ? " …" : " ...") : text, value.style)
            result.append(line)
        }
        return result
    }

    private func commandLines(_ command: EqualCommand) -> [ScreenLine] {
        let texts = ScreenText.shown(command.text, look).wrapped(to: max(1, columns - 2))
        guard texts.count <= max(1, rows / 8) else { return [line("= " + command.text, .dim)] }
        return texts.enumerated().map { line(($0 == 0 ? "= " : "  ") + $1, .dim) }
    }

    private func noticeLines(_ notice: Notice) -> [ScreenLine] {
        switch notice {
        case .done(let text): return wrapped(text, .green)
        case .failed(let failure):
            let message = wrapped("! " + failure.message, .red)
            guard rows >= 8, let hint = failure.hint else { return message }
            return message + wrapped("  " + hint, [])
        }
    }

    private func wrapped(_ text: String, _ style: ScreenStyle) -> [ScreenLine] {
        ScreenText.shown(text, look).wrapped(to: columns).prefix(max(1, rows / 6)).map { line($0, style) }
    }

    private func inputLines(_ typed: String) -> [ScreenLine] {
        var lines: [ScreenLine] = []
        if rows >= 5, !typed.isEmpty, notice == nil, let command { lines += commandLines(command) }
        if let notice { lines += noticeLines(notice) }
        if notice == nil, rows >= 8 { lines += wrapped(Self.forms, .dim) }
        let target = selected.map { CharacteristicReference.handle($0).description } ?? ""
        let prompt = columns < 30 ? "> " : "write \(target): "
        var line = empty
        line.add(prompt, .bold)
        // The end of the line is where the next character goes.
        let room = max(1, columns - line.width - 1)
        line.add(ScreenText.clippedInFront(ScreenText.shown(typed, look), to: room, look))
        line.add(look.isUnicode ? "▏" : "_")
        let hint = "  Enter writes · Esc cancels"
        if line.width + hint.count <= columns { line.add(hint, .dim) }
        return lines + [line]
    }

    private var keysLine: ScreenLine {
        var keys: [String] = []
        let row = selectedRow
        switch link {
        case .none: keys.append("c connect")
        case .connected:
            if row?.properties.contains(.read) == true || row?.kind == .descriptor { keys.append("r read") }
            if row?.properties.canWrite == true { keys.append("w write") }
            if let row, row.properties.canSubscribe {
                keys.append(value(of: row.handle).isSubscribed ? "s unsubscribe" : "s subscribe")
            }
        case .connecting, .discovering, .recorded: break
        }
        if row != nil { keys += ["y copy", "x hex"] }
        let last = ["d back", "? keys"]
        while !keys.isEmpty, (keys + last).joined(separator: " · ").count > columns { keys.removeLast() }
        let all = (keys + last).joined(separator: " · ")
        return line(all.count <= columns ? all : "? keys", .dim)
    }

    // MARK: The keys

    private mutating func keyLines(from first: Int) -> [ScreenLine] {
        let keys: [(String, String)] = [
            ("arrows  j k", "select an attribute; also the page keys, Home and End"),
            ("Enter  r", "read the value"),
            ("w", "write: type bytes such as 05a0, or --text hi, --u16 500 …, with --without-response"),
            ("s", "subscribe, or unsubscribe; the values change in place and are counted"),
            ("x", "show values as bytes, or decoded"),
            ("y", "copy the command after =, by OSC 52"),
            ("c", "connect again after the link was lost"),
            ("d  q  Esc", "disconnect and go back"),
            ("^C", "quit"),
            ("^L", "redraw"),
            ("^Z", "suspend; `fg` resumes. The link stays"),
        ]
        let letters = CharacteristicProperties.lettered.map { ($0.letter, $0.property.words) }
        let marks: [(String, String)] = [
            (look.isUnicode ? "●" : "*", "subscribed"),
            (look.isUnicode ? "×12" : "x12", "the number of values that the peer has sent"),
            ("=", "the command that does the same in a shell"),
        ]
        let page = HelpPage(columns: columns, rows: rows, look: look)
        let (lines, start) = page.lines([keys, letters, marks], from: first, quits: "^C quit")
        pageBegins(with: start)
        return lines
    }
}

extension PeerArgument {
    /// The peer as the title of a screen.
    var title: String {
        if case .address(let address, _) = self { return address.description }
        return description
    }
}
