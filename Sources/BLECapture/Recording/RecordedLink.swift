public import BLECore
internal import BLELinux

/// One link of a recording: its peer and the packets exchanged.
public struct RecordedLink: Hashable, Sendable {
    /// The dialogue header with the peer.
    package static let peerHeader = "peer"
    /// The dialogue header with the role of the recorded program, where it is not the central.
    static let roleHeader = "role"
    /// The value of that header for a link that the recorded program served.
    static let servedRole = "peripheral"
    /// The maximum size of a recording, in bytes.
    static let longestFile = 1 << 26

    /// The peer's address, if recorded.
    public let peer: PeerID?
    /// A Boolean value that indicates whether the recorded program served the link as the peripheral.
    public let isServed: Bool
    /// The packets exchanged; `<` is what the recorded program sent. A step's `line` is the line in the file, or the
    /// packet number in a capture.
    public let dialogue: Dialogue
    /// The file, or a name.
    public let source: String
    /// True if the beginning of the link was recorded.
    package let isWhole: Bool
    /// True if the file is a capture, so that positions in it are packets and not lines.
    let isCapture: Bool

    /// Creates a link from a dialogue. The peer is in its header `peer`.
    public init(_ dialogue: Dialogue, source: String = "dialogue") {
        self.init(
            peer: dialogue.header(Self.peerHeader).flatMap { PeerID($0) }, dialogue: dialogue, source: source,
            isServed: dialogue.header(Self.roleHeader) == Self.servedRole, isWhole: true, isCapture: false)
    }

    init(peer: PeerID?, dialogue: Dialogue, source: String, isServed: Bool, isWhole: Bool, isCapture: Bool) {
        self.peer = peer
        self.isServed = isServed
        self.isWhole = isWhole
        self.dialogue = dialogue
        self.source = source
        self.isCapture = isCapture
    }

    /// Returns the links of a file, in the order in which they began.
    ///
    /// - Parameters:
    ///   - path: A dialogue, or a capture of HCI traffic (btsnoop, pcap, pcapng). Links in which the host was the
    ///     peripheral are omitted.
    /// - Throws: `UnreadableRecording` if the file cannot be read.
    public static func links(in path: String) throws(UnreadableRecording) -> [RecordedLink] {
        try links(in: path, isServed: false)
    }

    /// Returns the links of a file in which the recorded program was the peripheral, in the order in which they began.
    ///
    /// - Parameter path: A dialogue of such a link, or a capture of HCI traffic.
    /// - Throws: `UnreadableRecording` if the file cannot be read.
    public static func servedLinks(in path: String) throws(UnreadableRecording) -> [RecordedLink] {
        try links(in: path, isServed: true).filter(\.isServed)
    }

    private static func links(in path: String, isServed: Bool) throws(UnreadableRecording) -> [RecordedLink] {
        let bytes: [UInt8]?
        do throws(SystemCallError) {
            bytes = try StoredFile.read(path, limit: longestFile)
        } catch {
            throw UnreadableRecording(path: path, reason: "\(error.call) failed with error \(error.errno)")
        }
        guard let bytes else { throw UnreadableRecording(path: path, reason: "there is no such file") }
        do throws(CaptureError) {
            var capture = CapturedLinks(source: path, isServed: isServed)
            var reader = CaptureReader()
            reader.append(bytes)
            while let packet = try reader.next() { capture.received(packet) }
            return capture.links
        } catch .notACapture {
        } catch {
            throw UnreadableRecording(path: path, reason: "\(error)")
        }
        do throws(Dialogue.ParsingError) {
            return [RecordedLink(try Dialogue(String(decoding: bytes, as: UTF8.self)), source: path)]
        } catch {
            throw UnreadableRecording(path: path, reason: "\(error)")
        }
    }
}

extension RecordedLink {
    /// The link's name in messages: its file, and the peer where the recording has it.
    package var name: String { peer.map { "\(source), the link to \($0)" } ?? source }

    /// A place in the link's file, for messages.
    package func place(_ line: Int) -> String {
        "\(source), \(isCapture ? "packet" : "line") \(line)" + (peer.map { " (\($0))" } ?? "")
    }
}

/// An error that indicates that a file is neither a dialogue nor a capture that can be read.
public struct UnreadableRecording: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path of the file.
    public let path: String
    /// The reason, as a clause.
    public let reason: String

    /// A sentence with the path and the reason.
    public var description: String { "\(path) cannot be read as a recording: \(reason)" }
}
