public import BLECore
internal import BLELinux

/// A peer that plays the server's side of a dialogue and says where the client left the text.
///
///     let peer = ScriptedPeripheral(try Dialogue(text))
///     let descriptor = try await peer.connect()           // the client's end
///     …
///     #expect(await peer.finish().isComplete)
///
/// At the first PDU that differs from the file it hangs up, so that a test never waits for a peer that lost the thread.
/// It is played once.
public actor ScriptedPeripheral {
    private nonisolated let loop: EventLoop
    private var player: DialoguePlayer
    private var link: PeerLink?
    private var hasEnded = false
    private var waiting: [CheckedContinuation<DialogueReport, Never>] = []

    /// A peer that plays `dialogue`, in which `<` is the client.
    public init(_ dialogue: Dialogue) {
        loop = .peers
        player = DialoguePlayer(dialogue)
    }

    /// A peer that plays `dialogue` in a virtual time, as the central that it is tested with must do.
    public init(_ dialogue: Dialogue, time: VirtualTime) {
        loop = time.loop
        player = DialoguePlayer(dialogue)
    }

    /// A peer that plays a recording.
    init(_ dialogue: Dialogue, _ rules: DialoguePlayer.Rules, loop: EventLoop) {
        self.loop = loop
        player = DialoguePlayer(dialogue, rules)
    }

    isolated deinit {
        link?.close()
    }

    /// Isolates the peer to its loop: the test kit's own thread, or that of its virtual time.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        // The actor holds its loop. The loop's handlers are inside the actor already: they enter it by `assumeIsolated`.
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Opens the link; returns the client's end of it, which the caller owns.
    ///
    /// - Throws: `TestLinkError` the second time, and when the system has no descriptors left.
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
                    peer.hangUp()
                }
            })
        perform(player.begin())
        return other
    }

    /// How far the play is.
    public var report: DialogueReport { player.report }

    /// How the play went, as soon as it is over: at the last line, at the first difference, or when the client hangs up.
    public func finish() async -> DialogueReport {
        if player.isOver || hasEnded { return player.report }
        return await withCheckedContinuation { waiting.append($0) }
    }

    private func perform(_ actions: [DialogueAction]) {
        for action in actions {
            switch action {
            case .send(let pdu): link?.send(pdu)
            case .hangUp: hangUp()
            case .wait(let duration):
                _ = loop.schedule(at: loop.now() + duration) { [weak self] in
                    self?.assumeIsolated { peer in peer.perform(peer.player.waited()) }
                }
            }
        }
        if player.isOver || hasEnded { tellEnd() }
    }

    private func hangUp() {
        link?.close()
        link = nil
        hasEnded = true
        tellEnd()
    }

    private func tellEnd() {
        for continuation in waiting { continuation.resume(returning: player.report) }
        waiting = []
    }
}
