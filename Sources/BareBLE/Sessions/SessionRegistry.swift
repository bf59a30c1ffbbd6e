internal import BLECore

/// The sessions of a central by their peers, as long as a reference to them exists.
final class SessionRegistry {
    private struct Entry {
        weak var session: Session?
    }

    private var entries: [PeerID: Entry] = [:]

    /// All sessions, in the order of their names.
    var all: [Session] { entries.values.compactMap(\.session).sorted { $0.name < $1.name } }

    /// The peers of the sessions that have not ended.
    var peers: Set<PeerID> { Set(entries.filter { Self.living($0.value) != nil }.keys) }

    /// Adds a session, which replaces one with the same peer.
    func add(_ session: Session, with peer: PeerID) {
        entries = entries.filter { $0.value.session != nil }
        entries[peer] = Entry(session: session)
    }

    /// Returns the session with a peer, unless it has ended.
    func session(of peer: PeerID) -> Session? { Self.living(entries[peer]) }

    /// Returns a session that has not ended and whose peer fits.
    func session(where isPeer: (PeerID) -> Bool) -> Session? {
        entries.first { isPeer($0.key) && Self.living($0.value) != nil }.flatMap { Self.living($0.value) }
    }

    private static func living(_ entry: Entry?) -> Session? {
        guard let session = entry?.session, session.state != .ended else { return nil }
        return session
    }
}
