internal import BLECore
internal import BareBLE

/// The links that the controller has reported, so that a recording contains each of them once.
///
/// A link is seen twice: on its socket and in the controller's events, in either order. If the events come first, they
/// are used; otherwise the recorder has synthesized events, and the controller's are omitted. Links of other programs
/// only have events.
struct ControllerLinks: Sendable {
    private struct Reported {
        let peer: PeerID?
    }

    private var reported: [ConnectionHandle: Reported] = [:]
    /// The links whose further events are omitted.
    private var hidden: Set<ConnectionHandle> = []

    /// The handles that the controller uses.
    var handles: Set<ConnectionHandle> { hidden.union(reported.keys) }

    /// Returns the handle of a link to this peer that has no socket yet.
    func handle(of peer: PeerID?, besides used: [ConnectionHandle]) -> ConnectionHandle? {
        guard let peer else { return nil }
        return reported.first { $0.value.peer == peer && !used.contains($0.key) }?.key
    }

    /// Handles the end of a link's socket. Returns true if the disconnection event must be synthesized.
    mutating func mustMakeUpEnd(of link: Recorder.Link) -> Bool {
        if link.isMadeUp { return true }
        guard reported.removeValue(forKey: link.handle) != nil else { return false }
        hidden.insert(link.handle)
        return true
    }

    /// Processes a packet. Returns true if it belongs in the recording, in which `links` are connected.
    mutating func shows(_ packet: TracedHCIPacket, besides links: some Sequence<Recorder.Link>) -> Bool {
        guard packet.type == .event, Self.mayConcernLinks(packet.bytes), let event = try? HCIEvent(packet.bytes.span)
        else { return true }
        if case .connectionComplete(let complete) = event, complete.status.isSuccess {
            let isSeen = links.contains { link in
                link.isMadeUp
                    && (link.handle == complete.handle || link.peer.map { $0 == complete.peer } ?? false)
            }
            if isSeen {
                reported[complete.handle] = nil
                hidden.insert(complete.handle)
            } else {
                reported[complete.handle] = Reported(peer: complete.peer)
                hidden.remove(complete.handle)
            }
            return !isSeen
        }
        if case .disconnectionComplete(let end) = event, end.status.isSuccess {
            hidden.remove(end.handle)
            // Without a reported beginning, the end could be taken for that of a synthesized link.
            return reported.removeValue(forKey: end.handle) != nil
        }
        return true
    }

    /// Most events are advertisements, which are skipped quickly.
    private static func mayConcernLinks(_ event: [UInt8]) -> Bool {
        switch event.first {
        case 0x05: true
        case 0x3E: event.dropFirst(2).first.map { [0x01, 0x0A, 0x29].contains($0) } ?? false
        default: false
        }
    }
}
