internal import BLECore
internal import BLELinux

/// A peer that plays the server's side of a dialogue and reports where the client deviates from it.
///
///     let peer = ScriptedPeripheral(try Dialogue(text))
///     let descriptor = try await peer.connect()           // the client's end
///     …
///     #expect(await peer.finish().isComplete)
///
/// At the first PDU that differs from the file it disconnects, so that a test never waits for a response that cannot
/// come. It can be played once.
public actor ScriptedPeripheral {
    private nonisolated let loop: EventLoop
    private var player: DialoguePlayer
    private var link: PeerLink?
    private var hasEnded = false
    private var waiting: [CheckedContinuation<DialogueReport, Never>] = []

    /// Creates a peer that plays `dialogue`, in which `<` is the client.
    public init(_ dialogue: Dialogue) {
        loop = .peers
        player = DialoguePlayer(dialogue)
    }

    /// Creates a peer that plays `dialogue` in the virtual time of the central under test.
    public init(_ dialogue: Dialogue, time: VirtualTime) {
        loop = time.loop
        player = DialoguePlayer(dialogue)
    }

    /// Creates a peer that plays a recording.
    init(_ dialogue: Dialogue, _ rules: DialoguePlayer.Rules, loop: EventLoop) {
        self.loop = loop
        player = DialoguePlayer(dialogue, rules)
    }

    isolated deinit {
        link?.close()
    }

    /// The executor of the peer's loop: the test kit's thread, or that of its virtual time.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor owns its loop. The loop's handlers already run on the actor: they enter it with `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Opens the link and returns the client's end of it, which the caller owns.
    ///
    /// - Throws: `TestLinkError` on a second call, and if the system has no descriptors left.
    public func connect() throws(TestLinkError) -> Int32 {
        guard link == nil, !hasEnded else { throw .connectedAlready }
        let (link, other) = try PeerLink.open(on: loop)
        self.link = link
        link.start(
            packet: { [weak self] pdu in
                self?.assumeIsolated { peer in peer.perform(peer.player.received(pdu)) }
            },
            ended: { [weak self] in
                self?.assumeIsolated { peer in
                    peer.player.ended()
                    peer.disconnect()
                }
            })
        perform(player.begin())
        return other
    }

    /// The progress so far.
    public var report: DialogueReport { player.report }

    /// Waits for the end of the dialogue (the last line, the first difference, or the client's disconnect) and returns
    /// the result.
    public func finish() async -> DialogueReport {
        if player.isOver || hasEnded { return player.report }
        return await withCheckedContinuation { waiting.append($0) }
    }

    private func perform(_ actions: [DialogueAction]) {
        for action in actions {
            switch action {
            case .send(let pdu): link?.send(pdu)
            case .disconnect: disconnect()
            case .wait(let duration):
                _ = loop.schedule(at: loop.now() + duration) { [weak self] in
                    self?.assumeIsolated { peer in peer.perform(peer.player.waited()) }
                }
            }
        }
        if player.isOver || hasEnded { reportEnd() }
    }

    private func disconnect() {
        link?.close()
        link = nil
        hasEnded = true
        reportEnd()
    }

    private func reportEnd() {
        for continuation in waiting { continuation.resume(returning: player.report) }
        waiting = []
    }
}
