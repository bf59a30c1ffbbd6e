public import BLECore
internal import BLELinux
internal import Logging

// A lasting connection to one peer. The actor owns the current link, and the `ReconnectMachine`, which decides what
// comes next; the actor only connects those decisions with tasks and time.
//
// Duties
// - Performs the machine's actions in their order, and reports their results to it.
// - Resumes all tasks that wait for a ready link exactly once: with the link, or with one error.
// - Makes the subscriptions of `subscribe(to:)` again on each link, before the link is available to others.
// - At the end it cancels pending work, ends the link, and then reports `.ended`.
//
// Invariants
// - All state belongs to the event loop's thread, and is private to its type.
// - `work` is the one thing in progress: a connect, the program's work on a link, or a wait for the adapter. A result
//   whose number is no longer that of `work` comes too late, and is only released.
// - A released link has ended before the next connect begins: `teardown` is awaited.
// - Once a link was to a bonded peer, each later one has the security that `ConnectOptions.SecurityDemand.onceBonded`
//   returns, also in the restoration state: without the bond another device could take the peer's place.
// - No task of the session holds a reference to it. When its last reference is released, the session and its link end.

/// A lasting connection to one peer, made again by a policy whenever it is lost.
///
/// Each link is a `Peripheral`. `ready(within:)` waits for one that is ready, `withPeripheral` runs code on it,
/// `subscribe(to:)` is a subscription that continues across links, and `events` reports changes. A session lives until
/// `disconnect()`, or until the last reference to it, including its sequences, is released.
public actor Session {
    private nonisolated let loop: EventLoop
    private nonisolated let target: SessionTarget
    private nonisolated let broadcaster = StateBroadcaster()
    private nonisolated let log: SessionLog
    /// Prepares each new link before it is available to others.
    private let onReady: (@Sendable (Peripheral) async throws -> Void)?

    private var machine: ReconnectMachine
    private var current: SessionLink?
    private var next: NextLink
    private var work = SessionWork()
    private var teardown = SessionTeardown()
    private var failures: SessionFailures
    private var timer: TimerID?
    private let waiters: Waiters<LinkResult>
    private var subscriptions = StandingSubscriptions()
    private var record: SessionRecord

    private typealias LinkResult = Result<Peripheral, BLEError>

    /// What is known of the link that will be made next.
    private struct NextLink {
        /// A link that the program has returned, which is used.
        var given: Peripheral?
        /// The security that the link must have.
        var demand: ConnectOptions.SecurityDemand
    }

    /// The event loop: all of the actor's code runs there.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe loop.asUnownedSerialExecutor()
    }

    /// Creates a session that has not begun; `reconnect()` begins it.
    ///
    /// - Parameter keeper: Stores the restoration state of the peer for the next start.
    init(
        _ target: SessionTarget, _ handlers: Handlers, loop: EventLoop, logger: Logger, warnings: PeerWarnings,
        keeper: StateKeeper?
    ) {
        self.loop = loop
        self.target = target
        let options = target.options
        log = SessionLog(of: target.name, in: logger, warnings)
        onReady = handlers.onReady
        failures = SessionFailures(handlers, waitsForAdapter: target.awaitAdapter != nil)
        next = NextLink(demand: options.connect.security)
        machine = ReconnectMachine(
            options.reconnect, resetBackoffAfter: options.resetBackoffAfter, preparation: options.readyTimeout)
        waiters = Waiters(on: loop)
        record = SessionRecord(of: target.peer, in: keeper)
    }

    isolated deinit {
        if let timer { loop.cancel(timer) }
        _ = work.cancel()
        current?.watch.cancel()
        if let link = current?.link { Task.detached(executorPreference: loop) { await link.disconnect() } }
    }
}

// MARK: - Public API

extension Session {
    /// The peer's address; `nil` if the links are not Bluetooth links.
    public nonisolated var id: PeerID? { target.peer }
    /// The peer's name in messages: its address, or the path or name of the link.
    public nonisolated var name: String { target.name }
    /// The options that the session was created with.
    public nonisolated var options: Options { target.options }

    /// The present state of the session.
    public nonisolated var state: State { broadcaster.state }

    /// A Boolean value that indicates whether this program is ending the session and it has not ended yet.
    public nonisolated var isDisconnecting: Bool { state == .disconnecting }

    /// The events in order, beginning when the property is read; the first one is the present state.
    public nonisolated var events: ConnectionEventSequence {
        BLESequence(losses: .before { .missed($0) }) { [self] in
            let (buffer, number) = broadcaster.addListener(to: name)
            // It also keeps the session alive.
            return StreamListener(buffer: buffer, token: LifetimeToken { self.broadcaster.removeListener(number) })
        }
    }

    /// The security of each link when it becomes encrypted, beginning when the property is read.
    ///
    /// The link to a bonded peer is encrypted before `onReady` begins, any other one by a pairing, if there is one.
    /// A link is reported once, and again after `returnLink(_:)`; a further pairing on it is not reported.
    /// `Peripheral.security` is the present security.
    public nonisolated var securityChanges: LinkSecuritySequence {
        broadcaster.securityChanges(keeping: self)
    }

    /// Returns the link, once it is ready.
    ///
    /// - Parameter limit: The longest wait; `nil` waits for as long as the task lives.
    /// - Throws: `BLEError` with `.timedOut`, `.cancelled`; the error with which the session gave up, even if it
    ///   already has; `.disconnected` after the session has ended.
    public func ready(within limit: Duration? = nil) async throws(BLEError) -> Peripheral {
        if let result = linkResult(during: Self.waiting) { return try result.get() }
        switch await waiters.wait(until: limit.map({ loop.now() + $0 }), { _ in linkResult(during: Self.waiting) }) {
        case .resumed(let result):
            return try result.get()
        case .timedOut:
            throw BLEError(
                .timedOut, subject: name, during: Self.waiting, because: "there was no link in time",
                hint: failures.last.map { "The last thing that went wrong: \($0.error)" })
        case .cancelled:
            throw cancelledError()
        }
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
        if machine.isEnding { throw endedError(during: "connect") }
        start()
    }

    /// Begins the session.
    func start() {
        perform(machine.want())
    }

    /// Ends the session: cancels a connect or a pause, and ends the link.
    ///
    /// Tasks that wait for a link fail at once, with `.disconnected`. With `.afterPendingOperations` a ready link ends
    /// after the pending operations; a cancelled task, or another `disconnect()`, does not wait for them any longer.
    /// The call returns when everything of the session has been released; a session that has ended stays so.
    public func disconnect(_ mode: Peripheral.DisconnectMode = .now) async {
        record.forgetSession()
        if mode == .now { endSubscriptions(nil) }
        teardown.setMode(state == .ready ? mode : .now)
        let closingLink = teardown.closingLink
        let end = machine.end()
        if !end.isEmpty { become(.disconnecting) }
        perform(end)
        if mode == .now { await closingLink?.disconnect(.now) }
        let task = teardown.task
        await withTaskCancellationHandler {
            await task?.value
        } onCancel: {
            Task(executorPreference: loop) { await self.closeNow() }
        }
        let actions = machine.released()
        guard !actions.isEmpty else { return }
        failures.reportExpectedEnd(endedError(during: "keep the link"), at: loop.now())
        perform(actions)
    }

    /// Ends the closing link without waiting for calls any longer.
    private func closeNow() async {
        await teardown.closingLink?.disconnect(.now)
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
        failures.decide(by: decide, includingExpectedEnds: includingExpectedEnds)
    }

    /// Returns the ready link to the caller without ending it, and pauses the session.
    ///
    /// This is for code that needs exclusive use of the peer, such as a firmware update: until `returnLink(_:)` or
    /// `reconnect()` the session makes no links, even if this one ends, and `Central.connect(_:_:)` may connect to the
    /// peer. Subscriptions of `subscribe(to:_:)` are interrupted, and the values are disabled in the peer unless other
    /// subscriptions need them. Tasks that wait for a link keep waiting. The caller must end a link that is not
    /// returned.
    ///
    /// - Throws: `BLEError` with `.disconnected` if no link is ready.
    public func releaseLink() async throws(BLEError) -> Peripheral {
        let link = try takeReadyLink(during: "release the link")
        let epoch = work.number
        perform(machine.pause())
        let pumps = subscriptions.pumps
        for pump in pumps { pump.cancel() }
        for pump in pumps { await pump.value }
        // Another link may be in progress by then; its mark has the same effect.
        guard work.number == epoch else { return link }
        let error = BLEError(
            .disconnected, subject: name, during: "continue a subscription",
            because: "this program has taken the link", hint: "Return it with `returnLink(_:)`.")
        subscriptions.interrupt(error, epoch)
        return link
    }

    /// Resumes the session with a link from `releaseLink()`, or with another one to the same peer.
    ///
    /// `onReady` prepares it, as each link; one that has ended meanwhile is replaced as the policy specifies.
    ///
    /// - Throws: `BLEError` with `.disconnected` after the session has ended; `.invalidArgument` if it is not paused,
    ///   and for a link to another peer; `.notBonded` for a link without the security that the session demands;
    ///   `.notSupported` for one to a private address that may be a bonded peer's, without `Configuration.addressHash`;
    ///   `.unusableState` for one to a peer whose bond is damaged. The link stays the caller's then.
    public func returnLink(_ link: Peripheral) throws(BLEError) {
        let operation = "return the link"
        if machine.isEnding { throw endedError(during: operation) }
        guard machine.isPaused else {
            throw BLEError(
                .invalidArgument, subject: name, during: operation, because: "the session has not released its link")
        }
        guard link.id == id || link.id.map(target.isPeer) ?? false, link.loop === loop else {
            throw Self.strangeLinkError(link, during: operation)
        }
        let demand = next.demand
        // An ended link has no security any more. It is replaced by one that has what the session demands.
        if let error = link.assumeIsolated({ $0.end == nil ? $0.takingError(demand, during: operation) : nil }) {
            throw error
        }
        note(bondOf: link)
        next.given = link
        start()
    }

    static func strangeLinkError(_ link: Peripheral, during operation: String) -> BLEError {
        BLEError(
            .invalidArgument, subject: link.name, during: operation,
            because: "the link leads to another peer, or belongs to another central")
    }

    /// Ends the session and detaches its link without ending that, as `Peripheral.detach()` does.
    ///
    /// Earlier values are in the sequences of `subscribe(to:_:)`. The session stays in the restoration state of
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
        // They end with the link, after its values.
        let pumps = subscriptions.pumps
        for pump in pumps { pump.cancel() }
        for pump in pumps { await pump.value }
        record.stop()
        await disconnect()
        return try result.get()
    }

    /// Takes the ready link from the session. From now on its end causes no reconnect.
    ///
    /// - Throws: `BLEError` with `.disconnected` if no link is ready.
    private func takeReadyLink(during operation: String) throws(BLEError) -> Peripheral {
        guard let link = try linkResult(during: operation)?.get() else {
            throw BLEError(
                .disconnected, subject: name, during: operation, because: "no link is ready",
                hint: "Wait for `ready()`.")
        }
        noteBond()
        current?.watch.cancel()
        current = nil
        return link
    }

    /// Fails everything that is pending or waits, once, with `.cancelled`: calls on the ready link, and tasks that
    /// wait for a link. The session and its link stay, and so do subscriptions; `onReady` is not affected.
    public func cancelAll() {
        waiters.resumeAll(.failure(cancelledError()))
        guard state == .ready, let link = current?.link else { return }
        link.assumeIsolated { $0.cancelAll() }
    }
}

// MARK: - Subscriptions

extension Session {
    /// Subscribes to a characteristic on this link, if there is one, and on each that follows.
    ///
    /// The sequence reports the beginning and each interruption of the subscription; values that the peer sends in
    /// between are not received. It ends with the session. If the peer refuses, or has no such characteristic, it ends
    /// with that error. After a temporary failure, such as another task's long `exclusively`, the session retries after
    /// a pause. A characteristic that has disappeared with its service is searched for again at each change of services
    /// and on each link, up to 16 times in a row; the log reports this at `notice`.
    ///
    /// - Parameters:
    ///   - characteristic: The characteristic. One from a database, `.characteristic`, ends the sequence when the peer
    ///     changes it.
    ///   - options: Options of the subscription and its buffer.
    public func subscribe(
        to characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValueSequence<ReceivedValue> {
        SessionValueSequence(
            add(.characteristic(characteristic), options), decoder: ValueDecoder(.fail, valueLog) { $0 })
    }

    /// Returns the values of all characteristics that have a subscription, on this link and each that follows.
    ///
    /// It makes no subscription itself, and is not restored after a restart. `.began` and `.interrupted` mark the
    /// links. `ReceivedValue.handle` is the handle of the characteristic.
    public func notifications(
        _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValueSequence<ReceivedValue> {
        SessionValueSequence(add(.everything, options), decoder: ValueDecoder(.fail, valueLog) { $0 })
    }

    /// Subscribes on this link and each that follows, and returns the values decoded as the key's type.
    ///
    /// A value whose bytes do not fit the type is thrown as `BLEError.Code.malformedValue`, with the bytes in
    /// `partialValue`. A `for` loop ends there; an iterator continues with the following `next()`. With
    /// `SubscribeOptions.malformedValues` such values are left out instead.
    public func subscribe<Value: GATTReadable & Sendable>(
        to key: CharacteristicKey<Value>, _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValueSequence<Value> {
        SessionValueSequence(
            add(.characteristic(CharacteristicReference(key)), options),
            decoder: ValueDecoder(options.malformedValues, valueLog))
    }

    /// The former name of `subscribe(to:_:)`.
    @available(*, deprecated, renamed: "subscribe(to:_:)")
    public func values(
        of characteristic: CharacteristicReference, _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValueSequence<ReceivedValue> {
        subscribe(to: characteristic, options)
    }

    /// The former name of `subscribe(to:_:)`.
    @available(*, deprecated, renamed: "subscribe(to:_:)")
    public func values<Value: GATTReadable & Sendable>(
        of key: CharacteristicKey<Value>, _ options: SubscribeOptions = SubscribeOptions()
    ) -> SessionValueSequence<Value> {
        subscribe(to: key, options)
    }

    /// The log for values that are left out.
    nonisolated var valueLog: LinkLog { log.ofValues(on: loop) }

    /// Subscribes as a stored subscription specifies.
    func subscribe(
        to persisted: RestorationState.Subscription, _ holding: SubscribeOptions
    ) -> SessionValueSequence<ReceivedValue> {
        var options = holding
        options.preferred = persisted.prefersIndications ? .indications : .notifications
        let reference = CharacteristicReference.uuid(persisted.uuid, service: persisted.service, index: persisted.index)
        return subscribe(to: reference, options)
    }

    private func add(_ source: StandingSubscription.Source, _ options: SubscribeOptions) -> StandingListener {
        let subscription = StandingSubscription(to: source, of: name, options)
        let number: UInt64
        switch linkResult(during: "subscribe") {
        case .failure(let error)?:
            number = subscriptions.makeNumber()
            subscription.buffer.finish(machine.isEnding ? nil : error)
        case .success(let link)?:
            number = subscriptions.add(subscription)
            begin(number, on: link)
        case nil:
            number = subscriptions.add(subscription)
            record.keep(number, subscription, on: current?.link)
        }
        return StandingListener(number: number, buffer: subscription.buffer, session: self)
    }

    /// Begins each subscription on the link that is ready now.
    private func beginSubscriptions() {
        guard let link = current?.link else { return }
        for number in subscriptions.numbers { begin(number, on: link) }
    }

    private func begin(_ number: UInt64, on link: Peripheral) {
        guard let subscription = subscriptions[number] else { return }
        record.keep(number, subscription, on: link)
        subscriptions.begin(number, on: link, work.number) { [weak self] number in
            await self?.removeSubscription(number)
        }
    }

    /// Ends one subscription; returns when the peer has been informed, if it must be.
    func endSubscription(_ number: UInt64) async {
        record.forget(number)
        guard let subscription = subscriptions.remove(number) else { return }
        subscription.buffer.finish()
        subscription.cancel()
        await subscription.ended()
    }

    private func removeSubscription(_ number: UInt64) {
        subscriptions.remove(number)?.cancel()
    }

    /// Releases a subscription that no task can end any more; its restoration state stays.
    nonisolated func releaseSubscription(_ number: UInt64) {
        Task.detached(executorPreference: loop) { await self.released(number) }
    }

    private func released(_ number: UInt64) {
        removeSubscription(number)
        record.release(number)
    }

    /// Ends all subscriptions: with the session's final error, or without an error.
    private func endSubscriptions(_ failure: BLEError?) {
        subscriptions.finish(failure)
    }
}

// MARK: - The machine's actions

extension Session {
    private static let waiting = "wait for a link"

    private func perform(_ actions: [ReconnectMachine.Action]) {
        for action in actions {
            switch action {
            case .report(let event): report(event)
            case .connect: connect()
            case .prepare: prepare()
            case .overdue: overdue()
            case .awaitAdapter: awaitAdapter()
            case .tearDown: tearDown()
            }
        }
        if !waiters.isEmpty, let result = linkResult(during: Self.waiting) { waiters.resumeAll(result) }
        armTimer()
    }

    private func report(_ event: ReconnectMachine.Event) {
        log.report(event, after: failures.last, at: loop.now())
        switch event {
        case .connecting(let attempt): become(.connecting(attempt: attempt))
        case .connected:
            become(.preparing)
            reportSecurity()
        case .ready:
            noteBond()
            // Their requests precede those of all others.
            beginSubscriptions()
            become(.ready)
        case .disconnected(let next): become(.waiting(disconnection(next)))
        case .gaveUp:
            let error = disconnection(.never).error
            become(.gaveUp(error))
            endSubscriptions(error)
        case .paused: become(.paused)
        case .ended:
            become(.ended)
            endSubscriptions(nil)
        }
    }

    private func become(_ state: State) {
        broadcaster.report(Event(state), state)
    }

    private func disconnection(_ next: ReconnectMachine.Next) -> Disconnection {
        failures.disconnection(next, or: endedError(during: "connect"), at: loop.now())
    }

    /// Reports that the link is encrypted: before its first byte to a bonded peer,
    /// otherwise once a pairing has made it so.
    private func reportSecurity() {
        guard let link = current?.link else { return }
        let number = ObjectIdentifier(link)
        link.assumeIsolated { link in
            link.onSecured { [weak self] security in
                // A link that has ended meanwhile is not encrypted any more.
                guard security.isEncrypted else { return }
                self?.assumeIsolated { session in
                    guard let current = session.current?.link, ObjectIdentifier(current) == number else { return }
                    session.broadcaster.report(security)
                }
            }
        }
    }

    // MARK: Work in progress

    private func connect() {
        if let link = next.given.take() {
            work.begin(on: loop) { [weak self] number in
                if let self { return await self.connected(number, .success(link)) }
                await link.disconnect()
            }
            return
        }
        let (target, teardown) = (target, teardown.task)
        var options = target.options.connect
        options.security = next.demand
        work.begin(on: loop) { [weak self, options] number in
            await teardown?.value
            if Task.isCancelled { return }
            let result: LinkResult
            do throws(BLEError) {
                result = .success(try await target.connect(options))
            } catch {
                result = .failure(error)
            }
            if let self { return await self.connected(number, result) }
            if case .success(let link) = result { await link.disconnect() }
        }
    }

    private func connected(_ number: UInt64, _ result: LinkResult) async {
        switch result {
        case .success(let link):
            // The link came up just when it was no longer requested.
            guard work.end(number) else { return await link.disconnect() }
            current = watch(link)
            perform(machine.linkUp(at: loop.now()))
        case .failure(let error):
            guard work.end(number) else { return }
            fail(failures.kind(of: error), error)
        }
    }

    private func prepare() {
        guard let current else { return }
        // It may have ended before its watch has run.
        if let reason = current.end { return linkEnded(current.link, reason) }
        let link = current.link
        guard let onReady else { return perform(machine.prepared(at: loop.now())) }
        work.begin(on: loop) { [weak self] number in
            do {
                try await onReady(link)
                await self?.prepared(number, nil)
            } catch {
                await self?.prepared(number, error)
            }
        }
    }

    private func prepared(_ number: UInt64, _ failure: (any Error)?) {
        guard work.end(number), let current else { return }
        // The reason of the link's end explains more than the failures that it caused.
        if let reason = current.end { return linkEnded(current.link, reason) }
        guard let failure else { return perform(machine.prepared(at: loop.now())) }
        let error =
            failure as? BLEError
            ?? BLEError(
                .connectFailed, subject: name, during: "get the link ready", because: "onReady failed: \(failure)")
        fail(.passing, error)
    }

    private func overdue() {
        fail(
            .passing,
            BLEError(
                .timedOut, subject: name, during: "get the link ready",
                because: "onReady took longer than \(options.readyTimeout ?? .zero)"))
    }

    private func awaitAdapter() {
        guard let wait = target.awaitAdapter else { return }
        let teardown = teardown.task
        work.begin(on: loop) { [weak self] number in
            await teardown?.value
            guard await wait() else { return }
            await self?.adapterReturned(number)
        }
    }

    private func adapterReturned(_ number: UInt64) {
        guard work.end(number) else { return }
        perform(machine.adapterReturned(at: loop.now()))
    }

    /// Cancels pending work, and ends the link. The program's code is cancelled and not awaited.
    private func tearDown() {
        noteBond()
        let (work, link) = (work.cancel(), current?.link)
        current?.watch.cancel()
        current = nil
        guard work != nil || link != nil else { return }
        teardown.begin(link, after: link == nil ? work : nil, on: loop)
    }

    // MARK: The link

    private func watch(_ link: Peripheral) -> SessionLink {
        let changes = link.assumeIsolated { link in
            link.onPairingFailure { [weak self] error in self?.assumeIsolated { $0.pairingFailed(error) } }
            return link.announcedServiceChanges()
        }
        let watch = Task.detached(executorPreference: loop) { [weak self] in
            var changes = changes.makeAsyncIterator()
            while let change = try? await changes.next() { await self?.servicesChanged(change, of: link) }
            guard let reason = await link.disconnected() else { return }
            await self?.linkEnded(link, reason)
        }
        return SessionLink(link, watch)
    }

    /// Demands the bond of the peer from now on, if there is one: it may have been made on this link.
    private func noteBond() {
        if let link = current?.link { note(bondOf: link) }
    }

    private func note(bondOf link: Peripheral) {
        guard link.assumeIsolated({ $0.isBonded }) else { return }
        let former = next.demand
        next.demand = former.onceBonded
        if next.demand.requiresBond, !former.requiresBond { record.requireBond() }
    }

    private func servicesChanged(_ change: Peripheral.ServiceChange, of link: Peripheral) {
        guard link === current?.link else { return }
        broadcaster.report(.servicesChanged(change.handles), nil)
    }

    private func linkEnded(_ link: Peripheral, _ reason: DisconnectReason) {
        guard link === current?.link else { return }
        let error = link.assumeIsolated { $0.endError(during: "keep the link", isReplaced: true) }
        fail(failures.kind(ofEnd: reason), error, reason)
    }

    // MARK: Failures

    /// Pairing on demand has failed. The kernel ends the link too, and reports that first or last.
    private func pairingFailed(_ error: BLEError) {
        if error.code == .wrongPasskey { fail(.final, error) }
    }

    private func fail(_ kind: ReconnectMachine.FailureKind, _ error: BLEError, _ reason: DisconnectReason? = nil) {
        let now = loop.now()
        failures.failed(error, reason, at: now)
        let verdict = failures.verdict(kind, failures: machine.failures(at: now))
        perform(machine.failed(kind, verdict, at: now))
    }

    // MARK: Time

    private func armTimer() {
        let deadline = machine.nextDeadline
        if timer?.deadline == deadline { return }
        if let timer { loop.cancel(timer) }
        timer = deadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                self?.assumeIsolated { $0.timePassed() }
            }
        }
    }

    private func timePassed() {
        timer = nil
        perform(machine.timePassed(loop.now()))
    }

    // MARK: Tasks that wait for a link

    /// Returns the result for a task that requests a link; `nil` if it must wait.
    private func linkResult(during operation: String) -> LinkResult? {
        if machine.isEnding { return .failure(endedError(during: operation)) }
        switch state {
        case .ready:
            guard let current else { return nil }
            // It may have ended before its watch has run.
            if let reason = current.end {
                linkEnded(current.link, reason)
                return linkResult(during: operation)
            }
            return .success(current.link)
        case .gaveUp(let error): return .failure(error)
        case .disconnecting, .ended: return .failure(endedError(during: operation))
        case .connecting, .preparing, .waiting, .paused: return nil
        }
    }

    private func endedError(during operation: String) -> BLEError {
        BLEError(.disconnected, subject: name, during: operation, because: "this program has ended the session")
    }

    private func cancelledError() -> BLEError {
        BLEError(
            .cancelled, subject: name, during: Self.waiting,
            because: "the task was cancelled, or `cancelAll()` was called")
    }
}

/// The consumer's side of a standing subscription; it keeps the subscription, and its session, alive.
struct StandingListener: Sendable {
    let number: UInt64
    let buffer: StandingSubscription.Buffer
    let session: Session
    let token: LifetimeToken

    init(number: UInt64, buffer: StandingSubscription.Buffer, session: Session) {
        self.number = number
        self.buffer = buffer
        self.session = session
        token = LifetimeToken {
            buffer.finish()
            session.releaseSubscription(number)
        }
    }
}
