public import BLECore

/// A deviation of a client from a recording, or an unusable recording.
public enum ReplayError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file is not a readable recording; with the reason.
    case unreadable(path: String, reason: String)
    /// The client connected more often than recorded, or to another peer.
    case noSuchLink(peer: PeerID?)
    /// The client did not connect as often as recorded.
    case notConnected(RecordedLink)
    /// The first difference between the client and the recording on this link.
    case difference(RecordedLink, DialogueReport.Difference)
    /// The system has no sockets left.
    case noLink(TestLinkError)

    /// A message with the position in the file and both packets, as bytes and by name.
    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path) is not a readable recording: \(reason)"
        case .noSuchLink(nil): "all recorded links have been played"
        case .noSuchLink(let peer?): "no link to \(peer) is left in the recording"
        case .notConnected(let link): "\(link.name) was never connected"
        case .noLink(let error): "\(error)"
        case .difference(let link, .unexpected(let line, let expected, let got)):
            "\(link.place(line)): the recording has \(Self.text(expected)), but the client sent \(Self.text(got))"
        case .difference(let link, .surplus(let got)):
            "\(link.name): the client sent \(Self.text(got)), which is not in the recording"
        case .difference(let link, .ended(let line, let expected)):
            "\(link.place(line)): the recording has \(Self.text(expected)), but the client disconnected"
        }
    }

    private static func text(_ packet: [UInt8]) -> String {
        var printer = PacketPrinter()
        return "\(printer.print(Dialogue.Step(.sent(packet))).title) [\(Hex.encode(packet))]"
    }
}
