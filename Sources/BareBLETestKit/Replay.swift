// Plays recordings back: each link is a `ScriptedPeripheral`, with the rules that a live client needs.
//
// Invariants:
// - Every recorded link is played once, in the order of the recording; links of one peer in their order if it is
//   given.
// - The first difference ends its link: the client sees a lost link and never waits for a response that cannot come.

public import BLECore
internal import BLELinux

/// One or several peers that respond as recorded.
///
///     let replay = try Replay("visit.btsnoop")
///     let device = try await central.attach(descriptor: replay.connect())
///     …                                               // the same client code
///     try await replay.finish()
///
/// A client that repeats the recorded requests receives the recorded responses. Notifications and indications come at
/// their recorded position between requests. Any other PDU ends the link, and `finish()` reports the position and both
/// packets.
///
/// A recording of a served link plays the central's side to a server: pass `RecordedLink.servedLinks(in:)`, and attach
/// `connect()` to a `LocalPeripheral`.
public actor Replay {
    /// The recorded links, in the order in which they began.
    public nonisolated let links: [RecordedLink]

    private nonisolated let loop: EventLoop
    private let rules: DialoguePlayer.Rules
    private let speed: Double
    private var players: [Int: ScriptedPeripheral] = [:]

    /// Creates a replay of captures, or of dialogues with one link each.
    ///
    /// - Parameters:
    ///   - paths: The files, in the order in which their links are established.
    ///   - order: The permitted reordering of requests.
    ///   - timeScale: The factor for the peer's recorded pauses: 1 for the original pace, 0 for none.
    ///   - time: The virtual time of the central under test, if any.
    /// - Throws: `ReplayError.unreadable` if a file cannot be read.
    public init(
        _ paths: String..., order: RequestOrder = .recorded, timeScale: Double = 0, time: VirtualTime? = nil
    ) throws(ReplayError) {
        var links: [RecordedLink] = []
        for path in paths {
            do throws(UnreadableRecording) {
                links += try RecordedLink.links(in: path)
            } catch {
                throw .unreadable(path: error.path, reason: error.reason)
            }
        }
        self.init(links, order: order, timeScale: timeScale, time: time)
    }

    /// Creates a replay of links.
    public init(
        _ links: [RecordedLink], order: RequestOrder = .recorded, timeScale: Double = 0, time: VirtualTime? = nil
    ) {
        self.links = links
        loop = time?.loop ?? .peers
        rules = DialoguePlayer.Rules(isPatient: true, order: order)
        speed = timeScale.isFinite ? min(max(timeScale, 0), 1000) : 0
    }

    /// The executor of the loop of its peers.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Connects to the next recorded link and returns the client's end, which the caller owns.
    ///
    /// - Parameters:
    ///   - peer: The peer of the link, or `nil` for any.
    /// - Throws: `ReplayError.noSuchLink` if there is no such link left, `.noLink` if the system has no sockets left.
    public func connect(to peer: PeerID? = nil) async throws(ReplayError) -> Int32 {
        let next = links.indices.first { players[$0] == nil && (peer == nil || links[$0].peer == peer) }
        guard let next else { throw .noSuchLink(peer: peer) }
        let player = ScriptedPeripheral(paced(links[next].dialogue), rules, loop: loop)
        players[next] = player
        do throws(TestLinkError) {
            return try await player.connect()
        } catch {
            throw .noLink(error)
        }
    }

    /// Checks that everything was played: waits until each link has ended or its client has disconnected.
    ///
    /// - Throws: `ReplayError.difference` or `.notConnected`, the first one in the order of the links.
    public func finish() async throws(ReplayError) {
        // A client that has lost one link may never end the others.
        if let difference = await difference { throw difference }
        for (index, link) in links.enumerated() {
            guard let player = players[index] else { throw .notConnected(link) }
            if let difference = await player.finish().difference { throw .difference(link, difference) }
        }
        // Differences after the last line of a link, while waiting for the others.
        if let difference = await difference { throw difference }
    }

    /// The first difference so far, in the order of the links.
    public var difference: ReplayError? {
        get async {
            for (index, link) in links.enumerated() {
                if let difference = await players[index]?.report.difference { return .difference(link, difference) }
            }
            return nil
        }
    }

    /// Returns the dialogue with scaled pauses.
    private func paced(_ dialogue: Dialogue) -> Dialogue {
        var dialogue = dialogue
        let speed = speed
        dialogue.steps = dialogue.steps.compactMap { step in
            guard case .wait(let pause) = step.event else { return step }
            let scaled = pause * speed
            return scaled > .zero ? Dialogue.Step(.wait(scaled), comment: step.comment, line: step.line) : nil
        }
        return dialogue
    }
}

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
            "\(link.place(line)): the recording has \(Self.text(expected)), "
                + "but the \(Self.program(link)) sent \(Self.text(got))"
        case .difference(let link, .surplus(let got)):
            "\(link.name): the \(Self.program(link)) sent \(Self.text(got)), which is not in the recording"
        case .difference(let link, .ended(let line, let expected)):
            "\(link.place(line)): the recording has \(Self.text(expected)), but the \(Self.program(link)) disconnected"
        }
    }

    /// What the program under test is on a link.
    private static func program(_ link: RecordedLink) -> String { link.isServed ? "server" : "client" }

    private static func text(_ packet: [UInt8]) -> String {
        var printer = PacketPrinter()
        return "\(printer.print(Dialogue.Step(.sent(packet))).title) [\(Hex.encode(packet))]"
    }
}
