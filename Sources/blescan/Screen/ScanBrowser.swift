// The live table, and the attributes of the device that was chosen in it.
//
// Duties: one of the two is shown and has the keys; the table goes on meanwhile. A device that cannot be connected to
// is reported in the table.
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

    private static let noLink = "so far the recording has no link with this device; nothing else can be read here"

    private(set) var table: ScanScreen
    private let links: Links
    /// The given options of links, as words of a command.
    private let linkOptions: [String]
    private(set) var link: BrowseScreen?
    /// The peers of recorded links; of one whose address was not recorded, by an empty key.
    private var recorded: [PeerID?: RecordedPeer] = [:]
    /// The recorded link that was shown last: its peer, and the name in the table.
    private var shownRecorded: (peer: PeerID?, name: String?)?

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
        recorded = earlier.recorded
        guard link != nil, let shownRecorded else { return }
        // It was opened while the recording was read, and has what came later.
        link = nil
        showRecorded(shownRecorded.peer, name: shownRecorded.name, at: now)
        if link == nil { table.report(Self.noLink) }
    }

    /// Nothing follows, for this reason.
    mutating func finish(_ mode: String, brief: String, at now: BootInstant) {
        table.finish(mode, brief: brief, at: now)
    }

    /// Something has happened on the link that is shown.
    mutating func take(_ event: LinkEvent, at now: BootInstant) {
        link?.take(event, at: now)
    }

    /// A packet of a recorded link was transferred.
    mutating func take(_ pdu: [UInt8], isSent: Bool, ofLinkWith peer: PeerID?, at now: BootInstant) {
        let events = recorded[peer, default: RecordedPeer()].take(pdu, isSent: isSent)
        guard let shownRecorded, shownRecorded.peer == peer else { return }
        for event in events { link?.take(event, at: now) }
    }

    /// Shows what was recorded of a link.
    mutating func showRecorded(_ peer: PeerID?, name: String?, at now: BootInstant) {
        guard let known = recorded[peer] else { return }
        var screen = BrowseScreen(
            peer.map { .address($0.address, $0.type) }, name: name, isRecorded: true, in: table.area, at: now)
        screen.take(.discovered(known.database), at: now)
        for handle in known.history.keys.sorted() {
            if let event = known.history[handle] { screen.take(event, at: now) }
        }
        shownRecorded = (peer, name)
        link = screen
    }
}

extension ScanBrowser: LiveContent {
    static let withoutScreen = ScanScreen.withoutScreen

    var usesMouse: Bool { link?.usesMouse ?? table.usesMouse }

    mutating func resize(columns: Int, rows: Int) {
        table.resize(columns: columns, rows: rows)
        link?.resize(columns: columns, rows: rows)
    }

    mutating func timePassed(at now: BootInstant) {
        table.timePassed(at: now)
    }

    mutating func frame(at now: BootInstant) -> [ScreenLine] { link?.frame(at: now) ?? table.frame(at: now) }

    mutating func press(_ key: ScreenKey, at now: BootInstant) -> ScreenAction {
        if let action = link?.press(key, at: now) {
            guard action == .quit else { return action }
            link = nil
            return links == .live ? .link(.disconnect) : .none
        }
        let action = table.press(key, at: now)
        guard case .open(let id) = action else { return action }
        return open(id, at: now)
    }

    private mutating func open(_ id: AdvertiserID, at now: BootInstant) -> ScreenAction {
        guard let row = table.devices[id] else { return .none }
        switch links {
        case .unavailable(let reason): table.report(reason)
        case .recorded:
            let peers = [id.peer, row.scanResult.peer].compactMap(\.self)
            if let peer = peers.first(where: { recorded[$0] != nil }) {
                showRecorded(peer, name: row.name, at: now)
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
            link = BrowseScreen(
                argument, name: row.name, linkOptions: linkOptions, in: table.area, at: now)
            return .link(.connect(argument))
        }
        return .none
    }
}
