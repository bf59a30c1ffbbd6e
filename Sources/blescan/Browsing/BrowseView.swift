// Draws the attributes of one peer: a value that reads the state of the screen and changes nothing. What has been drawn
// goes back to the screen as the first line that there was room for, see `BrowseScreen.frame`.

import BLECore
import BareBLE

/// The drawing of the attributes of one peer, and of the keys.
struct BrowseView {
    /// The time for which a changed value is marked.
    private static let freshFor: Duration = .seconds(2)
    /// The fewest columns of a screen that has the numbers and the age of a value in its row: with fewer, the value
    /// itself would be clipped.
    private static let leastWide = 100
    /// The columns for the numbers of a value.
    private static let plotColumns = 10
    /// The columns for the usual age of a value, such as `59s ago`.
    private static let ageColumns = 7

    /// The widths of the columns of the tree; 0 for one that is not there.
    private struct Layout {
        var name: Int
        var letters: Int
        var value: Int
        var plot: Int
        var age: Int
        var count: Int
    }

    private let screen: BrowseScreen
    private let now: BootInstant

    private var area: ScreenArea { screen.area }
    private var look: ScreenLook { screen.area.look }

    init(_ screen: BrowseScreen, at now: BootInstant) {
        self.screen = screen
        self.now = now
    }

    /// The screen, a line for each row of the terminal, and the first attribute or line of a text that is shown.
    var drawn: (lines: [ScreenLine], first: Int) {
        let drawn =
            switch screen.view {
            case .tree: tree
            case .keys(let line): keys(from: line)
            }
        return (area.filled(drawn.lines), drawn.first)
    }

    private var tree: (lines: [ScreenLine], first: Int) {
        // At least half of the screen is for the attributes.
        let bottom = Array(bottomLines.suffix(max(0, min(area.rows - 2, area.rows / 2))))
        let room = max(0, area.rows - 1 - bottom.count)
        let top = top(in: room)
        let layout = layout
        var lines = [titleLine]
        let rows = screen.shown
        lines += rows[min(top, rows.count)...].prefix(room).map { line(of: $0, layout) }
        while lines.count < area.rows - bottom.count { lines.append(area.empty) }
        return (lines + bottom, top)
    }

    /// Returns the first attribute with which the selected one is on the screen, and the service that it belongs to if
    /// that is the line before.
    private func top(in room: Int) -> Int {
        let top = max(0, min(screen.top, screen.shown.count - room))
        guard let place = screen.selectedPlace else { return top }
        let first = min(max(top, place - room + 1), place)
        return first == 1 && room > 1 ? 0 : first
    }

    // MARK: The title

    private var titleLine: ScreenLine {
        var parts: [(String, ScreenStyle)] = []
        let name = screen.name
        if let name { parts.append((name + "  ", .bold)) }
        parts.append((screen.peer?.title ?? screen.linkTitle, name == nil ? .bold : []))
        let (state, style) = state
        let whole = parts.reduce(state.count + 2) { $0 + ScreenText.width(ScreenText.shown($1.0, look)) }
        let isLinked = ![.none, .recorded].contains(screen.link)
        let keys = [(isLinked ? "Esc disconnect" : "Esc back") + " · ? keys", "? keys"]
        let hint = keys.first { whole + $0.count + 2 <= area.columns } ?? ""
        // The state is what changes: it stays longest.
        let room = area.columns - state.count - 2
        var title = area.empty
        for (text, style) in parts where title.width < room {
            title.add(text, style, column: min(ScreenText.width(ScreenText.shown(text, look)), room - title.width))
        }
        if title.width > 0 { title.skip(2) }
        title.add(state, style)
        if !hint.isEmpty { title.add(hint, .dim, column: area.columns - title.width, isRightAligned: true) }
        return title
    }

    private var state: (String, ScreenStyle) {
        switch screen.link {
        case .connecting(let since, let isSearching):
            let seconds = max(0, (now - since).components.seconds)
            return ((isSearching ? "scanning for it" : "connecting") + " \(seconds) s", .yellow)
        case .discovering(let mtu): return ("discovering  MTU \(mtu)", .yellow)
        case .connected(let mtu):
            guard let last = screen.strengths.last else { return ("connected  MTU \(mtu)", .green) }
            // As in the table.
            let strength = last.map { "\($0)" } ?? "?"
            // There is no room for more in 40 columns.
            guard area.columns >= 70 else { return ("connected  \(strength) dBm", .green) }
            let numbers: [Double?] = screen.strengths.map { strength in strength.map { Double($0) } }
            let row = Sparkline.text(numbers, between: -100, and: -36, look)
            return ("connected  MTU \(mtu)  \(strength) dBm \(row)", .green)
        case .none: return ("disconnected", .red)
        case .recorded: return ("recorded" + (screen.position.map { " at " + $0 } ?? ""), .yellow)
        }
    }

    // MARK: The tree

    private var layout: Layout {
        let letters = max(1, screen.attributes.map { $0.properties.letters.count }.max() ?? 1)
        let values = screen.attributes.map { screen.value(of: $0.handle) }
        let count = values.map { countText(of: $0).count }.max() ?? 0
        let sent = area.columns >= Self.leastWide ? values.filter { $0.count > 0 } : []
        let plot = sent.contains { $0.plot.hasSeveral } ? Self.plotColumns : 0
        let longestAge = sent.map { ageText(of: $0).count }.max() ?? 0
        let age = longestAge > 0 ? max(longestAge, Self.ageColumns) : 0
        let last = [plot, age, count].reduce(0) { $0 + ($1 > 0 ? $1 + 1 : 0) }
        // The mark, the gaps, and the columns that are fixed.
        let room = area.columns - 2 - 2 - letters - last
        let longest =
            screen.attributes.filter { $0.kind != .service }.map { ScreenText.width(title(of: $0)) }.max() ?? 0
        let name = max(1, min(longest, max(room / 2, room - 44)))
        return Layout(
            name: name, letters: letters, value: max(0, room - name), plot: plot, age: age, count: count)
    }

    private func title(of row: AttributeRow) -> String {
        let uuid = row.uuid.flatMap { $0.short == nil ? nil : $0.description }
        return String(repeating: "  ", count: row.level) + [row.name, uuid].compactMap(\.self).joined(separator: " ")
    }

    private func countText(of value: BrowseScreen.Value) -> String {
        value.count == 0 ? "" : mark(ofValue: value.count)
    }

    private func mark(ofValue number: Int) -> String { (look.isUnicode ? "×" : "x") + String(number) }

    /// The age of the last value that the peer has sent; empty without one, and in a recording, where a value has the
    /// time of the advertisement before it.
    private func ageText(of value: BrowseScreen.Value) -> String {
        guard value.count > 0, screen.link != .recorded, let changed = value.changed else { return "" }
        return age(since: changed)
    }

    private func age(since time: BootInstant) -> String {
        let age = ScreenRow.age(now - time)
        return age == "now" ? age : age + " ago"
    }

    private func isFresh(_ value: BrowseScreen.Value) -> Bool {
        value.changed.map { now - $0 < Self.freshFor } ?? false
    }

    private var foldedMark: String { look.isUnicode ? "▸" : "+" }

    private func line(of row: AttributeRow, _ layout: Layout) -> ScreenLine {
        let value = screen.value(of: row.handle)
        var line = area.empty
        if row.handle == screen.selected { line.style = .reverse }
        line.add(row.handle == screen.selected ? ">" : " ")
        if screen.isFolded(row) {
            line.add(foldedMark, .dim)
        } else {
            line.add(value.isSubscribed ? (look.isUnicode ? "●" : "*") : " ", .green)
        }
        guard row.kind != .service else {
            addService(row, to: &line, layout)
            return line
        }
        line.add(title(of: row), column: layout.name)
        line.skip(1)
        line.add(row.properties.letters, .dim, column: layout.letters)
        line.skip(1)
        addValue(of: row, to: &line, in: layout.value)
        if layout.plot > 0 {
            line.skip(1)
            let numbers = value.count > 0 && value.plot.hasSeveral ? value.plot.row(in: layout.plot, look) : ""
            // A selected line has one style.
            line.add(numbers, line.style.isEmpty ? .green : [], column: layout.plot)
        }
        if layout.age > 0 {
            line.skip(1)
            line.add(ageText(of: value), .dim, column: layout.age, isRightAligned: true)
        }
        if layout.count > 0 {
            line.skip(1)
            line.add(
                countText(of: value), isFresh(value) ? .bold : .dim, column: layout.count, isRightAligned: true)
        }
        return line
    }

    /// Adds the name of a service, and of a folded one the value that users look for in it, if that is certain.
    private func addService(_ row: AttributeRow, to line: inout ScreenLine, _ layout: Layout) {
        let names = [row.name, row.uuid?.description, row.note.isEmpty ? nil : row.note]
        let title = names.compactMap(\.self).joined(separator: " ")
        guard screen.isFolded(row), let only = screen.onlyReadable(of: row), let text = screen.text(of: only) else {
            line.add(title, .bold)
            return
        }
        // A long name, such as a UUID of 128 bits, leaves the value a third of the screen.
        let column = 2 + layout.name + 1 + layout.letters + 1
        let wanted = ScreenText.width(text.line(in: layout.value))
        let room = area.columns - line.width - 2 - min(wanted, area.columns / 3)
        line.add(title, .bold, column: max(0, min(ScreenText.width(ScreenText.shown(title, look)), room)))
        line.skip(max(2, column - line.width))
        addValue(of: only, to: &line, in: max(0, area.columns - line.width))
    }

    /// Adds the value of an attribute, in this number of columns.
    private func addValue(of row: AttributeRow, to line: inout ScreenLine, in width: Int) {
        let value = screen.value(of: row.handle)
        guard !value.isBusy else {
            line.add(look.isUnicode ? "…" : "...", .yellow, column: width)
            return
        }
        guard let text = screen.text(of: row) else {
            line.add("", column: width)
            return
        }
        // A selected line has one style, but for the mark of what has changed.
        let style: ScreenStyle = line.style.isEmpty ? text.style : []
        guard !value.isOutdated else {
            let shown = Self.former + text.line(in: width - Self.former.count)
            return line.add(shown, line.style.isEmpty ? .dim : [], column: width)
        }
        line.add(text.line(in: width), isFresh(value) ? style.union(.bold) : style, column: width)
    }

    /// The mark of a value from before a write.
    private static let former = "was "

    // MARK: Below the tree

    private var bottomLines: [ScreenLine] {
        var lines: [ScreenLine] = []
        if area.rows >= 12 {
            lines.append(area.line(String(repeating: look.isUnicode ? "─" : "-", count: area.columns), .dim))
            lines += detailLines
        }
        if let typed = screen.typed { return lines + inputLines(typed) }
        if area.rows >= 5, let command = screen.command { lines += commandLines(command) }
        if let notice = screen.notice { return lines + noticeLines(notice) }
        return lines + [keysLine]
    }

    /// The selected attribute with all of its value, as far as there is room.
    private var detailLines: [ScreenLine] {
        guard let row = screen.selectedRow else { return [] }
        var title = area.empty
        title.add(CharacteristicReference.handle(row.handle).description + "  ", .dim)
        let known = screen.value(of: row.handle)
        let parts = [
            row.name, row.uuid?.description, row.properties.words.isEmpty ? nil : row.properties.words,
            known.dropped > 0 ? "\(known.dropped) dropped" : nil,
        ]
        let lines = ScreenText.shown(parts.compactMap(\.self).joined(separator: "  "), look)
            .wrapped(to: max(1, area.columns - title.width))
        let indent = title.width
        title.add(lines[0])
        var result = [title]
        for text in lines.dropFirst() {
            var line = area.empty
            line.skip(indent)
            line.add(text)
            result.append(line)
        }
        guard let value = screen.text(of: row) else { return result }
        let most = max(1, area.rows / 6)
        let room = max(1, area.columns - 8)
        let texts = value.lines(in: room)
        for (number, text) in texts.prefix(most).enumerated() {
            var line = area.empty
            line.skip(8)
            let isCut = number == most - 1 && texts.count > most
            line.add(isCut ? text + (look.isUnicode ? " …" : " ...") : text, known.isOutdated ? .dim : value.style)
            result.append(line)
        }
        if known.isOutdated {
            var line = area.empty
            line.skip(8)
            line.add(
                "from before the last write" + (screen.isConnected && canRead(row) ? "; r reads it again" : ""),
                .yellow)
            result.append(line)
        }
        result += sentLines(known, of: row)
        if known.plot.hasSeveral, let changed = known.changed {
            var line = area.empty
            line.skip(8)
            let plot = known.plot.line(age(since: changed), in: max(1, area.columns - 8), look)
            line.add(plot.plain, .dim)
            result.append(line)
        }
        return result
    }

    /// The last values that the peer has sent, the newest first, but for the one that is shown as the value. Numbers are
    /// drawn instead, with more of them.
    private func sentLines(_ known: BrowseScreen.Value, of row: AttributeRow) -> [ScreenLine] {
        guard !known.plot.hasSeveral else { return [] }
        let first = known.count - known.sent.count + 1
        var sent = known.sent.enumerated().map { (number: first + $0.offset, bytes: $0.element) }
        if case .value(let bytes)? = known.reading, bytes == sent.last?.bytes { sent.removeLast() }
        var lines: [ScreenLine] = []
        for value in sent.suffix(area.rows / 8).reversed() {
            var line = area.empty
            line.add(mark(ofValue: value.number), .dim, column: 7, isRightAligned: true)
            line.skip(1)
            line.add(screen.text(of: value.bytes, at: row).line(in: max(1, area.columns - 8)), .dim)
            lines.append(line)
        }
        return lines
    }

    private func commandLines(_ command: EquivalentCommand) -> [ScreenLine] {
        let texts = ScreenText.shown(command.text, look).wrapped(to: max(1, area.columns - 2))
        guard texts.count <= max(1, area.rows / 8) else { return [area.line("= " + command.text, .dim)] }
        return texts.enumerated().map { area.line(($0 == 0 ? "= " : "  ") + $1, .dim) }
    }

    private func noticeLines(_ notice: BrowseScreen.Notice) -> [ScreenLine] {
        switch notice {
        case .done(let text): return wrapped(text, .green)
        case .failed(let failure):
            let message = wrapped("! " + failure.message, .red)
            guard area.rows >= 8, let hint = failure.hint else { return message }
            return message + wrapped("  " + hint, [])
        }
    }

    private func wrapped(_ text: String, _ style: ScreenStyle) -> [ScreenLine] {
        area.wrapped(text, style, limit: area.rows / 6)
    }

    private func inputLines(_ typed: String) -> [ScreenLine] {
        var lines: [ScreenLine] = []
        if area.rows >= 5, !typed.isEmpty, screen.notice == nil, let command = screen.command {
            lines += commandLines(command)
        }
        if let notice = screen.notice { lines += noticeLines(notice) }
        if screen.notice == nil, area.rows >= 8 { lines += wrapped(BrowseScreen.forms, .dim) }
        let target = screen.selected.map { CharacteristicReference.handle($0).description } ?? ""
        let prompt = area.columns < 30 ? "> " : "write \(target): "
        var line = area.empty
        line.add(prompt, .bold)
        // The end of the line is where the next character goes.
        let room = max(1, area.columns - line.width - 1)
        line.add(ScreenText.clippedInFront(ScreenText.shown(typed, look), to: room, look))
        line.add(look.isUnicode ? "▏" : "_")
        let again = screen.recalled.map { $0 == typed ? "" : " · Up repeats the last one" } ?? ""
        let hints = screen.isConnected ? [again, ""].map { "  Enter writes\($0) · Esc cancels" } : ["  Esc cancels"]
        if let hint = hints.first(where: { line.width + $0.count <= area.columns }) { line.add(hint, .dim) }
        return lines + [line]
    }

    private var keysLine: ScreenLine {
        var keys: [String] = []
        let row = screen.selectedRow
        switch screen.link {
        case .none: keys.append("c connect")
        case .connected:
            if let row, canRead(row) { keys.append("r read") }
            if let row, row.properties.canWrite || isConfiguration(row) { keys.append("w write") }
            if let row, row.properties.canSubscribe {
                keys.append(screen.value(of: row.handle).isSubscribed ? "s unsubscribe" : "s subscribe")
            }
        case .recorded: keys.append("[ ] move")
        case .connecting, .discovering: break
        }
        if row != nil { keys += ["y copy", "x hex"] }
        let last = ["d back", "? keys"]
        while !keys.isEmpty, (keys + last).joined(separator: " · ").count > area.columns { keys.removeLast() }
        let all = (keys + last).joined(separator: " · ")
        return area.line(all.count <= area.columns ? all : "? keys", .dim)
    }

    private func canRead(_ row: AttributeRow) -> Bool {
        row.properties.contains(.read) || row.kind == .descriptor
    }

    /// Returns whether it is a descriptor that is there to be written: the configuration of a client, or of the server.
    private func isConfiguration(_ row: AttributeRow) -> Bool {
        row.kind == .descriptor && (row.type == 0x2902 || row.type == 0x2903)
    }

    // MARK: The keys

    private func keys(from first: Int) -> (lines: [ScreenLine], first: Int) {
        let isRecorded = screen.link == .recorded
        let moving: [(String, String)] = [
            ("arrows  j k", "select an attribute; also the page keys, Home and End"),
            ("← →", "fold the service, unfold it"),
        ]
        let recording: [(String, String)] = [
            ("[ ]  { }", "back and forward in the recording: 10 s, 1 min"),
            ("x", "show values as bytes, or decoded"),
            ("y", "copy the command after =, by OSC 52"),
            ("d  q  Esc", "go back"),
        ]
        let operations: [(String, String)] = [
            ("Enter  r", "read the value"),
            ("w", "write: type bytes such as 05a0, or --text hi, --u16 500 …, with --without-response"),
            ("", "Up repeats the last one"),
            ("s", "subscribe, or unsubscribe; the values change in place and are counted"),
            ("x", "show values as bytes, or decoded"),
            ("y", "copy the command after =, by OSC 52"),
            ("c", "connect again after the link was lost"),
            ("d  q  Esc", "disconnect and go back"),
        ]
        let leaving: [(String, String)] = [
            ("^C", "quit"),
            ("^L", "redraw"),
            ("^Z", "suspend; `fg` resumes" + (isRecorded ? "" : ". The link stays")),
        ]
        let keys = moving + (isRecorded ? recording : operations) + leaving
        let letters = CharacteristicProperties.lettered.map { ($0.letter, $0.property.words) }
        let marks: [(String, String)] = [
            (look.isUnicode ? "●" : "*", "subscribed"),
            (foldedMark, "a folded service"),
            (look.isUnicode ? "×12" : "x12", "the number of values that the peer has sent"),
            ("was", "the value from before the last write: what the peer made of that is not known"),
            ("=", "the command that does the same in a shell"),
        ]
        return HelpPage(area: area).lines([keys, letters, marks], from: first, quits: "^C quit")
    }
}

extension PeerArgument {
    /// The peer as the title of a screen.
    var title: String {
        if case .address(let address, _) = self { return address.description }
        return description
    }
}
