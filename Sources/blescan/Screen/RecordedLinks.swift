import BLECore

/// The links of a recording, as far as it has come.
///
/// A peer has one entry for all of its links: a client discovers its attributes in the first of them alone. A link whose
/// peer's address was not recorded has an entry of its own.
struct RecordedLinks: Sendable {
    enum ID: Hashable, Sendable {
        case peer(PeerID)
        /// The link of this number.
        case link(Int)

        init(ofLink number: Int, with peer: PeerID?) {
            if let peer { self = .peer(peer) } else { self = .link(number) }
        }
    }

    struct Entry: Sendable {
        let id: ID
        /// The time of the first packet.
        let began: BootInstant
        /// The numbers of the links.
        fileprivate(set) var links: Set<Int> = []
        fileprivate(set) var packetCount = 0
        fileprivate var peer = RecordedPeer()
        fileprivate(set) var screen: BrowseScreen
    }

    /// The most entries: a recording may have any number of links.
    private static let limit = 4096

    /// In the order in which they began. None goes.
    private(set) var entries: [Entry] = []
    /// Whether there were links beyond the limit, of which nothing is kept.
    private(set) var hasMore = false
    private var places: [ID: Int] = [:]

    /// Returns the place of an entry.
    func place(of id: ID) -> Int? { places[id] }

    /// The screen of an entry; `nil` if there is none.
    subscript(id: ID) -> BrowseScreen? {
        get { places[id].map { entries[$0].screen } }
        set {
            guard let newValue, let place = places[id] else { return }
            entries[place].screen = newValue
        }
    }

    /// A packet of a link was transferred.
    mutating func take(
        _ pdu: [UInt8], isSent: Bool, ofLink number: Int, with peer: PeerID?, in area: ScreenArea, at now: BootInstant
    ) {
        let id = ID(ofLink: number, with: peer)
        if places[id] == nil {
            guard entries.count < Self.limit else {
                hasMore = true
                return
            }
            places[id] = entries.count
            let screen = BrowseScreen(
                peer.map { .address($0.address, $0.type) }, isRecorded: true, linkTitle: "link \(entries.count + 1)",
                in: area, at: now)
            entries.append(Entry(id: id, began: now, screen: screen))
        }
        guard let place = places[id] else { return }
        entries[place].links.insert(number)
        entries[place].packetCount += 1
        for event in entries[place].peer.take(pdu, isSent: isSent) { entries[place].screen.take(event, at: now) }
    }
}
