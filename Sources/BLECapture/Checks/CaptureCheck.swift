package import BLECore

/// Checks all links of a capture, or a dialogue, packet by packet, in memory independent of the file's size.
package struct CaptureCheck {
    /// A disagreement between the recording and the state machines.
    package struct Finding: Hashable, Sendable {
        /// The peer of the link, or `nil` if unknown.
        package let peer: PeerID?
        /// The packet and its defect.
        package let disagreement: SessionCheck.Disagreement
    }

    private var traffic = AttributeTraffic()
    private var links: [Int: (peer: PeerID?, check: SessionCheck)] = [:]
    private var endedRequests = 0
    /// Requests whose links ended before the response: the packet number of the first, and the count.
    private var endedUnanswered: (first: Int, count: Int)?
    private var number = 0
    private var time = Duration.zero

    /// The number of links that are kept because they have not ended.
    package var openLinkCount: Int { links.count }
    /// The number of links checked.
    package private(set) var linkCount = 0
    /// The number of ATT packets checked.
    package private(set) var packetCount = 0
    package var requestCount: Int { links.values.reduce(endedRequests) { $0 &+ $1.check.requestCount } }

    /// The requests without a response so far: the packet number of the first, and the count. The end of a link or of a
    /// recording is no disagreement, but these requests are where to look for the reason of the end.
    package var unanswered: (first: Int, count: Int)? {
        links.values.compactMap { $0.check.unansweredRequest }.reduce(endedUnanswered, Self.adding)
    }

    /// Creates a check of a capture.
    package init() {}

    /// Creates a check of the steps of `dialogue`, whose client is `<`.
    package init(_ dialogue: Dialogue) {
        linkCount = 1
        links[0] = (dialogue.header("peer").flatMap { PeerID($0) }, SessionCheck(mtu: dialogue.initialMTU))
    }

    /// Checks the next packet of a capture; packets are numbered from 1.
    package mutating func received(_ packet: CapturedPacket) -> Finding? {
        number += 1
        for occurrence in traffic.received(packet) {
            switch occurrence.event {
            case .began(let peer, let isWhole):
                linkCount += 1
                links[occurrence.link] = (peer, SessionCheck(mtu: Int(ATTQueue.defaultMTU), isWhole: isWhole))
            case .packet(let pdu, let isSent):
                if let finding = check(pdu, isSent: isSent, of: occurrence.link, number, at: packet.timestamp) {
                    return finding
                }
            case .ended:
                guard let check = links.removeValue(forKey: occurrence.link)?.check else { continue }
                endedRequests += check.requestCount
                if let request = check.unansweredRequest { endedUnanswered = Self.adding(endedUnanswered, request) }
            }
        }
        return nil
    }

    /// Checks the next step of a dialogue.
    package mutating func received(_ step: Dialogue.Step) -> Finding? {
        switch step.event {
        case .sent(let pdu): return check(pdu, isSent: true, of: 0, step.line, at: time)
        case .received(let pdu): return check(pdu, isSent: false, of: 0, step.line, at: time)
        case .wait(let pause): time += pause
        case .linkLost: break
        }
        return nil
    }

    private static func adding(_ unanswered: (first: Int, count: Int)?, _ number: Int) -> (first: Int, count: Int)? {
        (min(unanswered?.first ?? number, number), (unanswered?.count ?? 0) + 1)
    }

    private mutating func check(
        _ pdu: [UInt8], isSent: Bool, of link: Int, _ number: Int, at time: Duration
    ) -> Finding? {
        guard let (peer, check) = links[link] else { return nil }
        packetCount += 1
        let disagreement =
            isSent ? check.sent(pdu, number: number, at: time) : check.received(pdu, number: number, at: time)
        return disagreement.map { Finding(peer: peer, disagreement: $0) }
    }
}
