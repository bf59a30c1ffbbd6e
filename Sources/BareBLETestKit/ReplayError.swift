public import BLECore

/// Why a client did not play a recording through.
public enum ReplayError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file is no recording; why.
    case unreadable(path: String, reason: String)
    /// The client connected more often than was recorded, or to somebody else.
    case noSuchLink(peer: PeerID?)
    /// The client did not connect as often as was recorded.
    case notConnected(RecordedLink)
    /// The client did something else than was recorded; the first such thing on this link.
    case difference(RecordedLink, DialogueReport.Difference)
    /// The system gave no pair of sockets.
    case noLink(TestLinkError)

    /// A sentence with the place in the file, and both packets, in bytes and by name.
    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path) is no recording that can be played: \(reason)"
        case .noSuchLink(nil): "all recorded links have been played"
        case .noSuchLink(let peer?): "no link to \(peer) is left in the recording"
        case .notConnected(let link): "\(link.name) was not connected to"
        case .noLink(let error): "\(error)"
        case .difference(let link, .unexpected(let line, let expected, let got)):
            "\(link.place(line)): recorded was \(Self.text(expected)), but the client sent \(Self.text(got))"
        case .difference(let link, .surplus(let got)):
            "\(link.name): the client sent \(Self.text(got)), which nobody recorded there"
        case .difference(let link, .ended(let line, let expected)):
            "\(link.place(line)): recorded was \(Self.text(expected)), but the client hung up"
        }
    }

    private static func text(_ packet: [UInt8]) -> String {
        var printer = PacketPrinter()
        return "\(printer.print(Dialogue.Step(.sent(packet))).title) [\(Hex.encode(packet))]"
    }
}

extension RecordedLink {
    var name: String { peer.map { "\(source), the link to \($0)" } ?? source }

    func place(_ line: Int) -> String {
        "\(source), \(isCapture ? "packet" : "line") \(line)" + (peer.map { " (\($0))" } ?? "")
    }
}
