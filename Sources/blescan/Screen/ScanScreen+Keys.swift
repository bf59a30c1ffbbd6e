import BLECore

extension ScanScreen {
    /// A request of a key beyond the screen.
    enum Wish: Hashable, Sendable {
        case none
        /// The user quits.
        case quit
        /// The terminal has to be drawn again.
        case redraw
    }

    /// Handles a key.
    mutating func press(_ key: ScreenKey, at now: BootInstant) -> Wish {
        if key == .redraw { return .redraw }
        if isTyping {
            type(key)
            return .none
        }
        if key == .character(" ") || key == .character("p"), !isReadingKeys {
            toggleFreeze(at: now)
            return .none
        }
        switch (view, key) {
        case (_, .character("q")): return .quit
        case (.table, _): pressInTable(key, at: now)
        case (.device(let id, let line), _): pressInDevice(key, id, line)
        case (.keys(let line), _): view = scrolled(line, by: key).map { .keys(line: $0) } ?? .table
        }
        return .none
    }

    private var isReadingKeys: Bool {
        if case .keys = view { return true }
        return false
    }

    private mutating func type(_ key: ScreenKey) {
        switch key {
        case .character(let scalar):
            // A line has no room for more.
            if filter.unicodeScalars.count < 64 { filter.unicodeScalars.append(scalar) }
        case .backspace:
            if filter.isEmpty { isTyping = false } else { filter.unicodeScalars.removeLast() }
        case .clear: filter = ""
        case .enter:
            isTyping = false
            // A hidden device must not be selected.
            if let selected, !visible.contains(selected) { self.selected = visible.first }
        case .escape:
            filter = ""
            isTyping = false
        case .up, .down, .pageUp, .pageDown, .home, .end: move(key)
        case .redraw, .left, .right: break
        }
    }

    private mutating func pressInTable(_ key: ScreenKey, at now: BootInstant) {
        switch key {
        case .character("s"):
            let all = Order.allCases
            order = all[((all.firstIndex(of: order) ?? 0) + 1) % all.count]
            top = 0
            sort(at: now)
        case .character("S"):
            isReversed.toggle()
            top = 0
            sort(at: now)
        case .character("d"): hidesUnnamed.toggle()
        case .character("r"):
            showsStructures.toggle()
            selected = visiblySelected ?? visible.first
        case .character("/"), .character("f"): isTyping = true
        case .character("?"), .character("h"): view = .keys(line: 0)
        case .character("j"): move(.down)
        case .character("k"): move(.up)
        case .character("g"): move(.home)
        case .character("G"): move(.end)
        case .up, .down, .pageUp, .pageDown, .home, .end: move(key)
        case .enter:
            guard let open = visiblySelected ?? visible.first else { return }
            selected = open
            view = .device(open, line: 0)
        case .escape:
            // One thing at a time: first the filter, then the selection.
            if !filter.isEmpty { filter = "" } else { (selected, showsStructures) = (nil, false) }
        case .character, .backspace, .clear, .redraw, .left, .right: break
        }
    }

    /// The selected device, unless the filter hides it.
    private var visiblySelected: AdvertiserID? {
        selected.flatMap { visible.contains($0) ? $0 : nil }
    }

    private mutating func pressInDevice(_ key: ScreenKey, _ id: AdvertiserID, _ line: Int) {
        if let line = scrolled(line, by: key) {
            view = .device(id, line: line)
            return
        }
        switch key {
        case .escape, .enter, .backspace, .character("r"): view = .table
        case .left, .right: step(from: id, key)
        case .character("?"), .character("h"): view = .keys(line: 0)
        case .up, .down, .pageUp, .pageDown, .home, .end, .character, .clear, .redraw: break
        }
    }

    /// Shows the device above or below in the table.
    private mutating func step(from id: AdvertiserID, _ key: ScreenKey) {
        let shown = visible
        guard let place = shown.firstIndex(of: id) else { return }
        let next = place + (key == .left ? -1 : 1)
        guard shown.indices.contains(next) else { return }
        selected = shown[next]
        view = .device(shown[next], line: 0)
    }

    /// Returns the first line to show after a key that scrolls; `nil` for the other keys.
    private func scrolled(_ line: Int, by key: ScreenKey) -> Int? {
        let page = max(1, rows - 2)
        return switch key {
        case .up, .character("k"): max(0, line - 1)
        case .down, .character("j"): line + 1
        case .pageUp: max(0, line - page)
        case .pageDown: line + page
        case .home, .character("g"): 0
        case .end, .character("G"): .max / 2
        case .enter, .escape, .backspace, .character, .clear, .redraw, .left, .right: nil
        }
    }

    /// Selects another row.
    private mutating func move(_ key: ScreenKey) {
        let shown = visible
        guard let last = shown.indices.last else { return }
        guard let selected, let place = shown.firstIndex(of: selected) else {
            selected = key == .end || key == .up ? shown[last] : shown.first
            return
        }
        let page = max(1, rows - 3)
        let next =
            switch key {
            case .up: place - 1
            case .pageUp: place - page
            case .pageDown: place + page
            case .home: 0
            case .end: last
            default: place + 1
            }
        self.selected = shown[min(max(next, 0), last)]
    }
}
