// Plays recordings back: each link is a `ScriptedPeripheral` of its own, with the rules that a live client needs.
//
// Invariants
// - Every recorded link is played once, in the order of the recording; those of one peer in their order where it is named.
// - The first difference ends its link: the client sees a lost link and never waits for a peer that lost the thread.

public import BLECore
internal import BLELinux

/// A peer, or several, that answer as they did when they were recorded.
///
///     let replay = try Replay("visit.btsnoop")
///     let device = try await central.attach(descriptor: replay.connect())
///     …                                               // the same client code
///     try await replay.finish()
///
/// A client that sends what was sent then gets what was received then. Values that came unasked come at their recorded place between
/// its requests. Whatever else it does ends the link, and `finish()` says where: the line, and both packets.
public actor Replay {
    /// The recorded links, in the order in which they began.
    public nonisolated let links: [RecordedLink]

    private nonisolated let loop: EventLoop
    private let rules: DialoguePlayer.Rules
    private let speed: Double
    private var players: [Int: ScriptedPeripheral] = [:]

    /// Plays the links of some files: captures, or dialogues, one link in each.
    ///
    /// - Parameters:
    ///   - paths: the files, in the order in which their links are made.
    ///   - order: which requests may pass each other.
    ///   - timeScale: what the peer's recorded pauses are multiplied with: 1 for the pace of the recording, 0 for none.
    ///   - time: the virtual time of the central that is tested, if it lives in one.
    /// - Throws: `ReplayError.unreadable`.
    public init(
        _ paths: String..., order: RequestOrder = .recorded, timeScale: Double = 0, time: VirtualTime? = nil
    ) throws(ReplayError) {
        var links: [RecordedLink] = []
        for path in paths { links += try RecordedLink.links(in: path) }
        self.init(links, order: order, timeScale: timeScale, time: time)
    }

    /// Plays links that were read already.
    public init(
        _ links: [RecordedLink], order: RequestOrder = .recorded, timeScale: Double = 0, time: VirtualTime? = nil
    ) {
        self.links = links
        loop = time?.loop ?? .peers
        rules = DialoguePlayer.Rules(isPatient: true, order: order)
        speed = timeScale.isFinite ? min(max(timeScale, 0), 1000) : 0
    }

    /// Isolates the play to the loop of its peers.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Connects to the next recorded link; returns the client's end, which the caller owns.
    ///
    /// - Parameters:
    ///   - peer: whose next link; anybody's when left out.
    /// - Throws: `ReplayError.noSuchLink`, `.noLink`.
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

    /// Checks that everything was played: waits until each link is through, or its client has hung up.
    ///
    /// - Throws: `ReplayError.difference`, `.notConnected`: the first one, in the order of the links.
    public func finish() async throws(ReplayError) {
        // A client that has lost one link may never end the others.
        if let difference = await difference { throw difference }
        for (index, link) in links.enumerated() {
            guard let player = players[index] else { throw .notConnected(link) }
            if let difference = await player.finish().difference { throw .difference(link, difference) }
        }
        // What came behind the last line of a link, while the others were waited for.
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

    /// The dialogue with the pauses that this play makes.
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
