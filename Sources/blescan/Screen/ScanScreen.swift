// The live table of devices, as a value: scan results, keys and time go in, lines come out.
//
// Duties: one row for each advertiser, in an order that stays readable while it is kept up to date; one of them
// selected, by its identity, not by its position; a filter; the structures of one device; the counts in the heading.
//
// Invariants:
// - A frame has exactly as many lines as the screen has rows, none is wider than the screen, and nothing in it can
//   control a terminal: every text passes `ScreenLine.add`.
// - Rows change places at most every `sortPause`, and then only those whose strength has really changed. A new one is
//   last until then, except in the first `sortPause`: nobody reads a row yet, and a short recording has no other.
// - A row fades after `fadesAfter` without a packet and is removed after `goesAfter`, unless it is shown in detail.
//
// The time is that of the scan results. The owner of the value shows it, see `LiveScreen`; `ScanView` draws its frames.

import BLECore

/// The live table.
struct ScanScreen: Sendable {
    /// The beginning of the heading.
    struct Heading: Hashable, Sendable {
        /// The adapter, or the file.
        var source: String
        /// The adapter's address.
        var address: String?
        /// The mode of the scan.
        var mode: String
        /// A shorter mode for a narrow screen; `nil` for none.
        var brief: String?
    }

    /// The order of the rows.
    enum Order: Hashable, Sendable, CaseIterable {
        case strength, name, address, seen

        var column: ScreenColumn {
            switch self {
            case .strength: .strength
            case .name: .name
            case .address: .address
            case .seen: .seen
            }
        }
    }

    /// The view that is shown.
    enum View: Hashable, Sendable {
        case table
        /// One device, from a line of it on.
        case device(AdvertiserID, line: Int)
        /// The description of the keys, from a line of it on.
        case keys(line: Int)
    }

    static let fadesAfter: Duration = .seconds(30)
    static let goesAfter: Duration = .seconds(180)
    static let sortPause: Duration = .seconds(2)

    private(set) var heading: Heading
    private(set) var area: ScreenArea
    /// Whether only devices with measurements come here, so that others may be heard where the table is empty.
    let onlySensors: Bool

    /// The devices, and their order in the table.
    private struct Contents {
        var devices: [AdvertiserID: ScreenRow] = [:]
        var sequence: [AdvertiserID] = []

        mutating func sort(_ order: Order, _ isReversed: Bool, at now: BootInstant) {
            var keys: [AdvertiserID: SortKey] = [:]
            for id in sequence {
                devices[id]?.holdStrength()
                if let row = devices[id] { keys[id] = SortKey(row, order, at: now) }
            }
            sequence.sort { left, right in
                guard let left = keys[left], let right = keys[right] else { return false }
                return left.precedes(right, isReversed: isReversed)
            }
        }
    }

    private var live = Contents()
    /// What is shown while the table does not move, and since when.
    private var frozen: (contents: Contents, since: BootInstant)?
    private(set) var lossCount = 0
    private(set) var reportCount = 0
    private(set) var rate = ReportsPerSecond()
    private var lastSort: BootInstant?
    /// The time of the first report.
    private var firstReport: BootInstant?
    /// Whether rows were added since the last sorting.
    private var hasNewRows = false
    /// The first report of a recording, and whether the user can go back in it; `nil` for what is on air.
    private var recording: (start: BootInstant, canGoBack: Bool)?

    /// The devices that are shown, or can be.
    var devices: [AdvertiserID: ScreenRow] { (frozen?.contents ?? live).devices }
    /// All of them in the order of the table.
    private var sequence: [AdvertiserID] { (frozen?.contents ?? live).sequence }
    /// Whether the table does not move.
    var isFrozen: Bool { frozen != nil }
    /// Whether the table is that of a recording.
    var isRecorded: Bool { recording != nil }

    private(set) var order = Order.strength
    /// Whether the order is turned round.
    private(set) var isReversed = false
    /// Whether devices with neither a name nor measurements are hidden.
    private(set) var hidesUnnamed = false
    private(set) var view = View.table
    private(set) var selected: AdvertiserID?
    private(set) var showsStructures = false
    private(set) var filter = ""
    private(set) var isTyping = false
    /// The first device that there was room for.
    private(set) var top = 0
    /// The columns that the user has hidden.
    private(set) var hiddenColumns: Set<ScreenColumn> = []
    /// Whether clicks and the wheel are keys; otherwise the terminal selects text with them.
    private(set) var usesMouse = false
    /// The reason that the last key could do nothing, or what it has changed, until the next key.
    private(set) var notice: String?

    /// Creates an empty table. With `onlySensors` the mode in its heading indicates that.
    init(_ heading: Heading, _ look: ScreenLook, onlySensors: Bool = false, columns: Int = 80, rows: Int = 24) {
        self.heading = heading
        if onlySensors { self.heading.mode += " of sensors" }
        self.onlySensors = onlySensors
        area = ScreenArea(columns: columns, rows: rows, look)
    }

    /// A report was heard; the result includes it.
    mutating func take(_ scanResult: ScanResult) {
        reportCount += 1
        rate.count(at: scanResult.lastSeen)
        firstReport = firstReport ?? scanResult.lastSeen
        if live.devices[scanResult.id]?.take(scanResult) == nil {
            live.devices[scanResult.id] = ScreenRow(scanResult)
            live.sequence.append(scanResult.id)
            hasNewRows = true
        }
    }

    /// Reports were dropped before they came here.
    mutating func lose(_ count: Int) {
        lossCount += count
    }

    /// A device was evicted.
    mutating func remove(_ id: AdvertiserID) {
        guard !isOpen(id) else { return }
        forget { $0 == id }
    }

    /// Advances the time: removes silent devices, and sorts the rows when that is due.
    mutating func timePassed(at now: BootInstant) {
        let gone = live.devices.filter { $0.value.silence(at: now) >= Self.goesAfter && !isOpen($0.key) }
        if !gone.isEmpty { forget { gone[$0] != nil } }
        let isBeginning = firstReport.map { now - $0 < Self.sortPause } ?? false
        if let lastSort, now - lastSort < Self.sortPause, !(isBeginning && hasNewRows) { return }
        sort(at: now)
    }

    /// Sorts the rows now.
    mutating func sort(at now: BootInstant) {
        lastSort = now
        hasNewRows = false
        live.sort(order, isReversed, at: now)
        if let since = frozen?.since { frozen?.contents.sort(order, isReversed, at: since) }
    }

    /// No report follows that could move the rows: each has its average, and they are sorted for good.
    ///
    /// - Parameters:
    ///   - mode: What the heading shows in place of the mode.
    ///   - brief: The same for a narrow screen.
    mutating func finish(_ mode: String, brief: String, at now: BootInstant) {
        (heading.mode, heading.brief) = (mode, brief)
        for id in live.sequence { live.devices[id]?.settleStrength() }
        sort(at: now)
    }

    /// The first report of a recording is shown.
    mutating func begin(at start: BootInstant, canGoBack: Bool) {
        recording = (start, canGoBack)
    }

    /// Shows an earlier part of the recording, which was read again, in the user's order and with the user's filter.
    mutating func show(_ earlier: ScanScreen, at now: BootInstant) {
        let wasFrozen = isFrozen
        (heading, live, frozen) = (earlier.heading, earlier.live, nil)
        (rate, reportCount, lossCount) = (earlier.rate, earlier.reportCount, earlier.lossCount)
        if let selected, devices[selected] == nil { self.selected = nil }
        // What had been sorted came later.
        lastSort = nil
        timePassed(at: now)
        // The user has stopped the table while the recording was read.
        if wasFrozen { frozen = (live, now) }
    }

    /// Returns how far the recording is, such as `1:02`; `nil` for what is on air.
    func position(at now: BootInstant) -> String? {
        guard let recording else { return nil }
        let seconds = max(0, (now - recording.start).components.seconds)
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        let rest = (seconds % 60 < 10 ? ":0" : ":") + "\(seconds % 60)"
        return hours == 0 ? "\(minutes)" + rest : "\(hours)" + (minutes < 10 ? ":0" : ":") + "\(minutes)" + rest
    }

    /// Returns why the recording cannot go as far as that; `nil` if it can.
    func obstacle(to step: Duration) -> String? {
        guard let recording, step < .zero, !recording.canGoBack else { return nil }
        return "the recording does not come from a file, and cannot be read again"
    }

    /// Goes forward in a recording, or back; the table moves again.
    mutating func seek(by step: Duration, at now: BootInstant) -> ScreenAction {
        guard isRecorded else { return .none }
        if let reason = obstacle(to: step) {
            report(reason)
            return .none
        }
        if isFrozen { toggleFreeze(at: now) }
        return .seek(step)
    }

    /// Stops the table, or lets it go on.
    private mutating func toggleFreeze(at now: BootInstant) {
        frozen = frozen == nil ? (live, now) : nil
        // What is selected may be gone by now.
        if let selected, devices[selected] == nil { self.selected = nil }
    }

    /// Returns the time that is shown.
    func shownTime(_ now: BootInstant) -> BootInstant { frozen?.since ?? now }

    /// The devices that are not hidden and match the filter, in the order of the table.
    var visible: [AdvertiserID] {
        if filter.isEmpty, !hidesUnnamed { return sequence }
        let text = filter.lowercased()
        return sequence.filter { id in
            guard let row = devices[id] else { return false }
            if hidesUnnamed, row.name == nil, !row.hasMeasurements { return false }
            return text.isEmpty || row.matches(text)
        }
    }

    /// Why there is no device, in the place of the rows; `nil` if there is one, or if all devices are shown.
    var vacancy: String? {
        guard onlySensors, devices.isEmpty else { return nil }
        return "no device with measurements is heard at this time; others are not shown"
    }

    /// Returns the summary after the screen is gone.
    func closing(after time: Duration) -> String {
        let seconds = max(0, time.components.seconds)
        let length =
            seconds < 120 ? "\(seconds) s" : seconds < 7200 ? "\(seconds / 60) min" : "\(seconds / 3600) h"
        return
            "\(live.devices.count.counted("device")) at the end, \(reportCount.counted("advertisement")) in \(length), "
            + "\(lossCount) dropped"
    }

    private func isOpen(_ id: AdvertiserID) -> Bool {
        guard case .device(let open, _) = view else { return false }
        return open == id
    }

    private mutating func forget(_ isGone: (AdvertiserID) -> Bool) {
        if !isFrozen, let selected, isGone(selected) {
            let shown = visible
            let place = shown.firstIndex(of: selected) ?? 0
            let next = shown[place...].first { !isGone($0) } ?? shown[..<place].last { !isGone($0) }
            self.selected = next
        }
        live.sequence.removeAll(where: isGone)
        for id in live.devices.keys where isGone(id) { live.devices[id] = nil }
    }
}

// MARK: - Keys

extension ScanScreen: LiveContent {
    static let withoutScreen = "`scan --plain` and `replay --as-scan` print lines."

    mutating func resize(columns: Int, rows: Int) {
        area.resize(columns: columns, rows: rows)
    }

    mutating func frame(at now: BootInstant) -> [ScreenLine] {
        // It may have gone while the table was frozen.
        if case .device(let id, _) = view, devices[id] == nil { view = .table }
        let drawn = ScanView(self, at: now).drawn
        // Otherwise the way back would be as long as the way beyond the end.
        switch view {
        case .table: top = drawn.first
        case .device(let id, _): view = .device(id, line: drawn.first)
        case .keys: view = .keys(line: drawn.first)
        }
        return drawn.lines
    }

    mutating func press(_ key: ScreenKey, at now: BootInstant) -> ScreenAction {
        if key == .redraw { return .redraw }
        // While the message of the key before still covers rows.
        let place = clicked(by: key, at: now)
        notice = nil
        if isTyping {
            type(key)
            return .none
        }
        if key == .character(" ") || key == .character("p"), !isReadingKeys {
            toggleFreeze(at: now)
            return .none
        }
        if let step = key.step, !isReadingKeys { return seek(by: step, at: now) }
        switch (view, key) {
        case (_, .character("q")): return .quit
        case (_, .character("m")): toggleMouse()
        case (.device(let id, _), .character("c")): return .open(id)
        case (.table, .character("c")):
            guard let id = visiblySelected else {
                report(absence ?? "no device is selected; the arrows select one")
                return .none
            }
            return .open(id)
        case (.table, .click): click(place, at: now)
        case (.table, _): pressInTable(key, at: now)
        case (.device(let id, let line), _): pressInDevice(key, id, line)
        case (.keys(let line), _): view = key.scrolled(line, rows: area.rows).map { .keys(line: $0) } ?? .table
        }
        return .none
    }

    private mutating func toggleMouse() {
        usesMouse.toggle()
        report(
            usesMouse
                ? "the mouse selects rows; m leaves it to the terminal, to copy text"
                : "the terminal has the mouse again")
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
        case .up, .down, .pageUp, .pageDown, .home, .end: moveSelection(by: key)
        case .redraw, .left, .right, .delete, .click: break
        }
    }

    private mutating func pressInTable(_ key: ScreenKey, at now: BootInstant) {
        if moveSelection(by: key) { return }
        if let column = ScreenColumn(key: key) { return toggle(column) }
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
        case .enter:
            guard let open = visiblySelected ?? visible.first else {
                if let absence { report(absence) }
                return
            }
            selected = open
            view = .device(open, line: 0)
        case .escape:
            // One thing at a time: first the filter, then the selection.
            if !filter.isEmpty { filter = "" } else { (selected, showsStructures) = (nil, false) }
        case .up, .down, .left, .right, .pageUp, .pageDown, .home, .end, .character, .backspace, .delete, .clear,
            .redraw, .click:
            break
        }
    }

    /// Returns what a click in the table is on.
    private func clicked(by key: ScreenKey, at now: BootInstant) -> ScanView.Place? {
        guard view == .table, case .click(let column, let row) = key else { return nil }
        return ScanView(self, at: now).place(column: column, row: row)
    }

    /// Hides a column, or shows it again.
    private mutating func toggle(_ column: ScreenColumn) {
        guard hiddenColumns.remove(column) != nil else {
            hiddenColumns.insert(column)
            return report("\(column.title) is hidden; the same key shows it again")
        }
        let shown = ScreenColumn.layout(for: area.columns - 1, without: hiddenColumns)
        if !shown.contains(where: { $0.column == column }) {
            report("there is no room for \(column.title) on \(area.columns.counted("column"))")
        }
    }

    /// Selects a device, opens the selected one, or sorts by a column, and in reverse by the one that it is sorted by.
    private mutating func click(_ place: ScanView.Place?, at now: BootInstant) {
        switch place {
        case .device(let id):
            if selected == id { view = .device(id, line: 0) } else { selected = id }
        case .heading(let column):
            let sorted = column == .bar ? .strength : column
            guard let clicked = Order.allCases.first(where: { $0.column == sorted }) else { return }
            if order == clicked { isReversed.toggle() } else { (order, isReversed) = (clicked, false) }
            top = 0
            sort(at: now)
        case nil: break
        }
    }

    /// Why no device is shown; `nil` if there is one.
    private var absence: String? {
        guard visible.isEmpty else { return nil }
        if !filter.isEmpty, !devices.isEmpty { return "no device matches the filter; Esc clears it" }
        if !devices.isEmpty { return "all devices are hidden; d shows them" }
        guard isRecorded else { return vacancy ?? "no device is heard at the moment" }
        return (vacancy ?? "no device is heard at this time of the recording") + "; l lists the recorded links"
    }

    /// The selected device, unless the filter hides it.
    private var visiblySelected: AdvertiserID? {
        selected.flatMap { visible.contains($0) ? $0 : nil }
    }

    private mutating func pressInDevice(_ key: ScreenKey, _ id: AdvertiserID, _ line: Int) {
        if let line = key.scrolled(line, rows: area.rows) {
            view = .device(id, line: line)
            return
        }
        switch key {
        case .escape, .enter, .backspace, .character("r"): view = .table
        case .left, .right: step(from: id, key)
        case .click(_, let row): if row == 0 { view = .table }
        case .character("?"), .character("h"): view = .keys(line: 0)
        case .up, .down, .pageUp, .pageDown, .home, .end, .character, .delete, .clear, .redraw: break
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

    /// Selects another row, if the key moves the selection; returns whether it does.
    @discardableResult
    private mutating func moveSelection(by key: ScreenKey) -> Bool {
        let shown = visible
        let place = selected.flatMap { shown.firstIndex(of: $0) }
        guard let next = key.moved(from: place, count: shown.count, page: max(1, area.rows - 3)) else { return false }
        selected = shown[next]
        return true
    }

    /// Shows a message until the next key, such as why a key could do nothing.
    mutating func report(_ notice: String) {
        self.notice = notice
    }
}

/// The sort key of a row.
private struct SortKey {
    /// Whether the device does not have what the table is sorted by: it comes last in either direction.
    private let isLast: Bool
    private let rank: Int
    private let text: String
    private let firstSeen: BootInstant
    private let address: UInt64

    init(_ row: ScreenRow, _ order: ScanScreen.Order, at now: BootInstant) {
        firstSeen = row.scanResult.firstSeen
        address = row.scanResult.id.peer?.address.rawValue ?? .max
        switch order {
        case .strength: (isLast, rank, text) = (row.heldStrength == nil, -(row.heldStrength ?? 0), "")
        case .name: (isLast, rank, text) = (row.name == nil, 0, row.name?.lowercased() ?? "")
        case .address:
            let peer = row.scanResult.id.peer
            (isLast, rank, text) = (peer == nil, 0, peer?.address.description ?? "")
        // In steps, because every present device is heard all the time.
        case .seen: (isLast, rank, text) = (false, Int(row.silence(at: now).components.seconds / 10), "")
        }
    }

    func precedes(_ other: SortKey, isReversed: Bool) -> Bool {
        if isLast != other.isLast { return other.isLast }
        let (first, second) = isReversed ? (other, self) : (self, other)
        return (first.rank, first.text, first.firstSeen, first.address)
            < (second.rank, second.text, second.firstSeen, second.address)
    }
}

/// The number of reports in a second.
struct ReportsPerSecond: Sendable {
    private static let seconds = 5

    private var counts = [Int](repeating: 0, count: Self.seconds)
    private var first: Int64?
    private var newest: Int64 = 0

    /// Counts a report.
    mutating func count(at now: BootInstant) {
        move(to: now)
        counts[Int(newest % Int64(Self.seconds))] += 1
    }

    /// Returns the mean of the last completed seconds; of the first one until then.
    func perSecond(at now: BootInstant) -> Int {
        guard let first else { return 0 }
        var rate = self
        rate.move(to: now)
        let current = rate.counts[Int(rate.newest % Int64(Self.seconds))]
        let whole = min(rate.newest - first, Int64(Self.seconds - 1))
        guard whole > 0 else { return current }
        return Int((Double(rate.counts.reduce(0, +) - current) / Double(whole)).rounded())
    }

    private mutating func move(to now: BootInstant) {
        let second = max(0, now.nanoseconds / 1_000_000_000)
        guard first != nil else {
            (first, newest) = (second, second)
            return
        }
        guard second > newest else { return }
        for passed in 1...min(second - newest, Int64(Self.seconds)) {
            counts[Int((second - passed + 1) % Int64(Self.seconds))] = 0
        }
        newest = second
    }
}
