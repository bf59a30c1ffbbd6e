public import BLECore
internal import BLELinux
internal import Logging

// Where `ATTLink` meets the tasks and the other owners of the peripheral.

extension Peripheral {
    /// Begins to read the socket.
    func startReading() throws(BLEError) {
        let failure = link.startReading(id: id) { [weak self] signal in
            self?.assumeIsolated { $0.signalled(signal) }
        }
        controls?.watchLoss { [weak self] in
            self?.assumeIsolated { $0.controllerForgot() }
        }
        if let failure {
            throw BLEError(
                .system, subject: name, during: "watch the link", because: "\(failure.call) failed",
                hint: failure.remedy, errorNumber: failure.errno)
        }
    }

    private func signalled(_ signal: ATTLink.Signal) {
        switch signal {
        case .readable: link.readable(happened)
        case .writable: link.writable(happened)
        case .timePassed: link.timePassed(happened)
        }
    }

    /// Passes what happened on the link on to the other owners.
    func happened(_ event: ATTLink.Event) {
        switch event {
        case .value(let handle, let value, let isIndication): deliver(value, from: handle, isIndication: isIndication)
        case .written(let operation):
            if let collector = subscriptionHub.collector(for: operation) {
                subscriptionHub.requestWritten(for: collector)
            }
        case .read: tellTroubles()
        case .ended(let errno): linkEnded(errno)
        case .unusable(let reason): close(reason)
        }
    }

    /// The controller has the link no more: it was reset.
    private func controllerForgot() {
        // What had come before is there to be read; so may be the end, with its reason.
        link.readable(happened)
        if !link.isEnding { close(.adapterLost) }
    }

    private func linkEnded(_ errno: Int32) {
        guard let controls else { return close(DisconnectReason(errno: errno, status: nil), code: errno) }
        link.stopWatching()
        Task(executorPreference: loop) {
            let status = await controls.lastReason()
            await self.close(DisconnectReason(errno: errno, status: status), code: errno)
        }
    }

    // MARK: Operations

    /// Runs one operation of the client to its end, once; `recovering` is what may repeat it. What it is called is asked
    /// for only when it fails.
    func run(
        until deadline: BootInstant, during operation: @autoclosure () -> String,
        askingFor collector: Subscriptions.ID? = nil, start: ATTLink.Start
    ) async throws(BLEError) -> GATTOutcome {
        switch await runOperation(until: deadline, askingFor: collector, start: start) {
        case .success(let outcome):
            return outcome
        case .failure(.linkLost):
            throw endError(during: operation())
        case .failure(let failure):
            throw BLEError(failure, subject: name, during: operation())
        }
    }

    /// Runs one operation: of a call, or of the library's own, which `cancelAll()` does not concern.
    ///
    /// - Parameter collector: The call that collects the response, if it is in values.
    func runOperation(
        until deadline: BootInstant, isOfCall: Bool = true, askingFor collector: Subscriptions.ID? = nil,
        start: ATTLink.Start
    ) async -> Result<GATTOutcome, OperationFailure> {
        if end != nil { return .failure(.linkLost) }
        let id = link.nextID()
        return await onLoop {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (caller: ATTLink.Caller) in
                    // A cancellation from here on finds the caller: its job enters the actor after this one.
                    if Task.isCancelled || isOfCall && scheduler.isClearing {
                        return caller.resume(returning: .failure(.cancelled))
                    }
                    if let collector { subscriptionHub.requestBegan(id, for: collector) }
                    link.start(
                        id, until: deadline, isOfCall: isOfCall, isCollected: collector != nil, caller, happened, start)
                    if peerDatabase.isServiceChangedDue { enableServiceChangedAfterCurrent() }
                }
            } onCancel: {
                Task(executorPreference: loop) { await self.cancel(id) }
            }
        }
    }

    /// Lets the task prefer the loop while it waits. Else its resumption would go by the global pool: two more changes of
    /// threads, in any order, and not before the program's own tasks leave a thread there.
    @inline(__always)
    func onLoop<Value: Sendable>(_ wait: () async -> Value) async -> Value {
        let isThere = unsafe withUnsafeCurrentTask { task in
            unsafe task?.unownedTaskExecutor == loop.asUnownedTaskExecutor()
        }
        return isThere ? await wait() : await withTaskExecutorPreference(loop, operation: wait)
    }

    private func cancel(_ id: OperationID) {
        link.cancel(id, happened)
    }

    // MARK: The end

    /// The failure of a call that finds, or found, the link gone.
    func endError(during operation: String) -> BLEError {
        let reason = end ?? .other(nil, errorNumber: nil)
        return BLEError(
            .disconnected, subject: name, during: operation, because: "\(reason)", hint: reason.hint,
            hciStatus: reason.hciStatus, errorNumber: reason.errorNumber)
    }

    /// Ends the link: pending calls fail, then the subscriptions and channels end, then the tasks that wait for the end go on.
    ///
    /// Each of them on the loop gets to know before the next ones do, however many jobs that takes.
    func close(_ cause: DisconnectReason, code: Int32 = 0) {
        guard let (reason, handlers) = ending.end(cause) else { return }
        for handler in handlers { handler(reason) }
        link.traceEnd(reason)
        tellEnding(reason)
        tellTroubles(isEnd: true)
        link.close(code, happened)
        interruptCollectors()
        scheduler.linkLost()
        peerDatabase.linkLost()
        let ended = reason.isIntended ? nil : endError(during: "go on with a subscription")
        let streams = subscriptionHub.linkLost()
        loop.afterJobs { [self] in
            assumeIsolated { peripheral in
                for stream in streams { stream.finish(ended) }
                peripheral.peerDatabase.endObservers(ended)
                peripheral.endChannels(reason)
                peripheral.loop.afterJobs { peripheral.assumeIsolated { $0.ending.resumeWaiters() } }
            }
        }
    }

    // MARK: What is counted

    /// What happened on the link so far, counted: requests sent, values received, packets refused and lost.
    public var statistics: ATTStatistics {
        var statistics = link.statistics
        subscriptionHub.count(in: &statistics)
        peerDatabase.count(in: &statistics)
        return statistics
    }

    /// Logs what should not happen on links to this peer, not more often than the log wants to know; at the end of a link, what is left
    /// to tell, unless the peer comes and goes.
    private func tellTroubles(isEnd: Bool = false) {
        let statistics = statistics
        guard let text = troubles.line(counts: statistics.forEachTrouble, isEnd: isEnd, at: loop.now()) else { return }
        logger.warning("trouble on the link", metadata: ["peer": "\(name)", "so far": "\(text)"])
    }

    /// Logs the end of a link: where its peer has left no other choice, as a warning.
    private func tellEnding(_ reason: DisconnectReason) {
        switch reason {
        case .protocolViolation, .attTimeout: log.tell(.warning, "link closed", ["reason": "\(reason)"])
        case .requested, .detached, .byPeer, .supervisionTimeout, .adapterLost, .other:
            logger.debug("link ended", metadata: ["peer": "\(name)", "reason": "\(reason)"])
        }
    }

    /// Calls, tasks and subscriptions that wait for something of this link; for tests of what is left when it has ended.
    package var outstanding: Int {
        link.operationCount + scheduler.outstanding + ending.waiterCount + peerDatabase.outstanding
            + subscriptionHub.outstanding + channels.count
    }
}
