public import BLECore
internal import BLELinux

/// One link of a recording: who was at the other end, and what was exchanged.
public struct RecordedLink: Hashable, Sendable {
    /// The header of a dialogue that names the peer.
    static let peerHeader = "peer"
    /// The longest recording that is read.
    static let longestFile = 1 << 26

    /// The peer's address, where the recording has it.
    public let peer: PeerID?
    /// What was exchanged; `<` is what the client sent, and a step's `line` is the line of its file, or the number of its packet in
    /// a capture.
    public let dialogue: Dialogue
    /// The file that it was read from, or a name.
    public let source: String
    /// Whether the file is a capture, so that places in it are packets and not lines.
    let isCapture: Bool

    /// A link from a dialogue; the peer is its header `peer`.
    public init(_ dialogue: Dialogue, source: String = "dialogue") {
        self.init(
            peer: dialogue.header(Self.peerHeader).flatMap { PeerID($0) }, dialogue: dialogue, source: source,
            isCapture: false)
    }

    private init(peer: PeerID?, dialogue: Dialogue, source: String, isCapture: Bool) {
        self.peer = peer
        self.dialogue = dialogue
        self.source = source
        self.isCapture = isCapture
    }

    /// The links of a file, in the order in which they began.
    ///
    /// - Parameters:
    ///   - path: a dialogue, or a capture of the traffic between a host and its controller (btsnoop, pcap, pcapng). Links in which
    ///     the host was the peripheral are left out.
    /// - Throws: `ReplayError.unreadable`.
    public static func links(in path: String) throws(ReplayError) -> [RecordedLink] {
        let bytes: [UInt8]?
        do throws(SystemCallError) {
            bytes = try StoredFile.read(path, limit: longestFile)
        } catch {
            throw .unreadable(path: path, reason: "\(error.call) failed with error \(error.errno)")
        }
        guard let bytes else { throw .unreadable(path: path, reason: "there is no such file") }
        do throws(CaptureError) {
            return try capturedLinks(bytes, path)
        } catch .notACapture {
        } catch {
            throw .unreadable(path: path, reason: "\(error)")
        }
        do throws(Dialogue.ParsingError) {
            return [RecordedLink(try Dialogue(String(decoding: bytes, as: UTF8.self)), source: path)]
        } catch {
            throw .unreadable(path: path, reason: "\(error)")
        }
    }
}

// MARK: - Captures

extension RecordedLink {
    /// A link that is being read.
    private struct Unfinished {
        let peer: PeerID?
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
            // As in a dialogue that `Recorder` writes: how long the peer took counts.
            let pause = time - lastTime
            if case .sent = event {
            } else if pause >= .milliseconds(1) {
                steps.append(Dialogue.Step(.wait(min(pause, .seconds(86_400))), line: packet))
            }
            steps.append(Dialogue.Step(event, line: packet))
            lastTime = time
        }
    }

    private struct Key: Hashable {
        let controller: UInt16
        let handle: ConnectionHandle
    }

    private static func capturedLinks(_ bytes: [UInt8], _ path: String) throws(CaptureError) -> [RecordedLink] {
        var reader = CaptureReader()
        reader.append(bytes)
        var links: [Unfinished] = []
        var open: [Key: Int] = [:]
        var ignored: Set<Key> = []
        var reassembler = L2CAPReassembler()
        var number = 0
        while let packet = try reader.next() {
            number += 1
            switch packet.kind {
            case .event:
                guard let event = try? HCIEvent(packet.bytes.span) else { continue }
                if case .connectionComplete(let complete) = event, complete.status.isSuccess {
                    let key = Key(controller: packet.controller, handle: complete.handle)
                    open[key] = complete.isCentral ? links.count : nil
                    if complete.isCentral { ignored.remove(key) } else { ignored.insert(key) }
                    guard complete.isCentral else { continue }
                    links.append(Unfinished(peer: complete.peer, lastTime: packet.timestamp))
                } else if case .disconnectionComplete(let end) = event, end.status.isSuccess {
                    let key = Key(controller: packet.controller, handle: end.handle)
                    reassembler.linkEnded(controller: packet.controller, connection: end.handle)
                    ignored.remove(key)
                    guard let index = open.removeValue(forKey: key), end.reason != .localHostTerminated else {
                        continue
                    }
                    links[index].add(.linkLost, at: packet.timestamp, packet: number)
                }
            case .asynchronousData:
                guard case .frame(let frame) = reassembler.received(packet),
                    frame.channel == L2CAPFrame.attributeChannel, !frame.payload.isEmpty
                else { continue }
                let key = Key(controller: packet.controller, handle: frame.origin.connection)
                guard !ignored.contains(key) else { continue }
                // A capture may begin in the middle of a link.
                let index = open[key] ?? links.count
                if index == links.count { links.append(Unfinished(peer: nil, lastTime: packet.timestamp)) }
                open[key] = index
                let isSent = frame.origin.direction == .sent
                links[index].add(
                    isSent ? .sent(frame.payload) : .received(frame.payload), at: packet.timestamp, packet: number)
            case .command, .synchronousData, .isochronousData, .note:
                continue
            }
        }
        // Those of other programs are known by their events alone.
        return links.filter(\.hasPackets).map {
            RecordedLink(peer: $0.peer, dialogue: Dialogue(steps: $0.steps), source: path, isCapture: true)
        }
    }
}
