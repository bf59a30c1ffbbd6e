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
    /// Whether its beginning was recorded.
    package let isWhole: Bool
    /// Whether the file is a capture, so that places in it are packets and not lines.
    let isCapture: Bool

    /// A link from a dialogue; the peer is its header `peer`.
    public init(_ dialogue: Dialogue, source: String = "dialogue") {
        self.init(
            peer: dialogue.header(Self.peerHeader).flatMap { PeerID($0) }, dialogue: dialogue, source: source,
            isWhole: true, isCapture: false)
    }

    init(peer: PeerID?, dialogue: Dialogue, source: String, isWhole: Bool, isCapture: Bool) {
        self.peer = peer
        self.isWhole = isWhole
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
            var capture = CapturedLinks(source: path)
            var reader = CaptureReader()
            reader.append(bytes)
            while let packet = try reader.next() { capture.received(packet) }
            return capture.links
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
