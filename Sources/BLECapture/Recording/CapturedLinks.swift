internal import BLECore

/// Collects the links of a capture, packet by packet.
package struct CapturedLinks {
    /// A link in progress.
    private struct Unfinished {
        let peer: PeerID?
        let isWhole: Bool
        var steps: [Dialogue.Step] = []
        var lastTime: Duration

        var hasPackets: Bool {
            steps.contains { step in
                switch step.event {
                case .sent, .received: true
                case .wait, .linkLost: false
                }
            }
        }

        mutating func add(_ event: Dialogue.Event, at time: Duration, packet: Int) {
            // As in a dialogue written by `Recorder`, only the peer's response time is preserved.
            let pause = time - lastTime
            if case .sent = event {
            } else if pause >= .milliseconds(1) {
                steps.append(Dialogue.Step(.wait(min(pause, .seconds(86_400))), line: packet))
            }
            steps.append(Dialogue.Step(event, line: packet))
            lastTime = time
        }
    }

    private let source: String
    private let isServed: Bool
    private var unfinished: [Unfinished] = []
    private var traffic: AttributeTraffic
    private var number = 0

    /// Creates an empty collection for a file called `source`: of the links that its host has initiated, or of those in
    /// which it was the peripheral.
    package init(source: String, isServed: Bool = false) {
        self.source = source
        self.isServed = isServed
        traffic = AttributeTraffic(isServed: isServed)
    }

    /// Processes the next packet.
    package mutating func received(_ packet: CapturedPacket) {
        number += 1
        for occurrence in traffic.received(packet) {
            switch occurrence.event {
            case .began(let peer, let isWhole):
                unfinished.append(Unfinished(peer: peer, isWhole: isWhole, lastTime: packet.timestamp))
            case .packet(let pdu, let isSent):
                unfinished[occurrence.link].add(
                    isSent ? .sent(pdu) : .received(pdu), at: packet.timestamp, packet: number)
            case .ended(let reason):
                // Of an end that was not recorded, nobody knows whose it was.
                guard let reason, reason != .localHostTerminated else { continue }
                unfinished[occurrence.link].add(.linkLost, at: packet.timestamp, packet: number)
            }
        }
    }

    /// The links so far, in the order in which they began.
    package var links: [RecordedLink] {
        // Links of other programs have events but no packets.
        unfinished.filter(\.hasPackets).map {
            RecordedLink(
                peer: $0.peer, dialogue: Dialogue(steps: $0.steps), source: source, isServed: isServed,
                isWhole: $0.isWhole, isCapture: true)
        }
    }
}
