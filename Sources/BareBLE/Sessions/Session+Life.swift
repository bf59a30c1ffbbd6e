internal import BLECore
internal import BLELinux
internal import Logging

extension Session {
    /// What will be the same each time: the next attempt too would fail with it.
    private static let finalCodes: Set<BLEError.Code> = [.unsupported, .notPermitted, .invalidArgument, .notSupported]
    /// What says that the adapter is off or away.
    private static let adapterCodes: Set<BLEError.Code> = [.noAdapter, .adapterDown, .blocked]

    // MARK: The machine's actions

    func perform(_ actions: [ConnectionLife.Action]) {
        for action in actions {
            switch action {
            case .tell(let event): tell(event)
            case .connect: connect()
            case .prepare: prepare()
            case .overdue: overdue()
            case .awaitAdapter: awaitAdapter()
            case .letGo: letGo()
            }
        }
        resumeWaiters()
        armTimer()
    }

    private func tell(_ event: ConnectionLife.Event) {
        log(event)
        switch event {
        case .connecting(let attempt): become(.connecting(attempt: attempt))
        case .connected: become(.preparing)
        case .ready:
            // Their requests are in front of everybody else's.
            makeStandingSubscriptions()
            become(.ready)
        case .disconnected(let next): become(.waiting(disconnection(next)))
        case .gaveUp:
            let error = disconnection(.never).error
            become(.gaveUp(error))
            endStandingSubscriptions(error)
        case .paused: become(.paused)
        case .ended:
            become(.ended)
            endStandingSubscriptions(nil)
        }
    }

    func become(_ state: SessionState) {
        board.tell(ConnectionEvent(state), state)
    }

    // MARK: The log

    /// Logs what happens to the links, one line each: losses and new links of a peer at most once a minute for each reason.
    private func log(_ event: ConnectionLife.Event) {
        switch event {
        case .connecting, .connected, .disconnected(.never):
            logger.debug("session", metadata: ["peer": "\(name)", "event": "\(event)"])
        case .ready:
            log("a link is ready", [:])
        case .disconnected(let next):
            log(setback?.reason == nil ? "no link could be made" : "a link was lost", ["next": "\(Self.words(next))"])
        case .gaveUp:
            logger.notice(
                "a session gave up", metadata: ["peer": "\(name)", "reason": "\(lossReason)"])
        case .paused: logger.info("a session is paused", metadata: ["peer": "\(name)"])
        case .ended: logger.info("a session has ended", metadata: ["peer": "\(name)"])
        }
    }

    private func log(_ message: Logger.Message, _ details: Logger.Metadata) {
        let reason = setback == nil ? "first connect" : lossReason
        // What is remembered has to be bounded: the reason of an error may say anything.
        let kind = setback.map { $0.reason?.description ?? "\($0.error.code)" } ?? ""
        guard let leftOut = troubles.admit("\(message): \(kind)", at: loop.now()) else { return }
        var metadata = details
        metadata["peer"] = "\(name)"
        metadata["reason"] = "\(reason)"
        if leftOut > 0 { metadata["left out"] = "\(leftOut)" }
        logger.info(message, metadata: metadata)
    }

    /// Why there was no link last, in words.
    private var lossReason: String {
        guard let setback else { return "the connection was not wanted" }
        return setback.reason?.description ?? setback.error.reason
    }

    private static func words(_ next: ConnectionLife.Next) -> String {
        switch next {
        case .after(let pause): "connects again in \(Duration.milliseconds(Int64(pause / .milliseconds(1))))"
        case .whenAdapterReturns: "connects again when the adapter is back"
        case .never: "does not connect again"
        }
    }

    /// The last setback, and what comes of it.
    private func disconnection(_ next: ConnectionLife.Next) -> Disconnection {
        let next: Disconnection.NextAttempt =
            switch next {
            case .after(let pause): .after(pause)
            case .whenAdapterReturns: .whenAdapterReturns
            case .never: .never
            }
        let last = setback ?? (endedError(during: "connect"), nil, loop.now())
        return Disconnection(error: last.error, reason: last.reason, time: last.time, next: next)
    }

    // MARK: One thing at a time

    /// Begins what is under way from now on; `body` gets its number.
    private func begin(_ body: @escaping @Sendable (UInt64) async -> Void) {
        workNumber &+= 1
        let number = workNumber
        // Detached: a lease or another task-local value of who asked for this has no business in it.
        work = Task.detached(executorPreference: loop) { await body(number) }
    }

    private func connect() {
        if let link = given.take() {
            begin { [weak self] number in
                if let self { return await self.connected(number, .success(link)) }
                await link.disconnect()
            }
            return
        }
        let (target, options, farewell) = (target, options.connect, farewell)
        begin { [weak self] number in
            await farewell?.value
            if Task.isCancelled { return }
            let result: Answer
            do throws(BLEError) {
                result = .success(try await target.connect(options))
            } catch {
                result = .failure(error)
            }
            if let self { return await self.connected(number, result) }
            if case .success(let link) = result { await link.disconnect() }
        }
    }

    private func connected(_ number: UInt64, _ result: Answer) async {
        switch result {
        case .success(let link):
            // A link that came up in the very moment in which nobody wanted it any more.
            guard number == workNumber else { return await link.disconnect() }
            work = nil
            self.link = link
            watch(link)
            perform(life.linkUp(at: loop.now()))
        case .failure(let error):
            guard number == workNumber else { return }
            work = nil
            fail(kind(of: error), error)
        }
    }

    private func prepare() {
        guard let link else { return }
        // It may have ended without its watch having had its turn.
        if let reason = link.assumeIsolated({ $0.end }) { return linkEnded(link, reason) }
        guard let onReady = handlers.onReady else { return perform(life.prepared(at: loop.now())) }
        begin { [weak self] number in
            do {
                try await onReady(link)
                await self?.prepared(number, nil)
            } catch {
                await self?.prepared(number, error)
            }
        }
    }

    private func prepared(_ number: UInt64, _ failure: (any Error)?) {
        guard number == workNumber, let link else { return }
        // Why the link ended says more than what failed because of it.
        if let reason = link.assumeIsolated({ $0.end }) { return linkEnded(link, reason) }
        work = nil
        guard let failure else { return perform(life.prepared(at: loop.now())) }
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
        let farewell = farewell
        begin { [weak self] number in
            await farewell?.value
            guard await wait() else { return }
            await self?.adapterReturned(number)
        }
    }

    private func adapterReturned(_ number: UInt64) {
        guard number == workNumber else { return }
        work = nil
        perform(life.adapterReturned(at: loop.now()))
    }

    /// Takes back what is under way, and ends the link. Code of the program's is cancelled and not waited for.
    private func letGo() {
        workNumber &+= 1
        work?.cancel()
        watch?.cancel()
        let (work, link, earlier) = (link == nil ? work : nil, link, farewell)
        (self.work, self.watch, self.link) = (nil, nil, nil)
        guard work != nil || link != nil else { return }
        let mode = partingMode
        parting = link
        // Not detached: who ends the session inside a lease of the link does not wait for itself.
        farewell = Task(executorPreference: loop) {
            await earlier?.value
            await work?.value
            await link?.disconnect(mode)
        }
    }

    // MARK: The link

    private func watch(_ link: Peripheral) {
        let changes = link.assumeIsolated { $0.announcedServiceChanges() }
        watch = Task.detached(executorPreference: loop) { [weak self] in
            var changes = changes.makeAsyncIterator()
            while let change = try? await changes.next() { await self?.servicesChanged(change, of: link) }
            guard let reason = await link.disconnected() else { return }
            await self?.linkEnded(link, reason)
        }
    }

    private func servicesChanged(_ change: ServiceChange, of link: Peripheral) {
        guard link === self.link else { return }
        board.tell(.servicesChanged(change.handles), nil)
    }

    func linkEnded(_ link: Peripheral, _ reason: DisconnectReason) {
        guard link === self.link else { return }
        let error = link.assumeIsolated { $0.endError(during: "keep the link") }
        let kind = reason == .adapterLost && target.awaitAdapter != nil ? ConnectionLife.Setback.adapterLost : .passing
        fail(kind, error, reason)
    }

    // MARK: Setbacks

    private func kind(of error: BLEError) -> ConnectionLife.Setback {
        if Self.adapterCodes.contains(error.code), target.awaitAdapter != nil { return .adapterLost }
        return Self.finalCodes.contains(error.code) ? .final : .passing
    }

    private func fail(_ kind: ConnectionLife.Setback, _ error: BLEError, _ reason: DisconnectReason? = nil) {
        let now = loop.now()
        setback = (error, reason, now)
        let verdict: ConnectionLife.Verdict
        if let decide = handlers.decide, kind == .passing {
            let failures = life.failures(at: now)
            verdict = .custom(decide(disconnection(.never), failures))
        } else {
            verdict = .byPolicy(chance: handlers.chance())
        }
        perform(life.failed(kind, verdict, at: now))
    }

    // MARK: Time

    private func armTimer() {
        let deadline = life.nextDeadline
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
        perform(life.timePassed(loop.now()))
    }

    // MARK: Who waits for a link

    /// What somebody who asks for a link now gets; `nil` for waiting.
    func linkAnswer(during operation: String) -> Answer? {
        if life.isEnding { return .failure(endedError(during: operation)) }
        switch state {
        case .ready:
            guard let link else { return nil }
            // It may have ended without its watch having had its turn.
            if let reason = link.assumeIsolated({ $0.end }) {
                linkEnded(link, reason)
                return linkAnswer(during: operation)
            }
            return .success(link)
        case .gaveUp(let error): return .failure(error)
        case .disconnecting, .ended: return .failure(endedError(during: operation))
        case .connecting, .preparing, .waiting, .paused: return nil
        }
    }

    private func resumeWaiters() {
        // Looked at one by one: asking for the answer may find out that the link has ended.
        while let number = waiters.keys.min(), let waiter = waiters[number],
            let answer = linkAnswer(during: waiter.operation)
        {
            // Who has been told of that end meanwhile is not told again.
            guard waiters.removeValue(forKey: number) != nil else { continue }
            if let timer = waiter.timer { loop.cancel(timer) }
            waiter.continuation.resume(returning: answer)
        }
    }

    func stopWaiting(_ number: UInt64, isLate: Bool) {
        guard let waiter = waiters.removeValue(forKey: number) else { return }
        if let timer = waiter.timer { loop.cancel(timer) }
        let error =
            isLate
            ? BLEError(
                .timedOut, subject: name, during: waiter.operation, because: "there was no link in time",
                hint: setback.map { "The last thing that went wrong: \($0.error)" })
            : cancelledError(during: waiter.operation)
        waiter.continuation.resume(returning: .failure(error))
    }

    func endedError(during operation: String) -> BLEError {
        BLEError(.disconnected, subject: name, during: operation, because: "this program has ended the session")
    }

    func cancelledError(during operation: String) -> BLEError {
        BLEError(.cancelled, subject: name, during: operation, because: "the task, or everything, was cancelled")
    }
}
