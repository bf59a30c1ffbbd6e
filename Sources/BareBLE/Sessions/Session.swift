public import BLECore
internal import BLELinux
internal import Logging

// One wanted peer. The actor owns the link of the moment, and the `ConnectionLife`, which knows what comes next; what happens
// here is only the meeting of that with tasks and time.
//
// Duties
// - Performs the machine's actions in their order, and tells it what came of them.
// - Knows what kind of failure an error is.
// - Resumes everybody who waits for a ready link exactly once: with the link, or with one error.
// - Makes the subscriptions of `values(of:)` anew on each link, before anybody else gets it.
// - At the end: what is under way is taken back, the link ends, and `.ended` is told behind all of it.
//
// Invariants
// - All state belongs to the event loop's thread.
// - `work` is the one thing under way: a connect, the program's work on a link, or a wait for the adapter. What it says when it is
//   not `workNumber` any more comes too late, and is only let go of.
// - A link that is let go of is over before the next connect begins: `farewell` is awaited.
// - No task of the session holds it. Its last reference going away ends it, link and all.

/// A lasting connection to one peer, made again by a policy whenever it is lost.
///
/// Each link is a `Peripheral`. `ready(within:)` waits for one that is ready, `withPeripheral` runs code on it,
/// `values(of:)` is a subscription that continues across links, and `events` reports changes. A session lives until
/// `disconnect()`, or until the last reference to it, including its sequences, goes away.
public actor Session {
    /// The peer's address; `nil` if the links are not Bluetooth links.
    public nonisolated let id: PeerID?
    /// The peer's name in messages: its address, or the path or name of the link.
    public nonisolated let name: String
    /// The options that the session was created with.
    public nonisolated let options: SessionOptions

    nonisolated let loop: EventLoop
    nonisolated let board = ConnectionBoard()
    let target: SessionTarget
    var handlers: SessionHandlers
    let logger: Logger
    let troubles: PeerTroubles

    var life: ConnectionLife
    var link: Peripheral?
    /// A link that the program has given back; the next connect takes it.
    var given: Peripheral?
    var watch: Task<Void, Never>?
    var work: Task<Void, Never>?
    var workNumber: UInt64 = 0
    var farewell: Task<Void, Never>?
    /// The link that is being let go of, and how.
    weak var parting: Peripheral?
    var partingMode = DisconnectMode.now
    var setback: (error: BLEError, reason: DisconnectReason?, time: BootInstant)?
    var timer: TimerID?
    var waiters: [UInt64: Waiter] = [:]
    var lastNumber: UInt64 = 0
    var standing: [UInt64: StandingSubscription] = [:]
    /// Keeps for the next start what is wanted of the peer.
    var keeper: StateKeeper?
    /// What it keeps of the subscriptions, by their numbers: also of those that have ended without being unsubscribed.
    var kept: [UInt64: WantedSubscription] = [:]

    typealias Answer = Result<Peripheral, BLEError>

    struct Waiter {
        let continuation: CheckedContinuation<Answer, Never>
        let timer: TimerID?
        let operation: String
    }

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    /// A session that nobody has begun yet; `reconnect()` begins it.
    init(
        _ target: SessionTarget, _ options: SessionOptions, _ handlers: SessionHandlers, loop: EventLoop,
        logger: Logger, troubles: PeerTroubles
    ) {
        self.id = target.peer
        self.name = target.name
        self.options = options
        self.target = target
        self.handlers = handlers
        self.loop = loop
        self.logger = logger
        self.troubles = troubles
        self.life = ConnectionLife(
            options.reconnect, provenAfter: options.provenAfter, preparation: options.readyTimeout)
    }

    isolated deinit {
        if let timer { loop.cancel(timer) }
        work?.cancel()
        watch?.cancel()
        if let link { Task.detached(executorPreference: loop) { await link.disconnect() } }
    }
}

// MARK: - What applications use

extension Session {
    /// The present state of the session.
    public nonisolated var state: SessionState { board.state }

    /// A Boolean value that indicates whether this program is ending the session and it has not ended yet.
    public nonisolated var isDisconnecting: Bool { state == .disconnecting }

    /// The events from now on, in order; the first one is the present state.
    public nonisolated var events: ConnectionEvents { ConnectionEvents(session: self) }

    /// Returns the link, once it is ready.
    ///
    /// - Parameter limit: The longest wait; `nil` waits for as long as the task lives.
    /// - Throws: `BLEError` with `.timedOut`, `.cancelled`; the error with which the session gave up, even if it
    ///   already has; `.disconnected` after the session has ended.
    public func ready(within limit: Duration? = nil) async throws(BLEError) -> Peripheral {
        let operation = "wait for a link"
        lastNumber &+= 1
        let number = lastNumber
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Answer, Never>) in
                if let answer = linkAnswer(during: operation) { return continuation.resume(returning: answer) }
                if Task.isCancelled {
                    return continuation.resume(returning: .failure(cancelledError(during: operation)))
                }
                let timer = limit.map { limit in
                    loop.schedule(at: loop.now() + limit) { [weak self] in
                        self?.assumeIsolated { $0.stopWaiting(number, isLate: true) }
                    }
                }
                waiters[number] = Waiter(continuation: continuation, timer: timer, operation: operation)
            }
        } onCancel: {
            Task(executorPreference: loop) { await self.stopWaiting(number, isLate: false) }
        }
        return try answer.get()
    }

    /// Waits for a ready link, and runs `body` on it.
    ///
    /// With `repeating`, a `body` that fails with `BLEError.Code.disconnected` because its link was lost runs again,
    /// from its beginning, on the next link, so `body` must be idempotent. The link stays up when `body` returns.
    ///
    /// `body` runs in the caller's isolation and may change the caller's state: variables, and properties of an actor
    /// or the main actor.
    ///
    /// - Throws: `BLEError` as `ready(within:)` does, and the error of `body`.
    public nonisolated func withPeripheral<Value>(
        within limit: Duration? = nil, repeating: Bool = false,
        _ body: (Peripheral) async throws -> Value
    ) async throws -> Value {
        while true {
            let peripheral = try await ready(within: limit)
            do {
                return try await body(peripheral)
            } catch {
                guard repeating, !Task.isCancelled, (error as? BLEError)?.code == .disconnected,
                    await !peripheral.isConnected
                else { throw error }
            }
        }
    }

    /// Connects now: ends a pause, or resumes after the session gave up or `releaseLink()`. The counts of attempts and
    /// pauses start over.
    ///
    /// Does nothing while there is a link, or one is being made.
    ///
    /// - Throws: `BLEError` with `.disconnected` after the session has ended.
    public func reconnect() throws(BLEError) {
        if life.isEnding { throw endedError(during: "connect") }
        perform(life.want())
    }

    /// Ends the session: cancels a connect or a pause, and ends the link.
    ///
    /// Tasks that wait for a link fail at once, with `.disconnected`. With `.afterQueue` a ready link ends after the
    /// pending operations; a cancelled task, or another `disconnect()`, does not wait for them any longer. The call
    /// returns when everything of the session has been released; a session that has ended stays so.
    public func disconnect(_ mode: DisconnectMode = .now) async {
        forgetSession()
        if mode == .now { endStandingSubscriptions(nil) }
        partingMode = state == .ready ? mode : .now
        let parting = self.parting
        let end = life.end()
        if !end.isEmpty { become(.disconnecting) }
        perform(end)
        if mode == .now { await parting?.disconnect(.now) }
        await withTaskCancellationHandler {
            await farewell?.value
        } onCancel: {
            Task(executorPreference: loop) { await self.parting?.disconnect(.now) }
        }
        let actions = life.released()
        guard !actions.isEmpty else { return }
        if handlers.includesExpectedEnds {
            let end = Disconnection(
                error: endedError(during: "keep the link"), reason: .requested, time: loop.now(), next: .never)
            _ = handlers.decide?(end, 0)
        }
        perform(actions)
    }

    /// Sets the closure that decides the pause before the next attempt, from the next loss or failure on.
    ///
    /// - Parameters:
    ///   - includingExpectedEnds: Whether `decide` is also called at the end of the session by `disconnect(_:)`, once,
    ///     with the reason `.requested` and before `.ended` is reported. Its result has no effect there.
    ///   - decide: Called as the closure of `Central.session(with:_:onReady:reconnect:)` is, in place of the policy.
    ///     `nil`: the policy of `options` decides again; a session whose policy is `.custom` gives up then.
    public func setReconnectHandler(
        includingExpectedEnds: Bool = false, _ decide: (@Sendable (Disconnection, _ failures: Int) -> Duration?)?
    ) {
        handlers.decide = decide
        handlers.includesExpectedEnds = includingExpectedEnds
    }

    /// Returns the ready link to the caller without ending it, and pauses the session.
    ///
    /// This is for code that needs exclusive use of the peer, such as a firmware update: until `takeBack(_:)` or
    /// `reconnect()` the session makes no links, even if this one ends, and `Central.connect(_:_:)` may connect to the
    /// peer. Subscriptions of `values(of:_:)` are interrupted, and the peer is asked to stop unless other
    /// subscriptions need the values. Tasks that wait for a link keep waiting. The caller must end a link that is not
    /// returned.
    ///
    /// - Throws: `BLEError` with `.disconnected` if no link is ready.
    public func releaseLink() async throws(BLEError) -> Peripheral {
        let link = try takeReadyLink(during: "give the link up")
        let epoch = workNumber
        perform(life.pause())
        let pumps = standing.inOrder.compactMap(\.pump)
        for pump in pumps { pump.cancel() }
        for pump in pumps { await pump.value }
        // Another link may be under way by then; its mark says the same.
        guard workNumber == epoch else { return link }
        let error = BLEError(
            .disconnected, subject: name, during: "go on with a subscription",
            because: "this program has taken the link", hint: "Give it back with `takeBack(_:)`.")
        for subscription in standing.inOrder { subscription.buffer.yield(.interrupted(error, epoch)) }
        return link
    }

    /// Resumes the session with a link from `releaseLink()`, or with another one to the same peer.
    ///
    /// `onReady` prepares it, as each link; one that has ended meanwhile is replaced as the policy says.
    ///
    /// - Throws: `BLEError` with `.disconnected` after the session has ended; `.invalidArgument` if it is not paused,
    ///   and for a link to another peer. The link stays the caller's then.
    public func takeBack(_ link: Peripheral) throws(BLEError) {
        let operation = "take the link back"
        if life.isEnding { throw endedError(during: operation) }
        guard life.isPaused else {
            throw BLEError(
                .invalidArgument, subject: name, during: operation, because: "the session has not given its link up")
        }
        guard link.id == id, link.loop === loop else { throw Self.strangeLinkError(link, during: operation) }
        given = link
        perform(life.want())
    }

    static func strangeLinkError(_ link: Peripheral, during operation: String) -> BLEError {
        BLEError(
            .invalidArgument, subject: link.name, during: operation,
            because: "the link leads to another peer, or belongs to another central")
    }

    /// Ends the session and detaches its link without ending that, as `Peripheral.detach()` does.
    ///
    /// Earlier values are in the sequences of `values(of:_:)`. The session stays in the restoration state of
    /// `Central.restore(_:from:holding:handlers:)`: the next start resumes it, unless `Central.forget(_:)` is called.
    ///
    /// - Throws: `BLEError` with `.disconnected` if no link is ready; the session continues then. If the link ends at
    ///   this very moment, the session has ended with it.
    public func detach() async throws(BLEError) -> DetachedLink {
        let link = try takeReadyLink(during: "hand the link over")
        let result: Result<DetachedLink, BLEError>
        do throws(BLEError) {
            result = .success(try await link.detach())
        } catch {
            result = .failure(error)
        }
        // They end with the link, behind the values that it had.
        let pumps = standing.inOrder.compactMap(\.pump)
        for pump in pumps { pump.cancel() }
        for pump in pumps { await pump.value }
        keeper = nil
        await disconnect()
        return try result.get()
    }

    /// Takes the link that is ready from the session. Its end is no reason to connect again from now on.
    ///
    /// - Throws: `BLEError` with `.disconnected` when no link is ready.
    private func takeReadyLink(during operation: String) throws(BLEError) -> Peripheral {
        guard let link = try linkAnswer(during: operation)?.get() else {
            throw BLEError(
                .disconnected, subject: name, during: operation, because: "no link is ready",
                hint: "Wait for `ready()`.")
        }
        watch?.cancel()
        (watch, self.link) = (nil, nil)
        return link
    }

    /// Fails everything that waits or is under way, once, with `.cancelled`: calls on the ready link, and tasks that
    /// wait for a link. The session and its link stay, and so do subscriptions; `onReady` is not affected.
    public func cancelAll() {
        for number in waiters.keys.sorted() { stopWaiting(number, isLate: false) }
        guard state == .ready, let link else { return }
        link.assumeIsolated { $0.cancelAll() }
    }
}
