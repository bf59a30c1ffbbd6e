// The live table, and the attributes of the device that was chosen in it.
//
// Duties: one of the two is shown and has the keys; the table goes on meanwhile. A device that cannot be connected to
// is reported in the table. In a recording a list of its links stands between them, where it was asked for or where the
// table has no device to choose.
//
// Invariant: at most one link is wanted, the one whose screen is shown.

import BLECore
import BareBLE

/// The live table with a screen for one link.
struct ScanBrowser: Sendable {
    /// What connecting to a device of the table means.
    enum Links: Hashable, Sendable {
        /// A link is made.
        case live
        /// What was recorded of a link is shown.
        case recorded
        /// There is none, for this reason.
        case unavailable(String)
    }

    private static let noLink = "so far the recording has no link with this device; l lists the recorded links"
    private static let laterLink = "this link begins later in the recording"
    private static let noLinks = "so far the recording has no links"
    private static let noDevices = "no device is heard at this time of the recording; q quits"

    private(set) var table: ScanScreen
    private let links: Links
    /// The given options of links, as words of a command.
    private let linkOptions: [String]
    /// The screen of the link that was made.
    private var made: BrowseScreen?
    private var recorded = RecordedLinks()
    /// The recorded link that is shown.
    private var shown: RecordedLinks.ID?
    /// The list of the recorded links, where it is shown before the table; a link is shown before it.
    private var list: RecordedLinkList?

    /// The screen of the link that is shown.
    private(set) var link: BrowseScreen? {
        get {
            guard let shown else { return made }
            return recorded[shown]
        }
        set {
            if let shown { recorded[shown] = newValue } else { made = newValue }
        }
    }

    init(_ table: ScanScreen, _ links: Links, linkOptions: [String] = []) {
        self.table = table
        self.links = links
        self.linkOptions = linkOptions
    }

    /// A report was heard; the result includes it.
    mutating func take(_ scanResult: ScanResult) {
        table.take(scanResult)
    }

    /// A device was evicted.
    mutating func remove(_ id: AdvertiserID) {
        table.remove(id)
    }

    /// Reports were dropped before they came here.
    mutating func lose(_ count: Int) {
        table.lose(count)
    }

    /// Reports what is done about the adapter.
    mutating func report(_ notice: String) {
        table.report(notice)
    }

    /// The first report of a recording is shown.
    mutating func begin(at start: BootInstant, canGoBack: Bool) {
        table.begin(at: start, canGoBack: canGoBack)
    }

    /// Shows an earlier part of the recording, which was read again.
    mutating func show(_ earlier: ScanBrowser, at now: BootInstant) {
        table.show(earlier.table, at: now)
        let later = recorded
        recorded = earlier.recorded
        guard let shown, let former = later[shown] else { return }
        guard recorded[shown] == nil else {
            recorded[shown]?.resume(former)
            return
        }
        self.shown = nil
        if list == nil { table.report(Self.noLink) } else { list?.report(Self.laterLink) }
    }

    /// Nothing follows, for this reason.
    mutating func finish(_ mode: String, brief: String, at now: BootInstant) {
        table.finish(mode, brief: brief, at: now)
    }

    /// Something has happened on the link that is shown.
    mutating func take(_ event: LinkEvent, at now: BootInstant) {
        made?.take(event, at: now)
    }

    /// A packet of a recorded link was transferred.
    mutating func take(_ pdu: [UInt8], isSent: Bool, ofLink number: Int, with peer: PeerID?, at now: BootInstant) {
        recorded.take(pdu, isSent: isSent, ofLink: number, with: peer, in: table.area, at: now)
    }

    /// Shows what was recorded of a link.
    mutating func showRecorded(_ id: RecordedLinks.ID, name: String? = nil) {
        guard var screen = recorded[id] else { return }
        screen.resize(columns: table.area.columns, rows: table.area.rows)
        screen.nameInTable = name ?? screen.nameInTable
        recorded[id] = screen
        shown = id
    }
}

extension ScanBrowser: LiveContent {
    static let withoutScreen = ScanScreen.withoutScreen

    var usesMouse: Bool { link?.usesMouse ?? (list == nil && table.usesMouse) }

    mutating func resize(columns: Int, rows: Int) {
        table.resize(columns: columns, rows: rows)
        link?.resize(columns: columns, rows: rows)
    }

    mutating func timePassed(at now: BootInstant) {
        table.timePassed(at: now)
    }

    mutating func frame(at now: BootInstant) -> [ScreenLine] {
        let position = table.position(at: now)
        link?.position = position
        if let frame = link?.frame(at: now) { return frame }
        if let frame = list?.frame(of: recorded, under: table, at: now) { return frame }
        return table.frame(at: now)
    }

    mutating func press(_ key: ScreenKey, at now: BootInstant) -> ScreenAction {
        if let step = key.step, isBeforeTable { return seek(by: step, at: now) }
        if let action = link?.press(key, at: now) {
            guard action == .quit else { return action }
            return closeLink()
        }
        if list != nil { return pressInList(key) }
        if key == .character("l"), links != .live, table.view == .table, !table.isTyping {
            showList()
            return .none
        }
        let action = table.press(key, at: now)
        guard case .open(let id) = action else { return action }
        return open(id, at: now)
    }

    /// Whether a recorded link or the list has the keys that move in the recording.
    private var isBeforeTable: Bool {
        if let shown { return recorded[shown]?.view == .tree }
        return list.map { !$0.isReadingKeys } ?? false
    }

    private mutating func seek(by step: Duration, at now: BootInstant) -> ScreenAction {
        guard let obstacle = table.obstacle(to: step) else { return table.seek(by: step, at: now) }
        if shown != nil { link?.report(obstacle) } else { list?.report(obstacle) }
        return .none
    }

    private mutating func closeLink() -> ScreenAction {
        guard let former = shown else {
            made = nil
            return .link(.disconnect)
        }
        shown = nil
        // In a table without devices no link can be chosen.
        if list == nil, table.devices.isEmpty { list = RecordedLinkList(selecting: recorded.place(of: former) ?? 0) }
        return .none
    }

    private mutating func showList() {
        if case .unavailable(let reason) = links {
            table.report(reason)
        } else if recorded.entries.isEmpty {
            table.report(Self.noLinks)
        } else {
            list = RecordedLinkList()
        }
    }

    private mutating func pressInList(_ key: ScreenKey) -> ScreenAction {
        if key == .redraw { return .redraw }
        switch list?.press(key, recorded, rows: table.area.rows) {
        case .open(let id)?: showRecorded(id)
        case .leave?:
            if table.devices.isEmpty { list?.report(Self.noDevices) } else { list = nil }
        case .quit?: return .quit
        case .stay?, nil: break
        }
        return .none
    }

    private mutating func open(_ id: AdvertiserID, at now: BootInstant) -> ScreenAction {
        guard let row = table.devices[id] else { return .none }
        switch links {
        case .unavailable(let reason): table.report(reason)
        case .recorded:
            let peers = [id.peer, row.scanResult.peer].compactMap(\.self)
            if let peer = peers.first(where: { recorded[.peer($0)] != nil }) {
                showRecorded(.peer(peer), name: row.name)
            } else {
                table.report(Self.noLink)
            }
        case .live:
            guard let peer = id.peer else {
                table.report("it sends no address, and cannot be connected to")
                break
            }
            guard row.scanResult.isConnectable else {
                table.report("it accepts no connections: its advertisements are not connectable")
                break
            }
            let argument = PeerArgument.address(peer.address, peer.type)
            made = BrowseScreen(
                argument, name: row.name, linkOptions: linkOptions, in: table.area, at: now)
            return .link(.connect(argument))
        }
        return .none
    }
}
