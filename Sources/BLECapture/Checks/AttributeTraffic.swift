package import BLECore

// The ATT packets of a capture, link by link.
//
// Duties: separate the links of a capture, number them, and extract the ATT packets of those that its host has
// initiated, or of those in which it was the peripheral; the others are omitted.
//
// Invariants
// - Any bytes are tolerated: a packet that cannot be read is no event.
// - A handle of a controller is in `open`, in `ignored`, or in neither; never in both.
// - Each number is used for one link. Its events are one `.began`, its packets in their order, and `.ended` last, which
//   a link does not have that is up at the end of the capture.
// - A link that was up when the capture began counts as initiated by the host: its roles are not known.

/// Separates the links of a capture and extracts the ATT packets of those that its host has initiated, or of those in
/// which it was the peripheral; the others are omitted.
///
/// If a capture begins in the middle of a link, the roles, the peer and the MTU of that link are unknown.
///
/// Spec: HCI_LE_Connection_Complete and variants, HCI_Disconnection_Complete, Core Vol 4 Part E, 7.7.
package struct AttributeTraffic: Sendable {
    /// An event on a link.
    package enum Event: Hashable, Sendable {
        /// The link was established, or the capture begins here.
        case began(PeerID?, isWhole: Bool)
        /// A packet was transferred.
        case packet([UInt8], isSent: Bool)
        /// The link ended; the reason is `nil` where the recording shows only that the handle is used again.
        case ended(HCIStatus?)
    }

    /// An event and its link; links are numbered from 0.
    package struct Occurrence: Hashable, Sendable {
        package let link: Int
        package let event: Event
    }

    private struct Key: Hashable {
        let controller: UInt16
        let handle: ConnectionHandle
    }

    private let isServed: Bool
    private var open: [Key: Int] = [:]
    private var ignored: Set<Key> = []
    private var reassembler = L2CAPReassembler()

    /// The number of links so far.
    package private(set) var linkCount = 0

    /// Creates an empty collection: of the links that the host has initiated,
    /// or of those in which it was the peripheral.
    package init(isServed: Bool = false) {
        self.isServed = isServed
    }

    /// Processes the next packet of the capture and returns its events in order.
    package mutating func received(_ packet: CapturedPacket) -> [Occurrence] {
        switch packet.kind {
        case .event:
            guard Self.mayConcernLinks(packet.bytes), let event = try? HCIEvent(packet.bytes.span) else { return [] }
            if case .connectionComplete(let complete) = event, complete.status.isSuccess {
                return began(complete, Key(controller: packet.controller, handle: complete.handle))
            }
            if case .disconnectionComplete(let end) = event, end.status.isSuccess {
                let key = Key(controller: packet.controller, handle: end.handle)
                reassembler.linkEnded(controller: packet.controller, connection: end.handle)
                ignored.remove(key)
                guard let link = open.removeValue(forKey: key) else { return [] }
                return [Occurrence(link: link, event: .ended(end.reason))]
            }
            return []
        case .asynchronousData:
            guard case .frame(let frame) = reassembler.received(packet), frame.channel == L2CAPFrame.attributeChannel,
                !frame.payload.isEmpty
            else { return [] }
            let key = Key(controller: packet.controller, handle: frame.origin.connection)
            guard !ignored.contains(key) else { return [] }
            var occurrences: [Occurrence] = []
            let link = open[key] ?? linkCount
            if link == linkCount {
                // Nothing indicates that this host was the peripheral.
                guard !isServed else {
                    ignored.insert(key)
                    return []
                }
                // Some controllers send vendor-specific logs under a handle that is not a link.
                guard (try? ATTPacket(frame.payload)) != nil else {
                    ignored.insert(key)
                    return []
                }
                open[key] = link
                linkCount += 1
                occurrences.append(Occurrence(link: link, event: .began(nil, isWhole: false)))
            }
            let isSent = frame.origin.direction == .sent
            occurrences.append(Occurrence(link: link, event: .packet(frame.payload, isSent: isSent)))
            return occurrences
        case .command, .synchronousData, .isochronousData, .note:
            return []
        }
    }

    private mutating func began(_ complete: LEConnectionComplete, _ key: Key) -> [Occurrence] {
        // A controller uses a handle again when its link is over, whether the recording has the end or not.
        var occurrences: [Occurrence] = []
        if let former = open.removeValue(forKey: key) {
            occurrences.append(Occurrence(link: former, event: .ended(nil)))
        }
        reassembler.linkEnded(controller: key.controller, connection: key.handle)
        guard complete.isCentral != isServed else {
            ignored.insert(key)
            return occurrences
        }
        ignored.remove(key)
        open[key] = linkCount
        linkCount += 1
        occurrences.append(Occurrence(link: linkCount - 1, event: .began(complete.peer, isWhole: true)))
        return occurrences
    }

    /// Most events are advertisements, which are skipped quickly.
    private static func mayConcernLinks(_ event: [UInt8]) -> Bool {
        switch event.first {
        case 0x05: true
        case 0x3E: event.dropFirst(2).first.map { $0 == 0x01 || $0 == 0x0A || $0 == 0x29 } ?? false
        default: false
        }
    }
}
