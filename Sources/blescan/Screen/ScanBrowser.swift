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

    /// The table.
    var table: ScanScreen
    private let links: Links
    private(set) var link: BrowseScreen?
    /// The peers of recorded links; of one whose address was not recorded, by an empty key.
    private var recorded: [PeerID?: RecordedPeer] = [:]
    private var shownRecorded: PeerID?

    init(_ table: ScanScreen, _ links: Links) {
        self.table = table
        self.links = links
    }

    /// Something has happened on the link that is shown.
    mutating func take(_ event: LinkEvent, at now: BootInstant) {
        link?.take(event, at: now)
    }

    /// A packet of a recorded link was transferred.
    mutating func take(_ pdu: [UInt8], isSent: Bool, ofLinkWith peer: PeerID?, at now: BootInstant) {
        let events = recorded[peer, default: RecordedPeer()].take(pdu, isSent: isSent)
        guard shownRecorded == peer else { return }
        for event in events { link?.take(event, at: now) }
    }

    /// Shows what was recorded of a link.
    mutating func showRecorded(_ peer: PeerID?, name: String?, at now: BootInstant) {
        guard let known = recorded[peer] else { return }
        var screen = BrowseScreen(
            peer.map { .address($0.address, $0.type) }, name: name, isRecorded: true, table.look,
            columns: table.columns, rows: table.rows, at: now)
        screen.take(.discovered(known.database), at: now)
        for handle in known.history.keys.sorted() {
            if let event = known.history[handle] { screen.take(event, at: now) }
        }
        shownRecorded = peer
        link = screen
    }
}

extension ScanBrowser: LiveContent {
    mutating func resize(columns: Int, rows: Int) {
        table.resize(columns: columns, rows: rows)
        link?.resize(columns: columns, rows: rows)
    }

    mutating func timePassed(at now: BootInstant) {
        table.timePassed(at: now)
    }

    mutating func frame(at now: BootInstant) -> [ScreenLine] { link?.frame(at: now) ?? table.frame(at: now) }

    mutating func press(_ key: ScreenKey, at now: BootInstant) -> ScreenWish {
        if let wish = link?.press(key, at: now) {
            guard wish == .quit else { return wish }
            link = nil
            return links == .live ? .link(.disconnect) : .none
        }
        let wish = table.press(key, at: now)
        guard case .open(let id) = wish else { return wish }
        return open(id, at: now)
    }

    private mutating func open(_ id: AdvertiserID, at now: BootInstant) -> ScreenWish {
        guard let row = table.devices[id] else { return .none }
        switch links {
        case .unavailable(let reason): table.report(reason)
        case .recorded:
            let peers = [id.peer, row.scanResult.peer].compactMap(\.self)
            if let peer = peers.first(where: { recorded[$0] != nil }) {
                showRecorded(peer, name: row.name, at: now)
            } else {
                table.report("so far the recording has no link with this device; nothing else can be read here")
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
                argument, name: row.name, table.look, columns: table.columns, rows: table.rows, at: now)
            return .link(.connect(argument))
        }
        return .none
    }
}
