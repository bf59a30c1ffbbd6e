internal import BLECore
internal import BareBLE

/// What the controller has told of links, so that a recording has each of them once.
///
/// A link is seen twice: on its socket, and in the controller's events, which come before or behind. The events count where they come
/// first; else the recorder has made some up, and those that follow are left out. Links of other programs have events alone.
struct ControllerLinks: Sendable {
    private struct Told {
        let peer: PeerID?
    }

    private var told: [ConnectionHandle: Told] = [:]
    /// Links whose events are left out from now on.
    private var hidden: Set<ConnectionHandle> = []

    /// The handles that the controller uses.
    var handles: Set<ConnectionHandle> { hidden.union(told.keys) }

    /// The handle of a link to this peer that has no socket yet.
    func handle(of peer: PeerID?, besides used: [ConnectionHandle]) -> ConnectionHandle? {
        guard let peer else { return nil }
        return told.first { $0.value.peer == peer && !used.contains($0.key) }?.key
    }

    /// A link's socket has ended; answers whether the event of its end has to be made up.
    mutating func mustMakeUpEnd(of link: Recorder.Link) -> Bool {
        if link.isMadeUp { return true }
        guard told.removeValue(forKey: link.handle) != nil else { return false }
        hidden.insert(link.handle)
        return true
    }

    /// Takes a packet; answers whether it belongs into the recording, in which `links` are up.
    mutating func shows(_ packet: TracedHCIPacket, besides links: some Sequence<Recorder.Link>) -> Bool {
        guard packet.type == .event, Self.mayConcernLinks(packet.bytes), let event = try? HCIEvent(packet.bytes.span)
        else { return true }
        if case .connectionComplete(let complete) = event, complete.status.isSuccess {
            let isSeen = links.contains { link in
                link.isMadeUp
                    && (link.handle == complete.handle || link.peer.map { $0 == complete.peer } ?? false)
            }
            if isSeen {
                told[complete.handle] = nil
                hidden.insert(complete.handle)
            } else {
                told[complete.handle] = Told(peer: complete.peer)
                hidden.remove(complete.handle)
            }
            return !isSeen
        }
        if case .disconnectionComplete(let end) = event, end.status.isSuccess {
            hidden.remove(end.handle)
            // One whose beginning was not told either could be taken for the end of one that was made up.
            return told.removeValue(forKey: end.handle) != nil
        }
        return true
    }

    /// Most events are advertisements, which need no second look.
    private static func mayConcernLinks(_ event: [UInt8]) -> Bool {
        switch event.first {
        case 0x05: true
        case 0x3E: event.dropFirst(2).first.map { [0x01, 0x0A, 0x29].contains($0) } ?? false
        default: false
        }
    }
}
